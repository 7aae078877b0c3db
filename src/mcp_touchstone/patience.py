"""A limit in seconds, without those in which a busy machine gave the server no core. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

FIRST_LOOK: Final = 0.2
"""Seconds of waiting from which on we look who waits for a core: most answers come before."""

MOST: Final = 6.0
"""What a limit can grow to, as a multiple of itself."""

NEARLY: Final = 0.01
"""Seconds that are not worth another wait."""

Delays = Mapping[int, float]
"""Seconds each thread waited for a core in its life, by the number of the thread."""


class Patience:
    """One wait: how long it may go on.

    Attributes:
        granted: seconds it got beyond its limit.
    """

    def __init__(
        self,
        seconds: float,
        delays: Callable[[], Delays],
        clock: Callable[[], float],
    ) -> None:
        """Begin to wait for at most ``seconds``, times ``MOST`` on a machine that is that busy.

        Args:
            seconds: the limit.
            delays: gives what each thread that matters has waited for a core so far.
            clock: seconds of some clock.
        """
        self.granted = 0.0
        self._seconds = seconds
        self._delays = delays
        self._clock = clock
        self._begun = clock()
        self._before: Delays | None = None

    def left(self) -> float:
        """Give the seconds to wait before it is worth asking again; 0 when it is over."""
        spent = self._clock() - self._begun
        if self._before is None and self._seconds > FIRST_LOOK:
            if spent < FIRST_LOOK:
                return FIRST_LOOK - spent
            self._before = self._delays()
        left = self._seconds + self.granted - spent
        if left <= 0 and self._before is not None:
            self.granted = min(self._lost(self._before), (MOST - 1) * self._seconds)
            left = self._seconds + self.granted - spent
            return left if left > NEARLY else 0.0
        return max(0.0, left)

    def _lost(self, before: Delays) -> float:
        after = self._delays()
        return max((after[thread] - before.get(thread, 0.0) for thread in after), default=0.0)
