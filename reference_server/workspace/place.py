"""A root directory and the directories below it, held open: what is done by name is done in them.

``Place`` hides the one difference between systems: POSIX has a descriptor to name files in,
Windows only a path.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from contextlib import contextmanager, suppress

from . import descent
from .paths import parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from .paths import Parts

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


PATIENCE = 10.0
"""Seconds to wait for others that write below the same root."""


class Place:
    """One open directory; use it as a context manager.

    Args:
        fd: Its descriptor, which is closed at the end; None on Windows.
        path: Its path; ``""`` where there is a descriptor.
    """

    def __init__(self, fd: int | None, path: str) -> None:
        self.fd = fd
        self._path = path

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the directory."""
        if self.fd is not None:
            os.close(self.fd)

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name) if self._path else name  # noqa: PTH118

    def lstat(self, name: str) -> os.stat_result:
        """Look at a name; a link is looked at itself."""
        return os.stat(self._at(name), dir_fd=self.fd, follow_symlinks=False)

    def names(self) -> list[str]:
        """Give the names in it, sorted."""
        return sorted(os.listdir(self._path if self.fd is None else self.fd))  # noqa: PTH208 - takes descriptors

    def create(self, name: str, mode: int) -> int:
        """Open a new file for writing; it must not exist."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
        return os.open(self._at(name), flags, mode, dir_fd=self.fd)

    def open(self, name: str, flags: int) -> int:
        """Open a file that exists; never through a link."""
        return os.open(self._at(name), flags | _BINARY, dir_fd=self.fd)

    def replace(self, name: str, new: str) -> None:
        """Give a file a new name, in the place of whatever had it."""
        os.replace(self._at(name), self._at(new), src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def claim(self, name: str, new: str) -> None:
        """Give a file a new name that nothing has.

        Raises:
            FileExistsError: Something has it.
        """
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
        os.unlink(self._at(name), dir_fd=self.fd)

    def has(self, name: str) -> bool:
        """Say whether something has this name."""
        try:
            self.lstat(name)
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        """Remove a file, or nothing if it is gone."""
        try:
            os.unlink(self._at(name), dir_fd=self.fd)
        except FileNotFoundError:
            return

    def make_directory(self, name: str) -> None:
        """Make a directory in it."""
        os.mkdir(self._at(name), dir_fd=self.fd)

    def remove_directory(self, name: str) -> None:
        """Remove an empty directory; one that is gone or holds something is left alone."""
        try:
            os.rmdir(self._at(name), dir_fd=self.fd)
        except OSError:
            return

    def sync(self) -> None:
        """Wait until the names in it are on the disk."""
        if self.fd is not None:
            with suppress(OSError):  # not every file system can do this for a directory
                os.fsync(self.fd)


class Root:
    """One root of the workspace: the directory that had this path when it was first used.

    It is kept open, so another directory or a link in its place has no effect.

    Attributes:
        real: Its resolved path, cut at the separators.
        spellings: The absolute paths a client may begin a path with, as their parts.
        folds: Whether names that differ in case are one name on its volume.
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

    def close(self) -> None:
        """Close the directory."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def open_file(self, parts: Parts) -> int:
        """Open a file for reading; ``OSError`` as ``descent.open_below``."""
        if self._fd is not None:
            return descent.open_below(self._fd, parts, descent.FILE)
        return os.open(self._resolved(parts), descent.FILE)

    def place(self, parts: Parts) -> Place:
        """Open a directory, ``()`` for the root itself; ``OSError`` as ``descent.open_below``."""
        if self._fd is None:
            return Place(None, self._resolved(parts))
        if not parts:
            # Not dup: listing moves an offset that duplicates share.
            return Place(os.open(".", descent.DIRECTORY, dir_fd=self._fd), "")
        return Place(descent.open_below(self._fd, parts, descent.DIRECTORY), "")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one that writes below this root, among threads and among servers.

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
        """Ask for some name in the root, or its own, in the other case."""
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
    """Cut one of the system's own absolute paths."""
    return parts_of(path.replace(os.sep, "/"))


def kind_of(mode: int) -> str:
    """Name the kind of a ``st_mode``: ``file``, ``directory``, ``link`` or ``other``."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"
