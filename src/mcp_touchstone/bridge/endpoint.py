"""The HTTP endpoint: it checks each request and forwards it to its process."""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_touchstone.bridge import headers as head
from mcp_touchstone.bridge.exchanges import HttpExchange, is_id, is_request
from mcp_touchstone.bridge.sessions import BATCHING, BridgeSession, Sessions
from mcp_touchstone.bridge.stateless import Stateless
from mcp_touchstone.catalog.revision import is_modern
from mcp_touchstone.http_server.hosts import guard, value_of
from mcp_touchstone.http_server.refusals import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NO_SESSION,
    PARSE_ERROR,
    Refusal,
    status_for,
)
from mcp_touchstone.http_server.responses import TURN, Responses
from mcp_touchstone.http_server.streams import EventStream
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.exchange import EVENTS, JSON
from mcp_touchstone.wire.framing import Fault, Kind, Line, kind_of, read, value_in
from mcp_touchstone.wire.http_headers import SESSION, VERSION

if TYPE_CHECKING:
    from mcp_touchstone.bridge.access import Access  # joserfc is an extra

PATH: Final = "/mcp"

PROMPT: Final = 2.0
"""Seconds a session's answer may take and still come without a stream."""

PROMPT_STATELESS: Final = 10.0
"""The same in 2026-07-28, where the status of an error is lost once a stream has begun."""

HANDOVER: Final = 2.0
"""Seconds to notice that the last reader of a stream has disconnected."""

_EVENT_ID: Final = re.compile(r"(\d{1,9})-(\d{1,9})")


class Served(Protocol):
    """What an endpoint uses of a ``Listener``."""

    sessions: Sessions
    stateless: Stateless
    startup: float
    names: frozenset[str]
    token: str
    access: "Access | None"


class ClientConnection(Responses):
    """One connection of a client.

    Attributes:
        user: the subject of the access token of the request; empty without one.
    """

    server: Served  # type: ignore[assignment]
    user = ""

    def do_POST(self) -> None:  # noqa: N802  (the base class's name)
        """Handle a message, or a batch."""
        with self.refusing():
            self._check()
            head.check_content_type(self.headers)
            head.check_accept(self.headers, JSON, EVENTS)
            line = self._body()
            self.begin_serving()
            messages = _messages(line)
            try:
                self._post(line, messages)
            except Refusal as refusal:
                if len(messages) == 1 and kind_of(messages[0]) is Kind.REQUEST:
                    refusal.id = messages[0].get("id")
                raise

    def do_GET(self) -> None:  # noqa: N802  (the base class's name)
        """Open the listening stream of a session, or resume a broken stream."""
        with self.refusing():
            if self.server.access is not None and self.path.startswith(head.WELL_KNOWN):
                self._describe(self.server.access)
                return
            self._check()
            self.begin_serving()
            head.check_accept(self.headers, EVENTS)
            self._check_handshake()
            session = self._session()
            stream, after = self._wanted(session)
            if not stream.attach(HANDOVER):
                raise Refusal(409, INVALID_REQUEST, "this stream has a reader already")
            try:
                self.begin_stream()
                self.write_stream(stream, after, resumable=session.resumable)
            finally:
                stream.detach()

    def do_DELETE(self) -> None:  # noqa: N802  (the base class's name)
        """End a session."""
        with self.refusing():
            self._check()
            self.begin_serving()
            self._check_handshake()
            self.server.sessions.finish(self._session())
            self.answer(204)

    def _others(self) -> None:
        with self.refusing():
            self._check()
            why = f"{self.command} has no meaning here"
            raise Refusal(405, INVALID_REQUEST, why, Allow="POST, GET, DELETE")

    do_HEAD = do_PUT = do_PATCH = do_OPTIONS = _others  # noqa: N815  (the base class's names)

    # --- checks of every request

    def _check(self) -> None:
        """Check the host, the path and the token of a request.

        Raises:
            Refusal: one of them is invalid.
        """
        if self.body.chunked:
            raise Refusal(411, INVALID_REQUEST, "a body needs a Content-Length")
        guard(self.headers, self.server.names)
        if self.path.partition("?")[0] != PATH:
            raise Refusal(404, INVALID_REQUEST, f"there is nothing here; the endpoint is {PATH}")
        if self.server.token:
            head.check_token(self.headers, self.server.token)
        if self.server.access is not None:
            self.user = self.server.access.user(self.headers)

    def _describe(self, access: "Access") -> None:
        """Answer with metadata (RFC 9728, RFC 8414), which need no token."""
        guard(self.headers, self.server.names)
        found = access.documents.get(self.path.removesuffix(PATH))
        if found is None:
            raise Refusal(404, INVALID_REQUEST, "there is nothing here")
        self.answer(200, json.dumps(found).encode())

    def _check_handshake(self) -> None:
        """Refuse GET and DELETE before a server without sessions.

        Source: 2026-07-28 basic/transports/streamable-http#earlier-streamable-http-revisions.

        Raises:
            Refusal: 405.
        """
        if not self.server.sessions.used and self.server.stateless.alone:
            why = f"{self.command} has no meaning here: this server has no sessions"
            raise Refusal(405, INVALID_REQUEST, why, Allow="POST")

    def _body(self) -> bytes:
        """Read the body as one line: in JSON a bare line break occurs only between tokens."""
        return self.read_body().replace(b"\r", b" ").replace(b"\n", b" ")

    # --- handling

    def _post(self, line: bytes, messages: list[dict[str, Any]]) -> None:
        batched = line.lstrip().startswith(b"[")
        first = messages[0]
        if not batched and first.get("method") == "initialize" and "id" in first:
            self._initialize(line, first)
        elif not batched and head.is_stateless(self.headers, first):
            self._stateless(first)
        elif batched and is_modern(value_of(self.headers, VERSION) or ""):
            raise Refusal(400, INVALID_REQUEST, "2026-07-28 has no batches")
        else:
            session = self._session()
            if batched and session.revision != BATCHING:
                why = f"only sessions of {BATCHING} have batches"
                raise Refusal(400, INVALID_REQUEST, why)
            exchange = session.say(line, messages)
            if exchange is None:
                self.answer(202)
                return
            exchange.attach(0.0)
            try:
                self.respond(exchange, PROMPT, resumable=session.resumable)
            finally:
                exchange.detach()

    def respond(
        self,
        exchange: HttpExchange,
        prompt: float,
        status: Callable[[bytes], int] = lambda _: 200,
        extra: Mapping[str, str] = {},
        *,
        resumable: bool | None = None,
    ) -> bool:
        """Answer with the messages of an exchange.

        Args:
            prompt: seconds an answer without a stream may take.
            status: returns the status for an answer without a stream.
            resumable: whether the client may reconnect for the rest; None if streams cannot be
                resumed at all.

        Returns:
            False if the client disconnected before the end.
        """
        if not self._wait_first(exchange, prompt):
            return False
        if exchange.loss and not exchange.after(0, 0.0):
            self.answer(502, exchange.loss, extra)
            return True
        only = exchange.only()
        if only is not None:
            self.answer(status(only), only, extra)
            exchange.delivered = 1
            return True
        self.begin_stream(extra)
        return self.write_stream(exchange, 0, resumable=resumable)

    def _wait_first(self, exchange: HttpExchange, prompt: float) -> bool:
        """Wait for the first message, or until a stream must begin; False if the client left."""
        until = now() + prompt
        while not exchange.closed and not exchange.after(0, max(0.0, min(TURN, prompt))):
            if self.client_left():
                return False
            if now() > until:
                break
        return True

    def _session(self) -> BridgeSession:
        session = self.server.sessions.find(value_of(self.headers, SESSION))
        if session.user != self.user:  # its id is no secret from a user who may see our logs
            raise Refusal(404, NO_SESSION, "this user has no such session")
        head.check_session_version(self.headers)
        return session

    def _wanted(self, session: BridgeSession) -> tuple[EventStream, int]:
        """Return the stream a GET requests, and the number of the last message it received."""
        last = self.headers.get("Last-Event-ID")
        if not last:
            return session.listening, session.listening.delivered
        found = _EVENT_ID.fullmatch(last)
        stream = session.stream(int(found[1])) if found else None
        if found is None or stream is None:
            raise Refusal(400, INVALID_REQUEST, "there is no such event to go on from")
        return stream, int(found[2])

    def _initialize(self, line: bytes, request: dict[str, Any]) -> None:
        """Begin a session, if the server answers with a result."""
        sessions = self.server.sessions
        session = sessions.begin()
        session.user = self.user
        try:
            exchange = session.say(line, [request])
            if exchange is None or not exchange.wait_closed(self.server.startup):
                limit = f"no answer within {self.server.startup:g} s"
                raise Refusal(504, INTERNAL_ERROR, limit, id=request["id"])
            session.open(exchange)
            extra = {}
            if session.revision:
                sessions.add(session)
                extra = {SESSION: session.id}
            stateless = head.is_stateless(self.headers, request)
            status = partial(_status, request) if stateless else (lambda _: 200)
            resumable = session.resumable if session.revision else None
            self.respond(exchange, 0.0, status, extra, resumable=resumable)
        finally:
            if not session.revision:
                sessions.finish(session)

    def _stateless(self, message: dict[str, Any]) -> None:
        """Serve a message of 2026-07-28, and ignore any session id."""
        kind = kind_of(message)
        if kind in {Kind.RESULT, Kind.ERROR}:
            raise Refusal(400, INVALID_REQUEST, "a client of 2026-07-28 sends no responses")
        lane = self.server.stateless.lane()
        if kind is Kind.NOTIFICATION:
            lane.notify(message)
            self.answer(202)
            return
        head.check_repeated(self.headers, message)
        lane.check_parameters(self.headers, message)
        exchange = lane.say(message)
        try:
            self.respond(exchange, PROMPT_STATELESS, partial(_status, message))
        finally:
            lane.cancel(exchange)


def _status(request: dict[str, Any], answer: bytes) -> int:
    """Return the status for the answer to a stateless request."""
    said = read(Line(answer, len(answer))).value
    return status_for(value_in(said, "error"), lacks_meta=head.lacks_meta(request))


def _messages(line: bytes) -> list[dict[str, Any]]:
    """Read a body: one message, or the members of a batch.

    A batch with at least one request that can be answered is forwarded unchecked: the server
    judges it.

    Raises:
        Refusal: 400, the body is neither, or the id of a request is no string or integer.
    """
    reading = read(Line(line, len(line)))
    if faults := reading.faults - {Fault.LONE_SURROGATE}:  # JSON by its grammar (RFC 8259, 7)
        raise Refusal(400, PARSE_ERROR, f"Parse error: {', '.join(sorted(faults))}")
    found = reading.value if isinstance(reading.value, list) else [reading.value]
    batched = isinstance(reading.value, list)
    for one in () if batched and any(map(is_request, found)) else found:
        known = one.get("id") if isinstance(one, dict) and is_id(one.get("id")) else None
        if kind_of(one) is Kind.ODD or not isinstance(one.get("method", ""), str):
            raise Refusal(400, INVALID_REQUEST, "Invalid request: no JSON-RPC message", id=known)
        if known is None and kind_of(one) is Kind.REQUEST:
            why = "Invalid request: the id is no string or integer"
            raise Refusal(400, INVALID_REQUEST, why)
    if not found:
        raise Refusal(400, INVALID_REQUEST, "Invalid request: a batch has at least one member")
    return found
