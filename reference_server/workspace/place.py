"""The root directory and directories below it, kept open to access the names in them.

``Place`` hides the difference between systems: on POSIX names are relative to a descriptor, on
Windows to a path.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from binascii import crc32
from contextlib import contextmanager, suppress

from . import descent
from .paths import parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from .paths import Parts

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


PATIENCE = 10.0
"""Seconds to wait for other writers below the same root."""


class Place:
    """One open directory; use it as a context manager.

    Args:
        fd: Its descriptor, which is closed at the end; None on Windows.
        path: Its path; ``""`` if there is a descriptor.
    """

    def __init__(self, fd: int | None, path: str) -> None:
        self.fd = fd
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name) if self._path else name  # noqa: PTH118

    def lstat(self, name: str) -> os.stat_result:
        return os.stat(self._at(name), dir_fd=self.fd, follow_symlinks=False)

    def names(self) -> list[str]:
        return sorted(os.listdir(self._path if self.fd is None else self.fd))  # noqa: PTH208 - takes descriptors

    def create(self, name: str, mode: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
        return os.open(self._at(name), flags, mode, dir_fd=self.fd)

    def open(self, name: str, flags: int) -> int:
        """Open an existing file without following a link."""
        return os.open(self._at(name), flags | _BINARY, dir_fd=self.fd)

    def replace(self, name: str, new: str) -> None:
        os.replace(self._at(name), self._at(new), src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def claim(self, name: str, new: str) -> None:
        """Rename a file to a name that does not exist."""
        if os.link not in os.supports_dir_fd:
            os.rename(self._at(name), self._at(new))  # noqa: PTH104 - refuses an existing name on Windows
            return
        try:
            os.link(self._at(name), self._at(new), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except FileExistsError:
            raise
        except OSError as error:  # a file system without hard links
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
            if self.has(new):
                raise FileExistsError(errno.EEXIST, "exists") from None
            self.replace(name, new)
            return
        with suppress(OSError):  # the new name is there; the old one is a leftover
            os.unlink(self._at(name), dir_fd=self.fd)

    def has(self, name: str) -> bool:
        try:
            self.lstat(name)
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        try:
            os.unlink(self._at(name), dir_fd=self.fd)
        except FileNotFoundError:
            return

    def make_directory(self, name: str) -> None:
        os.mkdir(self._at(name), dir_fd=self.fd)

    def remove_directory(self, name: str) -> None:
        """Remove a directory, if it exists and is empty."""
        try:
            os.rmdir(self._at(name), dir_fd=self.fd)
        except OSError:
            return

    def sync(self) -> None:
        if self.fd is not None:
            with suppress(OSError):  # some file systems cannot sync a directory
                os.fsync(self.fd)


class Root:
    """One root of the workspace: the directory that had this path when it was first used.

    It is kept open, so replacing it with another directory or a link has no effect.

    Attributes:
        real: The parts of its resolved path.
        spellings: Its absolute paths that the path of a client may begin with, as their parts.
        folds: Whether its volume ignores the case of names.
        key: Another text for each root; the same one when it is served again.
    """

    def __init__(self, path: str) -> None:
        real = os.path.realpath(path)
        given = os.path.abspath(path)  # noqa: PTH100 - pathlib costs a third of the start-up
        self.real = system_parts(real)
        self.spellings = tuple(dict.fromkeys((parts_of(given), parts_of(real))))
        self._path = real
        self._fd = os.open(real, descent.DIRECTORY) if descent.CAN_DESCEND else None
        self._lock = threading.Lock()
        self.folds = self._find_out_folding()
        with self.place(()) as here:
            inode = here.lstat(".").st_ino
        self.key = f"{inode:x}-{crc32(os.fsencode(real)):08x}"

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def open_file(self, parts: Parts) -> int:
        """Open a file for reading; raises as ``descent.open_below``."""
        if self._fd is not None:
            return descent.open_below(self._fd, parts, descent.FILE)
        return os.open(self._resolved(parts), descent.FILE)

    def place(self, parts: Parts) -> Place:
        """Open a directory, ``()`` for the root itself; raises as ``descent.open_below``."""
        if self._fd is None:
            return Place(None, self._resolved(parts))
        if not parts:
            # Duplicates from dup share the offset that listing moves.
            return Place(os.open(".", descent.DIRECTORY, dir_fd=self._fd), "")
        return Place(descent.open_below(self._fd, parts, descent.DIRECTORY), "")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the root against writes by other threads and other servers.

        Raises:
            TimeoutError: Another writer did not finish in time.
        """
        deadline = time.monotonic() + PATIENCE
        if not self._lock.acquire(timeout=PATIENCE):
            raise TimeoutError
        try:
            with self.place(()) as here:
                _lock_among_processes(here, deadline)
                yield
        finally:
            self._lock.release()

    def _resolved(self, parts: Parts) -> str:
        lexical = os.path.join(self._path, *parts)  # noqa: PTH118
        if os.path.normcase(os.path.realpath(lexical)) != os.path.normcase(lexical):
            raise OSError(errno.ELOOP, "a link or an alias of another name")
        return lexical

    def _find_out_folding(self) -> bool:
        """Look up a name in the root, or its own name, with the case swapped."""
        with self.place(()) as here:
            names = [name for name in here.names() if name.swapcase() != name][:1]
            if names:
                return self._is_same(here, names[0])
        parent, name = os.path.split(self._path)
        if name.swapcase() == name:
            return os.name == "nt"
        return self._is_same(Place(None, parent), name)

    @staticmethod
    def _is_same(place: Place, name: str) -> bool:
        try:
            return os.path.samestat(place.lstat(name), place.lstat(name.swapcase()))
        except OSError:
            return False


def _lock_among_processes(place: Place, deadline: float) -> None:
    """Take the advisory lock on a directory; closing the directory releases it."""
    if place.fd is None:
        return
    import fcntl  # noqa: PLC0415 - POSIX only

    while True:
        try:
            fcntl.flock(place.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return
        else:
            return


def system_parts(path: str) -> Parts:
    return parts_of(path.replace(os.sep, "/"))


def kind_of(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"
