"""Pass on what an HTTP client and an HTTP server say, and record it. Judges nothing.

Each request has a connection of its own to the server. Only what belongs to one connection is not
passed on: how a body is framed, whether a connection stays open, and the ``Host`` of the tap. Both
sides are read strictly, and a message that two readers could understand differently is not passed.
"""

import contextlib
import io
import itertools
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.http_server.hosts import guard
from mcp_touchstone.http_server.reading import (
    CHUNK_LINE,
    Body,
    MalformedError,
    body_of,
    fields,
    status_line,
    values,
)
from mcp_touchstone.http_server.refusals import INTERNAL_ERROR, Refusal
from mcp_touchstone.http_server.responses import TURN, Responses
from mcp_touchstone.http_server.server import BoundedServer
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.secrets import in_words
from mcp_touchstone.tap.faults import CLOSE, DROP, Faults, first_event, is_call
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.tape import REFUSED, HeardBody, HeldBody, Tape
from mcp_touchstone.transport.http_endpoint import Endpoint
from mcp_touchstone.transport.http_exchange import MOST_INTERIM, reason, request_bytes
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.exchange import Headers
from mcp_touchstone.wire.framing import read

CONNECTING: Final = 10.0
"""Seconds for the connection to the server."""

HOP: Final = re.compile(
    r"connection|http2-settings|keep-alive|proxy-connection|te|transfer-encoding|upgrade"
)
"""Headers that belong to one connection (RFC 9110 section 7.6.1)."""

END_TO_END: Final = re.compile(
    r"(accept|content|if|mcp|sec|www|x)-.*|accept|authorization|cache-control|cookie|date|etag|host"
    r"|last-(event-id|modified)|location|origin|retry-after|server|set-cookie|trailer|user-agent"
)
"""Headers that stay if ``Connection`` names them, which no sender may do (as above)."""

SWITCHES, OK, EMPTY, NOT_MODIFIED, BAD_GATEWAY = 101, 200, 204, 304, 502

BROKE_OFF: Final = "the server broke off: "


class AddressError(UserError):
    """A URL cannot be the server of a tap; the message says why."""


class Proxy(BoundedServer):
    """The tap between HTTP clients and one server.

    Args:
        server: the URL of the server.
        recorder: gets every request and response.
        port: port to listen on; 0 for a free one.
        faults: what is not passed on as it is; None for nothing.

    Raises:
        OSError: the port cannot be used.
    """

    def __init__(
        self, server: Endpoint, recorder: Recorder, port: int = 0, faults: Faults | None = None
    ) -> None:
        super().__init__(Passing, port=port)
        self.faults = faults
        self.path = server.path
        self.upstream = server
        self.tape = Tape(recorder)

    def stop(self) -> None:
        """Accept no more requests, and wait until those under way are recorded."""
        super().stop()
        self.tape.wait()


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
    return {f"TOKEN_IN_PATH_{n}": one for n, one in enumerate(in_words(server.path))}


class Passing(Responses):
    """One connection of a client.

    Attributes:
        number: number of the request; 0 between requests.
        end: why the response is not that of the server, or broke off; empty for neither.
        faults: what is not passed on as it is, if the request calls a tool; else None.
    """

    server: Proxy
    number = 0
    end = ""
    faults: Faults | None = None

    def serve(self) -> None:
        """Pass a request on, and its response."""
        self.left, self.end = False, ""
        tape = self.server.tape
        with tape.exchange(self) as self.number:
            with self.refusing():
                self._exchange(ours=self.path.partition("?")[0] == self.server.path)
            lost = self.left or not (self.body.ended or self.end)
            tape.recorder.http(Side.EVENT, self.number, Happened.CLIENT_LEFT if lost else self.end)
        self.number = 0

    def refuse(self, refusal: Refusal) -> None:
        """Answer a request that does not reach the server."""
        self.end = f"{REFUSED}{refusal.status}, {refusal.message}"
        if not self.number:
            self.server.tape.recorder.event(self.end)
        if refusal.status == BAD_GATEWAY and not self.left:
            say(f"mcp-touchstone tap: {safe(refusal.message)}", error=True)
        super().refuse(refusal)

    def _exchange(self, *, ours: bool) -> None:
        """Pass a request on, once it is complete or over the limit, and its response.

        Args:
            ours: whether it is a request to the MCP endpoint. Other bodies are not recorded: those
                of an authorization server are secrets.
        """
        guard(self.headers)
        body, held, pieces = HeldBody(), list[bytes](), iter(self.body)
        for piece in pieces:
            held.append(body.fed(piece))
            if body.is_cut:
                break
        complete = self.body.ended
        if complete:
            self._record(body, ours=ours)
        try:
            connection = self.server.upstream.connect(CONNECTING)
        except OSError as error:
            raise self._unreachable(reason(error)) from error
        with connection, contextlib.closing(connection.makefile("rb")) as source:
            connection.settimeout(None)
            self._send(connection, itertools.chain(held, map(body.fed, pieces)))
            if not complete:
                self._record(body, ours=ours)
            self.begin_serving()
            with self._watching(connection):
                try:
                    answer = self._final(source)
                except (OSError, MalformedError) as error:
                    raise self._unreachable(
                        Happened.CLIENT_LEFT if self.left else _why(error)
                    ) from error
                self._respond(answer, ours=ours)

    def _record(self, body: HeldBody, *, ours: bool) -> None:
        self.faults = None
        if ours and body.length:
            line = body.line()
            self.server.tape.recorder.http(Side.CLIENT, self.number, line)
            if is_call(read(line).value):
                self.faults = self.server.faults

    def _unreachable(self, why: str) -> Refusal:
        return Refusal(BAD_GATEWAY, INTERNAL_ERROR, f"{self.server.upstream.authority}: {why}")

    def _send(self, connection: socket.socket, pieces: Iterable[bytes]) -> None:
        """Write the request; a server that does not read it may have answered already."""
        chunked = self.body.chunked
        passed = _passed(self.headers.items(), "host", "expect")
        framing = [("Transfer-Encoding", "chunked")] if chunked else []
        own = [("Host", self.server.upstream.authority), *passed, *framing, ("Connection", "close")]
        deaf = not _written(connection, request_bytes(self.command, self.path, own))
        for piece in pieces:
            deaf = deaf or not _written(connection, _framed(piece) if chunked else piece)
        if chunked and not deaf:
            _written(connection, _last(self.body))

    # --- the response

    @contextlib.contextmanager
    def _watching(self, connection: socket.socket) -> Iterator[None]:
        """Close the connection to the server when the client closes its own."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(TURN):
                if self.client_left():
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

    def _final(self, source: io.BufferedIOBase) -> "_Answer":
        """Read up to the head of the final response, and pass interim ones on.

        Raises:
            OSError, MalformedError: there is none.
        """
        for _ in range(MOST_INTERIM):
            line = source.readline(CHUNK_LINE)
            if not line:
                raise ConnectionResetError
            version, status, why = status_line(line)
            headers = fields(source)
            self.server.tape.recorder.http(Side.SERVER, self.number, f"{status} {why}", headers)
            body = body_of(version, headers, source, None)
            never = status < OK or status == EMPTY  # RFC 9110 section 6.4.1
            if status == SWITCHES or (never and (body.chunked or body.left)):
                raise MalformedError(f"a {status} that nobody asked for, or with a body")
            if status >= OK:
                none = never or status == NOT_MODIFIED or self.command == "HEAD"
                return _Answer(status, why, headers, Body(source) if none else body)
            if self.request_version != "HTTP/1.0":
                self._begin(status, why, headers)
                self.end_headers()
        raise MalformedError(f"{MOST_INTERIM} interim responses and no final one")

    def _begin(self, status: int, why: str, headers: Headers) -> None:
        self.send_response_only(status, why)
        for name, value in _passed(headers):
            self.send_header(name, value)

    def _respond(self, answer: "_Answer", *, ours: bool) -> None:
        record, body = self.server.tape.recorder, answer.body
        heard = HeardBody(record, self.number, answer.headers) if ours else None
        if self.faults is not None:
            self.faults.wait()
            if self.faults.due(DROP, "the tap dropped the answer"):
                self._drop(body, heard)
                return
        self._begin(answer.status, answer.reason, answer.headers)
        framed = body.chunked or body.left is None
        if framed and self.request_version == "HTTP/1.0":
            framed, self.close_connection = False, True
        if framed:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        streams = framed and "event-stream" in ",".join(values(answer.headers, "content-type"))
        try:
            for piece in body:
                if heard is not None:
                    heard.feed(piece, last=body.ended)
                if self.faults and streams and self.faults.due(CLOSE, "the tap closes the stream"):
                    self._write(_framed(first_event(piece)))
                    break
                self._write(_framed(piece) if framed else piece)
            if heard is not None:
                heard.end()
            self._write(_last(body) if framed else b"")
        except (MalformedError, OSError) as error:
            self.end = f"{BROKE_OFF}{_why(error)}"
            self.close_connection = True

    def _drop(self, body: Body, heard: HeardBody | None) -> None:
        """Read an answer to its end, and close the connection in place of it."""
        with contextlib.suppress(MalformedError, OSError):
            for piece in body:
                if heard is not None:
                    heard.feed(piece, last=body.ended)
        self.end, self.close_connection = "the tap closed the connection", True

    def _write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except OSError:
            self.left = True
            raise


@dataclass(frozen=True, slots=True)
class _Answer:
    """A final response of the server."""

    status: int
    reason: str
    headers: Headers
    body: Body


def _framed(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _why(error: OSError | MalformedError) -> str:
    return reason(error) if isinstance(error, OSError) else f"its response is malformed: {error}"


def _last(body: Body) -> bytes:
    """Return what ends a body in chunks."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in body.trailers)
    return f"0\r\n{lines}\r\n".encode("latin-1")


def _passed(headers: Iterable[tuple[str, str]], *ours: str) -> Headers:
    """Return the headers that are passed on, without ours."""
    known = tuple(headers)
    words = ",".join(values(known, "connection")).lower().split(",")
    named = {word.strip() for word in words if not END_TO_END.fullmatch(word.strip())}
    kept = ((name, value) for name, value in known if name.lower() not in named | {*ours})
    return tuple(one for one in kept if not HOP.fullmatch(one[0].lower()))


def _written(connection: socket.socket, data: bytes) -> bool:
    """Write bytes; return False if the server takes no more."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True
