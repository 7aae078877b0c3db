"""How long to wait for what; adapts to what was measured. Pure."""

from dataclasses import dataclass
from typing import Final

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
        processor: measured processor time to the first answer, with all it started; 0 if unknown.
        round_trip: measured time of a cheap request.
        unfinished: time after which a whole message without its line feed is taken as it stands.
    """

    startup: float
    started: float = 0.5
    processor: float = 0.0
    round_trip: float = 0.01
    unfinished: float = UNFINISHED

    @property
    def reply(self) -> float:
        """Limit for an answer of a process that has answered before."""
        return min(self.startup, max(5.0, 4 * self.started, 200 * self.round_trip))

    @property
    def settle(self) -> float:
        """How long something the server writes unasked may trail behind an answer."""
        return min(1.0, max(0.12, 10 * self.round_trip))

    @property
    def silence(self) -> float:
        """How long to listen to a server that has nothing to say."""
        return min(3.0, max(0.8, 1.5 * self.started))

    @property
    def farewell(self) -> float:
        """Patience for each step of a shutdown."""
        return min(5.0, max(2.0, 2 * self.started))
