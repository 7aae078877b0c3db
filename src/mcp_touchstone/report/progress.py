"""How far a run is: what is under way, how long the rest may take. Pure but for its clock."""

import threading
from collections.abc import Callable
from typing import Final

_ENOUGH: Final = 5.0
"""Seconds after which the pace so far says something about the rest."""

_MINUTE: Final = 60
_STEP: Final = 5
"""Seconds an estimate is rounded up to: it is none to the second."""


class Progress:
    """Counts what is done of a plan, on one line; lanes in several threads tell it.

    Args:
        clock: gives seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun = clock()
        self._planned = 0
        self._done = 0
        self._under_way: list[str] = []
        self._lock = threading.Lock()

    def plan(self, count: int) -> None:
        """Say how many steps there are; some may be done already."""
        self._planned = count

    def start(self, step: str) -> None:
        """Begin a step; several may be under way."""
        with self._lock:
            self._under_way.append(step)

    def done(self, step: str) -> None:
        """End a step."""
        with self._lock:
            self._done += 1
            if step in self._under_way:
                self._under_way.remove(step)

    def text(self) -> str:
        """Say it: ``12/340  basic/ping  2025-11-25  about 40 s left``."""
        with self._lock:
            parts = [f"{self._done}/{self._planned or '…'}", *self._under_way[-1:], self._left()]
        return "  ".join(part for part in parts if part)

    def _left(self) -> str:
        elapsed = self._clock() - self._begun
        if elapsed < _ENOUGH or not self._done or self._done >= self._planned:
            return ""
        seconds = elapsed / self._done * (self._planned - self._done)
        if seconds >= 2 * _MINUTE:
            return f"about {round(seconds / _MINUTE)} min left"
        return f"about {-(-int(seconds + 1) // _STEP) * _STEP} s left"
