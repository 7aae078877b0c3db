"""Run an action at a chosen moment of a call, in a separate thread."""

import threading
from collections.abc import Callable


class Trigger:
    """Runs an action once: after some seconds, or as soon as a watched value changes."""

    def __init__(
        self, act: Callable[[], None], look: Callable[[], object], seconds: float | None = None
    ) -> None:
        """Read the watched value for the first time.

        Args:
            look: returns the watched value. It is called without a pause, because the value may
                change only for a short time. If it raises ``OSError``, the action runs, and
                ``stop`` raises the error.
            seconds: seconds from the start to the action; None to act as soon as the value changes.
        """
        self._act = act
        self._look = look
        self._seconds = seconds
        self._before = look()
        self._error: OSError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start to watch the value, or to wait."""
        self._thread.start()

    def stop(self) -> None:
        """Run the action now, unless it has run; return when it has ended.

        Raises:
            OSError: the watched value could not be read.
        """
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        if self._seconds is not None:
            self._over.wait(self._seconds)
        else:
            try:
                while self._look() == self._before and not self._over.is_set():
                    pass
            except OSError as error:
                self._error = error
        self._act()
