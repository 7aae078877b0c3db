"""What ``undo_edit`` can take back: the last edits of each file, in bounded memory. Pure.

It lives as long as the process and holds bytes, never a path on the disk: an undo is a write like
any other, under the same policy, and only on a file that is as the edit left it.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

MOST_EDITS = 100
MOST_BYTES = 32 * 1024 * 1024


class Step(NamedTuple):
    """One edit of one file.

    Attributes:
        place: The file, as the workspace names it.
        before: Its bytes before, None if the edit has made it.
        after: Hash of its bytes after (SHA-256 in hex).
    """

    place: str
    before: bytes | None
    after: str


class History:
    """The last edits, over all files; the oldest are forgotten first.

    Args:
        most_edits: Edits remembered.
        most_bytes: Bytes remembered for them.
    """

    def __init__(self, most_edits: int = MOST_EDITS, most_bytes: int = MOST_BYTES) -> None:
        self._most_edits = most_edits
        self._most_bytes = most_bytes
        self._steps: list[Step] = []
        self._lock = threading.Lock()

    def record(self, step: Step) -> None:
        """Remember an edit that was made.

        One that is too large to remember takes the earlier ones of its file along: they could not
        be reached any more.
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
        """Give the last edit of a file, or None if none is remembered."""
        with self._lock:
            return next((one for one in reversed(self._steps) if one.place == place), None)

    def count(self, place: str) -> int:
        """Count the edits of a file that are remembered."""
        with self._lock:
            return sum(one.place == place for one in self._steps)

    def forget(self, step: Step) -> None:
        """Forget an edit that was taken back."""
        with self._lock:
            self._steps = [one for one in self._steps if one is not step]


def _size(step: Step) -> int:
    return len(step.before or b"")
