"""The time limit of a whole run. Ends its processes after that time; judges nothing."""

import threading
from typing import Self

from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.transport.process import now


class Deadline:
    """Time limit that ends a run after some seconds, whatever its state.

    Results up to then are kept. Live processes are ended and not judged, since their behaviour at
    such an end says nothing about them.
    """

    def __init__(self, seconds: float, pool: ProcessPool) -> None:
        self._seconds = seconds
        self._pool = pool
        self._until = now() + seconds if seconds else float("inf")
        self._timer = threading.Timer(seconds, self._expire) if seconds else None

    @property
    def left(self) -> float:
        """Remaining seconds; infinite without a limit."""
        return max(0.0, self._until - now())

    def _expire(self) -> None:
        self._pool.expire(
            f"the run was ended after {self._seconds:g} s (--deadline); not all was judged"
        )

    def __enter__(self) -> Self:
        """Start the clock."""
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
