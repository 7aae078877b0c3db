"""Watch which files are opened in some folders. Only Linux supports it, with inotify."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable, Mapping
from typing import Final

from mcp_touchstone.runtime.open_folder import Folder
from mcp_touchstone.runtime.safe_path import SafePath

OPENED: Final = 0x20
"""IN_OPEN: a folder, or a file in it, was opened. A stat of a name opens nothing."""

ONLY_FOLDERS: Final = 0x01000000
"""IN_ONLYDIR."""

HEAD: Final = struct.Struct("iIII")
"""Header of an event: number of the folder, event mask, cookie, length of the name after it."""

BUFFER: Final = 65_536


class OpenWatcher:
    """Watches folders, but not their subfolders, until it is closed."""

    def __init__(self, folders: Iterable[SafePath]) -> None:
        """Start to watch.

        ``works`` is false if the system has no inotify or allows no more watches.
        """
        descriptor = self._descriptor = _begun()
        numbers = {}
        for one in folders:
            if descriptor is None:
                break
            with contextlib.suppress(OSError):
                numbers[_watched(descriptor, one.opened())] = one
        self._folders = {number: folder for number, folder in numbers.items() if number >= 0}

    @property
    def works(self) -> bool:
        """Whether at least one folder is watched."""
        return bool(self._folders)

    def seen(self) -> list[SafePath]:
        """Return the paths opened since the last call, each once, in order."""
        found: dict[SafePath, None] = {}
        while self._descriptor is not None:
            try:
                data = os.read(self._descriptor, BUFFER)
            except BlockingIOError:
                break
            found |= dict.fromkeys(_named(data, self._folders))
        return list(found)

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _named(data: bytes, folders: Mapping[int, SafePath]) -> Iterable[SafePath]:
    at = 0
    while at + HEAD.size <= len(data):
        number, _, _, length = HEAD.unpack_from(data, at)
        name = data[at + HEAD.size : at + HEAD.size + length].rstrip(b"\0")
        at += HEAD.size + length
        if number in folders:  # an overflow of the event queue names no folder
            yield folders[number] / os.fsdecode(name)


def _begun() -> int | None:
    try:
        number = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    except (AttributeError, TypeError):  # this system does not have it
        return None
    return number if number >= 0 else None


def _watched(descriptor: int, folder: Folder) -> int:
    place = os.fsencode(folder.handle)
    number: int = ctypes.CDLL(None).inotify_add_watch(descriptor, place, OPENED | ONLY_FOLDERS)
    return number
