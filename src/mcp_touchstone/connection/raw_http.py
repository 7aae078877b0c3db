"""HTTP requests as a scenario writes them: any header, any body, nothing repaired."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_touchstone.connection.checked_http import CheckedHttp, LoginError, metadata_places
from mcp_touchstone.connection.connection import CLIENT_INFO, Connection
from mcp_touchstone.transport.http_channel import HttpChannel
from mcp_touchstone.transport.http_endpoint import is_loopback
from mcp_touchstone.transport.http_exchange import HttpResponse
from mcp_touchstone.transport.http_session import NOT_FOUND
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.exchange import Exchange, Headers
from mcp_touchstone.wire.framing import code_in, encode
from mcp_touchstone.wire.http_headers import SESSION, VERSION, Path, annotated
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry

Change = str | Sequence[str] | None
"""The new values of a header: one, several headers of this name, or None to omit it."""

NOBODY: Final = "touchstone-no-such-request"
CANCELLATION: Final = {
    "jsonrpc": "2.0",
    "method": "notifications/cancelled",
    "params": {"requestId": NOBODY},
}
UNANSWERED: Final[dict[str, dict[str, Any]]] = {
    "a notification": CANCELLATION,
    "a response": {"jsonrpc": "2.0", "id": NOBODY, "result": {}},
}
"""Messages that need no answer, about a request that there never was."""

SHOWN: Final = 120
"""Characters of a changed header that the transcript shows."""


class HttpAnswer:
    """The response to one such request, while it comes and afterwards.

    Attributes:
        line: number of the line of the transcript that records the request.
        exchange: the request and its response, with all times.
        response: what reads it.
    """

    def __init__(self, connection: Connection, response: HttpResponse, line: int) -> None:
        self.line = line
        self.exchange: Exchange = response.exchange
        self._connection = connection
        self.response = response

    @property
    def status(self) -> int:
        """The status; 0 if none came."""
        return self.exchange.status

    @property
    def may_end_session(self) -> bool:
        """Whether it is HTTP 404 to the id of the session of the connection."""
        channel = self._connection.channel
        own = channel.session.id if isinstance(channel, HttpChannel) else None
        return self.status == NOT_FOUND and own is not None and self.exchange.said(SESSION) == own

    @property
    def closed(self) -> bool:
        """Whether the response has ended."""
        return self.response.closed.is_set()

    @property
    def is_kept(self) -> bool:
        """Whether the connection is open for the next request."""
        return self.response.is_kept

    @property
    def entries(self) -> list[Entry]:
        """The lines of the transcript with the messages of the response."""
        return [
            entry
            for entry in self._connection.transcript.since(self.line)
            if entry.origin is not None and entry.origin.exchange is self.exchange
        ]

    @property
    def messages(self) -> list[Any]:
        """The messages of the response, as JSON values; a batch is one."""
        return [entry.reading.value for entry in self.entries if entry.reading is not None]

    @property
    def reply(self) -> Reply:
        """The answer to the request in the body, wherever it came; does not wait."""
        found = self._connection.transcript.answer_to(self.line)
        if found is None:
            return Reply(self.line, why=str(self.exchange))
        return Reply(self.line, found[0].n, found[1].value)

    @property
    def refused(self) -> bool:
        """Whether the status is that of an error, 4xx or 5xx."""
        return self.status >= 400  # noqa: PLR2004  (the first of them)

    @property
    def error_code(self) -> Any:
        """The code of the JSON-RPC error in the response; None for none."""
        errors = (one.get("error") for one in self.messages if isinstance(one, dict))
        return next((code_in(one) for one in errors if isinstance(one, dict)), None)

    def header(self, name: str) -> str | None:
        """Return the first value of a header of the response; None if it is absent."""
        return self.exchange.header(name)

    def wait_closed(self, seconds: float | None = None) -> bool:
        """Wait for the end of the response; return False if the seconds pass first."""
        return bool(self._connection.wait(lambda: self.closed, self._limit(seconds)))

    def wait_status(self, seconds: float | None = None) -> bool:
        """Wait for the status; return False if the seconds pass first."""
        headed = self.response.headed.is_set
        return bool(self._connection.wait(headed, self._limit(seconds))) and self.status > 0

    def wait_reply(self, seconds: float | None = None) -> Reply:
        """Wait for the answer to the request in the body, or for the end of the response."""
        self._connection.wait(lambda: self.reply.answered or self.closed, self._limit(seconds))
        return self.reply

    def wait_messages(self, seconds: float | None = None) -> bool:
        """Wait until a message has come, or the end; return whether one came."""
        self._connection.wait(lambda: self.closed or self.entries, self._limit(seconds))
        return bool(self.entries)

    def write(self, data: bytes, seconds: float | None = None) -> bool:
        """Write more of the body; return False if the server does not take it."""
        return self.response.write(data, self._limit(seconds))

    def close(self) -> None:
        """Close the connection, even before the response is complete."""
        self.response.leave()

    def _limit(self, seconds: float | None) -> float:
        return self._connection.pace.reply if seconds is None else seconds

    def __str__(self) -> str:
        """Return the response in a few words, for the ``actual`` of a judgement."""
        code = self.error_code
        return f"{self.exchange}" + (f" with error {code}" if code is not None else "")


class RawHttp:
    """The HTTP endpoint of a connection, and requests to it.

    Raises:
        LookupError: the connection is on stdio.
    """

    def __init__(self, connection: Connection) -> None:
        if not isinstance(connection.channel, HttpChannel):
            raise LookupError("this server is on stdio: the clauses need transport = http")  # noqa: TRY004  (a fault of the suite)
        self._connection = connection
        self._channel = connection.channel

    @property
    def path(self) -> str:
        """The path of the endpoint, with its query."""
        return self._channel.endpoint.path

    @property
    def authority(self) -> str:
        """The host and the port of the endpoint, as in the ``Host`` header."""
        return self._channel.endpoint.authority

    @property
    def session_id(self) -> str | None:
        """The session id of the connection; None for none."""
        return self._channel.session.id

    @property
    def local(self) -> bool:
        """Whether the server is on the loopback of this machine."""
        return self._channel.endpoint.local

    @property
    def started(self) -> bool:
        """Whether we started the server."""
        return self._channel.started

    @property
    def port(self) -> int:
        """The port of the endpoint."""
        return self._channel.endpoint.port

    def addresses(self) -> list[str]:
        """Return the addresses on which a server that we started listens; empty if unknown."""
        return self._channel.addresses()

    def credentials(self) -> str | None:
        """Return the Authorization header that the user gave; None for none."""
        ordinary = self.headers("GET")
        return next((value for name, value in ordinary if name.lower() == "authorization"), None)

    def flawed(self, flaw: str, *, scope: str | None = None) -> str:
        """Return a token of the user's issuer with a flaw; empty if we have no issuer.

        Args:
            flaw: a name in ``issuer.mint.FLAWS``; empty for none.
            scope: its scopes; None for those of the user.
        """
        found = self._channel.endpoint.tokens.minted(flaw, scope)
        self._channel.hide(found)
        return found

    def called_active(self, token: str) -> bool | None:
        """Return whether our issuer called a token active; None if the server did not ask it."""
        return self._channel.endpoint.tokens.called_active(token)

    def upstream(self) -> list[bool]:
        """Return the requests that the server sent to {upstream}: whether each had its token."""
        return self._channel.endpoint.tokens.upstream()

    def logs(self, secret: str) -> bool:
        """Return whether standard error of a server that we started has a secret, in its end."""
        return self._channel.logs(secret)

    def other_credentials(self) -> str | None:
        """Return the Authorization header of another user; None if there is none."""
        found = self._channel.endpoint.tokens.other()
        self._channel.hide(found)
        return f"Bearer {found}" if found else None

    def has_metadata(self, issuer: str) -> bool | None:
        """Return whether an authorization server has metadata; None if it cannot be asked.

        They have an issuer (RFC 8414, section 2).
        """
        web = CheckedHttp(near=self.local)
        try:
            places = metadata_places(web.check(issuer))
        except LoginError:
            return None
        try:
            found = (web.document(place) or {} for place in places)
            return any(isinstance(one.get("issuer"), str) for one in found)
        except LoginError:  # another machine may be out of reach from here only
            return False if is_loopback(urlsplit(issuer).hostname or "") else None

    @staticmethod
    def body(message: Any) -> bytes:
        """Return the bytes of a message as ``post`` sends them."""
        return encode(message).rstrip(b"\n")

    def headers(self, verb: str, message: Any = None, length: int = 0) -> Headers:
        """Return the headers of an ordinary request, secret values included."""
        return self._channel.ordinary_headers(verb, message, length)

    def post(
        self,
        message: Any,
        change: Mapping[str, Change] | None = None,
        *,
        wait: bool = True,
        malformed: bool = False,
        **more: Any,
    ) -> HttpAnswer:
        """POST a message with the ordinary headers and some changes; wait for its end.

        Args:
            message: the JSON value of the body.
            change: header -> its new values; see ``send``.
            wait: whether to wait for the end of the response, or for the answer in a stream;
                otherwise it returns once the request is sent.
            malformed: whether the message itself breaks a rule on purpose.
            more: further arguments of ``send``.
        """
        transcript = self._connection.transcript
        raw = encode(message)
        body: bytes | Sequence[bytes] = more.pop("body", self.body(message))
        how = self._described("POST", more.get("path"), change, more.get("headers"))
        if how:
            transcript.happened(how)
        line = transcript.said(
            raw, message, malformed=malformed, required=False, modern=self._connection.modern
        )
        return self.send("POST", change, body=body, message=message, line=line, wait=wait, **more)

    def first_request(
        self, change: Mapping[str, Change] | None = None, *, path: str | None = None
    ) -> HttpAnswer:
        """Send the first request of another client: ``initialize``, or a stateless one."""
        wire = self._connection
        if wire.modern:
            return self.post(wire.build(wire.ping_method), change, path=path)
        params = {
            "protocolVersion": wire.transcript.revision,
            "capabilities": wire.transcript.capabilities,
            "clientInfo": CLIENT_INFO,
        }
        without: dict[str, Change] = {SESSION: None, VERSION: None}
        return self.post(wire.build("initialize", params), without | dict(change or {}), path=path)

    def end_session(self, opening: HttpAnswer) -> bool:
        """End the session that a first request opened; return whether there was one to end."""
        issued = opening.header(SESSION)
        if not issued or opening.reply.result is None:
            return False
        status = self.delete({SESSION: issued}).status
        return 200 <= status < 300  # noqa: PLR2004  (the server lets clients end a session)

    def get(self, change: Mapping[str, Change] | None = None, **more: Any) -> HttpAnswer:
        """GET the endpoint with the ordinary headers and some changes; wait for the status."""
        return self.send("GET", change, **more)

    def delete(
        self, change: Mapping[str, Change] | None = None, *, wait: bool = True, **more: Any
    ) -> HttpAnswer:
        """DELETE the session of the connection; wait for the status.

        The wait is short if the server has left an earlier one without an answer.
        """
        pace = self._connection.pace
        if pace.ends_none:
            more["seconds"] = pace.silence
        answer = self.send("DELETE", change, wait=wait, **more)
        if wait and not answer.status and not answer.closed:
            pace.ends_none = True
        return answer

    def send(
        self,
        verb: str,
        change: Mapping[str, Change] | None = None,
        *,
        headers: Headers | None = None,
        body: bytes | Sequence[bytes] = b"",
        message: Any = None,
        path: str | None = None,
        line: int = 0,
        wait: bool = True,
        seconds: float | None = None,
        pause: float = 0.0,
        keeps: bool = False,
        after: HttpAnswer | None = None,
    ) -> HttpAnswer:
        """Send a request exactly as described.

        Args:
            change: header -> its new values: None omits it, several values send it several times,
                a new name adds it. Names match in any case; the given spelling is sent.
            headers: all headers, in place of the ordinary ones.
            body: its bytes, in pieces if it is a sequence.
            message: the JSON value of the body, for headers that repeat a part of it.
            path: the target, in place of that of the endpoint.
            line: number of the line of the transcript with the message; 0 for none.
            seconds: limit of the wait; ``Pace.reply`` if None.
            pause: seconds between two pieces.
            keeps: whether the connection stays open for the next request.
            after: the answer whose open connection is used; None for a connection of its own.
        """
        pieces = [body] if isinstance(body, bytes) else list(body)
        length = sum(map(len, pieces))
        chosen = self.headers(verb, message, length) if headers is None else headers
        if not line:
            how = (
                self._described(verb, path, change, headers)
                or f"{Happened.REQUESTED}{verb} {self.path}"
            )
            number = self._connection.transcript.happened(how)
        limit = self._connection.pace.reply if seconds is None else seconds
        response = self._channel.exchange(
            verb,
            self.path if path is None else path,
            changed(chosen, change or {}),
            pieces,
            limit,
            line=line,
            pause=pause,
            keeps=keeps,
            after=None if after is None else after.response,
        )
        if not line:
            response.exchange.event_line = number
        answer = HttpAnswer(self._connection, response, line or number)
        if wait:
            headed = answer.wait_status(limit)
            if answer.exchange.streams and line:
                answer.wait_reply(limit)
            elif headed and not answer.exchange.streams:
                answer.wait_closed(limit)
        return answer

    def _described(
        self,
        verb: str,
        path: str | None,
        change: Mapping[str, Change] | None,
        headers: Headers | None,
    ) -> str:
        """Return the unusual parts of a request for the transcript; empty if it has none."""
        hidden = self._channel.hidden  # before a value is cut: a part of a secret would stay
        parts = []
        for name, value in (change or {}).items():
            values = _values(value)
            parts += [f"{name}: {hidden(one)[:SHOWN]}" for one in values] or [f"no {name}"]
        if headers is not None:
            parts.append("headers of its own: " + ", ".join(name for name, _ in headers))
        if not parts and path is None:
            return ""
        target = f"{Happened.REQUESTED}{verb} {hidden(self.path if path is None else path)}"
        return f"{target} with " + "; ".join(parts) if parts else target


def changed(headers: Headers, change: Mapping[str, Change]) -> Headers:
    """Return headers with other values; see ``RawHttp.send``.

    A changed header stays at its place; a new one comes last.
    """
    wanted = {name.lower(): (name, _values(value)) for name, value in change.items()}
    found: list[tuple[str, str]] = []
    for name, value in headers:
        if name.lower() not in wanted:
            found.append((name, value))
            continue
        spelt, values = wanted[name.lower()]
        found += [(spelt, one) for one in values]
        wanted[name.lower()] = (spelt, ())
    return (*found, *((name, one) for name, values in wanted.values() for one in values))


def marked_arguments(tool: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """Return the paths of the arguments of a tool with an ``x-mcp-header``, and their headers."""
    return list(annotated(tool.get("inputSchema")))


def _values(change: Change) -> tuple[str, ...]:
    if change is None:
        return ()
    return (change,) if isinstance(change, str) else tuple(change)
