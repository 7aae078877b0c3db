"""How much some throw-away folders may take of a disk, together. Knows no MCP.

A user may set no quota, and a file system of its own would be memory. So a thread looks at the free
space of the disk ten times a second, which costs nothing. It counts the files only after half of
what is left of the limit has gone. What cannot be counted, such as a file without a name in a
process that hides it, is bounded too: the disk as a whole may lose ``LOST``.

The file systems that a sandbox has for itself are memory, and have a size. The thread looks whether
one is full: what then fails in the server is no fault of it that a report may count.
"""

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from glob import iglob
from itertools import chain, repeat
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple, Protocol

from mcp_touchstone.runtime.open_folder import MOST
from mcp_touchstone.runtime.safe_path import Tree

MIB: Final = 1024
"""Default of the limit, in MiB."""

PER_FILE: Final = 8192
"""Bytes of the limit for each file and folder that may be made."""

LOST: Final = 4 << 30
"""Bytes that a disk may lose, whoever takes them; four times the limit if that is more."""

EVERY: Final = 0.1
"""Seconds from one look at the free space to the next."""

SOON: Final = 0.02
"""The same while a sandbox starts, as its server may end at once."""

COUNTED: Final = 5.0
"""Seconds from one count to the next while no space goes: others may free what a server takes."""

SHARE: Final = 50
"""Least multiple of the time of a count that passes before the next, if no space goes."""

DEEPEST: Final = 256
"""Folders on the way to the deepest file that is counted, because each costs time."""

LOOK: Final = 1000
"""Number of files that are counted from one look at the free space to the next."""

BLOCK: Final = 512
"""Bytes of a block of ``stat``."""


class Use(NamedTuple):
    """A part of a disk.

    Attributes:
        size: bytes.
        files: number of files and folders.
    """

    size: int
    files: int

    def less(self, other: "Use") -> "Use":
        """Return what is left of it without another part."""
        return Use(self.size - other.size, self.files - other.files)

    def exceeds(self, other: "Use") -> bool:
        """Return whether it has more bytes or more files."""
        return self.size > other.size or self.files > other.files


class Room(Protocol):
    """The file systems that a sandbox has for itself.

    Attributes:
        starts: whether the sandbox is starting.
        over: whether it has ended.
    """

    starts: bool
    over: bool

    def look(self) -> str:
        """Return which of them is full; empty for none."""

    def close(self) -> None:
        """Look no more."""


class DiskLimit:
    """The limit of what is added to some folders after their owner has filled them.

    Args:
        mib: the limit in MiB; 0 for the default.

    Attributes:
        size: the limit in bytes.
        met: why the server was ended, once the limit is exceeded; empty until then.
    """

    def __init__(self, mib: int = 0) -> None:
        self.met = ""
        self.size = (mib or MIB) << 20
        self._limit = self._left = Use(self.size, self.size // PER_FILE)
        self._own: dict[Tree, Use] = {}
        self._first: dict[int, Use] = {}
        self._last: dict[int, Use] = {}
        self._next = monotonic() + COUNTED
        self._rooms: list[Room] = []
        self._lock = threading.Lock()

    def watch(self, tree: Tree) -> None:
        """Count what is added to a folder from now on."""
        sizes = list(_named(tree, set()))
        with self._lock:
            self._own[tree] = Use(sum(sizes), len(sizes))
            free = _free([tree])
            self._first = free | self._first
            self._last = free | self._last

    def forget(self, tree: Tree) -> None:
        """Count a folder no more, because its owner removes it."""
        with self._lock:
            self._own.pop(tree, None)

    def watch_room(self, room: Room) -> None:
        """Look at the file systems of a sandbox until it ends."""
        with self._lock:
            self._rooms.append(room)

    @contextlib.contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[None]:
        """Look in a thread while the block runs, and at its end.

        Args:
            end: called once, if the limit is exceeded.
        """
        over = threading.Event()

        def look() -> None:
            is_last = False
            while not (is_last or self.met):
                is_last = over.wait(SOON if any(one.starts for one in self._rooms) else EVERY)
                self.check()
            self._leave(self._rooms)
            if self.met:
                end()

        thread = threading.Thread(target=look, name="disk limit", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def check(self) -> str:
        """Look at the disk, and count if there is a reason; return ``met``."""
        with self._lock:
            own, rooms = dict(self._own), [*self._rooms]
        for one in rooms:
            self.met = self.met or one.look()
        self._leave([one for one in rooms if one.over])
        if self.met:
            return self.met
        free = _free(own)
        half = Use(self._left.size // 2, self._left.files // 2)
        goes = any(use.less(free.get(disk, use)).exceeds(half) for disk, use in self._last.items())
        if not self._loses(free) and (goes or monotonic() >= self._next):
            self._count(own, unnamed=goes)
            self._last |= free
        return self.met

    def _leave(self, rooms: Iterable[Room]) -> None:
        """Look at the file systems of some sandboxes no more."""
        with self._lock:
            left = [one for one in rooms if one in self._rooms]
            self._rooms = [one for one in self._rooms if one not in left]
        for one in left:
            one.close()

    def _loses(self, free: Mapping[int, Use]) -> bool:
        """Return whether a disk has lost so much that the server must end, whoever took it."""
        lost = max((self._first[disk].size - use.size for disk, use in free.items()), default=0)
        if lost > max(LOST, 4 * self.size):
            self.met = f"the disk of its throw-away folders lost {lost >> 20:,} MiB since its start"
        return bool(self.met)

    def _count(self, own: Mapping[Tree, Use], *, unnamed: bool) -> None:
        """Count what was added to the folders, until that exceeds the limit.

        Args:
            unnamed: whether to look for open files without a name too.
        """
        begun, known = monotonic(), set[tuple[int, int]]()
        sizes = chain.from_iterable(_named(tree, known) for tree in own)
        if unnamed:
            sizes = chain(sizes, _unnamed(own, known))
        most = Use(
            self.size + sum(use.size for use in own.values()),
            self._limit.files + sum(use.files for use in own.values()),
        )
        use = Use(0, 0)
        for number, size in enumerate(sizes, 1):
            use = Use(use.size + size, number)
            if use.exceeds(most) or (number % LOOK == 0 and self._loses(_free(own))):
                break
        self._left = most.less(use)
        self._next = monotonic() + max(COUNTED, SHARE * (monotonic() - begun))
        if self._left.size < 0:
            self.met = f"it wrote more than {self.size >> 20:,} MiB to its throw-away folders"
        elif self._left.files < 0:
            self.met = f"it made more than {self._limit.files:,} files in its throw-away folders"


def _free(trees: Iterable[Tree]) -> dict[int, Use]:
    """Return what is free on the disk of each folder."""
    found = {}
    for tree in trees:
        with contextlib.suppress(OSError):  # it was removed
            folder = tree.folder
            if folder.disk not in found:
                found[folder.disk] = Use(*folder.room())
    return found


def _named(tree: Tree, known: set[tuple[int, int]]) -> Iterator[int]:
    """Yield the bytes that each file and folder below a folder takes.

    Args:
        known: files with several names that were counted; more are added.
    """
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            folder = tree.folder.open(*parts)
            names = folder.names()
        except OSError as error:
            if error.errno == errno.E2BIG:
                yield from repeat(0, MOST)
            continue
        for name in names:
            with contextlib.suppress(OSError):
                found = folder.stat(name)
                if stat.S_ISDIR(found.st_mode):
                    if len(parts) < DEEPEST:
                        waiting.append((*parts, name))
                elif found.st_nlink > 1:
                    if (found.st_dev, found.st_ino) in known:
                        continue
                    known.add((found.st_dev, found.st_ino))
                yield _taken(found)


def _unnamed(trees: Iterable[Tree], known: set[tuple[int, int]]) -> Iterator[int]:
    """Yield the bytes of the open files that were removed from some folders (Linux)."""
    places = tuple(f"{tree.path}{os.sep}" for tree in trees)
    for opened in map(Path, iglob("/proc/[0-9]*/fd/*")):  # noqa: PTH207  (processes exit meanwhile)
        with contextlib.suppress(OSError):  # it was closed, or is another user's
            if str(opened.readlink()).startswith(places):
                found = opened.stat()
                if not found.st_nlink and (found.st_dev, found.st_ino) not in known:
                    known.add((found.st_dev, found.st_ino))
                    yield _taken(found)


def _taken(found: os.stat_result) -> int:
    return int(getattr(found, "st_blocks", found.st_size / BLOCK)) * BLOCK
