"""Pass on what an HTTP client and an HTTP server say, and record it. Judges nothing.

Each request has a connection of its own to the server. Only what belongs to one connection is not
passed on: how a body is framed, whether a connection stays open, and the ``Host`` of the tap.
"""

import contextlib
import http.client
import itertools
import socket
import threading
import zlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl

from mcp_touchstone.bridge import headers as head
from mcp_touchstone.bridge.listener import Loopback
from mcp_touchstone.bridge.reading import length_of
from mcp_touchstone.bridge.refusals import INTERNAL_ERROR, INVALID_REQUEST, Refusal
from mcp_touchstone.bridge.responses import TURN, Responses
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.secrets import secrets
from mcp_touchstone.tap.recording import CLIENT_LEFT, Recorder, Side
from mcp_touchstone.transport.http_endpoint import Endpoint
from mcp_touchstone.transport.http_exchange import reason, request_bytes
from mcp_touchstone.wire.exchange import EVENTS
from mcp_touchstone.wire.framing import CUT, LINE_LIMIT, Line
from mcp_touchstone.wire.sse import EventReader

CHUNK: Final = 1 << 16

CONNECTING: Final = 10.0
"""Seconds for the connection to the server."""

HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers that belong to one connection (RFC 9110 section 7.6.1)."""

RECORDING: Final = 3.0
"""Greatest seconds for the end of the exchanges under way when a tap ends."""

BROKE_OFF: Final = "the server broke off: "
REFUSED: Final = "the tap answered with "


class AddressError(UserError):
    """A URL cannot be the server of a tap; the message says why."""


class Proxy(Loopback):
    """The tap between HTTP clients and one server.

    Args:
        server: the URL of the server.
        recorder: gets every request and response.
        port: port to listen on; 0 for a free one.

    Raises:
        OSError: the port cannot be used.
    """

    def __init__(self, server: Endpoint, recorder: Recorder, port: int = 0) -> None:
        super().__init__(Passing, port=port)
        self.path = server.path
        self.upstream = server
        self.recorder = recorder
        self.numbers = itertools.count(1)
        self._under_way = 0
        self._ended = threading.Condition()

    @contextlib.contextmanager
    def exchange(self) -> Iterator[int]:
        """Count an exchange until it is recorded; yield its number."""
        with self._ended:
            self._under_way += 1
        try:
            yield next(self.numbers)
        finally:
            with self._ended:
                self._under_way -= 1
                self._ended.notify_all()

    def stop(self) -> None:
        """Accept no more requests, and wait until those under way are recorded."""
        super().stop()
        with self._ended:
            self._ended.wait_for(lambda: not self._under_way, RECORDING)


def upstream(url: str) -> Endpoint:
    """Read the URL of the server.

    Raises:
        EndpointError, AddressError: it cannot be used.
    """
    server = Endpoint(url)
    if "?" in url:
        raise AddressError("--to: a URL without a query; the client writes the query into its own")
    return server


def path_secrets(server: Endpoint) -> dict[str, str]:
    """Return the parts of a path that look like tokens, each under the name of a variable."""
    parts = {str(n): part for n, part in enumerate(server.path.split("/"))}
    return {f"TOKEN_IN_PATH_{n}": part for n, part in secrets(parts)}


class Passing(Responses):
    """One connection of a client.

    Attributes:
        number: number of the request.
        left: whether the client closed the connection before the end of the response.
        end: why the response is not that of the server, or broke off; empty for neither.
    """

    server: Proxy
    number = 0
    left = False
    end = ""

    def _pass(self) -> None:
        """Pass a request on, and its response."""
        self.left, self.end = False, ""
        record = self.server.recorder
        path, _, query = self.path.partition("?")
        given = parse_qsl(query, keep_blank_values=True)
        for name, value in given:
            if any(secrets({name: value})):
                record.hide(value)
        shown = path + "?" * bool(query) + "&".join(f"{name}=HIDDEN" for name, _ in given)
        headers = tuple(self.headers.items())
        with self.server.exchange() as self.number:
            record.http(Side.CLIENT, self.number, f"{self.command} {shown}", headers)
            with self.refusing():
                self._exchange(ours=path == self.server.path)
            lost = self.left or (self.unread and not self.end)
            record.http(Side.EVENT, self.number, CLIENT_LEFT if lost else self.end)

    do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = do_PATCH = do_OPTIONS = _pass  # noqa: N815

    def refuse(self, refusal: Refusal) -> None:
        """Answer a request that does not reach the server."""
        self.end = f"{REFUSED}{refusal.status}, {refusal.message}"
        if refusal.status == http.client.BAD_GATEWAY and not self.left:
            say(f"mcp-touchstone tap: {safe(refusal.message)}", error=True)
        super().refuse(refusal)

    def _exchange(self, *, ours: bool) -> None:
        """Pass a request on and its response.

        Args:
            ours: whether it is a request to the MCP endpoint. Other bodies are not recorded: those
                of an authorization server are secrets.
        """
        head.guard(self.headers)
        coding = self.headers.get("Transfer-Encoding", "").strip().lower()
        chunked = coding == "chunked" and not (self.malformed or "Content-Length" in self.headers)
        if not chunked:
            self.unread = length_of(self.headers, malformed=self.malformed)
        server = self.server.upstream
        try:
            connection = server.connect(CONNECTING)
        except OSError as error:
            raise self._unreachable(reason(error)) from error
        with connection:
            connection.settimeout(None)
            self._send(connection, chunked=chunked, ours=ours)
            self.begin_serving()
            response = http.client.HTTPResponse(connection, method=self.command)
            with contextlib.closing(response), self._watching(connection):
                try:
                    response.begin()
                except (OSError, http.client.HTTPException) as error:
                    why = reason(error) if isinstance(error, OSError) else repr(error)
                    raise self._unreachable(CLIENT_LEFT if self.left else why) from error
                self._respond(response, ours=ours)

    def _unreachable(self, why: str) -> Refusal:
        authority = self.server.upstream.authority
        return Refusal(http.client.BAD_GATEWAY, INTERNAL_ERROR, f"{authority}: {why}")

    # --- the request

    def _send(self, connection: socket.socket, *, chunked: bool, ours: bool) -> None:
        """Write the request; a server that does not read it may have answered already."""
        body = _Body()
        named = {word.strip().lower() for word in self.headers.get("Connection", "").split(",")}
        left_out = HOP | named | {"host", "expect"}
        kept = [(k, v) for k, v in self.headers.items() if k.lower() not in left_out]
        framing = [("Transfer-Encoding", "chunked")] if chunked else []
        own = [("Host", self.server.upstream.authority), *kept, *framing, ("Connection", "close")]
        pending = request_bytes(self.command, self.path, own)
        deaf = False
        for piece in self._chunks() if chunked else self._counted():
            body.feed(piece)
            deaf = deaf or not _written(connection, pending)
            pending = _framed(piece) if chunked else piece
        if ours and body.length:
            self.server.recorder.http(Side.CLIENT, self.number, body.line())
        if not deaf and _written(connection, pending) and chunked:
            _written(connection, b"0\r\n\r\n")

    def _counted(self) -> Iterator[bytes]:
        """Yield a body of known length as it comes."""
        while self.unread:
            piece = self.rfile.read1(min(self.unread, CHUNK))
            if not piece:
                raise ConnectionResetError("the body ended early")
            self.unread -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        """Yield a body in chunks as it comes; trailers are dropped."""
        while True:
            size = self.rfile.readline(CUT).partition(b";")[0].strip()
            try:
                self.unread = int(size, 16)
            except ValueError:
                self.unread = 0
                raise Refusal(400, INVALID_REQUEST, "Bad Request: a malformed chunk") from None
            if self.unread <= 0:
                break
            yield from self._counted()
            self.rfile.readline(CUT)
        while self.rfile.readline(CUT).strip():
            pass

    # --- the response

    @contextlib.contextmanager
    def _watching(self, connection: socket.socket) -> Iterator[None]:
        """Close the connection to the server when the client closes its own."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(TURN):
                if self._client_left():
                    self.left = True
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
                    return

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _respond(self, response: http.client.HTTPResponse, *, ours: bool) -> None:
        record, headers = self.server.recorder, tuple(response.headers.items())
        status = f"{response.status} {response.reason}"
        record.http(Side.SERVER, self.number, status, headers or (("Content-Length", "0"),))
        self.send_response_only(response.status, response.reason)
        for name, value in headers:
            if name.lower() not in HOP:
                self.send_header(name, value)
        counted = response.length is not None
        framed = not counted and self.request_version != "HTTP/1.0"
        if framed:
            self.send_header("Transfer-Encoding", "chunked")
        elif not counted:
            self.close_connection = True
        self.end_headers()
        heard = _Heard(record, self.number, response) if ours else None
        try:
            while data := response.read1(CHUNK):
                if heard is not None:
                    heard.feed(data, last=response.length == 0)
                self._write(_framed(data) if framed else data)
            if response.length:
                raise http.client.IncompleteRead(b"")
            if heard is not None:
                heard.end()
            self._write(b"0\r\n\r\n" if framed else b"")
        except (http.client.HTTPException, OSError) as error:
            why = reason(error) if isinstance(error, OSError) else "its response has no end"
            self.end = f"{BROKE_OFF}{why}"
            self.close_connection = True

    def _write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except OSError:
            self.left = True
            raise


class _Body:
    """A body that is kept to its end, in bounded memory.

    Attributes:
        length: bytes so far.
    """

    def __init__(self) -> None:
        self.length = 0
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self.length += len(data)
        self._kept += data if self.length <= LINE_LIMIT else b""
        if self.length > LINE_LIMIT:
            del self._kept[CUT:]

    def line(self) -> Line:
        """Return it as a line."""
        return Line(bytes(self._kept), self.length)


class _Heard:
    """The body of a response, for the recorder: events as they come, another body at its end."""

    def __init__(self, recorder: Recorder, number: int, response: http.client.HTTPResponse) -> None:
        self._recorder, self._number = recorder, number
        kind = response.headers.get_content_type()
        coding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
        self._events = EventReader() if kind == EVENTS else None
        self._body = _Body()
        self._unpack = zlib.decompressobj(47) if coding in {"gzip", "deflate"} else None
        self._closed = coding not in {"identity", "gzip", "deflate"}
        if self._closed:
            recorder.http(Side.EVENT, number, f"its body is encoded as {safe(coding)}: not read")

    def feed(self, data: bytes, *, last: bool) -> None:
        """Record what the next bytes complete.

        Args:
            last: whether they are known to be the last.
        """
        if self._unpack is not None and not self._closed:
            try:
                data = self._unpack.decompress(data, LINE_LIMIT)
            except zlib.error:
                self._closed = True
        if self._closed:
            return
        if self._events is None:
            self._body.feed(data)
        else:
            for one in self._events.feed(data):
                raw = one.data or b""
                event = [one.name, one.id, one.retry]
                line = Line(raw, len(raw))
                self._recorder.http(Side.SERVER, self._number, line, event=event)
        if last:
            self.end()

    def end(self) -> None:
        """Record a body that is no stream."""
        if self._body.length and not self._closed:
            self._recorder.http(Side.SERVER, self._number, self._body.line())
        self._closed = True


def _framed(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _written(connection: socket.socket, data: bytes) -> bool:
    """Write bytes; return False if the server takes no more."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True
