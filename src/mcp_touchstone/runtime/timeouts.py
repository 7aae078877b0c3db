"""How long to wait for what; adapts to what was measured. Pure."""

from dataclasses import dataclass
from typing import Final

SLICE: Final = 0.2
"""Seconds between two moments in which an interruption is noticed."""

TRAILING: Final = 0.12
"""Seconds that something the server writes unasked is given to trail behind an answer, at least."""

TRAILING_IN_A_HURRY: Final = 0.04
"""The same, for a quick look."""

LEAVING_IN_A_HURRY: Final = 0.05
"""Seconds a server has to leave at the end of its input when there is a hurry, at least."""

UNFINISHED: Final = 2.0
"""Seconds after which a whole message without its line feed is taken as it stands."""

UNFINISHED_SHORT: Final = 0.02
"""The same, for a server that was seen to forget the line feed."""


@dataclass(slots=True)
class Pace:
    """How long to wait for what, in seconds; adapts to what was measured.

    Attributes:
        startup: limit for the first answer of a process.
        started: measured time to the first answer.
        round_trip: measured time of a cheap request.
        unfinished: time after which a whole message without its line feed is taken as it stands.
        hurried: whether it is only a quick look.
    """

    startup: float
    started: float = 0.5
    round_trip: float = 0.01
    unfinished: float = UNFINISHED
    hurried: bool = False

    @property
    def reply(self) -> float:
        """Limit for an answer of a process that has answered before."""
        return min(self.startup, max(5.0, 4 * self.started, 200 * self.round_trip))

    @property
    def settle(self) -> float:
        """How long something the server writes unasked may trail behind an answer."""
        trailing = TRAILING_IN_A_HURRY if self.hurried else TRAILING
        return min(1.0, max(trailing, 10 * self.round_trip))

    @property
    def silence(self) -> float:
        """How long to listen to a server that has nothing to say."""
        return min(3.0, max(0.8, 1.5 * self.started))

    @property
    def farewell(self) -> float:
        """Patience for each step of a shutdown."""
        return min(5.0, max(2.0, 2 * self.started))

    @property
    def hurry(self) -> float | None:
        """Patience for its first step, the end of the input, where that is shorter."""
        return max(LEAVING_IN_A_HURRY, self.started / 4) if self.hurried else None
