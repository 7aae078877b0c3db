"""Open directories and files below an open directory, without following links.

If a path is resolved first and opened afterwards, another process can replace a component with a
link in between. This module avoids that. On Linux, ``openat2`` resolves a whole path beneath a
directory without links. On other systems, and if a sandbox forbids that call, each component is
opened with ``O_NOFOLLOW``.

Windows has neither in the standard library. There the path is resolved, compared and then opened;
a process that creates links below the root at that moment can win the race.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    OpenBeneath = Callable[[int, str, int], int]

CAN_DESCEND = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")

DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: opening a FIFO must not wait for a writer.
FILE = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)

_OPENAT2 = 437
"""The system call number; it is the same on every architecture that Python supports."""

_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08
_RACES = 8
"""Attempts with ``openat2`` while renames interrupt it; then each component is opened."""


def open_below(directory: int, parts: Sequence[str], flags: int) -> int:
    """Open a path below an open directory without following links; return the descriptor.

    Args:
        parts: Names below it; at least one, and none is ``..``.
        flags: ``FILE`` or ``DIRECTORY``.

    Raises:
        OSError: The error of the system; ``ELOOP`` if a component is a link.
    """
    beneath = _beneath()
    if beneath:
        for _ in range(_RACES):
            try:
                return beneath(directory, "/".join(parts), flags)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    raise
    return walk(directory, parts, flags)


def walk(directory: int, parts: Sequence[str], flags: int) -> int:
    """Open a path as ``open_below`` does, one component at a time."""
    current = os.dup(directory)
    try:
        for part in parts[:-1]:
            deeper = _step(current, part, DIRECTORY)
            os.close(current)
            current = deeper
        return _step(current, parts[-1], flags)
    finally:
        os.close(current)


def _step(directory: int, part: str, flags: int) -> int:
    try:
        return os.open(part, flags, dir_fd=directory)
    except NotADirectoryError:
        found = os.stat(part, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):  # a race only changes the error: nothing was opened
            raise OSError(errno.ELOOP, "a link") from None
        raise


_found: list[OpenBeneath | None] = []


def _beneath() -> OpenBeneath | None:
    """Return ``openat2``, or None if it does not work; it is tried once."""
    if not _found:
        _found.append(_try_openat2() if sys.platform == "linux" else None)
    return _found[0]


def _try_openat2() -> OpenBeneath | None:
    try:
        import ctypes  # noqa: PLC0415 - part of most interpreters, and only needed here
    except ImportError:
        return None

    class How(ctypes.Structure):
        _fields_ = (
            ("flags", ctypes.c_uint64),
            ("mode", ctypes.c_uint64),
            ("resolve", ctypes.c_uint64),
        )

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    size = ctypes.c_size_t(ctypes.sizeof(How))

    def openat2(directory: int, path: str, flags: int) -> int:
        how = How(flags | os.O_CLOEXEC, 0, _NO_MAGIC_LINKS | _NO_LINKS | _BENEATH)
        descriptor: int = syscall(_OPENAT2, directory, os.fsencode(path), ctypes.byref(how), size)
        if descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return descriptor

    try:
        here = os.open("/", DIRECTORY)
        try:
            os.close(openat2(here, ".", DIRECTORY))
        finally:
            os.close(here)
    except OSError:  # an old kernel, or a sandbox that does not know the call
        return None
    return openat2
