"""Read requests and responses strictly, within limits of size and time (RFC 9112).

Bytes that two readers could understand differently are no message. So whoever passes a message on
passes what its sender meant, or nothing.
"""

import contextlib
import io
import re
import socket
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.wire.exchange import Headers
from mcp_touchstone.wire.http_headers import TOKEN

now = time.monotonic

HEAD_LIMIT: Final = 64 * 1024
"""Bytes of the headers of a message, and of its trailers."""

MOST_HEADERS: Final = 256
"""Greatest number of headers, and of trailers."""

BODY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of a body."""

PIECE: Final = 1 << 16
"""Greatest number of bytes of a body that are read at once."""

READING: Final = 60.0
"""Seconds for a whole request, from the end of the one before it."""

FRAMING: Final = ("content-length", "transfer-encoding")
ONCE: Final = (*FRAMING, "host", "content-type", "origin", "authorization")
"""Headers that a request has once at most: two readers could each use another one."""

CHUNK_LINE: Final = 4096
"""Bytes of the line before a chunk."""

_REQUEST: Final = re.compile(rf"({TOKEN.pattern}) (\*|/[\x21-\x7e]*) (HTTP/1\.[01])\r\n")
_STATUS: Final = re.compile(r"(HTTP/1\.[01]) ([1-9][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_LENGTH: Final = re.compile(r"[0-9]{1,12}")
_QUOTED: Final = r'"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
_CHUNK: Final = re.compile(
    r"([0-9A-Fa-f]{1,12})"
    rf"(?:;{TOKEN.pattern}(?:=(?:{TOKEN.pattern}|{_QUOTED}))?)*\r\n"
)


class MalformedError(Exception):
    """Bytes are no message of HTTP/1.1 that every reader understands alike; it says why."""


class TooLongError(MalformedError):
    """The headers are too long, or too many."""


def request_line(raw: bytes) -> tuple[str, str, str]:
    """Return the method, the target and the version of a request (RFC 9112 section 3).

    Raises:
        MalformedError: it is no request, or one to a proxy (sections 3.2.2 and 3.2.3).
    """
    found = _REQUEST.fullmatch(raw.decode("latin-1"))
    if found is None:
        raise MalformedError("the first line is no METHOD /PATH HTTP/1.1")
    return found[1], found[2], found[3]


def status_line(raw: bytes) -> tuple[str, int, str]:
    """Return the version, the status and the reason of a response (RFC 9112 section 4).

    Raises:
        MalformedError: it is none.
    """
    found = _STATUS.fullmatch(raw.decode("latin-1"))
    if found is None:
        raise MalformedError("the first line is no HTTP/1.1 STATUS REASON")
    return found[1], int(found[2]), found[3] or ""


def fields(source: io.BufferedIOBase) -> Headers:
    """Return the headers up to the empty line after them (RFC 9112 section 5), or trailers.

    Raises:
        MalformedError: a line is no field: it is folded, has a blank before the colon, a control
            character, another end than CR LF, or is cut off.
    """
    found: list[tuple[str, str]] = []
    left = HEAD_LIMIT
    while (line := source.readline(left + 1)) != b"\r\n":
        left -= len(line)
        if left < 0 or len(found) >= MOST_HEADERS:
            raise TooLongError(f"more than {HEAD_LIMIT} bytes of headers, or {MOST_HEADERS}")
        name, colon, value = line.decode("latin-1").removesuffix("\r\n").partition(":")
        whole = colon and line.endswith(b"\r\n")
        if not (whole and TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
            raise MalformedError("a header is malformed")
        found.append((name, value.strip(" \t")))
    return tuple(found)


def values(headers: Headers, name: str) -> list[str]:
    """Return the values of the headers with a name in lower case."""
    return [value for known, value in headers if known.lower() == name]


def check_once(headers: Headers, names: Collection[str]) -> None:
    """Check that no header with one of some names is there twice.

    Raises:
        MalformedError: one is.
    """
    for name in names:
        if len(values(headers, name)) > 1:
            raise MalformedError(f"{name.title()} is there twice")


def check_request(version: str, headers: Headers) -> None:
    """Check that the headers of a request say once whom and what it is for (RFC 9112 section 3.2).

    Raises:
        MalformedError: a header of ``ONCE`` is there twice, or HTTP/1.1 has no Host.
    """
    check_once(headers, ONCE)
    if version != "HTTP/1.0" and not values(headers, "host"):
        raise MalformedError("Host is missing")


@dataclass
class Body:
    """The body of a message; iterate over it to read its pieces as they come.

    Attributes:
        source: the bytes after the head.
        left: bytes that are left, of the body or of a chunk; None for all up to the end.
        chunked: whether it comes in chunks.
        trailers: fields after the last chunk.
    """

    source: io.BufferedIOBase
    left: int | None = 0
    chunked: bool = False
    trailers: Headers = ()

    def __post_init__(self) -> None:
        self._more_chunks = self.chunked

    @property
    def ended(self) -> bool:
        """Whether it was read to its end."""
        return self.left == 0 and not self._more_chunks

    def __iter__(self) -> Iterator[bytes]:
        """Yield pieces.

        Raises:
            MalformedError: it has no end, or a chunk is malformed (RFC 9112 section 7.1).
        """
        yield from self._counted()
        while self._more_chunks and self._chunk():
            yield from self._counted()
            if self.source.read(2) != b"\r\n":
                raise MalformedError("a chunk does not end where it says")
        if self._more_chunks:
            self.trailers = fields(self.source)
            if any(name.lower() in ONCE for name, _ in self.trailers):
                raise MalformedError("a trailer is the length, the host or the like")
            self._more_chunks = False

    def _chunk(self) -> int:
        found = _CHUNK.fullmatch(self.source.readline(CHUNK_LINE).decode("latin-1"))
        if found is None:
            raise MalformedError("a chunk is malformed")
        self.left = size = int(found[1], 16)
        return size

    def _counted(self) -> Iterator[bytes]:
        while self.left != 0:
            piece = self.source.read1(PIECE if self.left is None else min(self.left, PIECE))
            if self.left is None:
                self.left = None if piece else 0
            elif piece:
                self.left -= len(piece)
            else:
                raise MalformedError("the body has no end")
            if piece:
                yield piece


def body_of(
    version: str, headers: Headers, source: io.BufferedIOBase, otherwise: int | None
) -> Body:
    """Return the body after a head (RFC 9112 section 6.3).

    Args:
        version: HTTP/1.1 or HTTP/1.0, which has no chunks.
        otherwise: its length if the headers do not say; None for all up to the end.

    Raises:
        MalformedError: another reader could find another end of it.
    """
    check_once(headers, FRAMING)
    lengths, codings = (values(headers, name) for name in FRAMING)
    if lengths and codings:
        raise MalformedError("Content-Length and Transfer-Encoding are both there")
    if codings and (codings[0].lower() != "chunked" or version == "HTTP/1.0"):
        raise MalformedError("Transfer-Encoding is not chunked, or of HTTP/1.0")
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise MalformedError("Content-Length is no number")
    known = int(lengths[0]) if lengths else otherwise
    return Body(source, 0, chunked=True) if codings else Body(source, known)


class RequestBytes(io.RawIOBase):
    """The bytes of a connection; reading them raises ``TimeoutError`` after a deadline.

    Attributes:
        until: the deadline, in seconds of ``now``.
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
