"""The edits that ``undo_edit`` can undo: the last ones of each file, in bounded memory. Pure.

The history ends with the process. It contains bytes and no paths on the disk. An undo is a write
under the same policy as any other, and only on a file that has not changed since the edit.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

MOST_EDITS = 100
MOST_BYTES = 32 * 1024 * 1024


class Step(NamedTuple):
    """One edit of one file.

    Attributes:
        place: The path of the file in the workspace.
        before: The bytes before the edit; None if the edit created the file.
        after: SHA-256 of the bytes after the edit, in hex.
    """

    place: str
    before: bytes | None
    after: str


class History:
    """The last edits of all files; the oldest are removed first."""

    def __init__(self, most_edits: int = MOST_EDITS, most_bytes: int = MOST_BYTES) -> None:
        self._most_edits = most_edits
        self._most_bytes = most_bytes
        self._steps: list[Step] = []
        self._lock = threading.Lock()

    def record(self, step: Step) -> None:
        """Add an edit.

        An edit that is too large is not added, and the earlier edits of its file are removed:
        they cannot be undone without it.
        """
        with self._lock:
            if _size(step) > self._most_bytes:
                self._steps = [one for one in self._steps if one.place != step.place]
                return
            self._steps = [*self._steps, step][-self._most_edits :]
            size = sum(map(_size, self._steps))
            while size > self._most_bytes:
                size -= _size(self._steps.pop(0))

    def last(self, place: str) -> Step | None:
        with self._lock:
            return next((one for one in reversed(self._steps) if one.place == place), None)

    def count(self, place: str) -> int:
        with self._lock:
            return sum(one.place == place for one in self._steps)

    def forget(self, step: Step) -> None:
        with self._lock:
            self._steps = [one for one in self._steps if one is not step]


def _size(step: Step) -> int:
    return len(step.before or b"")
