"""The requests of one connection over HTTP: each is sent on a socket, and read in a thread."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcp_touchstone.transport.http_endpoint import Endpoint
from mcp_touchstone.transport.http_exchange import HttpResponse, request_bytes
from mcp_touchstone.transport.http_session import HttpSession
from mcp_touchstone.transport.pipes import Gone
from mcp_touchstone.transport.process import now, sleep
from mcp_touchstone.transport.tokens import TokenError
from mcp_touchstone.wire.exchange import Exchange, Headers, Origin, SentRequest
from mcp_touchstone.wire.framing import Line
from mcp_touchstone.wire.http_headers import AUTHORIZATION

LONGEST_BODY: Final = 4096
"""Bytes of a body that is kept beside its exchange, for a command that sends it again."""

ARRIVING: Final = 0.05
"""Seconds a request has to arrive before a notification is sent: each has its own connection."""


class RequestRate:
    """Keeps a distance between the requests of all channels to one server.

    Args:
        most: greatest number of requests a second.
        clock: returns the time in seconds.
        pause: waits some seconds.
    """

    def __init__(
        self,
        most: float,
        clock: Callable[[], float] = now,
        pause: Callable[[float], object] = sleep,
    ) -> None:
        self._distance = 1 / most
        self._clock = clock
        self._pause = pause
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        with self._lock:
            begin = max(self._clock(), self._next)
            self._next = begin + self._distance
        if (left := begin - self._clock()) > 0:
            self._pause(left)


@dataclass(eq=False)
class HttpRequests:
    """The requests of one connection.

    Attributes:
        session: writes the headers and hides the secrets.
        exchanges: the record, to which each request is added.
        born: time of the start of the process.
        rate: keeps a distance between requests; None for none.
        started: whether we started the server.
        heard: called with each message and its origin; returns whether to read on.
        changed: called with a response when its status has come, and at its end.
    """

    endpoint: Endpoint
    session: HttpSession
    exchanges: list[Exchange]
    born: float
    rate: RequestRate | None
    started: bool
    heard: Callable[[Line, Origin], bool]
    changed: Callable[[HttpResponse], None]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _open: set[HttpResponse] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(
        self,
        verb: str,
        headers: Headers,
        line: int = 0,
        *,
        crafted: bool = False,
        keeps: bool = False,
    ) -> HttpResponse:
        """Record a request before it is sent, without secrets.

        Args:
            headers: those of the session; all of them if it is crafted.
            line: number of the line of the transcript that it carries; 0 for none.
            crafted: whether a scenario wrote the request itself.
            keeps: whether its connection stays open for the next request.

        Raises:
            Gone: there is no token.
        """
        if not crafted:
            self.authorize()
        sent = tuple((name, self.hidden(value)) for name, value in headers)
        with self._lock:
            exchange = Exchange(
                number=next(self._numbers),
                verb=verb,
                line=line,
                sent=sent if crafted else self.session.shown(headers),
                began=now() - self.born,
                crafted=crafted,
            )
            self.exchanges.append(exchange)
            response = HttpResponse(
                exchange,
                self.endpoint,
                lambda: now() - self.born,
                self.heard,
                lambda: self._ended(response),
                self.hidden,
                keeps,
            )
            self._open.add(response)
        return response

    def authorize(self) -> None:
        """Get the token of the next request.

        Raises:
            Gone: there is none.
        """
        try:
            self.session.authorize(self.endpoint.tokens.own())
        except TokenError as error:
            raise Gone(f"got no request: {error}") from error

    def _ended(self, response: HttpResponse) -> None:
        if response.closed.is_set():
            response.exchange.body = self.session.hide(response.exchange.body)
            with self._lock:
                self._open.discard(response)
        self.changed(response)

    def hidden(self, text: str) -> str:
        """Return a text for the record, with secrets replaced."""
        raw = self.session.hide(text.encode("utf-8", "surrogateescape"))
        return raw.decode("utf-8", "replace")

    def send(
        self,
        response: HttpResponse,
        headers: Headers,
        seconds: float,
        pieces: Sequence[bytes] = (),
        *,
        pause: float = 0.0,
        path: str = "",
        after: HttpResponse | None = None,
    ) -> None:
        """Send a request that has begun, and begin to read its response.

        Args:
            headers: as for ``begin``; they are completed unless it is crafted.
            seconds: limit for the connection, and for each piece.
            pieces: its body, as it is written.
            pause: seconds after each piece.
            path: its target; empty for that of the endpoint.
            after: the response whose open connection is used; None for one of its own.

        Raises:
            Gone: the server was not reached, or does not read.
        """
        exchange = response.exchange
        complete = headers if exchange.crafted else self.session.complete(headers)
        target = path or self.endpoint.path
        head = request_bytes(exchange.verb, target, complete)
        exchange.request_parts = self._parts(target, complete, b"".join(pieces))
        if self.rate is not None:
            self.rate.wait()
        first, *rest = pieces or [b""]
        try:
            response.send([head + first, *rest], seconds, lambda: sleep(pause), after)
        except OSError as error:
            raise Gone(f"was not reached: {exchange.fault}") from error

    def _parts(self, target: str, headers: Headers, body: bytes) -> SentRequest | None:
        """Return what sends a request again; None if its body is too long to show."""
        if len(body) > LONGEST_BODY:
            return None
        own = self.session.secrets
        known = {AUTHORIZATION: "TOKEN", **self.endpoint.secrets}
        variables = {name: known[name] for name, value in headers if own.get(name) == value}
        shown = self.hidden(target)
        return SentRequest(
            self.endpoint.server, shown, self.session.hide(body), variables, self.started
        )

    def _still_open(self) -> list[HttpResponse]:
        with self._lock:
            return list(self._open)

    def let_arrive(self) -> None:
        """Give open requests a moment to arrive: a notification may concern one of them."""
        until = now() + ARRIVING
        for response in self._still_open():
            if response.exchange.line:
                response.headed.wait(max(0.0, until - now()))

    def leave(self, seconds: float = 0.0) -> None:
        """Close every connection, and wait some seconds for the end of each response."""
        still = self._still_open()
        for response in still:
            response.leave()
        for response in still if seconds else ():
            response.join(seconds)
