"""Do something at a moment of a call, from a thread of our own."""

import threading
from collections.abc import Callable


class Trigger:
    """Acts once: some seconds after its start, or as soon as a look gives another value."""

    def __init__(
        self, act: Callable[[], None], look: Callable[[], object], seconds: float | None = None
    ) -> None:
        """Look for the first time.

        Args:
            act: what is done.
            look: gives a value; looked at without a pause, as the moment may be short.
            seconds: when to act; None for as soon as the value changes.
        """
        self._act = act
        self._look = look
        self._seconds = seconds
        self._before = look()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to look, or to wait."""
        self._thread.start()

    def stop(self) -> None:
        """Act now, unless that is done."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        if self._seconds is not None:
            self._over.wait(self._seconds)
        else:
            while self._look() == self._before and not self._over.is_set():
                pass
        self._act()
