"""A session over HTTP as a value: the headers of its requests, and what responses mean for it.

No socket, no thread, no clock: ``HttpChannel`` carries out what it decides.

Sources: basic/transports#streamable-http of 2025-03-26 to 2025-11-25, and
basic/transports/streamable-http of 2026-07-28.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.version import __version__
from mcp_touchstone.wire.exchange import EVENTS, JSON, Exchange, Headers
from mcp_touchstone.wire.framing import id_key, object_in, value_in
from mcp_touchstone.wire.http_headers import (
    AUTHORIZATION,
    SESSION,
    VERSION,
    Path,
    parameters,
    repeated,
)

AGENT: Final = f"mcp-touchstone/{__version__}"

WITH_VERSION: Final = "2025-06-18"
"""The first revision with the header ``MCP-Protocol-Version``."""

HIDDEN: Final = b"(hidden)"
"""Replaces a secret in a record."""

SECRET_LENGTH: Final = 8
"""Least characters of a part of a header that is hidden; a shorter one could be a common word."""

LONGEST_RETRY: Final = 5.0
"""Greatest delay in seconds before a stream is resumed."""

OK: Final = range(200, 300)
NOT_FOUND: Final = 404

OF_THE_REQUEST: Final = frozenset({-32601, -32602, -32002})
"""Codes of errors about a method, its parameters or a resource; some servers send them with 404."""


class HttpSession:
    """One session, or the stateless requests of one connection.

    Args:
        authority: the value of the ``Host`` header.
        secrets: further headers of each request, which are never recorded.

    Attributes:
        id: the session id; None for none.
        version: the negotiated revision; empty before.
        tools: name of a tool -> its parameters that headers repeat.
        is_open: whether the server answered initialize.
        is_ending: whether we asked the server to end it.
        is_left: whether we closed every connection.
        expired: how the server ended it; empty if it did not.
        secrets: as above, with the present token.
    """

    def __init__(self, revision: str, authority: str, secrets: Mapping[str, str] = {}) -> None:
        self.is_open = self.is_ending = self.is_left = False
        self.id: str | None = None
        self.version = ""
        self.tools: dict[str, tuple[tuple[Path, str], ...]] = {}
        self.expired = ""
        self.secrets = self.given = dict(secrets)
        self.modern = rev.is_modern(revision)
        self._revision = revision
        self._authority = authority
        self._hidden: list[bytes] = []
        self.conceal(*secrets.values())
        self._asked: dict[Any, int] = {}

    @property
    def closed(self) -> str:
        """Why no message can be sent any more, said of the server; empty if one can."""
        if self.is_left:
            return "gets no more messages: we closed the connection"
        return self.expired

    @property
    def may_listen(self) -> bool:
        """Whether a GET can be sent: one that follows the DELETE would name an ended session."""
        return not (self.is_ending or self.expired or self.is_left)

    # --- the headers of a request

    def post(self, message: Any, length: int) -> Headers:
        """Return the headers of a POST that depend on its message and the length of its body."""
        kinds = (
            ("Content-Type", JSON),
            ("Content-Length", str(length)),
            ("Accept", f"{JSON}, {EVENTS}"),
        )
        if self.modern:
            return (*kinds, *repeated(message, self._revision, self.tools))
        opening = value_in(message, "method") == "initialize"
        return kinds if opening else (*kinds, *self.named())

    def get(self, last: str | None = None) -> Headers:
        """Return the headers of a GET that resumes a stream after an event, or that listens."""
        resumes = () if last is None else (("Last-Event-ID", last),)
        return (("Accept", EVENTS), *self.named(), *resumes)

    def named(self) -> Headers:
        """Return the headers that name the session; a DELETE has no other."""
        known = () if self.id is None else ((SESSION, self.id),)
        return (*known, *(((VERSION, self.version),) if self.version >= WITH_VERSION else ()))

    def complete(self, headers: Headers) -> Headers:
        """Return the headers of a request with those that every request has, secrets included."""
        return (
            ("Host", self._authority),
            ("User-Agent", AGENT),
            *headers,
            *self.secrets.items(),
            ("Connection", "close"),
        )

    def authorize(self, token: str) -> None:
        """Set the bearer token of later requests; an empty one leaves the given secrets."""
        self.conceal(token)
        own = {AUTHORIZATION: f"Bearer {token}"} if token else {}
        self.secrets = {**self.given, **own}

    def conceal(self, *values: str) -> None:
        """Keep values out of all records from now on."""
        parts = {*_secret_parts(values)}.difference(self._hidden)
        if parts:
            self._hidden = sorted({*self._hidden, *parts}, key=len, reverse=True)

    def shown(self, headers: Headers) -> Headers:
        """Return the headers of a request for the record."""
        return (*headers, *((name, HIDDEN.decode()) for name in self.secrets))

    def hide(self, raw: bytes) -> bytes:
        """Replace secrets that the server repeats, so that no record has them."""
        for secret in self._hidden:
            raw = raw.replace(secret, HIDDEN)
        return raw

    # --- messages

    def asks(self, message: Any, line: int) -> bool:
        """Note the requests in a message or a batch of ours; return whether there is one."""
        keys = list(_requests(message))
        self._asked.update(dict.fromkeys(keys, line))
        return bool(keys)

    def withdrawn(self, message: Any) -> int | None:
        """Return the line of the request whose response is closed in place of a message of ours.

        Source: 2026-07-28 basic/transports/streamable-http#cancellation.
        """
        if not self.modern or value_in(message, "method") != "notifications/cancelled":
            return None
        return self._asked.get(id_key(value_in(message, "params", "requestId")))

    def teaches(self, raw: bytes) -> bool:
        """Return whether a message of the server may be one from which ``learn`` learns."""
        return b"x-mcp-header" in raw if self.modern else self.may_listen and not self.is_open

    def learn(self, method: str | None, answer: Mapping[str, Any], exchange: Exchange) -> None:
        """Take over an answer of the server: the session that it opens, or the tools it lists."""
        version = value_in(answer, "result", "protocolVersion")
        if self.modern:
            self.tools |= parameters(answer.get("result"))
        elif method == "initialize" and isinstance(version, str):
            self.version, self.id, self.is_open = version, exchange.header(SESSION), True

    # --- responses

    def expires(self, exchange: Exchange, answer: Any = None) -> str:
        """Return how the server ended our session by a response, said of it; empty if it did not.

        A GET may get 404 from a server that has no listening stream.

        Source: 2025-11-25 basic/transports#session-management.

        Args:
            answer: the message in the response; None for none.
        """
        if exchange.status != NOT_FOUND or exchange.verb != "POST" or exchange.crafted:
            return ""
        if self.id is None or exchange.said(SESSION) != self.id or self.is_left:
            return ""
        if answer is None and exchange.messages:
            return ""  # it was checked when the message came
        code = value_in(answer, "error", "code")
        if "result" in object_in(answer) or (isinstance(code, int) and code in OF_THE_REQUEST):
            return ""
        return f"ended the session: HTTP 404 to line {exchange.line}"

    def expire(self, why: str) -> None:
        """Take over that the server ended the session; the first reason stays."""
        self.expired = self.expired or why

    def opens_listening(self, message: Any, exchange: Exchange) -> bool:
        """Return whether the stream of a GET can begin, after the response to a message of ours."""
        method = value_in(message, "method")
        return not self.modern and method == "notifications/initialized" and exchange.status in OK

    def resumes(self, exchange: Exchange, *, answered: bool) -> bool:
        """Return whether the stream of a POST ended before its answer and can be resumed.

        A caller who wrote the request himself resumes nothing.
        """
        if exchange.verb != "POST" or exchange.crafted or not exchange.streams or answered:
            return False
        if self.modern or self.expired or self.is_left or not exchange.events:
            return False
        return exchange.events[-1].id is not None


def can_continue(exchange: Exchange) -> bool:
    """Return whether a GET that ended had a stream that another GET can continue."""
    return exchange.status in OK and exchange.streams and not exchange.left


def last_id(exchange: Exchange, known: str | None) -> str | None:
    """Return the id of the last event with one, or else the one that was known before."""
    return next((one.id for one in reversed(exchange.events) if one.id), known)


def delay(exchange: Exchange) -> float:
    """Return the seconds before a stream is resumed: the last ``retry``, or a second."""
    events = reversed(exchange.events)
    retry = next((one.retry for one in events if one.retry is not None), 1000)
    return min(LONGEST_RETRY, retry / 1000)


def _secret_parts(values: Iterable[str]) -> Iterator[bytes]:
    """Yield each secret, and its parts: ``Bearer TOKEN`` is two."""
    for value in values:
        for part in (value, *value.split()):
            if len(part) >= SECRET_LENGTH:
                yield part.encode()


def _requests(value: Any) -> Iterator[Any]:
    """Yield the ids of the requests in a message or a batch."""
    for message in value if isinstance(value, list) else [value]:
        if isinstance(message, dict) and "method" in message:
            key = id_key(message.get("id"))
            if key is not None:
                yield key
