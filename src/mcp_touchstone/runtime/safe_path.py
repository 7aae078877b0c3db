"""Files below a folder that a hostile process may change at any moment. Knows no MCP.

A server can replace any name in its folder by a link, a named pipe or another file, while we work
there. So a ``SafePath`` never goes to the system as a whole: ``open_folder`` opens its folder, and
the last name is used relative to that. ``open``, ``os`` and ``pathlib`` accept no ``SafePath``.

``Tree.real`` and ``SafePath.matches`` compute where links lead, and follow none.
"""

import contextlib
import errno
import fnmatch
import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path, PurePosixPath
from typing import Final

from mcp_touchstone.runtime.open_folder import (
    LARGEST,
    MOST,
    Folder,
    OutsideError,
    open_folder,
)

LINKS: Final = 40
"""Greatest number of links in a path that is resolved, as in Linux."""


class Tree:
    """A folder of ours and everything below it.

    Attributes:
        path: the folder, with all links on the way to it resolved.
    """

    def __init__(self, path: Path, folder: Folder | None = None) -> None:
        """Open it.

        Args:
            path: the folder; nothing on the way to it may be a link.
            folder: the folder, if it is open.

        Raises:
            OSError: it is no folder.
        """
        self.path = path
        self._folder: Folder | None = folder or open_folder(path)

    @property
    def top(self) -> "SafePath":
        """The folder as a ``SafePath``, made anew: a tree that nobody uses is closed at once."""
        return SafePath(self)

    @property
    def folder(self) -> Folder:
        """The open folder.

        Raises:
            OSError: it was removed.
        """
        if self._folder is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        return self._folder

    def remove(self) -> None:
        """Remove the folder and everything in it, also if a process moved it; ignore errors."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        folder.clear()
        with contextlib.suppress(OSError):
            os.rmdir(self.path)  # it refuses a link
            return
        with contextlib.suppress(OSError):
            os.rmdir(os.readlink(folder.handle))

    def at(self, text: str) -> "SafePath | None":
        """Return the path below the folder that an absolute path names; None for other paths."""
        top = str(self.path).rstrip("/")
        if text != top and not text.startswith(f"{top}/"):
            return None
        return SafePath(self, tuple(part for part in text[len(top) :].split("/") if part))

    def real(self, text: str) -> str:
        """Return an absolute path without links and dot-dot, as the kernel resolves it.

        Raises:
            OSError: a part is missing, or no folder, or there are too many links.
        """
        found, missing = self._resolved(text)
        if missing:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), text)
        return found

    def likely(self, text: str) -> str:
        """Return an absolute path as ``real`` does; parts that are missing are kept."""
        return self._resolved(text)[0]

    def _resolved(self, text: str) -> tuple[str, bool]:
        """Return a path without links, and whether a part of it is missing."""
        if "\0" in text:
            raise OSError(errno.EINVAL, "it contains NUL", text)
        left, here, links, missing = text.split("/")[::-1], "/", 0, False
        while left:
            part = left.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                here = os.path.dirname(here)
                continue
            there = os.path.join(here, part)
            try:
                found = self.lstat(there)
            except OSError:
                found = None
            if found is None:
                missing = True
            elif stat.S_ISLNK(found.st_mode):
                links += 1
                if links > LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), text)
                target = self._target(there)
                left += target.split("/")[::-1]
                here = "/" if target.startswith("/") else here
                continue
            here = there
        return here, missing

    def lstat(self, path: str) -> os.stat_result:
        """Return the result of ``lstat`` for an absolute path, whose folder contains no link."""
        place = self.at(path)
        return os.lstat(path) if place is None else place.stat()

    def _target(self, path: str) -> str:
        place = self.at(path)
        return os.readlink(path) if place is None else place.readlink()


@total_ordering
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SafePath:
    """A path below a folder of ours, with methods like those of ``pathlib.Path``.

    They raise ``OSError``; if a folder on the way is a link, ``ReplacedError``.

    Attributes:
        parts: the names below it.
    """

    tree: Tree
    parts: tuple[str, ...] = ()

    # --- names

    def __str__(self) -> str:
        """Return the absolute path."""
        return "/".join((str(self.tree.path).rstrip("/"), *self.parts)) or "/"

    def __repr__(self) -> str:
        return f"SafePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SafePath) and str(self) == str(other)

    def __lt__(self, other: "SafePath") -> bool:
        return self.parts < other.parts

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, below: "str | PurePosixPath") -> "SafePath":
        """Return a path below this one; an absolute path must be below the top of the tree.

        Raises:
            OutsideError: it climbs, or is elsewhere.
        """
        text = str(below)
        if text.startswith("/"):
            found = self.tree.at(text)
            if found is None:
                raise OutsideError(f"{text} is not below {self.tree.path}")
            return found
        parts = tuple(part for part in text.split("/") if part not in {"", "."})
        if ".." in parts:
            raise OutsideError(f"{text} climbs")
        return SafePath(self.tree, self.parts + parts)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.parts[-1] if self.parts else self.tree.path.name

    @property
    def suffix(self) -> str:
        """The end of the name, from its last dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> "SafePath":
        """The folder; of the top, the top."""
        return SafePath(self.tree, self.parts[:-1])

    @property
    def parents(self) -> "tuple[SafePath, ...]":
        """All folders up to the top, the nearest first."""
        return tuple(SafePath(self.tree, self.parts[:n]) for n in reversed(range(len(self.parts))))

    def child(self, name: str) -> "SafePath":
        """Return the path of a name in this folder, as a list of it has it."""
        return SafePath(self.tree, (*self.parts, name))

    def with_name(self, name: str) -> "SafePath":
        """Return the path of another name in the same folder."""
        return self.parent / name

    def as_uri(self) -> str:
        """Return the path as a URI with the scheme ``file``."""
        return PurePosixPath(str(self)).as_uri()

    def is_relative_to(self, other: "SafePath") -> bool:
        """Return whether a path is the other one or below it."""
        return self.parts[: len(other.parts)] == other.parts and self.tree.path == other.tree.path

    def relative_to(self, other: "SafePath") -> PurePosixPath:
        """Return the path as seen from a folder above it.

        Raises:
            ValueError: the folder is not above it.
        """
        if not self.is_relative_to(other):
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath(*self.parts[len(other.parts) :])

    # --- looking

    def stat(self) -> os.stat_result:
        """Return the result of ``lstat``."""
        return self._folder().stat(self._last)

    def exists(self) -> bool:
        """Return whether there is something, perhaps a link that leads nowhere."""
        return self._mode() is not None

    def is_file(self) -> bool:
        """Return whether it is a regular file and no link."""
        return stat.S_ISREG(self._mode() or 0)

    def is_dir(self) -> bool:
        """Return whether it is a folder and no link."""
        return stat.S_ISDIR(self._mode() or 0)

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        return stat.S_ISLNK(self._mode() or 0)

    def _mode(self) -> int | None:
        try:
            return self.stat().st_mode
        except OSError:
            return None

    def readlink(self) -> str:
        """Return the target of a link."""
        return self._folder().target(self._last)

    def read_bytes(self, most: int = LARGEST) -> bytes:
        """Return the content of a file of at most ``most`` bytes."""
        return self._folder().read(self._last, most)

    def read_text(self, errors: str = "strict") -> str:
        """Return the content of a file in UTF-8."""
        return self.read_bytes().decode("utf-8", errors)

    def opened(self, *, listable: bool = False) -> Folder:
        """Open the folder at this path; see ``Folder.open``."""
        top = self.tree.folder
        return top.open(*self.parts, listable=listable) if self.parts else top

    def iterdir(self) -> "list[SafePath]":
        """Return the paths in a folder, at most ``MOST``."""
        return [self.child(name) for name in self.opened(listable=True).names()]

    def walk(self) -> "Iterator[tuple[SafePath, list[str], list[str]]]":
        """Yield a folder, its folders and its other names, then the same for all below.

        Names removed from the list of folders are not entered, and unreadable folders neither. It
        ends after ``MOST`` names.
        """
        left, waiting = MOST, [self]
        while waiting and left > 0:
            here = waiting.pop()
            try:
                folders, others = here.opened(listable=True).parted()
            except OSError:
                continue
            left -= len(folders) + len(others)
            yield here, folders, others
            waiting += [here.child(name) for name in reversed(folders)]

    def below(self) -> "Iterator[SafePath]":
        """Yield all paths below a folder; links are not entered."""
        for folder, folders, others in self.walk():
            for name in (*folders, *others):
                yield folder.child(name)

    def matches(self, pattern: str) -> Iterator[str]:
        """Yield the absolute paths that match a pattern, below this folder or above it.

        Each part of the pattern with ``*``, ``?`` or ``[`` matches one name, as in ``glob.glob``.
        Links in a match are resolved. Folders outside the tree are not listed.
        """
        found = ["/"] if pattern.startswith("/") else [str(self)]
        for part in filter(None, pattern.split("/")):
            found = list(itertools.chain.from_iterable(self._step(one, part) for one in found))
        yield from found

    def _step(self, here: str, part: str) -> Iterator[str]:
        """Yield the paths that a part of a pattern matches in a folder, resolved."""
        names: list[str] = [part]
        with contextlib.suppress(OSError):
            if any(sign in part for sign in "*?["):
                place = self.tree.at(self.tree.real(here))
                names = place.opened().names() if place is not None else []
                names = [n for n in fnmatch.filter(names, part) if part[0] == "." or n[0] != "."]
            for name in names:
                with contextlib.suppress(OSError):
                    yield self.tree.real(f"{here}/{name}")

    # --- changing

    def write_bytes(self, data: bytes, time: float | None = None) -> None:
        """Write a file; see ``Folder.write``."""
        self._folder().write(self._last, data, time)

    def write_text(self, text: str) -> None:
        """Write a file in UTF-8; line feeds stay line feeds."""
        self.write_bytes(text.encode())

    def touch(self) -> None:
        """Make an empty file if there is none."""
        if not self.exists():
            self.write_bytes(b"")

    def append(self, data: bytes) -> None:
        """Add bytes to the end of a file; it keeps its inode."""
        self._folder().append(self._last, data)

    def make_sparse(self, size: int, end: bytes) -> None:
        """Make a file of ``size`` bytes that are zero except at its end."""
        self._folder().make_sparse(self._last, size, end)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a folder.

        Args:
            parents: whether to make the missing folders above it.
            exist_ok: whether there may be a folder already; a link to one is an error.
        """
        if parents and not self.parent.exists():
            self.parent.mkdir(parents=True, exist_ok=True)
        folder = self._folder()
        try:
            folder.make_folder(self._last)
        except FileExistsError:
            if not exist_ok:
                raise
            self.opened()

    def symlink_to(self, target: "str | SafePath") -> None:
        """Make a link to a target."""
        self._folder().make_link(self._last, str(target))

    def hardlink_to(self, other: "SafePath") -> None:
        """Make this a further name of a file."""
        self._folder().make_hard_link(self._last, other._folder(), other._last)  # noqa: SLF001

    def make_pipe(self) -> None:
        """Make a named pipe."""
        self._folder().make_pipe(self._last)

    def release_pipe(self, data: bytes = b"") -> None:
        """Remove a named pipe, and release those who wait for its other end; one reads the data."""
        self._folder().release_pipe(self._last, data)

    def rename(self, other: "SafePath") -> None:
        """Move it to another path of the tree."""
        self._folder().rename(self._last, other._folder(), other._last)  # noqa: SLF001

    def chmod(self, mode: int) -> None:
        """Set the mode."""
        self._folder().set_mode(self._last, mode)

    def unlink(self) -> None:
        """Remove a file or a link, if there is one."""
        self._folder().unlink(self._last)

    def rmdir(self) -> None:
        """Remove an empty folder."""
        self._folder().remove_folder(self._last)

    def remove(self) -> None:
        """Remove a file, a link, or a folder with everything in it; errors are ignored."""
        with contextlib.suppress(OSError):
            if self.is_dir():
                self.opened().clear()
                self.rmdir()
            else:
                self.unlink()

    # --- the door

    @property
    def _last(self) -> str:
        return self.parts[-1] if self.parts else "."

    def _folder(self) -> Folder:
        return self.parent.opened() if self.parts else self.tree.folder


def is_about_files(error: OSError) -> bool:
    """Return whether an error came from a path: the server removed or replaced a file of ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != __name__:
        trace = trace.tb_next
    return trace is not None
