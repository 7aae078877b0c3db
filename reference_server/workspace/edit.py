"""One edit of one or more files: all of it happens, or nothing does."""

from __future__ import annotations

import os
import stat

from .entries import sha256
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
    from .entries import Snapshot
    from .paths import Parts
    from .place import Root
    from .tree import Workspace

    Where = tuple[int, Parts]


class Change:
    """What an edit does to one file.

    Attributes:
        path: Relative to its root, with forward slashes.
        before: Its bytes now, or None if the file is to be created.
        after: Its bytes then, or None if the file is to be removed.
        mode: The permission bits it has and keeps; None for a new file.
        parts: The path, cut.
    """

    def __init__(
        self, parts: Parts, before: bytes | None, after: bytes | None, mode: int | None
    ) -> None:
        self.parts = parts
        self.path = "/".join(parts)
        self.before = before
        self.after = after
        self.mode = mode


class Edit:
    """Collects changes and makes them at once; built by ``Workspace.edit``.

    Args:
        workspace: Where the files are.
        who: For the audit.
    """

    def __init__(self, workspace: Workspace, who: str) -> None:
        self._workspace = workspace
        self._who = who
        self._changes: dict[Where, Change] = {}

    @property
    def changes(self) -> list[Change]:
        """What would happen; files that stay as they are are left out."""
        return [one for one in self._changes.values() if one.before != one.after]

    def put(self, path: str, data: bytes, *, cwd: str = "", before: Snapshot | None = None) -> None:
        """Write a file.

        Args:
            path: Where a new file goes; its missing directories are made.
            data: All its bytes.
            cwd: Directory below a root that path is relative to.
            before: The file this replaces; its own path counts then. None: there must be none.

        Raises:
            Refusal: One of its kinds; what was put before stands.
        """
        where, change = self._change(path, cwd, before)
        limit = self._workspace.settings.max_file_size
        if len(data) > limit:
            raise TooLarge(path, f"The file would have {len(data)} bytes; the limit is {limit}.")
        self._enter(where, Change(where[1], change.before, data, change.mode))

    def remove(self, before: Snapshot) -> None:
        """Remove a file that was read.

        Raises:
            Refusal: One of its kinds; what was put before stands.
        """
        where, change = self._change(before.path, "", before)
        self._enter(where, Change(where[1], change.before, None, change.mode))

    def _enter(self, where: Where, change: Change) -> None:
        if any(root != where[0] for root, _ in self._changes):
            raise SpansRoots(change.path)
        self._changes[where] = change

    def _change(self, path: str, cwd: str, before: Snapshot | None) -> tuple[Where, Change]:
        """Give what is planned for a file so far, if the policy lets it be written."""
        workspace = self._workspace
        if not workspace.writable:
            raise ReadOnly
        if before is not None:
            where = (before.root, before.parts)
            folds = workspace.roots[before.root].folds
            workspace.names.check(before.parts, folds=folds, writing=True)
            if not workspace.contains(before.root, before.parts):
                raise OutsideClientRoots(before.path)
        else:
            where = workspace.candidates(path, cwd, writing=True)[0]
        if not where[1]:
            raise IsDirectory(path or ".")
        workspace.names.check_allowed(where[1])
        if where in self._changes:
            planned = self._changes[where]
            if before is None and planned.after is not None:
                raise Exists(path)
            return where, planned
        if before is not None:
            return where, Change(where[1], before.data, before.data, before.mode)
        if workspace.find(path, cwd=cwd) is not None:
            raise Exists(path)
        return where, Change(where[1], None, None, None)

    def commit(self) -> None:
        """Make every change, or none; then write the audit and tell the listeners.

        Each file is replaced by a finished one, so whoever reads meanwhile sees the old bytes or
        the new ones. Killed half way, the rest is made at the next start (``journal``).

        Raises:
            Refusal: A file has changed since it was read, the disk does not take it, or somebody
                else is writing; every file is as it was.
        """
        changes = self.changes
        if not changes:
            return
        workspace = self._workspace
        root = workspace.roots[next(iter(self._changes))[0]]
        try:
            with root.writing():
                for change in changes:
                    _verify(root, change)
                Journal(root, changes).carry_out()
        except TimeoutError:
            raise Busy from None
        except OSError as error:
            raise refusal(error, changes[0].path, WriteFailed) from None
        workspace.log.audit(
            self._who,
            [
                {
                    "path": change.path,
                    "before": None if change.before is None else sha256(change.before),
                    "after": None if change.after is None else sha256(change.after),
                }
                for change in changes
            ],
        )
        workspace.changed(changes)


def _verify(root: Root, change: Change) -> None:
    """See that a file still is what the edit was made on, and that we may write it.

    Raises:
        Refusal: It is not, or we may not.
    """
    try:
        current, mode = read_plain(root, change.parts)
    except FileNotFoundError:
        if change.before is not None:
            raise Changed(change.path) from None
        return
    except OSError as error:
        raise refusal(error, change.path) from None
    if change.before is None:
        raise Exists(change.path)
    if current != change.before:
        raise Changed(change.path)
    change.mode = mode
    try:  # a file its owner has made read-only is not replaced behind his back
        with root.place(change.parts[:-1]) as place:
            os.close(place.open(change.parts[-1], os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))
    except OSError as error:
        raise refusal(error, change.path) from None


def read_plain(root: Root, parts: Parts) -> tuple[bytes, int]:
    """Read a regular file as it is: bytes and permission bits."""
    descriptor = root.open_file(parts)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Changed("/".join(parts))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(found.st_size + 1), stat.S_IMODE(found.st_mode)
    finally:
        os.close(descriptor)


__all__ = ["Change", "Edit", "Refusal", "read_plain"]
