"""Change several files atomically, even if an error occurs or the server is killed.

    plan written --> new files staged beside the old ones --> "staged" written --> renamed

The plan is written to a journal in the root first. An error undoes the edit. If the server is
killed before "staged", the next start undoes the edit. If it is killed later, the next start
finishes the edit: all new bytes are on the disk then, and only renames are missing.

A file is replaced by a rename in its own directory, so no reader sees a part of it. As a
consequence, other hard links to the file keep the old content.

For one file in an existing directory the rename alone is atomic. Its journal only serves to remove
temporary files after a kill, so it is not synced to the disk: two syncs instead of seven. After a
power cut in that moment a temporary file may remain.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress

from ..failure import ToolError
from .entries import sha256
from .names import OURS
from .refusals import WriteFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .edit import Change
    from .names import Names
    from .paths import Parts
    from .place import Place, Root

_JOURNAL = ".journal"
_STAGED = b"staged\n"
_OLD = ".old"


class Journal:
    """Executes one edit; the caller holds ``root.writing()``.

    Args:
        root: The root of the files.
        changes: The verified changes; at least one.
    """

    def __init__(self, root: Root, changes: Sequence[Change]) -> None:
        self._root = root
        self._name = OURS + secrets.token_hex(6)
        self._steps = [
            _Step(change, f"{self._name}-{number}", backup=len(changes) > 1)
            for number, change in enumerate(changes)
        ]
        self._made = _missing_directories(root, changes)
        self._is_simple = len(changes) == 1 and not self._made

    def carry_out(self) -> None:
        """Execute the edit.

        Raises:
            OSError: The edit failed and was undone.
            WriteFailed: The edit failed and could not be undone; the message names the files.
        """
        plan = {"made": self._made, "files": [step.plan() for step in self._steps]}
        data = json.dumps(plan).encode() + b"\n"
        with self._root.place(()) as top:
            try:
                _write(top, self._name + _JOURNAL, data, 0o600, wait=not self._is_simple)
                if self._is_simple:
                    self._stage()
                else:
                    top.sync()
                    self._stage()
                    _append(top, self._name + _JOURNAL, _STAGED)
                self._rename()
            except BaseException:
                self._undo(top)
                raise
            for step in self._steps:
                step.tidy(self._root)
            top.remove(self._name + _JOURNAL)
            if not self._is_simple:
                top.sync()

    def _stage(self) -> None:
        for parts in self._made:
            with self._root.place(tuple(parts[:-1])) as place:
                place.make_directory(parts[-1])
        for step in self._steps:
            step.stage(self._root, wait=not self._is_simple)

    def _rename(self) -> None:
        for step in self._steps:
            step.rename(self._root)

    def _undo(self, top: Place) -> None:
        torn = []
        for step in reversed(self._steps):
            try:
                step.undo(self._root)
                step.tidy(self._root)
            except OSError:
                torn.append("/".join(step.parts))
        _remove_directories(self._root, self._made)
        top.remove(self._name + _JOURNAL)
        if torn:
            raise WriteFailed("", f"The edit failed, and these could not be undone: {torn}.")


class _Step:
    """The change of one file."""

    def __init__(self, change: Change, temporary: str, *, backup: bool) -> None:
        self.parts = change.parts
        self._change = change
        self._temporary = temporary
        self._backup = backup and change.before is not None
        self._renamed = False

    def plan(self) -> dict[str, Any]:
        """Return the data that recovery needs."""
        before, after = self._change.before, self._change.after
        return {
            "parts": self.parts,
            "temporary": self._temporary,
            "before": None if before is None else sha256(before),
            "after": None if after is None else sha256(after),
        }

    def stage(self, root: Root, *, wait: bool) -> None:
        """Write the temporary files; ``wait`` also syncs their directory."""
        with root.place(self.parts[:-1]) as place:
            if self._change.after is not None:
                mode = self._change.mode
                _write(place, self._temporary, self._change.after, mode)
            if self._backup:
                _keep(place, self.parts[-1], self._temporary + _OLD)
            if wait:
                place.sync()

    def rename(self, root: Root) -> None:
        """Rename the new file to its final name, or a removed file to a temporary name."""
        name = self.parts[-1]
        with root.place(self.parts[:-1]) as place:
            if self._change.after is None:
                place.replace(name, self._temporary)
            elif self._change.before is None:
                place.claim(self._temporary, name)
            else:
                place.replace(self._temporary, name)
            self._renamed = True
            place.sync()

    def undo(self, root: Root) -> None:
        """Restore the old content of the file."""
        if not self._renamed:
            return
        name = self.parts[-1]
        with root.place(self.parts[:-1]) as place:
            if self._change.before is None:
                place.remove(name)
            elif self._change.after is None:
                place.replace(self._temporary, name)
            elif self._backup and place.has(self._temporary + _OLD):
                place.replace(self._temporary + _OLD, name)
            else:
                _write(place, self._temporary + _OLD, self._change.before, self._change.mode)
                place.replace(self._temporary + _OLD, name)

    def tidy(self, root: Root) -> None:
        """Remove the temporary files."""
        _tidy(root, self.parts, self._temporary)


def recover(root: Root, names: Names) -> int:
    """Finish or undo the edits of servers that were killed; return their number.

    The caller holds ``root.writing()``, so no running server has an unfinished edit. A journal may
    come from a foreign repository. It is used only if it contains plain names that may be written
    and temporary files with its own prefix.
    """
    with root.place(()) as top:
        journals = [n for n in top.names() if n.startswith(OURS) and n.endswith(_JOURNAL)]
        for name in journals:
            try:
                plan, staged = _read(top, name)
                _check_plan(plan, name.removesuffix(_JOURNAL), root, names)
            except (OSError, ValueError, TypeError, KeyError, AttributeError, ToolError):
                plan, staged = {"files": [], "made": []}, False
            for entry in plan["files"]:
                with suppress(OSError):  # its directory was removed, or is not accessible any more
                    _recover_file(root, entry, staged)
            if not staged:
                _remove_directories(root, plan["made"])
            top.remove(name)
        if journals:
            top.sync()
    return len(journals)


def _recover_file(root: Root, entry: dict[str, Any], staged: bool) -> None:
    parts, temporary = tuple(entry["parts"]), entry["temporary"]
    name = parts[-1]
    if staged:
        with root.place(parts[:-1]) as place:
            current = sha256(_content(place, name)) if place.has(name) else None
            # Changes by others after the kill are kept.
            if current == entry["before"]:
                if entry["after"] is None:
                    place.remove(name)
                elif place.has(temporary):
                    place.replace(temporary, name)
    _tidy(root, parts, temporary)


def _read(top: Place, name: str) -> tuple[dict[str, Any], bool]:
    """Return the unchecked plan of a journal, and whether all files were staged."""
    plan, _, rest = _content(top, name).partition(b"\n")
    return json.loads(plan), rest == _STAGED


def _check_plan(plan: dict[str, Any], name: str, root: Root, names: Names) -> None:
    """Check that a plan is one of ours; raise any exception if it is not."""
    paths = [entry["parts"] for entry in plan["files"]] + plan["made"]
    for parts in paths:
        if not parts or any(part in ("", ".", "..") or "/" in part for part in parts):
            raise ValueError(parts)
        names.check(tuple(parts), folds=root.folds, writing=True)
    for number, entry in enumerate(plan["files"]):
        if entry["temporary"] != f"{name}-{number}" or entry["before"] == entry["after"]:
            raise ValueError(entry)


def _tidy(root: Root, parts: Parts, temporary: str) -> None:
    with root.place(parts[:-1]) as place:
        place.remove(temporary)
        place.remove(temporary + _OLD)


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


def _remove_directories(root: Root, made: Sequence[Sequence[str]]) -> None:
    for parts in reversed(made):
        try:
            with root.place(tuple(parts[:-1])) as place:
                place.remove_directory(parts[-1])
        except OSError:
            continue


def _keep(place: Place, name: str, copy: str) -> None:
    """Create a second hard link to the old file, so that undoing needs no disk space."""
    try:
        os.link(name, copy, src_dir_fd=place.fd, dst_dir_fd=place.fd)
    except (OSError, NotImplementedError, TypeError):
        return  # no hard links; undo writes the bytes from memory


def _write(place: Place, name: str, data: bytes, mode: int | None, *, wait: bool = True) -> None:
    descriptor = place.create(name, 0o666 if mode is None else 0o600)
    try:
        _write_all(descriptor, data)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        if wait:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def _content(place: Place, name: str) -> bytes:
    descriptor = place.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
