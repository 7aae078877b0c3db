"""Reads chunks of bytes from the client, until the client or the server stops."""

from __future__ import annotations

import os
import select

_CHUNK = 64 * 1024

_CAN_POLL = hasattr(select, "poll")  # Windows cannot wait for a pipe and a wake-up at once


class Source:
    """Reads one descriptor; another thread or a signal handler may stop it.

    Args:
        descriptor: A blocking descriptor to read from. The caller must close it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.stopped = False
        self._woken, self._waker = -1, -1
        if _CAN_POLL:
            self._woken, self._waker = os.pipe()
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLIN)
            self._poll.register(self._woken, select.POLLIN)

    def read(self) -> bytes:
        """Return the next bytes, or ``b""`` at the end of input and after ``stop``."""
        if self.stopped or not self._wait():
            return b""
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # the input has ended: EIO for a closed terminal, EBADF
            return b""

    def stop(self) -> None:
        """Stop reading; safe in a signal handler.

        Without polling, a blocked read continues until the client writes or closes its end.
        """
        self.stopped = True
        if self._waker >= 0:
            os.write(self._waker, b"!")

    def close(self) -> None:
        if self._waker >= 0:
            woken, waker, self._waker = self._woken, self._waker, -1
            os.close(waker)
            os.close(woken)

    def _wait(self) -> bool:
        if _CAN_POLL:
            self._poll.poll()
        return not self.stopped
