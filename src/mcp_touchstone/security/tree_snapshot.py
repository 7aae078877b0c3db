"""Record the state of a tree, and compare two records. Links are not followed."""

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Fact = tuple[Any, ...]
"""Kind of a path, then its state by kind: mode, size, time, inode, links, target, digest."""

HASHED: Final = 1 << 20
"""Maximum number of bytes hashed per file; later changes are seen by size, times and inode only."""

SCAN: Final = threading.Lock()
"""Held while a tree is scanned. A scan makes hundreds of short system calls, and each releases the
interpreter lock, so threads that scan at once slow each other."""


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path that changed.

    Attributes:
        path: relative to the recorded folder, with forward slashes.
        what: the change, in words.
    """

    path: str
    what: str

    def __str__(self) -> str:
        """Return the change in words."""
        return f"{self.path} was {self.what}"


def take(
    folder: Path,
    skip: Callable[[str], object] = lambda _path: False,
    known: Mapping[str, Fact] | None = None,
    prefix: str = "",
) -> dict[str, Fact]:
    """Return the facts of a folder (".") and of everything below it, by path.

    Args:
        folder: the folder.
        skip: returns whether to leave out a path below it, with its contents.
        known: earlier facts by path; a file with the same inode data is not read again.
        prefix: put before each path in the result and in ``known``.
    """
    known = known or {}
    found = {f"{prefix}.": fact(str(folder))}
    waiting = [""]
    with SCAN:
        while waiting:
            here = waiting.pop()
            try:
                entries = list(os.scandir(f"{folder}/{here}"))
            except OSError:
                continue
            for entry in entries:
                name = here + entry.name
                if skip(name):
                    continue
                shown = prefix + name
                seen = found[shown] = fact(entry.path, known.get(shown))
                if seen[0] == "folder":
                    waiting.append(f"{name}/")
    return found


def changes(before: Mapping[str, Fact], after: Mapping[str, Fact]) -> list[TreeChange]:
    """Return the changes between two records, deeper paths first.

    Touched folders are left out unless there are no other changes.
    """
    found = [
        TreeChange(path, _told(before.get(path), after.get(path)))
        for path in sorted({*before, *after}, key=lambda path: (-path.count("/"), path))
        if before.get(path) != after.get(path)
    ]
    folders = {c.path for c in found if c.what == TOUCHED}
    grave = [c for c in found if c.path not in folders]
    return grave or found


TOUCHED: Final = "touched: something in it came and went"


def _told(before: Fact | None, after: Fact | None) -> str:
    if before is None:
        return f"made ({after[0] if after else '?'})"
    if after is None:
        return "removed"
    if before[0] != after[0]:
        return f"turned from a {before[0]} into a {after[0]}"
    if before[0] == "folder":
        return TOUCHED if before[1] == after[1] else "given another mode"
    if before[-1] != after[-1]:
        return "changed"
    return "written anew" if before[:3] == after[:3] else "given other attributes"


def fact(path: str, known: Fact | None = None) -> Fact:
    """Return the facts of a path; a file is read unless its inode data equals the known one."""
    try:
        found = os.lstat(path)
    except OSError:
        return ("gone",)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        return ("folder", mode, found.st_mtime_ns)
    if stat.S_ISLNK(found.st_mode):
        return ("link", os.readlink(path))  # noqa: PTH115  (fast: a tree is recorded after each call)
    if not stat.S_ISREG(found.st_mode):
        return ("special file", stat.S_IFMT(found.st_mode), mode)
    seen = (
        "file", mode, found.st_size, found.st_nlink, found.st_mtime_ns, found.st_ino,
        found.st_ctime_ns,
    )  # fmt: skip
    if known is not None and known[:-1] == seen:
        return known
    return (*seen, _digest(path))


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(read(path, HASHED)).hexdigest()
    except OSError:
        return "unreadable"


def read(path: str, size: int = -1) -> bytes:
    """Return the content of a file, or its first bytes.

    A link that took its place is not followed, and a named pipe is empty and does not block.

    Raises:
        OSError: it is no file that can be read.
    """
    descriptor = os.open(path, os.O_RDONLY | _NO_WAIT)
    with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor)
        return file.read(size) or b""  # None: a named pipe that a writer holds open


_NO_WAIT: Final = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
