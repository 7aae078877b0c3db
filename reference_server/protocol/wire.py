"""Writes whole lines to the client, one at a time, from any thread."""

from __future__ import annotations

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Wire:
    """Writes messages to one descriptor, each in one piece.

    Args:
        descriptor: A blocking descriptor to write to. The caller must close it.
        on_broken: Called once, on the writing thread, when the client no longer reads.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._lock = threading.Lock()
        self._broken = False

    def send(self, message: bytes) -> None:
        """Write one encoded message and a newline; do nothing once the client has left."""
        with self._lock:
            if self._broken:
                return
            try:
                self._write(message + b"\n")
            except OSError:  # mostly EPIPE: a client may leave, so this is not an error
                self._broken = True
        if self._broken:
            self._on_broken()

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
