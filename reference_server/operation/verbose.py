"""The file of ``--verbose-log``: every event with the requests and answers, for debugging."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_FLAGS = (
    *("O_WRONLY", "O_APPEND", "O_CREAT"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY", "O_NOINHERIT"),
)
"""Flags that the system lacks are left out. O_NONBLOCK prevents a block on a named pipe."""


class VerboseFile:
    """An open file that only its owner can read; lines are appended as a whole.

    Args:
        roots: Directories that must not contain the file, because tools could read it there.

    Raises:
        OSError: It cannot be opened, or is not a regular file of this user; see ``strerror``.
    """

    def __init__(self, path: str, roots: Iterable[str]) -> None:
        if is_inside(path, roots):
            raise OSError(0, "it must not lie below a root, where a tool could read it")
        flags = 0
        for name in _FLAGS:
            flags |= getattr(os, name, 0)
        self._descriptor = os.open(path, flags, 0o600)
        self._lock = threading.Lock()
        try:
            self._claim(os.fstat(self._descriptor))
        except OSError:
            os.close(self._descriptor)
            raise

    def _claim(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        if os.name != "nt":
            if found.st_uid != os.geteuid() or found.st_nlink != 1:
                raise OSError(0, "it belongs to somebody else or has a second name")
            os.fchmod(self._descriptor, 0o600)

    def write(self, line: bytes) -> None:
        with self._lock:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def close(self) -> None:
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1


def is_inside(path: str, roots: Iterable[str]) -> bool:
    """Return whether a path is below a root, even if the root has several names."""
    tops = [os.stat(root) for root in roots if os.path.isdir(root)]  # noqa: PTH112, PTH116
    folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
    while True:
        with suppress(OSError):  # it does not exist
            here = os.stat(folder)  # noqa: PTH116
            if any(os.path.samestat(here, top) for top in tops):
                return True
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return False
        folder = above
