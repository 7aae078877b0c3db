"""An open folder, and the names in it. Knows no MCP.

A name is used relative to the descriptor of its folder, and no link is followed: neither on the way
to the folder nor at the name. On Windows, which has no descriptors of folders, each part of a path
is checked before it is used.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import secrets
import stat
import struct
import sys
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

LARGEST: Final = 64 << 20
"""Greatest size of a file that is read as a whole, in bytes."""

MOST: Final = 200_000
"""Greatest number of names that are listed in a folder or a tree."""

REMOVED: Final = 10_000_000
"""Greatest number of names that are removed with a folder: a server may make more meanwhile."""

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

KINDS: Final = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "another file",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Kind of a file -> words for it."""


class OutsideError(OSError, ValueError):
    """A name or a path leads out of the tree."""


class ReplacedError(OSError):
    """Something else stands where a file or folder of ours was, such as a link or a named pipe."""

    def __str__(self) -> str:
        """Return the path and what stands there."""
        return f"{self.filename}: {self.strerror}"


class Folder:
    """An open folder. It works on the names in it, each a single part of a path.

    All methods raise ``OSError`` if the system refuses, and ``ReplacedError`` if a name is a
    link, or not the kind of file that the method works on.
    """

    def __init__(self, place: int | str, shown: str, *, listable: bool = False) -> None:
        """Own an open folder.

        Args:
            place: its descriptor, which is closed with this object; its path on Windows.
            shown: its path in messages.
            listable: whether it is open for reading, and not only on the way to a name.
        """
        self._place = place
        self._listable = listable
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
        if not name.isascii():  # a look at a tree asks this for every name, and encoding is slow
            try:
                os.fsencode(name)
            except UnicodeEncodeError:
                raise OSError(errno.EILSEQ, "this is no name of a file", self._path(name)) from None
        return name if self._at is not None else os.path.join(str(self._place), name)

    def _path(self, name: str) -> str:
        return f"{self._shown}/{name}"

    def _replaced(self, name: str, found: os.stat_result) -> ReplacedError:
        what = KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        return ReplacedError(errno.ELOOP, f"{what} is in place of our file", self._path(name))

    @contextlib.contextmanager
    def _listed(self) -> Iterator[Iterator["os.DirEntry[str]"]]:
        if self._at is None or self._listable:
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
            return [entry.name for entry in self._counted(entries)]

    def parted(self) -> tuple[list[str], list[str]]:
        """Return the names of the folders in the folder, and the other names.

        Raises:
            OSError: there are more than ``MOST``.
        """
        folders: list[str] = []
        others: list[str] = []
        with self._listed() as entries:
            for entry in self._counted(entries):
                (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        return folders, others

    def _counted(self, entries: Iterator["os.DirEntry[str]"]) -> Iterator["os.DirEntry[str]"]:
        yield from itertools.islice(entries, MOST)
        if next(entries, None) is not None:
            raise OSError(errno.E2BIG, f"there are more than {MOST:,} names", self._shown)

    def stat(self, name: str) -> os.stat_result:
        """Return the result of ``lstat`` for a name; for ``.``, that of the folder."""
        return os.stat(self._name(name), dir_fd=self._at, follow_symlinks=False)

    def stats(self) -> dict[str, os.stat_result | None]:
        """Return the result of ``lstat`` by name for all names in the folder; None for an error.

        Raises:
            OSError: there are more than ``MOST``.
        """
        # On Windows the listing knows neither the number nor the links of a file.
        known = self._at is not None
        found: dict[str, os.stat_result | None] = {}
        with self._listed() as entries:
            for entry in self._counted(entries):
                try:
                    result = entry.stat(follow_symlinks=False) if known else self.stat(entry.name)
                except OSError:
                    result = None
                found[entry.name] = result
        return found

    @cached_property
    def disk(self) -> int:
        """The number of the disk."""
        return os.stat(self._place).st_dev

    def room(self) -> tuple[int, int]:
        """Return the free bytes and files on the disk (not on Windows)."""
        if sys.platform == "win32":
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), self._shown)
        found = os.statvfs(self._place)
        return found.f_bavail * found.f_frsize, found.f_favail

    def target(self, name: str) -> str:
        """Return the target of a link."""
        return os.readlink(self._name(name), dir_fd=self._at)

    def read(self, name: str, most: int = LARGEST, *, whole: bool = True) -> bytes:
        """Return the content of a file.

        Args:
            most: greatest number of bytes.
            whole: whether a larger file is an error; otherwise its beginning is returned.
        """
        with self._opened(name, os.O_RDONLY) as (descriptor, found):
            if whole and found.st_size > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", self._path(name))
            return b"".join(_pieces(descriptor, found.st_size, most))

    def pieces(self, name: str, overlap: int) -> Iterator[bytes]:
        """Yield a file in pieces; each begins with the last ``overlap`` bytes of the one before."""
        with self._opened(name, os.O_RDONLY) as (descriptor, found):
            last = b""
            for piece in _pieces(descriptor, found.st_size, found.st_size):
                last = last[max(len(last) - overlap, 0) :] + piece
                yield last

    def slice(self, name: str, start: int, size: int) -> bytes:
        """Return some bytes of a file; fewer if it ends before."""
        found = bytearray()
        with self._opened(name, os.O_RDONLY) as (descriptor, _):
            while piece := os.pread(descriptor, size - len(found), start + len(found)):
                found += piece
        return bytes(found)

    # --- changing

    def write(self, name: str, data: bytes, time: float | None = None) -> None:
        """Write a file. A file that exists is replaced by a new one with its mode.

        Args:
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

    def release_pipe(self, name: str, data: bytes = b"") -> None:
        """Remove a named pipe, and release those who wait for its other end.

        Args:
            data: what one of them reads before the end; at most a page.
        """
        with self._descriptor(name, os.O_RDWR | _NO_WAIT) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISFIFO(found.st_mode):
                raise self._replaced(name, found)
            os.write(descriptor, data)
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

    def open(self, *names: str, listable: bool = False) -> "Folder":
        """Open a folder below this one; each name is a part of the path.

        Args:
            listable: whether to open it for a list of its names. That saves opening it again, but
                who watches it sees that, and it must be readable.
        """
        shown = "/".join((self._shown, *names))
        for name in names:
            self._name(name)
        if self._at is None:
            return Folder(self._checked(names), shown)
        try:
            flags = _FOLDER | os.O_RDONLY if listable else _ON_THE_WAY
            return Folder(_open_beneath(self._at, names, flags), shown, listable=listable)
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


def open_root(pid: int) -> Folder:
    """Open the root of a process, which is another one in a sandbox (Linux only).

    Raises:
        OSError: it has ended, or belongs to somebody else.
    """
    shown = f"/proc/{pid}/root"
    return Folder(os.open(f"{shown}/.", _FOLDER | os.O_RDONLY), shown)


def _pieces(descriptor: int, size: int, most: int) -> Iterator[bytes]:
    """Yield at most ``most`` bytes of a file of about ``size`` bytes."""
    room = min(size + 1, 1 << 20)  # the system fills a buffer with zeros before it reads into it
    while most > 0 and (piece := os.read(descriptor, min(most, room))):
        most -= len(piece)
        yield piece


@lru_cache
def _library() -> ctypes.CDLL:
    """Return the C library."""
    return ctypes.CDLL(None, use_errno=True)


def _open_beneath(top: int, names: tuple[str, ...], flags: int) -> int:
    """Open a folder relative to a descriptor; no part of the path may be a link."""
    if len(names) < 2:  # noqa: PLR2004  (a single name leads out only if it is a link)
        return os.open(names[0] if names else ".", flags, dir_fd=top)
    global _has_openat2  # noqa: PLW0603  (what the kernel can does not change)
    if _has_openat2:
        how = struct.pack("QQQ", flags, 0, _BENEATH)
        path = os.fsencode("/".join(names))
        found = int(_library().syscall(_OPENAT2, top, path, how, len(how)))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number not in {errno.ENOSYS, errno.EPERM, errno.EAGAIN}:
            raise OSError(number, os.strerror(number))
        _has_openat2 = number == errno.EAGAIN
    here = os.open(".", _ON_THE_WAY, dir_fd=top)
    for number, name in enumerate(names, 1):
        try:
            below = os.open(name, flags if number == len(names) else _ON_THE_WAY, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


_has_openat2 = sys.platform == "linux"
