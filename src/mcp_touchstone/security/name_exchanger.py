"""Exchange two file names repeatedly while calls are made."""

import threading
from typing import Self

from mcp_touchstone.runtime.safe_path import SafePath


class NameExchanger:
    """Exchanges two names while its context is open, atomically if the system supports it.

    Attributes:
        turns: number of exchanges so far.
    """

    def __init__(self, one: SafePath, other: SafePath) -> None:
        """Open the folder that has both names.

        Raises:
            OSError: the folder cannot be opened.
        """
        self._folder = one.parent.opened()
        self._names = one.name, other.name
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.turns = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            self._folder.exchange(*self._names)
            self.turns += 1
