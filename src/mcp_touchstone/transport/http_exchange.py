"""One HTTP exchange on a connection of its own: write a request, read the response.

h11 reads the response. The request is written by ourselves, because h11 refuses to write requests
that a judge must be able to send, for instance one with two ``Host`` headers.
"""

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import h11

from mcp_touchstone.transport.http_advice import SILENT
from mcp_touchstone.transport.http_endpoint import Endpoint
from mcp_touchstone.wire.exchange import EVENTS, JSON, Exchange, Origin
from mcp_touchstone.wire.framing import CUT, LINE_LIMIT, Kind, Line, brief, kind_of, read
from mcp_touchstone.wire.sse import EventReader

CHUNK: Final = 65_536

PIECE: Final = 2048
"""Bytes that a socket takes without waiting if it takes any."""

HEAD_LIMIT: Final = 256 * 1024
"""Greatest size of the status line and the headers of a response, in bytes."""

MOST_INTERIM: Final = 100
"""Greatest number of interim (1xx) responses before a final one."""

MOST_EVENTS: Final = 5_000
"""Greatest number of events of one stream that hold no message."""

LONGEST_ID: Final = 4 * 1024
"""Greatest length of the id or the name of an event; a client sends the id in a header."""

TOO_LONG: Final = f"of more than {LINE_LIMIT >> 20} MiB, which is where we stop reading"
BODY_KEPT: Final = 16_384
"""Bytes of a body without a message that are kept."""

FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:")
"""Beginnings of the body of a stream of events."""

HTTP2: Final = b"\x00\x00"
"""The first bytes of a frame of HTTP/2 that a server sends at once (SETTINGS is short)."""

SPEAKS_HTTP2: Final = "it speaks HTTP/2 only; we speak HTTP/1.1"
SPEAKS_TLS: Final = "it speaks TLS on this port; write https://"


def request_bytes(
    verb: str, target: str, headers: Iterable[tuple[str, str]], body: bytes = b""
) -> bytes:
    """Return a request as it is written; nothing in it is checked or repaired."""
    lines = [f"{verb} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


_REASONS: Final[dict[type[OSError], str]] = {
    socket.gaierror: "there is no host of this name",
    ConnectionRefusedError: "the connection was refused",
    TimeoutError: "it does not take the connection, or does not read",
    ConnectionResetError: SILENT,
    BrokenPipeError: SILENT,
}


@dataclass(eq=False)
class HttpResponse:
    """The response to one request, read in a thread of its own.

    Attributes:
        exchange: what is known of it; filled in here.
        clock: returns seconds since the start of the process.
        heard: called with each message and its origin; returns whether to read on.
        changed: called when the status has come, and at the end.
        hidden: replaces secrets in a text that is kept.
        keeps: whether the connection stays open after a whole response, if the server leaves it
            open, for the next request.
        headed: set when the status and the headers have come, or never will.
        closed: set at the end.
        noted: whether the transcript mentions it.
    """

    exchange: Exchange
    endpoint: Endpoint
    clock: Callable[[], float]
    heard: Callable[[Line, Origin], bool]
    changed: Callable[[], None]
    hidden: Callable[[str], str]
    keeps: bool = False
    headed: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)
    noted: bool = False
    _socket: socket.socket | None = None
    _thread: threading.Thread | None = None
    _first: bytes = b""
    _rest: bytes | None = None
    _closing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_kept(self) -> bool:
        """Whether its connection is open for the next request."""
        return self._rest is not None and self._socket is not None

    def taken(self) -> tuple[socket.socket, bytes]:
        """Hand over the open connection, and the bytes that came after the response.

        Raises:
            ConnectionResetError: it is not open.
        """
        connection, self._socket = self._socket, None
        if connection is None or self._rest is None:
            raise ConnectionResetError
        return connection, self._rest

    def send(
        self,
        pieces: Iterable[bytes],
        seconds: float,
        pause: Callable[[], None],
        after: "HttpResponse | None" = None,
    ) -> None:
        """Connect, write the request, and begin to read the response.

        Args:
            pieces: the bytes of the request.
            seconds: limit for the connection, and for each piece.
            pause: called between two pieces.
            after: the response whose open connection is used; None for a connection of its own.

        Raises:
            OSError: the server cannot be reached, or does not read.
        """
        rest = b""
        try:
            if after is None:
                connection = self.endpoint.connect(seconds)
            else:
                connection, rest = after.taken()
            with self._closing:
                self._socket = connection
                if self.exchange.left:
                    raise ConnectionAbortedError("we closed it")
            connection.settimeout(seconds)
            _write(connection, pieces, pause)
        except OSError as error:
            self._end(reason(error))
            raise
        connection.settimeout(None)
        thread = threading.Thread(target=self._read, args=(connection, rest), daemon=True)
        thread.start()  # before it is known: a thread that has not started cannot be joined
        self._thread = thread

    def write(self, data: bytes, seconds: float) -> bool:
        """Write more of the body while the response is read; return False if it is not taken.

        Args:
            seconds: limit for all of them.
        """
        connection = self._socket
        until = self.clock() + seconds
        while data and connection is not None and not self.closed.is_set():
            left = until - self.clock()
            try:
                if left <= 0 or not select.select([], [connection], [], left)[1]:
                    return False
                data = data[connection.send(data[:PIECE]) :]
            except (OSError, ValueError):
                return False
        return not data

    def leave(self) -> None:
        """Close the connection before the end of the response, if that has not come."""
        with self._closing:
            connection = self._socket
            if self.is_kept and connection is not None:
                connection.close()
            if self.closed.is_set() or self.exchange.left:
                return
            self.exchange.left = True
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def join(self, seconds: float) -> None:
        """Wait some seconds at most for the end of the response."""
        if self._thread is not None:
            self._thread.join(seconds)

    # --- reading, in the thread

    def _read(self, connection: socket.socket, rest: bytes) -> None:
        fault = ""
        try:
            self._read_all(connection, rest)
        except h11.RemoteProtocolError as error:
            fault = self._protocol_fault(error)
        except OSError as error:
            fault = reason(error)
        self._end("" if self.exchange.left else fault)

    def _end(self, fault: str) -> None:
        self.exchange.fault = self.hidden(fault)
        self.exchange.ended = self.clock()
        if self._socket is not None and not self.is_kept:
            with contextlib.suppress(OSError):
                self._socket.close()
        self.closed.set()
        self.headed.set()
        self.changed()

    def _read_all(self, source: socket.socket, rest: bytes) -> None:
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        request = h11.Request(method=self.exchange.verb, target="/", headers=[("Host", "x")])
        connection.send(request)
        connection.send(h11.EndOfMessage())
        body: _Body | None = None
        interim = 0
        if rest:
            connection.receive_data(rest)
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                data = source.recv(CHUNK)
                if len(self._first) < len(HTTP2):
                    self._first += data[:16]
                connection.receive_data(data)
            elif isinstance(event, h11.InformationalResponse):
                interim += 1
                if interim > MOST_INTERIM:
                    raise h11.RemoteProtocolError(f"more than {MOST_INTERIM} interim responses")
            elif isinstance(event, h11.Response):
                body = self._begin(event)
            elif isinstance(event, h11.Data) and body is not None:
                if not body.feed(bytes(event.data)):
                    return
            elif isinstance(event, h11.EndOfMessage) and body is not None:
                body.end()
                if self.keeps and connection.their_state is h11.DONE:
                    self._rest = bytes(connection.trailing_data[0])
                return
            else:
                raise h11.RemoteProtocolError(SILENT)

    def _begin(self, response: h11.Response) -> "_Body":
        exchange = self.exchange
        exchange.headers = tuple(
            (name.decode("latin-1"), self.hidden(value.decode("latin-1")))
            for name, value in response.headers.raw_items()
        )
        exchange.headed = self.clock()
        exchange.status = response.status_code
        self.headed.set()
        self.changed()
        coding = (exchange.header("Content-Encoding") or "identity").strip().lower()
        if coding != "identity":
            raise h11.RemoteProtocolError(
                f"its body is encoded as {coding}, which we did not accept"
            )
        return _Stream(exchange, self.heard) if exchange.streams else _Plain(exchange, self.heard)

    def _protocol_fault(self, error: h11.RemoteProtocolError) -> str:
        if self._first.startswith(HTTP2):
            return SPEAKS_HTTP2
        if self._first[:2] == b"\x15\x03":  # an alert of TLS
            return SPEAKS_TLS
        if not self._first:
            return SILENT
        return f"broken HTTP: {error}"


def _write(connection: socket.socket, pieces: Iterable[bytes], pause: Callable[[], None]) -> None:
    # it may have answered before it read all, as after a Content-Length it refuses
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for number, piece in enumerate(pieces):
            if number:
                pause()
            connection.sendall(piece)


@dataclass
class _Body:
    """The body of a response."""

    exchange: Exchange
    heard: Callable[[Line, Origin], bool]

    def feed(self, data: bytes) -> bool:
        """Add bytes; return whether to read on."""
        raise NotImplementedError

    def end(self) -> None:
        """Take the end of the body."""


@dataclass
class _Stream(_Body):
    """A stream of events."""

    _reader: EventReader = field(default_factory=EventReader)
    _named: str = ""

    def feed(self, data: bytes) -> bool:
        for event in self._reader.feed(data):
            bare = type(event)(None, event.name, event.id, event.retry)
            if max(len(bare.name), len(bare.id or "")) > LONGEST_ID:
                raise h11.RemoteProtocolError(f"an id or a name of more than {LONGEST_ID:,} bytes")
            self.exchange.events.append(bare)
            if len(self.exchange.events) > MOST_EVENTS + self.exchange.messages:
                raise h11.RemoteProtocolError(f"more than {MOST_EVENTS:,} events without a message")
            if event.data and event.name != "message":
                self._named = f"an event named {brief(event.name, 40)} is no message"
            if not event.data or event.name != "message":
                continue  # no message: an event that primes the client, or one of another kind
            self.exchange.messages += 1
            line = Line(event.data, len(event.data))
            if not self.heard(line, Origin(self.exchange, bare)):
                return False
        self.exchange.lost = self._reader.loss or self._named
        if self._reader.overlong:
            self.exchange.lost = f"an event {TOO_LONG}"
            return self.heard(Line(b"", LINE_LIMIT + 1), Origin(self.exchange))
        return True


@dataclass
class _Plain(_Body):
    """A body with a message, or with something else."""

    _data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> bool:
        self._data += data
        if len(self._data) > LINE_LIMIT:
            line = Line(bytes(self._data[:CUT]), len(self._data))
            self.exchange.lost = f"a body {TOO_LONG}"
            self.heard(line, Origin(self.exchange))
            return False
        return True

    def end(self) -> None:
        data = bytes(self._data)
        line = Line(data, len(data))
        doubtful = Origin(self.exchange).refuses or bool(self.exchange.target)
        if data.strip() and is_message(read(line).value, doubtful):
            self.exchange.messages += 1
            self.heard(line, Origin(self.exchange))
        else:
            self.exchange.body = data[:BODY_KEPT]
            if data.startswith(FIELDS):
                self.exchange.lost = f"events, which are {EVENTS}"
            elif _are_objects(data):
                self.exchange.lost = "several JSON objects in one body"
            elif self.exchange.kind == JSON and data.strip() and not read(line).readable:
                self.exchange.lost = "a body that is no JSON"


def _are_objects(data: bytes) -> bool:
    """Return whether a body has a JSON object on each of its lines, and more than one."""
    lines = [one for one in data[:BODY_KEPT].splitlines() if one.strip()]
    return len(lines) > 1 and all(isinstance(read(Line(e, len(e))).value, dict) for e in lines[:2])


def is_message(value: object, doubtful: bool) -> bool:
    """Return whether a body is meant as a message.

    With the status of an error, and at another path, it must say so: ``{"error": "invalid_token"}``
    is of RFC 6750.
    """
    if isinstance(value, list):
        return any(is_message(one, doubtful) for one in value)
    if not isinstance(value, dict) or "jsonrpc" in value:
        return isinstance(value, dict)
    is_named = not doubtful or ("id" in value and not isinstance(value.get("error"), str))
    return is_named and kind_of(value) is not Kind.ODD


def reason(error: OSError) -> str:
    """Return the reason a connection failed, in a few words."""
    if isinstance(error, ssl.SSLError):
        return _tls_reason(error)
    for kind, text in _REASONS.items():
        if isinstance(error, kind):
            return text
    return (error.strerror or str(error) or type(error).__name__).lower()


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS failed: {error.verify_message}"
    said = (error.reason or str(error)).replace("_", " ").lower()
    if "wrong version number" in said or "record layer failure" in said:
        return "it speaks no TLS on this port; write http://"
    if "alpn" in said or "no application protocol" in said:
        return SPEAKS_HTTP2
    return f"TLS failed: {said}"
