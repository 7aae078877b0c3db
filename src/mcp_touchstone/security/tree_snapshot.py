"""Record the state of a tree, and compare two records. Links are not followed."""

import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.runtime.open_folder import MOST, Folder
from mcp_touchstone.runtime.safe_path import SafePath

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
    """

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path} was {self.what}"


def take(
    folder: SafePath,
    skip: Callable[[str], object] = lambda _path: False,
    known: Mapping[str, Fact] | None = None,
    prefix: str = "",
) -> dict[str, Fact]:
    """Return the facts of a folder (".") and of everything below it, by path.

    Args:
        skip: returns whether to leave out a path below it, with its contents.
        known: earlier facts by path; a file with the same inode data is not read again.
        prefix: put before each path in the result and in ``known``.
    """
    known = known or {}
    found = {f"{prefix}.": fact(folder)}
    waiting = [("", folder)]
    with SCAN:
        while waiting and len(found) < MOST:
            above, here = waiting.pop()
            try:
                opened = here.opened(listable=True)
                stats = opened.stats()
            except OSError:
                continue
            for name, result in stats.items():
                path = above + name
                if skip(path):
                    continue
                shown = prefix + path
                seen = found[shown] = _fact(opened, name, result, known.get(shown))
                if seen[0] == "folder":
                    waiting.append((f"{path}/", here.child(name)))
    return found


def changes(before: Mapping[str, Fact], after: Mapping[str, Fact]) -> list[TreeChange]:
    """Return the changes between two records, deeper paths first.

    Touched folders are left out unless there are no other changes.
    """
    paths = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    paths.sort(key=lambda path: (-path.count("/"), path))
    found = [TreeChange(path, _told(before.get(path), after.get(path))) for path in paths]
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


def fact(path: SafePath, known: Fact | None = None) -> Fact:
    """Return the facts of a path; a file is read unless its inode data equals the known one."""
    try:
        return _fact_in(path.parent.opened(), path.parts[-1] if path.parts else ".", known)
    except OSError:
        return ("gone",)


def facts(
    top: SafePath, paths: Iterable[str], known: Mapping[str, Fact]
) -> Iterator[tuple[str, Fact]]:
    """Yield each path below a folder with its facts; each folder on the way is opened once.

    Args:
        known: as in ``take``.
    """
    folders: dict[str, Folder | None] = {}
    for path in paths:
        place, _, name = path.rpartition("/")
        if place not in folders:
            folders[place] = None
            with contextlib.suppress(OSError):
                folders[place] = (top / place).opened()
        folder = folders[place]
        yield path, ("gone",) if folder is None else _fact_in(folder, name, known.get(path))


def _fact_in(folder: Folder, name: str, known: Fact | None) -> Fact:
    try:
        found = folder.stat(name)
    except OSError:
        return ("gone",)
    return _fact(folder, name, found, known)


def _fact(folder: Folder, name: str, found: os.stat_result | None, known: Fact | None) -> Fact:
    if found is None:
        return ("gone",)
    mode = stat.S_IMODE(found.st_mode)
    try:
        if stat.S_ISREG(found.st_mode):
            return _file_fact(folder, name, found, known)
        if stat.S_ISDIR(found.st_mode):
            return ("folder", mode, found.st_mtime_ns)
        if stat.S_ISLNK(found.st_mode):
            return ("link", folder.target(name))
    except OSError:
        return ("gone",)
    return ("special file", stat.S_IFMT(found.st_mode), mode)


def _file_fact(folder: Folder, name: str, found: os.stat_result, known: Fact | None) -> Fact:
    seen = (
        "file",
        stat.S_IMODE(found.st_mode),
        found.st_size,
        found.st_nlink,
        found.st_mtime_ns,
        found.st_ino,
        found.st_ctime_ns,
    )
    if known is not None and known[:-1] == seen:
        return known
    try:
        return (*seen, hashlib.sha256(folder.read(name, HASHED, whole=False)).hexdigest())
    except OSError:
        return (*seen, "unreadable")
