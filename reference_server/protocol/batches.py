"""The answers to a batch (2025-03-26 basic/index#batching)."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Batch:
    """The answers to one batch, sent as one array.

    Args:
        send: Sends the array when all answers are there. It is not called without answers.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._answers: list[bytes] = []
        self._awaited = 1  # one for the reader, until it has read all members

    def expect(self) -> None:
        """Wait for one more answer before the array is sent."""
        with self._lock:
            self._awaited += 1

    def deliver(self, answer: bytes | None) -> None:
        """Add one expected answer; None if the member gets no answer."""
        with self._lock:
            if answer is not None:
                self._answers.append(answer)
            self._awaited -= 1
            complete = not self._awaited
        if complete and self._answers:
            self._send(b"[" + b",".join(self._answers) + b"]")
