"""Change several files atomically, even if an error occurs or the server is killed.

    plan written --> new files staged beside the old ones --> "staged" written --> renamed

The plan is written to the user's state folder first (``plans``), and stays there until the audit is
written. An error undoes the edit. If the server is killed before "staged", the next start undoes
the edit. If it is killed later, the next start finishes the edit: all new bytes are on the disk
then, and only renames are missing.

A file is replaced by a rename in its own directory, so no reader sees a part of it. As a
consequence, other hard links to the file keep the old content.

For one file in an existing directory the rename alone is atomic. Its plan only serves to remove
temporary files and to complete the audit after a kill, so it is not synced to the disk: two syncs
instead of seven. After a power cut in that moment a temporary file may remain.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager, suppress

from .attributes import inherit
from .entries import sha256
from .names import OURS
from .plans import PLAN, open_plans
from .refusals import Changed, WriteFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..settings import Settings
    from .entries import Change
    from .paths import Parts
    from .place import Place, Root

STAGED = b"staged\n"
_OLD = ".old"
_MOST_OPEN = 200
"""Directories of one edit that are kept open."""


class Journal:
    """Executes one edit; the caller holds ``root.writing()``, and audits before ``close``.

    Args:
        who: The client and the request, for an audit that a later start has to complete.

    Attributes:
        lost: What new files could not take over from the old ones, by the path of the file.
        left: Paths of temporary files that could not be removed; the next start tries again.
        unplanned: Why a kill could have left half of the edit; ``""`` if it could not.
    """

    def __init__(
        self, root: Root, changes: Sequence[Change], settings: Settings, who: Mapping[str, str]
    ) -> None:
        self.lost: dict[str, list[str]] = {}
        self.left: list[str] = []
        self.unplanned = ""
        number = secrets.token_hex(6)
        self._settings = settings
        self._about = {**who, "rules": rules_of(settings)}
        self._name = f"{root.key}-{number}{PLAN}"
        self._plans: Place | None = None
        self._directories = _Directories(root)
        self._steps = [
            _Step(change, f"{OURS}{number}-{index}", self._directories, backup=len(changes) > 1)
            for index, change in enumerate(changes)
        ]
        self._made = _missing_directories(root, changes)
        self._is_simple = len(changes) == 1 and not self._made

    @property
    def done(self) -> list[Change]:
        """The changes that are on the disk: all, none, or those that could not be undone."""
        return [step.change for step in self._steps if step.renamed]

    def carry_out(self) -> None:
        """Execute the edit; after the last rename nothing makes it fail.

        Raises:
            OSError: The edit failed and was undone.
            Refusal: As above; or it could not be undone, and the message names the files.
        """
        with self._directories:
            try:
                self._plan()
                self._stage()
                if self._plans and not self._is_simple:
                    _append(self._plans, self._name, STAGED)
                self._rename()
            except BaseException:
                self._undo()
                raise
            self._tidy()

    def close(self) -> None:
        """Remove the plan, unless the next start has to tidy up."""
        if self._plans is None:
            return
        with self._plans, suppress(OSError):
            if not self.left:
                self._plans.remove(self._name)
            if not self._is_simple:
                self._plans.sync()

    def _plan(self) -> None:
        plan = {**self._about, "made": self._made, "files": [step.plan() for step in self._steps]}
        data = json.dumps(plan).encode() + b"\n"
        try:
            self._plans = open_plans(self._settings, make=True)
            _write(self._plans, self._name, data, mode=0o600, wait=not self._is_simple)
            if not self._is_simple:
                self._plans.sync()
        except OSError as error:  # each file is still replaced as a whole
            self.close()
            self._plans = None
            if not self._is_simple:
                self.unplanned = error.strerror or type(error).__name__

    def _stage(self) -> None:
        for parts in self._made:
            with self._directories.at(tuple(parts[:-1])) as place:
                place.make_directory(parts[-1])
        for step in self._steps:
            if lost := step.stage(wait=not self._is_simple):
                self.lost[step.change.path] = lost

    def _rename(self) -> None:
        for step in self._steps:
            if not self._directories.stands(step.parts[:-1]):
                raise Changed(step.change.path)
        for step in self._steps:
            step.rename()

    def _tidy(self) -> None:
        for step in self._steps:
            try:
                step.tidy()
            except OSError:
                self.left.append("/".join((*step.parts[:-1], step.temporary)))

    def _undo(self) -> None:
        torn = []
        for step in reversed(self._steps):
            try:
                step.undo()
            except OSError:
                torn.append("/".join(step.parts))
            with suppress(OSError):
                step.tidy()
        for parts in reversed(self._made):
            with suppress(OSError), self._directories.at(tuple(parts[:-1])) as place:
                place.remove_directory(parts[-1])
        if torn:
            raise WriteFailed("", f"The edit failed, and these could not be undone: {torn}.")


class _Directories:
    """The directories of one edit. A directory that was moved meanwhile can still be tidied."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._open: dict[Parts, Place] = {}

    def __enter__(self) -> None: ...

    def __exit__(self, *_error: object) -> None:
        for place in self._open.values():
            place.__exit__(None, None, None)

    @contextmanager
    def at(self, parts: Parts) -> Iterator[Place]:
        """Open a directory, or use it again."""
        if parts in self._open:
            yield self._open[parts]
            return
        place = self._root.place(parts)
        if place.fd is None or len(self._open) >= _MOST_OPEN:  # a path is resolved each time
            with place:
                yield place
            return
        self._open[parts] = place
        yield place

    def stands(self, parts: Parts) -> bool:
        """Return whether an open directory still has its path; raises as ``Root.place``."""
        held = self._open.get(parts)
        with self._root.place(parts) as place:
            return not held or os.path.samestat(held.lstat("."), place.lstat("."))


class _Step:
    """The change of one file.

    Attributes:
        temporary: The name of its temporary file.
        renamed: Whether the change is on the disk.
    """

    def __init__(
        self, change: Change, temporary: str, directories: _Directories, *, backup: bool
    ) -> None:
        self.change = change
        self.parts = change.parts
        self.temporary = temporary
        self.renamed = False
        self._at = directories.at
        self._backup = backup and change.before is not None

    def plan(self) -> dict[str, Any]:
        """Return the data that recovery needs."""
        before, after = self.change.before, self.change.after
        return {
            "parts": self.parts,
            "temporary": self.temporary,
            "before": None if before is None else [sha256(before), len(before)],
            "after": None if after is None else [sha256(after), len(after)],
        }

    def stage(self, *, wait: bool) -> list[str]:
        """Write the temporary files; ``wait`` also syncs their directory.

        Returns:
            What the new file could not take over from the old one.
        """
        name, lost = self.parts[-1], []
        with self._at(self.parts[:-1]) as place:
            if self.change.after is not None:
                like = None if self.change.before is None else name
                lost = _write(place, self.temporary, self.change.after, like=like)
            if self._backup:
                _keep(place, name, self.temporary + _OLD)
            if wait:
                place.sync()
        return lost

    def rename(self) -> None:
        """Rename the new file to its final name, or a removed file to a temporary name."""
        name = self.parts[-1]
        with self._at(self.parts[:-1]) as place:
            if self.change.after is None:
                place.replace(name, self.temporary)
            elif self.change.before is None:
                place.claim(self.temporary, name)
            else:
                place.replace(self.temporary, name)
            self.renamed = True
            place.sync()

    def undo(self) -> None:
        if not self.renamed:
            return
        name = self.parts[-1]
        with self._at(self.parts[:-1]) as place:
            if self.change.before is None:
                place.remove(name)
            elif self.change.after is None:
                place.replace(self.temporary, name)
            else:
                if not place.has(self.temporary + _OLD):
                    _write(place, self.temporary + _OLD, self.change.before, like=name)
                place.replace(self.temporary + _OLD, name)
        self.renamed = False

    def tidy(self) -> None:
        with self._at(self.parts[:-1]) as place:
            tidy(place, self.temporary)


def rules_of(settings: Settings) -> list[bool]:
    """Return the rules for edits that are not about paths: a true one permits more."""
    return [not settings.confirm_writes, settings.text_editor]


def tidy(place: Place, temporary: str) -> None:
    """Remove the temporary files of one change from their directory."""
    place.remove(temporary + _OLD)
    place.remove(temporary)


def _missing_directories(root: Root, changes: Sequence[Change]) -> list[list[str]]:
    """Return the missing directories of new files, the outer ones first."""
    missing: list[list[str]] = []
    for change in changes:
        for depth in range(1, len(change.parts)):
            parts = list(change.parts[:depth])
            if change.before is not None or parts in missing:
                continue
            try:
                root.place(tuple(parts)).__exit__(None, None, None)
            except FileNotFoundError:
                missing.append(parts)
    return missing


def _keep(place: Place, name: str, copy: str) -> None:
    """Create a second hard link to the old file, so that undoing needs no disk space."""
    try:
        os.link(name, copy, src_dir_fd=place.fd, dst_dir_fd=place.fd)
    except (OSError, NotImplementedError, TypeError):
        return  # no hard links; undo writes the bytes from memory


def _write(
    place: Place,
    name: str,
    data: bytes,
    *,
    like: str | None = None,
    mode: int = 0o666,
    wait: bool = True,
) -> list[str]:
    """Write a new file; return what it could not take over from the file ``like``."""
    lost: list[str] = []
    descriptor = place.create(name, 0o600 if like else mode)
    try:
        _write_all(descriptor, data)
        if like:
            lost = inherit(place, like, descriptor)
        if wait:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return lost


def _append(place: Place, name: str, data: bytes) -> None:
    descriptor = place.open(name, os.O_WRONLY | os.O_APPEND)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
