"""What is opened in some folders, where the system tells whoever may read them (Linux: inotify)."""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

OPENED: Final = 0x20
"""IN_OPEN: a folder, or a file in it, was opened; who only looks at its name opens nothing."""

BELOW: Final = 0x01000000 | 0x02000000
"""IN_ONLYDIR and IN_DONT_FOLLOW."""

HEAD: Final = struct.Struct("iIII")
"""Number of the folder, what happened, a cookie, length of the name that follows."""

BUFFER: Final = 65_536


class OpenWatcher:
    """Looks out over folders, not over those in them, until it is closed."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Begin; where nobody tells, or no more such lookouts may be had, ``works`` is false."""
        descriptor = self._descriptor = _begun()
        numbers = {} if descriptor is None else {_watched(descriptor, one): one for one in folders}
        self._folders = {number: folder for number, folder in numbers.items() if number >= 0}

    @property
    def works(self) -> bool:
        """Whether anything is looked at."""
        return bool(self._folders)

    def seen(self) -> list[Path]:
        """Give what was opened since this was asked last, each once, in order."""
        found: dict[Path, None] = {}
        while self._descriptor is not None:
            try:
                data = os.read(self._descriptor, BUFFER)
            except BlockingIOError:
                break
            found |= dict.fromkeys(_named(data, self._folders))
        return list(found)

    def close(self) -> None:
        """Look no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _named(data: bytes, folders: Mapping[int, Path]) -> Iterable[Path]:
    at = 0
    while at + HEAD.size <= len(data):
        number, _, _, length = HEAD.unpack_from(data, at)
        name = data[at + HEAD.size : at + HEAD.size + length].rstrip(b"\0")
        at += HEAD.size + length
        if number in folders:  # not so where there were too many events to keep
            yield folders[number] / os.fsdecode(name)


if sys.platform == "linux":
    _LIBRARY: Final = ctypes.CDLL(None, use_errno=True)

    def _begun() -> int | None:
        try:
            number = _LIBRARY.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except AttributeError:  # a library without it
            return None
        return number if number >= 0 else None

    def _watched(descriptor: int, folder: Path) -> int:
        number: int = _LIBRARY.inotify_add_watch(descriptor, os.fsencode(folder), OPENED | BELOW)
        return number

else:

    def _begun() -> int | None:
        return None

    def _watched(descriptor: int, folder: Path) -> int:
        del descriptor, folder
        return -1
