"""Files below a folder that a hostile process may change at any moment. Knows no MCP.

A server can replace any name in its folder by a link, a named pipe or another file, while we work
there. So a ``SafePath`` never goes to the system as a whole: its folder is opened relative to the
descriptor of the top, no link is followed on the way, and then the last name is used relative to
that folder. ``open``, ``os`` and ``pathlib`` do not accept a ``SafePath``.

``Tree.real`` and ``SafePath.matches`` compute where links lead, and follow none.
On Windows, which has no descriptors of folders, each part is checked before it is used.
"""

import contextlib
import ctypes
import errno
import fnmatch
import itertools
import os
import secrets
import stat
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from pathlib import Path, PurePosixPath
from typing import Final

if sys.platform != "win32":
    import fcntl

LARGEST: Final = 64 << 20
"""Greatest size of a file that is read as a whole, in bytes."""

MOST: Final = 200_000
"""Greatest number of names that are listed in a folder or a tree."""

REMOVED: Final = 10_000_000
"""Greatest number of names that are removed with a folder: a server may make more meanwhile."""

LINKS: Final = 40
"""Greatest number of links in a path that is resolved, as in Linux."""

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _NO_LINK
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_ON_THE_WAY: Final = _FOLDER | getattr(os, "O_PATH", os.O_RDONLY)
"""Flags of folders on the way to a name: nobody who watches a folder sees it being opened."""
_HAS_DESCRIPTORS: Final = os.open in os.supports_dir_fd

_OPENAT2: Final = 437
"""The system call openat2, since Linux 5.6."""
_BENEATH: Final = 0x02 | 0x04 | 0x08
"""RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH, linux/openat2.h."""
_EXCHANGE: Final = 2
"""RENAME_EXCHANGE, linux/fs.h."""
_GET_FLAGS, _SET_FLAGS, _FIXED = 0x80086601, 0x40086602, 0x30
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, and FS_IMMUTABLE_FL with FS_APPEND_FL, linux/fs.h."""

_KINDS: Final = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "another file",
}


class OutsideError(OSError, ValueError):
    """A name or a path leads out of the tree."""


class ReplacedError(OSError):
    """Something else stands where a file or folder of ours was, such as a link or a named pipe."""

    def __str__(self) -> str:
        """Return the path and what stands there."""
        return f"{self.filename}: {self.strerror}"


def is_about_files(error: OSError) -> bool:
    """Return whether an error came from this module: the server removed or replaced our files."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != __name__:
        trace = trace.tb_next
    return trace is not None


class Folder:
    """An open folder. It works on the names in it, each a single part of a path.

    All methods raise ``OSError`` if the system refuses, and ``ReplacedError`` if a name stands for
    something else than it should.
    """

    def __init__(self, place: int | str, shown: str) -> None:
        """Own an open folder.

        Args:
            place: its descriptor, which is closed with this object; its path on Windows.
            shown: its path in messages.
        """
        self._place = place
        self._at = place if isinstance(place, int) else None
        self._shown = shown

    def __del__(self) -> None:
        """Close the descriptor when nobody uses it any more: another file could get its number."""
        if self._at is not None:
            os.close(self._at)

    @property
    def handle(self) -> str:
        """A path that leads to this very folder as long as it is open, whatever its name is now."""
        return str(self._place) if self._at is None else f"/proc/self/fd/{self._at}"

    def _name(self, name: str) -> str:
        """Return a name as the system takes it, relative to the folder if there is a descriptor."""
        if "\0" in name or name in {"..", "/"} or os.sep in name or (os.altsep or os.sep) in name:
            raise OutsideError(errno.EINVAL, "this is no name of a file", self._path(name))
        try:
            os.fsencode(name)
        except UnicodeEncodeError:
            raise OSError(errno.EILSEQ, "this is no name of a file", self._path(name)) from None
        return name if self._at is not None else os.path.join(str(self._place), name)

    def _path(self, name: str) -> str:
        return f"{self._shown}/{name}"

    def _replaced(self, name: str, found: os.stat_result) -> ReplacedError:
        what = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        return ReplacedError(errno.ELOOP, f"{what} is in place of our file", self._path(name))

    @contextlib.contextmanager
    def _listed(self) -> Iterator[Iterator["os.DirEntry[str]"]]:
        if self._at is None:
            with os.scandir(self._place) as entries:
                yield entries
            return
        descriptor = os.open(".", _FOLDER | os.O_RDONLY, dir_fd=self._at)
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            os.close(descriptor)

    # --- reading

    def names(self) -> list[str]:
        """Return the names in the folder.

        Raises:
            OSError: there are more than ``MOST``.
        """
        with self._listed() as entries:
            found = [entry.name for entry in itertools.islice(entries, MOST + 1)]
        if len(found) > MOST:
            raise OSError(errno.E2BIG, f"there are more than {MOST:,} names", self._shown)
        return found

    def stat(self, name: str) -> os.stat_result:
        """Return the result of ``lstat`` for a name; for ``.``, that of the folder."""
        return os.stat(self._name(name), dir_fd=self._at, follow_symlinks=False)

    def target(self, name: str) -> str:
        """Return the target of a link."""
        return os.readlink(self._name(name), dir_fd=self._at)

    def read(self, name: str, most: int = LARGEST, *, whole: bool = True) -> bytes:
        """Return the content of a file.

        Args:
            name: its name.
            most: greatest number of bytes.
            whole: whether a larger file is an error; otherwise its beginning is returned.
        """
        with self._opened(name, os.O_RDONLY) as (descriptor, found):
            if whole and found.st_size > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", self._path(name))
            return b"".join(_pieces(descriptor, most))

    def pieces(self, name: str, overlap: int) -> Iterator[bytes]:
        """Yield a file in pieces; each begins with the last bytes of the one before.

        Args:
            name: its name.
            overlap: number of these bytes.
        """
        with self._opened(name, os.O_RDONLY) as (descriptor, found):
            last = b""
            for piece in _pieces(descriptor, found.st_size):
                last = last[-overlap:] + piece
                yield last

    # --- changing

    def write(self, name: str, data: bytes, time: float | None = None) -> None:
        """Write a file. A file that exists is replaced by a new one with its mode.

        Args:
            name: its name.
            data: its content.
            time: its modification time, in seconds since 1970; None for now.
        """
        try:
            self._make(name, data, time)
        except FileExistsError:
            old = self.stat(name)
            if not stat.S_ISREG(old.st_mode):
                raise self._replaced(name, old) from None
            beside = f".mcp-touchstone-{secrets.token_hex(6)}"
            try:
                self._make(beside, data, time, stat.S_IMODE(old.st_mode) & 0o777)
                self.rename(beside, self, name)
            except OSError:
                self.unlink(beside)
                raise

    def _make(
        self, name: str, data: bytes, time: float | None = None, mode: int | None = None
    ) -> None:
        descriptor = os.open(self._name(name), _NEW, 0o666, dir_fd=self._at)
        with open(descriptor, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) or 0 :]
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
        if time is not None:
            self.set_time(name, time)

    def append(self, name: str, data: bytes) -> None:
        """Add bytes to the end of a file that has no other name; it keeps its inode."""
        with self._opened(name, os.O_WRONLY | os.O_APPEND) as (descriptor, found):
            if found.st_nlink != 1:
                raise self._replaced(name, found)
            os.write(descriptor, data)

    def make_sparse(self, name: str, size: int, end: bytes) -> None:
        """Make a file of ``size`` bytes that are zero except at its end."""
        self._make(name, b"")
        with self._opened(name, os.O_WRONLY) as (descriptor, _):
            os.lseek(descriptor, size - len(end), os.SEEK_SET)
            os.write(descriptor, end)

    def make_folder(self, name: str) -> None:
        """Make a folder."""
        os.mkdir(self._name(name), dir_fd=self._at)

    def make_link(self, name: str, target: str) -> None:
        """Make a symbolic link."""
        os.symlink(target, self._name(name), dir_fd=self._at)

    def make_pipe(self, name: str) -> None:
        """Make a named pipe."""
        os.mkfifo(self._name(name), dir_fd=self._at)

    def make_hard_link(self, name: str, folder: "Folder", other: str) -> None:
        """Give a file ``other`` of a folder a further name, in this folder."""
        old, new = folder._name(other), self._name(name)  # noqa: SLF001  (the same class)
        os.link(old, new, src_dir_fd=folder._at, dst_dir_fd=self._at, follow_symlinks=False)  # noqa: SLF001

    def rename(self, name: str, folder: "Folder", other: str) -> None:
        """Move a name to a folder, where it replaces the name ``other``."""
        old, new = self._name(name), folder._name(other)  # noqa: SLF001  (the same class)
        os.replace(old, new, src_dir_fd=self._at, dst_dir_fd=folder._at)  # noqa: SLF001

    def exchange(self, name: str, other: str) -> None:
        """Exchange two names, in one step if the system can; otherwise one is missing between."""
        rename = getattr(_library(), "renameat2", None) if sys.platform == "linux" else None
        if rename is not None:
            one, two = os.fsencode(self._name(name)), os.fsencode(self._name(other))
            rename(self._at, one, self._at, two, _EXCHANGE)
            return
        with contextlib.suppress(OSError):
            self.rename(name, self, f"{name}.spare")
            self.rename(other, self, name)
            self.rename(f"{name}.spare", self, other)

    def set_mode(self, name: str, mode: int) -> None:
        """Set the mode of a file or folder, which need not be readable."""
        with self._descriptor(name, getattr(os, "O_PATH", os.O_RDONLY)) as descriptor:
            found = os.fstat(descriptor)
            if stat.S_ISLNK(found.st_mode):
                raise self._replaced(name, found)
            os.chmod(f"/proc/self/fd/{descriptor}" if hasattr(os, "O_PATH") else descriptor, mode)

    def set_time(self, name: str, time: float) -> None:
        """Set the modification time of a file, a folder or a link, in seconds since 1970."""
        place, times = self._name(name), (time, time)
        os.utime(place, times, dir_fd=self._at, follow_symlinks=False)

    def unlink(self, name: str) -> None:
        """Remove a file or a link, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name(name), dir_fd=self._at)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._name(name), dir_fd=self._at)

    def release_pipe(self, name: str) -> None:
        """Remove a named pipe, and release those who wait for its other end."""
        with self._descriptor(name, os.O_RDWR | _NO_WAIT) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISFIFO(found.st_mode):
                raise self._replaced(name, found)
            self.unlink(name)

    # --- removing trees

    def clear(self) -> None:
        """Remove everything in the folder, even what is unreadable or very deep.

        Folders are moved up before they are emptied, so that no path is too long.
        """
        with contextlib.suppress(OSError):  # a list needs permission, even of our own folder
            os.chmod(self.handle, 0o700)
        numbers = iter(range(REMOVED))
        waiting = self._emptied(self, numbers)
        while waiting:
            name = waiting.pop()
            with contextlib.suppress(OSError):
                waiting += self.open(name)._emptied(self, numbers)  # noqa: SLF001  (the same class)
                self.remove_folder(name)

    def _emptied(self, top: "Folder", numbers: Iterator[int]) -> list[str]:
        """Remove the files of this folder, and move its folders to the top; return their names."""
        moved: list[str] = []
        kept: set[str] = set()
        while True:
            with self._listed() as entries:
                left = (entry for entry in entries if entry.name not in kept)
                some = [
                    (e.name, e.is_dir(follow_symlinks=False)) for e in itertools.islice(left, MOST)
                ]
            number = None
            for (name, is_folder), number in zip(some, numbers, strict=False):
                place = f"{number}-{secrets.token_hex(6)}"
                try:
                    if not is_folder:
                        self._force(name)
                        continue
                    self._release(name)
                    self.rename(name, top, place)
                    moved.append(place)
                except OSError:
                    kept.add(name)
            if number is None or len(some) < MOST:  # a server may make new names without end
                return moved
            kept.update(moved)

    def _force(self, name: str) -> None:
        """Remove a file, also one whose flags forbid it."""
        try:
            self.unlink(name)
        except PermissionError:
            self._release(name)
            self.unlink(name)

    def _release(self, name: str) -> None:
        """Allow to remove a name or what is in it, whatever its mode and its flags say."""
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(self.stat(name).st_mode) or sys.platform == "win32":
                self.set_mode(name, 0o700)
        if sys.platform == "linux":
            with contextlib.suppress(OSError), self._descriptor(name, os.O_RDONLY) as descriptor:
                (flags,) = struct.unpack("l", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8)))
                if flags & _FIXED:
                    fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", flags & ~_FIXED))

    # --- opening

    def open(self, *names: str) -> "Folder":
        """Open a folder below this one; each name is a part of the path."""
        shown = "/".join((self._shown, *names))
        for name in names:
            self._name(name)
        if self._at is None:
            return Folder(self._checked(names), shown)
        try:
            return Folder(_open_beneath(self._at, names), shown)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                what = "a link or a file is in place of a folder"
                raise ReplacedError(error.errno, what, shown) from None
            raise

    def _checked(self, names: tuple[str, ...]) -> str:
        """Return the path of a folder, after a check that no part of it is a link."""
        here = str(self._place)
        for name in names:
            here = os.path.join(here, name)
            if not stat.S_ISDIR(os.lstat(here).st_mode):
                what = "a link or a file is in place of a folder"
                raise ReplacedError(errno.ENOTDIR, what, here)
        return here

    @contextlib.contextmanager
    def _descriptor(self, name: str, flags: int) -> Iterator[int]:
        try:
            opened = os.open(self._name(name), flags | _NO_WAIT | _NO_LINK, dir_fd=self._at)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENXIO}:  # a link; a pipe or a socket
                raise self._replaced(name, self.stat(name)) from None
            raise
        try:
            yield opened
        finally:
            os.close(opened)

    @contextlib.contextmanager
    def _opened(self, name: str, flags: int) -> Iterator[tuple[int, os.stat_result]]:
        """Open a regular file; a named pipe or a device is an error, and never waited for."""
        with self._descriptor(name, flags) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._replaced(name, found)
            yield descriptor, found


def open_folder(path: Path) -> Folder:
    """Open a folder that no server can replace, as the top of a tree.

    Raises:
        OSError: it is no folder, or a link to one.
    """
    return Folder(
        os.open(path, _FOLDER | os.O_RDONLY) if _HAS_DESCRIPTORS else str(path), str(path)
    )


def _pieces(descriptor: int, most: int) -> Iterator[bytes]:
    while most > 0 and (piece := os.read(descriptor, min(most, 1 << 20))):
        most -= len(piece)
        yield piece


@lru_cache
def _library() -> ctypes.CDLL:
    """Return the C library."""
    return ctypes.CDLL(None, use_errno=True)


def _open_beneath(top: int, names: tuple[str, ...]) -> int:
    """Open a folder relative to a descriptor; no part of the path may be a link."""
    if not names:
        return os.open(".", _ON_THE_WAY, dir_fd=top)
    global _has_openat2  # noqa: PLW0603  (what the kernel can does not change)
    if _has_openat2:
        how = struct.pack("QQQ", _ON_THE_WAY, 0, _BENEATH)
        path = os.fsencode("/".join(names))
        found = int(_library().syscall(_OPENAT2, top, path, how, len(how)))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number not in {errno.ENOSYS, errno.EPERM, errno.EAGAIN}:
            raise OSError(number, os.strerror(number))
        _has_openat2 = number == errno.EAGAIN
    here = os.open(".", _ON_THE_WAY, dir_fd=top)
    for name in names:
        try:
            below = os.open(name, _ON_THE_WAY, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


_has_openat2 = sys.platform == "linux"


class Tree:
    """A folder of ours and everything below it.

    Attributes:
        path: the folder, with all links on the way to it resolved.
        top: the folder as a ``SafePath``.
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
        self.top = SafePath(self)

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
        top = str(self.path)
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
        tree: the folder.
        parts: the names below it.
    """

    tree: Tree
    parts: tuple[str, ...] = ()

    # --- names

    def __str__(self) -> str:
        """Return the absolute path."""
        return "/".join((str(self.tree.path), *self.parts))

    def __repr__(self) -> str:
        """Return it for a debugger."""
        return f"SafePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        """Return whether the absolute paths are equal."""
        return isinstance(other, SafePath) and str(self) == str(other)

    def __lt__(self, other: "SafePath") -> bool:
        """Order by parts."""
        return self.parts < other.parts

    def __hash__(self) -> int:
        """Return a number for the absolute path."""
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

    def pieces(self, overlap: int) -> Iterator[bytes]:
        """Yield a file in pieces; see ``Folder.pieces``."""
        yield from self._folder().pieces(self._last, overlap)

    def read_text(self, errors: str = "strict") -> str:
        """Return the content of a file in UTF-8."""
        return self.read_bytes().decode("utf-8", errors)

    def opened(self) -> Folder:
        """Open the folder at this path."""
        return self.tree.folder.open(*self.parts) if self.parts else self.tree.folder

    def iterdir(self) -> "list[SafePath]":
        """Return the paths in a folder, at most ``MOST``."""
        return [SafePath(self.tree, (*self.parts, name)) for name in self.opened().names()]

    def walk(self) -> "Iterator[tuple[SafePath, list[str], list[str]]]":
        """Yield a folder, its folders and its other names, then the same for all below.

        Names removed from the list of folders are not entered, and unreadable folders neither. It
        ends after ``MOST`` names.
        """
        left, waiting = MOST, [self]
        while waiting and left > 0:
            here = waiting.pop()
            try:
                folder = here.opened()
                names = folder.names()
            except OSError:
                continue
            left -= len(names)
            folders: list[str] = []
            others: list[str] = []
            for name in names:
                try:
                    is_folder = stat.S_ISDIR(folder.stat(name).st_mode)
                except OSError:
                    continue
                (folders if is_folder else others).append(name)
            yield here, folders, others
            waiting += [SafePath(self.tree, (*here.parts, name)) for name in reversed(folders)]

    def below(self) -> "Iterator[SafePath]":
        """Yield all paths below a folder; links are not entered."""
        for folder, folders, others in self.walk():
            for name in (*folders, *others):
                yield SafePath(self.tree, (*folder.parts, name))

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

    def release_pipe(self) -> None:
        """Remove a named pipe, and release those who wait for its other end."""
        self._folder().release_pipe(self._last)

    def rename(self, other: "SafePath") -> None:
        """Move it to another path of the tree."""
        self._folder().rename(self._last, other._folder(), other._last)  # noqa: SLF001

    def chmod(self, mode: int) -> None:
        """Set the mode."""
        self._folder().set_mode(self._last, mode)

    def set_time(self, time: float) -> None:
        """Set the modification time, in seconds since 1970."""
        self._folder().set_time(self._last, time)

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
