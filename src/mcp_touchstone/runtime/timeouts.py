"""Time limits, adapted to measured times. Pure."""

from dataclasses import dataclass
from typing import Final

SLICE: Final = 0.2
"""Seconds between two checks for an interruption."""

TRAILING: Final = 0.12
"""Least seconds to wait after an answer for unsolicited messages."""

TRAILING_IN_A_HURRY: Final = 0.04
"""The same, for a quick look."""

LEAVING_IN_A_HURRY: Final = 0.05
"""Least seconds a server has to exit after the end of its input in a hurried shutdown."""

UNFINISHED: Final = 2.0
"""Seconds after which a whole message without its line feed is accepted."""

UNFINISHED_SHORT: Final = 0.02
"""The same, for a server that has omitted a line feed before."""


@dataclass(slots=True)
class Pace:
    """Time limits in seconds, adapted to measured times.

    Attributes:
        startup: limit for the first answer of a process, in seconds.
        started: measured time to the first answer, in seconds.
        round_trip: measured time of a cheap request, in seconds.
        unfinished: seconds after which a whole message without its line feed is accepted.
        hurried: whether to use shorter limits, for a quick look.
        spins: whether a process of the server uses a whole core while idle. No limit is extended
            then: it is the server itself that keeps the cores.
        ends_none: whether the server has left the DELETE of a session without an answer.
    """

    startup: float
    started: float = 0.5
    round_trip: float = 0.01
    unfinished: float = UNFINISHED
    hurried: bool = False
    spins: bool = False
    ends_none: bool = False

    @property
    def reply(self) -> float:
        """Limit for an answer of a process that has answered before, in seconds."""
        return min(self.startup, max(5.0, 4 * self.started, 200 * self.round_trip))

    @property
    def settle(self) -> float:
        """Time to wait after an answer for unsolicited messages, in seconds."""
        trailing = TRAILING_IN_A_HURRY if self.hurried else TRAILING
        return min(1.0, max(trailing, 10 * self.round_trip))

    @property
    def silence(self) -> float:
        """Time to listen to a silent server, in seconds."""
        return min(3.0, max(0.8, 1.5 * self.started))

    @property
    def farewell(self) -> float:
        """Limit for each step of a shutdown, in seconds."""
        return min(5.0, max(2.0, 2 * self.started))

    @property
    def hurry(self) -> float | None:
        """Limit for the end of the input in a hurried shutdown, in seconds; None otherwise."""
        return max(LEAVING_IN_A_HURRY, self.started / 4) if self.hurried else None
