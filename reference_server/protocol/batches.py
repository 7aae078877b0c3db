"""The answers to a batch (2025-03-26 basic/index#batching)."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Batch:
    """The answers to one batch, sent as one array.

    Args:
        send: Sends the array once every member has its answer; not called when none has one.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._answers: list[bytes] = []
        self._awaited = 1  # the reader itself, until it has seen every member

    def expect(self) -> None:
        """Wait for one more answer before the array is sent."""
        with self._lock:
            self._awaited += 1

    def deliver(self, answer: bytes | None) -> None:
        """Take one expected answer; None for a member that gets none."""
        with self._lock:
            if answer is not None:
                self._answers.append(answer)
            self._awaited -= 1
            complete = not self._awaited
        if complete and self._answers:
            self._send(b"[" + b",".join(self._answers) + b"]")
