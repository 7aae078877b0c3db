"""Read the bytes of requests within limits of size and time; reject bytes that HTTP forbids."""

import contextlib
import http.client
import io
import socket
import threading
from email.message import Message
from typing import Any, Final

from mcp_touchstone.bridge.refusals import INVALID_REQUEST, Refusal
from mcp_touchstone.transport.process import now

HEAD_LIMIT: Final = 64 * 1024
"""Bytes of the headers of a request."""

BODY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of a body."""

READING: Final = 60.0
"""Seconds for a whole request, from the end of the one before it."""

ONCE: Final = ("Host", "Content-Length", "Content-Type", "Origin", "Authorization")
"""Headers that a request may have only once: two readers could each use another one."""

_DIGITS: Final = 12
"""Greatest number of digits of a length."""


class RequestBytes(io.RawIOBase):
    """The bytes of a connection; reading them raises ``TimeoutError`` after a deadline.

    Attributes:
        until: the deadline, in seconds of ``process.now``.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.until = now() + READING
        self._connection = connection

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes.

        Raises:
            TimeoutError: the deadline has passed.
        """
        usual = self._connection.gettimeout()
        left = self.until - now()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left if usual is None else min(left, usual))
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(usual)


class Waiting:
    """The connections that wait for their clients; safe to share between threads.

    They can be closed for new ones: whoever is slow, or idle, must not lock the others out.
    """

    def __init__(self) -> None:
        self._since: dict[socket.socket, float] = {}
        self._lock = threading.Lock()

    def add(self, connection: socket.socket, patience: float = 0.0) -> None:
        """Take note that a connection waits; it cannot be closed for some seconds."""
        with self._lock:
            self._since.setdefault(connection, now() + patience)

    def remove(self, connection: socket.socket) -> None:
        """Take note that it waits no more."""
        with self._lock:
            self._since.pop(connection, None)

    def drop(self) -> bool:
        """Close the connection that waits for longest; return False if none waits."""
        with self._lock:
            slowest = min(self._since, key=self._since.__getitem__, default=None)
            if slowest is None or self._since[slowest] > now():
                return False
            del self._since[slowest]
            with contextlib.suppress(OSError):
                slowest.shutdown(socket.SHUT_RDWR)
        return True


class HeadLines:
    """The lines of the headers of one request, for ``http.client.parse_headers``.

    Attributes:
        malformed: whether a line has a carriage return or a null inside, which readers interpret
            differently.
    """

    def __init__(self, lines: Any) -> None:
        self.malformed = False
        self._lines = lines
        self._size = 0

    def readline(self, size: int = -1) -> bytes:
        """Return the next line.

        Raises:
            http.client.LineTooLong: the headers are too long.
        """
        line: bytes = self._lines.readline(size)
        self._size += len(line)
        if self._size > HEAD_LIMIT:
            raise http.client.LineTooLong("header")
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        self.malformed |= b"\r" in text or b"\0" in text
        return line


def length_of(headers: Message, *, malformed: bool = False) -> int:
    """Return the length of a body; 0 without one.

    Raises:
        Refusal: 400 or 411, another reader could find another end of the body (RFC 9112
            sections 5.1, 5.2 and 6.3), or another host.
    """
    folded = any("\n" in one or "\r" in one for one in headers.values())
    if malformed or headers.defects or folded:
        raise Refusal(400, INVALID_REQUEST, "Bad Request: a header is malformed")
    for name in ONCE:
        if len(headers.get_all(name, ())) > 1:
            raise Refusal(400, INVALID_REQUEST, f"Bad Request: {name} is there twice")
    length = headers.get("Content-Length", "0").strip(" \t")
    if "Transfer-Encoding" in headers:
        raise Refusal(411, INVALID_REQUEST, "a body needs a Content-Length")
    if not (length.isascii() and length.isdecimal()) or len(length) > _DIGITS:
        raise Refusal(400, INVALID_REQUEST, "Bad Request: Content-Length is no number")
    return int(length)
