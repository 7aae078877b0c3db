"""A limit of simultaneous starts: more of them would make all slower."""

import heapq
import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.transport.process import now

WIDTH: Final = max(2, os.cpu_count() or 1)
"""Processes that start at a time: one for each core, and at least two."""

GATHERING: Final = 0.01
"""Seconds for which a start waits for those of the same moment that have priority."""

LOOK: Final = 0.004
"""Seconds between two checks of started processes."""


@dataclass(slots=True)
class Newcomer:
    """A start that was admitted.

    Attributes:
        since: time of the admission.
        process: the connection to its process; None before.
        gave_up: whether no process was started.
    """

    since: float
    process: Connection | None = None
    gave_up: bool = False

    @property
    def settled(self) -> bool:
        """Whether it is over."""
        one = self.process
        return self.gave_up or (one is not None and (one.transcript.spoke or one.gone))


class StartPriority(IntEnum):
    """Priority of a waiting start."""

    FIRST = 0
    """A process on which discovery searches for a lasting call: many scenarios wait for that."""
    LONG = 1
    """A process for a lasting conversation."""
    MANY = 2
    """A process for many conversations."""
    OTHER = 3


class StartLimiter:
    """Limiter of simultaneous starts: by priority, then in the order of arrival.

    Args:
        patience: returns the seconds after which a process no longer counts: some conversations
            begin with silence, and a server without a request gives no answer.
        width: greatest number of simultaneous starts.
    """

    def __init__(self, patience: Callable[[], float], width: int = WIDTH) -> None:
        self._patience = patience
        self._width = width
        self._inside: list[Newcomer] = []
        self._outside: list[tuple[StartPriority, int]] = []
        self._numbers = itertools.count()
        self._moved = threading.Condition()

    def enter(self, turn: StartPriority = StartPriority.OTHER) -> Newcomer:
        """Wait until there is room and no other start has priority."""
        ticket = turn, next(self._numbers)
        with self._moved:
            heapq.heappush(self._outside, ticket)
            until = now() + GATHERING
            try:
                while (left := until - now()) > 0:
                    self._moved.wait(left)
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

    def admitted(self, turn: StartPriority, start: Callable[[], Connection]) -> Connection:
        """Wait for room, start a process, and return it."""
        newcomer = self.enter(turn)
        try:
            newcomer.process = process = start()
        except BaseException:
            newcomer.gave_up = True
            raise
        return process

    def _has_room(self) -> bool:
        late = now() - self._patience()
        self._inside = [one for one in self._inside if one.since > late and not one.settled]
        return len(self._inside) < self._width
