"""The way in: chunks of bytes from the client, until it stops or we do."""

from __future__ import annotations

import os
import select

_CHUNK = 64 * 1024

_CAN_POLL = hasattr(select, "poll")  # Windows has no way to wait for a pipe and a wake-up at once


class Source:
    """Reads one descriptor; another thread or a signal handler may put an end to it.

    Args:
        descriptor: A blocking descriptor to read from. It stays the caller's to close.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._stopped = False
        self._woken, self._waker = -1, -1
        if _CAN_POLL:
            self._woken, self._waker = os.pipe()
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLIN)
            self._poll.register(self._woken, select.POLLIN)

    @property
    def stopped(self) -> bool:
        """True once ``stop`` has been called."""
        return self._stopped

    def read(self) -> bytes:
        """Give the next bytes, or ``b""`` at the end of input and after ``stop``."""
        if self._stopped or not self._wait():
            return b""
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # EIO from a terminal that is gone, EBADF: the input has ended too
            return b""

    def stop(self) -> None:
        """End the reading; safe in a signal handler.

        Where polling is not possible, a read that is already blocked goes on until the client
        writes or leaves.
        """
        self._stopped = True
        if self._waker >= 0:
            os.write(self._waker, b"!")

    def close(self) -> None:
        """Release what this object opened itself; only after the last ``read`` has returned."""
        if self._waker >= 0:
            woken, waker, self._waker = self._woken, self._waker, -1
            os.close(waker)
            os.close(woken)

    def _wait(self) -> bool:
        """Block until there is something to read; False if there is nothing to wait for."""
        if _CAN_POLL:
            self._poll.poll()
        return not self._stopped
