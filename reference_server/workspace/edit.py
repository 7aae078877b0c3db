"""Atomic edits of one or more files."""

from __future__ import annotations

import os
import stat

from .entries import Change, sha256
from .journal import Journal
from .refusals import (
    Busy,
    Changed,
    Exists,
    IsDirectory,
    OutsideClientRoots,
    ReadOnly,
    Refusal,
    SpansRoots,
    TooLarge,
    WriteFailed,
    refusal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..operation.log import Log
    from ..settings import Settings
    from .entries import Snapshot
    from .paths import Parts
    from .place import Root
    from .policy import Policy


class Edit:
    """Collects changes and applies them at once; created by ``Workspace.edit``.

    Args:
        find: Reads a file, or returns None if it does not exist; takes ``path`` and ``cwd``.
        committed: Called with the changes that are on the disk.
    """

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        find: Callable[..., Snapshot | None],
        log: Log,
        committed: Callable[[list[Change]], None],
        *,
        who: str,
        request_id: str,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._find = find
        self._log = log
        self._committed = committed
        self._who = who
        self._request_id = request_id
        self._changes: dict[tuple[int, Parts], Change] = {}

    @property
    def changes(self) -> list[Change]:
        """The planned changes, without files whose bytes stay the same."""
        return [one for one in self._changes.values() if one.before != one.after]

    def put(self, path: str, data: bytes, *, cwd: str = "", before: Snapshot | None = None) -> None:
        """Write a file.

        Args:
            path: The path of a new file; missing directories are created.
            before: The file to replace, at its own path; ``path`` is then ignored. If it is None,
                the file must not exist.
        """
        change = self._change(path, cwd, before)
        limit = self._settings.max_file_size
        if len(data) > limit:
            raise TooLarge(path, f"The file would have {len(data)} bytes; the limit is {limit}.")
        self._enter(Change(change.at, change.before, data))

    def remove(self, before: Snapshot) -> None:
        change = self._change(before.path, "", before)
        self._enter(Change(change.at, change.before, None))

    def _enter(self, change: Change) -> None:
        if any(root != change.at.root for root, _ in self._changes):
            raise SpansRoots(change.path)
        self._changes[change.at.root, change.parts] = change

    def _change(self, path: str, cwd: str, before: Snapshot | None) -> Change:
        """Return the change planned for a file so far; refuse a file that may not be written."""
        if self._settings.read_only:
            raise ReadOnly
        if before is not None:
            at = before.at
            self._policy.check(at, writing=True)
            if not self._policy.contains(at):
                raise OutsideClientRoots(before.path)
        else:
            at = self._policy.candidates(path, cwd, writing=True)[0]
        if not at.parts:
            raise IsDirectory(path or ".")
        self._policy.check_allowed(at)
        planned = self._changes.get((at.root, at.parts))
        if planned:
            if before is None and planned.after is not None:
                raise Exists(path)
            return planned
        if before is not None:
            return Change(at, before.data, before.data)
        if self._find(path, cwd=cwd) is not None:
            raise Exists(path)
        return Change(at, None, None)

    def commit(self) -> None:
        """Apply all changes or none; then write the audit and notify the listeners.

        Each file is replaced by a complete one, so a reader sees either the old or the new bytes.
        If the server is killed half way, the next start finishes or undoes the edit (``journal``).

        Raises:
            Refusal: A file has changed since it was read, the write failed, or another server is
                writing; no file was changed.
        """
        changes = self.changes
        if not changes:
            return
        root = self._policy.roots[changes[0].at.root]
        journal: Journal | None = None
        try:
            with root.writing():
                for change in changes:
                    _verify(root, change)
                who = {"who": self._who, "request_id": self._request_id}
                journal = Journal(root, changes, self._settings, who)
                try:
                    journal.carry_out()
                finally:
                    if journal.done:
                        facts = [_facts(change) for change in journal.done]
                        self._log.audit(self._who, self._request_id, facts)
                    journal.close()
        except TimeoutError:
            raise Busy from None
        except OSError as error:
            raise refusal(error, changes[0].path, WriteFailed) from None
        finally:
            if journal is not None:
                self._report(journal)

    def _report(self, journal: Journal) -> None:
        """Tell what is on the disk, whether or not all of the edit succeeded."""
        log = self._log
        if journal.done:
            self._committed(journal.done)
        about = {"request_id": self._request_id}
        for path, lost in journal.lost.items():
            log.record("warning", "attributes_lost", {**about, "path": path, "lost": lost})
        if journal.left:
            log.record("warning", "temporaries_left", {**about, "paths": journal.left})
        if journal.unplanned:
            log.record("warning", "edit_unplanned", {**about, "reason": journal.unplanned})


def _facts(change: Change) -> dict[str, str | None]:
    """Return the line of a change in the audit."""
    before, after = (one if one is None else sha256(one) for one in (change.before, change.after))
    return {"path": change.path, "before": before, "after": after}


def _verify(root: Root, change: Change) -> None:
    """Check that a file has not changed since it was read, and that we may write it."""
    *above, name = change.parts
    try:
        descriptor = root.open_file(change.parts)
        try:
            if change.before is None:
                raise Exists(change.path)
            if not _holds(descriptor, change.before):
                raise Changed(change.path)
        finally:
            os.close(descriptor)
        # A rename would replace a file that its owner made read-only.
        with root.place(tuple(above)) as place:
            os.close(place.open(name, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))
    except FileNotFoundError:
        if change.before is not None:
            raise Changed(change.path) from None
    except OSError as error:
        raise refusal(error, change.path) from None


def _holds(descriptor: int, data: bytes) -> bool:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size != len(data):
        return False
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(len(data) + 1) == data


__all__ = ["Change", "Edit", "Refusal"]
