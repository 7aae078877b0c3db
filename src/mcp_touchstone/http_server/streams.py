"""The messages for one HTTP response, in order; its reader may start late, or reconnect."""

import threading
from collections import deque
from typing import Final

from mcp_touchstone.http_server.reading import now

KEPT: Final = 1000
"""Greatest number of messages kept for a reader; older ones are dropped."""

KEPT_BYTES: Final = 16 * 1024 * 1024
"""Greatest total of their bytes; the newest message is always kept."""


class EventStream:
    """Numbered messages for one client; safe to share between threads.

    Attributes:
        number: number of the stream, unique within its session.
        closed: whether no more messages will be added.
        delivered: number of the last message that was written to a client.
        attached: whether a client is reading.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = False
        self.delivered = 0
        self.attached = False
        self._messages: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._ends_at: float | None = None
        self._change = threading.Condition()

    def put(self, data: bytes, *, last: bool = False) -> None:
        """Add a message; ignore it if the stream is closed.

        Args:
            last: whether the stream ends with it. A reader never sees the last message of a stream
                that is still open, so whether its answer is a stream does not depend on luck.
        """
        with self._change:
            if self.closed:
                return
            self._last += 1
            self._messages.append((self._last, data))
            self._bytes += len(data)
            while len(self._messages) > 1 and (
                len(self._messages) > KEPT or self._bytes > KEPT_BYTES
            ):
                self._bytes -= len(self._messages.popleft()[1])
            self.closed = last
            self._change.notify_all()

    @property
    def loss(self) -> bytes:
        """The error in place of messages that were lost; empty if none was."""
        return b""

    @property
    def size(self) -> int:
        """Total size in bytes of the messages that are kept."""
        return self._bytes

    def close(self) -> None:
        """End the stream after its present messages."""
        with self._change:
            self.closed = True
            self._change.notify_all()

    def close_after(self, seconds: float) -> None:
        """End the stream after some seconds, in case no message ends it."""
        with self._change:
            self._ends_at = now() + seconds

    def attach(self, seconds: float) -> bool:
        """Become its reader; return False if another reader does not leave in time."""
        with self._change:
            free = self._change.wait_for(lambda: not self.attached, seconds)
            self.attached = True
            return free

    def detach(self) -> None:
        """Stop reading; undelivered messages wait for the next reader."""
        with self._change:
            self.attached = False
            self._change.notify_all()

    def after(self, number: int, seconds: float) -> list[tuple[int, bytes]]:
        """Return the messages after a number; wait some seconds for one, or for the end."""
        with self._change:
            if self._ends_at is not None and now() > self._ends_at:
                self.closed = True
            self._change.wait_for(lambda: self._last > number or self.closed, seconds)
            return [one for one in self._messages if one[0] > number]

    def wait_closed(self, seconds: float) -> bool:
        """Wait for the end; return False if the seconds pass first."""
        with self._change:
            return self._change.wait_for(lambda: self.closed, seconds)

    def only(self) -> bytes | None:
        """Return the message of a stream that ended with one message; None for any other."""
        with self._change:
            if not self.closed or self._last != 1 or not self._messages:
                return None
            return self._messages[0][1]


def event(data: bytes, *, id: str | None = None) -> bytes:  # noqa: A002  (the field's name)
    """Return one message as an event, with its JSON on one line."""
    name = f"id: {id}\n".encode() if id is not None else b""
    return name + b"data: " + data + b"\n\n"
