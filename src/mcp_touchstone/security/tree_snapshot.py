"""Facts of a whole tree, and what changed between two looks at it. Follows no link."""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Fact = tuple[Any, ...]
"""Kind first, then what is known of it: mode, size, time, inode, links, target, digest."""

HASHED: Final = 1 << 20
"""Bytes of a file that are hashed; the size stands for the rest."""


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path that is not as it was.

    Attributes:
        path: below the folder looked at, with forward slashes.
        what: what happened to it, in words.
    """

    path: str
    what: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.path} was {self.what}"


def take(
    folder: Path,
    skip: Callable[[str], object] = lambda _path: False,
    known: Mapping[str, Fact] | None = None,
    prefix: str = "",
) -> dict[str, Fact]:
    """Look at everything below a folder, the folder itself (".") included.

    Args:
        folder: where to begin.
        skip: whether a path below it, and what is in it, is left out.
        known: facts from before; bytes whose inode did not change since are not read again.
        prefix: stands before each name, there and in what is known.
    """
    known = known or {}
    found = {f"{prefix}.": fact(str(folder))}
    waiting = [""]
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
    """Say what is not as it was; files before the folders they stand in."""
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
    """Give what is known of one path; bytes are read unless the inode is as it was."""
    try:
        found = os.lstat(path)
    except OSError:
        return ("gone",)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        return ("folder", mode, found.st_mtime_ns)
    if stat.S_ISLNK(found.st_mode):
        return ("link", os.readlink(path))  # noqa: PTH115  (a tree is looked at after each shot)
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
        with Path(path).open("rb") as file:
            return hashlib.sha256(file.read(HASHED)).hexdigest()
    except OSError:
        return "unreadable"
