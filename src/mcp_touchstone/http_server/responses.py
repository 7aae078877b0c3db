"""The requests and responses on one connection: a status, one body, or a stream of events."""

import contextlib
import io
import select
import socket
from collections.abc import Iterator, Mapping
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.http_server.reading import (
    BODY_LIMIT,
    PIECE,
    READING,
    Body,
    MalformedError,
    RequestBytes,
    TooLongError,
    Waiting,
    body_of,
    check_request,
    fields,
    now,
    request_line,
)
from mcp_touchstone.http_server.refusals import INTERNAL_ERROR, INVALID_REQUEST, Refusal
from mcp_touchstone.http_server.streams import EventStream, event
from mcp_touchstone.wire.exchange import EVENTS, JSON

TURN: Final = 0.1
"""Seconds between two checks that the client is still connected."""

ALIVE_EVERY: Final = 15.0
"""Seconds between two comments on a quiet stream, so that no proxy closes it."""

RETRY: Final = 500
"""Milliseconds after which a client with a broken stream reconnects."""

SLOW: Final = 1.0
"""Seconds of one write, before the last, after which the client counts as slow."""

LINGER: Final = 2.0
"""Seconds to wait for the rest of a refused body."""

LONGEST: Final = 1 << 16
"""Bytes of the first line of a request."""


class Responses(BaseHTTPRequestHandler):
    """The requests on one connection, read within limits; a subclass answers them.

    Attributes:
        body: the body of the request.
        left: whether the client closed the connection before the end of the response.
    """

    protocol_version = "HTTP/1.1"
    server_version = "mcp-touchstone"
    sys_version = ""
    timeout = 60
    """Seconds to wait for room to write."""

    command = requestline = ""
    left = False
    body: Body

    def setup(self) -> None:
        """Set up the connection with our own limits for reading."""
        super().setup()
        self.rfile.close()
        self._bytes = RequestBytes(self.connection)
        self.rfile = io.BufferedReader(self._bytes)
        self._waiting: Waiting = self.server.waiting  # type: ignore[attr-defined]

    def handle_one_request(self) -> None:
        """Read and answer one request."""
        self._bytes.until = now() + READING
        self._waiting.add(self.connection)
        self.close_connection = True
        self.command, self.request_version = "", "HTTP/1.1"
        with self.refusing():
            raw = self.rfile.readline(LONGEST)
            if raw == b"\r\n":  # RFC 9112 section 2.2: it may follow the request before it
                raw = self.rfile.readline(LONGEST)
            if raw:
                self._read_head(raw)
                self.serve()
                self.close_connection |= not self.body.ended

    def _read_head(self, raw: bytes) -> None:
        """Read the head of a request.

        Raises:
            MalformedError: another reader could find another request.
        """
        self.body = Body(self.rfile, None)
        self.command, self.path, self.request_version = request_line(raw)
        found = fields(self.rfile)
        self.headers = HTTPMessage()
        for name, value in found:
            self.headers[name] = value
        check_request(self.request_version, found)
        self.body = body_of(self.request_version, found, self.rfile, 0)
        words = {word.strip() for word in self.headers.get("Connection", "").lower().split(",")}
        self.close_connection = "close" in words or self.request_version == "HTTP/1.0"
        if self.headers.get("Expect", "").lower() != "100-continue":
            return
        if self.request_version != "HTTP/1.0":
            self.handle_expect_100()

    def serve(self) -> None:
        """Answer a request by the method ``do_`` of its name."""
        method = getattr(self, f"do_{self.command}", None)
        if method is None:
            raise Refusal(501, INVALID_REQUEST, f"{self.command} has no meaning here")
        method()

    def begin_serving(self) -> None:
        """Take note that the request is complete: the client waits for us now."""
        self._waiting.remove(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's name)
        """Do not log single requests."""

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn errors inside the block into responses."""
        try:
            yield
        except Refusal as refusal:
            self.refuse(refusal)
        except MalformedError as error:
            status = 431 if isinstance(error, TooLongError) else 400
            self.refuse(Refusal(status, INVALID_REQUEST, f"Bad Request: {error}"))
        except UserError as error:
            self.refuse(Refusal(500, INTERNAL_ERROR, str(error)))
        except (ConnectionError, TimeoutError):
            self.close_connection = self.left = True

    def refuse(self, refusal: Refusal) -> None:
        """Answer with an error and close the connection."""
        self.close_connection = True
        self.answer(
            refusal.status, self.refusal_body(refusal), {**refusal.headers, "Connection": "close"}
        )
        self._drain()

    def refusal_body(self, refusal: Refusal) -> bytes:
        """Return the body of an error: one of JSON-RPC, unless a subclass has another one."""
        return refusal.body()

    def answer(self, status: int, body: bytes = b"", extra: Mapping[str, str] = {}) -> None:
        """Answer with a body, of JSON unless ``extra`` has another type, or with an empty one."""
        headers = {**({"Content-Type": JSON} if body else {}), **extra}
        if body or status != 204:  # noqa: PLR2004  (No Content has no length)
            headers["Content-Length"] = str(len(body))
        self._waiting.add(self.connection)
        self.begin(status, headers)
        if body and self.command != "HEAD":
            self.sending(body, last=True)
            self.wfile.write(body)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Write the head of a response."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def sending(self, content: bytes, *, last: bool) -> None:
        """Take note of content that is sent: a body, or a part of a stream."""

    def begin_stream(self, extra: Mapping[str, str] = {}) -> None:
        """Answer with a stream of events."""
        headers = {**extra, "Content-Type": EVENTS, "Cache-Control": "no-cache, no-transform"}
        headers["X-Accel-Buffering"] = "no"
        if self.request_version == "HTTP/1.0":
            self.close_connection = True
        else:
            headers["Transfer-Encoding"] = "chunked"
        self.begin(200, headers)

    def write_stream(self, stream: EventStream, after: int, *, resumable: bool | None) -> bool:
        """Write the messages after a number, until the stream ends or the client disconnects.

        Returns:
            False if the client disconnected.
        """
        if resumable:
            prime = f"id: {stream.number}-{after}\nretry: {RETRY}\ndata: \n\n"
            self._chunk(prime.encode())
        spoken = now()
        while True:
            closed = stream.closed
            messages = stream.after(after, TURN)
            if self.client_left():  # the first write after a disconnect seems to succeed
                return False
            for after, data in messages:  # noqa: PLR1704  (we are after it once written)
                name = None if resumable is None else f"{stream.number}-{after}"
                self._chunk(event(data, id=name))
                stream.delivered = after
                spoken = now()
            if messages:
                continue
            if closed:
                break
            if now() - spoken > ALIVE_EVERY:
                self._chunk(b": still here\n\n")
                spoken = now()
        if stream.loss:
            self._chunk(event(stream.loss))
        self._chunk(b"")
        return True

    def _chunk(self, data: bytes) -> None:
        """Write a chunk of a stream; an empty chunk ends it."""
        last = not data
        self.sending(data, last=last)
        if self.request_version != "HTTP/1.0":
            data = f"{len(data):x}\r\n".encode() + data + b"\r\n"
        self._waiting.add(self.connection, 0.0 if last else SLOW)
        self.wfile.write(data)
        if not last:
            self._waiting.remove(self.connection)

    def client_left(self) -> bool:
        """Return whether the client has closed the connection."""
        ready, _, _ = select.select([self.connection], [], [], 0)
        try:
            self.left |= bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            self.left = True
        return self.left

    def read_body(self, most: int = BODY_LIMIT) -> bytes:
        """Return the body.

        Raises:
            Refusal: 413, it is longer.
            MalformedError: it has no end.
        """
        read, pieces = bytearray(), iter(self.body)
        while max(len(read), self.body.left or 0) <= most:
            piece = next(pieces, None)
            if piece is None:
                return bytes(read)
            read += piece
        raise Refusal(413, INVALID_REQUEST, f"a body has at most {most} bytes")

    def _drain(self) -> None:
        """Read the rest of the body: closing before that could lose our answer."""
        if self.body.ended:
            return
        left = min(self.body.left or BODY_LIMIT, BODY_LIMIT)
        if self.body.chunked or self.body.left is None:  # only the client knows where it ends
            left = BODY_LIMIT
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(LINGER)
        while left > 0 and (piece := self.rfile.read1(min(left, PIECE))):
            left -= len(piece)
