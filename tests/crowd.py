"""Many tests at once, and one of them alone where the moment counts: locks among processes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl


class Crowd:
    """Test processes that know of one another by two files.

    Who wants to be alone keeps the door shut behind those who are in, and waits until they have
    left. Where the system has no such locks all go on together.

    Args:
        place: a folder that all of them share.
    """

    def __init__(self, place: Path) -> None:
        self._door = place / "crowd-door"
        self._room = place / "crowd-room"

    @contextmanager
    def among(self) -> Iterator[None]:
        """Work beside others."""
        with self._door.open("a") as door, self._room.open("a") as room:
            _lock(door, alone=False)
            _lock(room, alone=False)
            door.close()
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Work while nobody else does."""
        with self._door.open("a") as door, self._room.open("a") as room:
            _lock(door, alone=True)
            _lock(room, alone=True)
            yield


def _lock(file: IO[str], *, alone: bool) -> None:
    """Lock a file until it is closed."""
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
