"""How many processes start at a time: each more only makes all of them slower. Knows no MCP."""

import heapq
import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mcp_touchstone.process import now

WIDTH: Final = (os.cpu_count() or 1) + 1
"""Processes that start at a time: one for each core, and one that waits for the disk."""

LOOK: Final = 0.004
"""Seconds between two looks at who has started."""


def _not_yet() -> bool:
    return False


@dataclass(slots=True)
class Newcomer:
    """A process that was let in.

    Attributes:
        since: the moment.
        settled: whether it has started, or is over.
    """

    since: float
    settled: Callable[[], bool] = _not_yet

    def gave_up(self) -> None:
        """Nothing was started after all."""
        self.settled = lambda: True


class Turn(IntEnum):
    """Who goes first of those that wait."""

    MANY = 0
    """A process that many conversations wait for."""
    LONG = 1
    """One with a conversation that lasts."""
    OTHER = 2


class Doorway:
    """Lets processes start a few at a time: by their turn, and in the order they come.

    Args:
        patience: gives the seconds after which a process counts no longer: some conversations
            begin with silence, and who is told nothing answers nothing.
        width: how many start at a time.
    """

    def __init__(self, patience: Callable[[], float], width: int = WIDTH) -> None:
        self._patience = patience
        self._width = width
        self._inside: list[Newcomer] = []
        self._outside: list[tuple[Turn, int]] = []
        self._numbers = itertools.count()
        self._moved = threading.Condition()

    def enter(self, turn: Turn = Turn.OTHER) -> Newcomer:
        """Wait until there is room and nobody else is due."""
        ticket = turn, next(self._numbers)
        with self._moved:
            heapq.heappush(self._outside, ticket)
            try:
                while self._outside[0] != ticket:
                    self._moved.wait()
                while not self._has_room() or self._outside[0] != ticket:
                    self._moved.wait(LOOK)
            finally:
                self._outside.remove(ticket)
                heapq.heapify(self._outside)
                self._moved.notify_all()
            self._inside.append(Newcomer(now()))
            return self._inside[-1]

    def _has_room(self) -> bool:
        late = now() - self._patience()
        self._inside = [one for one in self._inside if one.since > late and not one.settled()]
        return len(self._inside) < self._width
