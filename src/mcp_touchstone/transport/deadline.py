"""A time limit that does not count the seconds in which the server waited for a core. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

FIRST_LOOK: Final = 0.2
"""Share of the limit after which we check the waits for a core: most answers come before."""

SHORT: Final = 0.2
"""Seconds of a limit that is too short for a check."""

MOST: Final = 6.0
"""Greatest extension of a limit, as a multiple of it."""

ALONE: Final = 1.0
"""``MOST`` for a limit that is not extended."""

NEARLY: Final = 0.01
"""Seconds that are too short for another wait."""


class ThreadTimes(NamedTuple):
    """The times of a thread since its start.

    Attributes:
        waited: seconds in which it was ready to run and had no core; a wait that has not ended may
            be missing.
        ran: seconds in which it had a core.
        ready: whether it runs or waits for a core now.
    """

    waited: float
    ran: float = 0.0
    ready: bool = False


Turns = Mapping[int, ThreadTimes]
"""Thread id -> its times."""

NEVER: Final = ThreadTimes(0.0)


@dataclass
class Patience:
    """One wait for at most ``seconds``, or ``most`` times that on a busy machine.

    Attributes:
        turns: returns the times of each relevant thread.
        clock: returns seconds.
        most: greatest extension, as a multiple of the limit.
        granted: seconds added to its limit.
    """

    seconds: float
    turns: Callable[[], Turns]
    clock: Callable[[], float]
    most: float = MOST
    granted: float = 0.0
    _before: Turns | None = None
    _looked: float = 0.0

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def left(self) -> float:
        """Return the seconds to wait before the next call; 0 if the time is over."""
        spent = self.clock() - self._begun
        if self._before is None and self.seconds > SHORT:
            if spent < FIRST_LOOK * self.seconds:
                return FIRST_LOOK * self.seconds - spent
            self._before = self.turns()
            self._looked = spent
        left = self.seconds + self.granted - spent
        if left <= 0 and self._before is not None:
            self.granted = min(
                self._lost(self._before, spent - self._looked), (self.most - 1) * self.seconds
            )
            left = self.seconds + self.granted - spent
            return left if left > NEARLY else 0.0
        return max(0.0, left)

    def _lost(self, before: Turns, elapsed: float) -> float:
        lost = 0.0
        for thread, turn in self.turns().items():
            earlier = before.get(thread, NEVER)
            lost = max(lost, turn.waited - earlier.waited)
            if turn.ready:  # its present wait is not counted yet
                lost = max(lost, elapsed - (turn.ran - earlier.ran))
        return lost
