"""The open requests of clients to one process, and the routing of its messages."""

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from mcp_touchstone.http_server.refusals import INTERNAL_ERROR, NO_SESSION, Refusal
from mcp_touchstone.http_server.streams import EventStream
from mcp_touchstone.wire.framing import IdKey, Kind, id_key, kind_of, value_in

OPEN: Final = 256
"""Greatest number of open exchanges of one process; a client may leave without an answer."""

EXACT: Final = 2**53
"""Below it every integer is a double of its own."""

LARGEST: Final = 10**308
"""Integers from here on are infinite to a server that reads numbers as doubles."""


class HttpExchange(EventStream):
    """One HTTP request with JSON-RPC requests in it, and the stream of their answers.

    Attributes:
        waiting: keys of the requests without an answer.
        tokens: keys of their progress tokens.
        request: the request sent to the server; the first one of a batch.
        asked: the request of the client, if it differs from the one sent to the server.
        lost: the reason there will be no answer; empty while there may be one.
    """

    def __init__(
        self, number: int, keys: Iterable[IdKey], tokens: Iterable[IdKey], request: Any
    ) -> None:
        super().__init__(number)
        self.waiting = set(keys)
        self.tokens = frozenset(tokens)
        self.request = request
        self.asked = request
        self.lost = ""
        self.answer: Any = None

    @property
    def loss(self) -> bytes:
        """The error in place of an answer that was lost."""
        why = f"mcp-touchstone bridge: {self.lost}"
        error = Refusal(502, INTERNAL_ERROR, why, id=self.asked.get("id"))
        return error.body() if self.lost else b""


class Exchanges:
    """The open exchanges of one process; safe to share between threads."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: list[HttpExchange] = []
        self._lost = ""
        self._lock = threading.Lock()

    def open(self, messages: Iterable[Any]) -> HttpExchange | None:
        """Begin to wait for the answers to the requests among some messages.

        Returns:
            The exchange with its stream; None if one of the ids is in use already.

        Raises:
            Refusal: 503, too many are open.
        """
        requests = [one for one in messages if is_request(one)]
        keys = [key for one in requests if (key := id_key(one["id"])) is not None]
        tokens = [key for one in requests if (key := _token(one)) is not None]
        with self._lock:
            taken = set().union(*(one.waiting for one in self._open))
            if taken.intersection(keys) or len(set(keys)) < len(keys):
                return None
            if len(self._open) >= OPEN:
                raise Refusal(503, NO_SESSION, f"{OPEN} requests are open; wait for an answer")
            exchange = HttpExchange(next(self._numbers), keys, tokens, requests[0])
            if not self._lost:
                self._open.append(exchange)
                return exchange
        exchange.lost = self._lost
        exchange.close()
        return exchange

    def answered(self, key: IdKey | None, data: bytes, answer: Any) -> HttpExchange | None:
        """Deliver an answer, as bytes and as their value; None if no exchange waits for it.

        The stream ends after the last answer it waits for.
        """
        with self._lock:
            for exchange in self._open:
                if key in exchange.waiting:
                    exchange.waiting.discard(key)
                    break
            else:
                return None
            done = not exchange.waiting
            if done:
                self._open.remove(exchange)
        exchange.answer = answer
        exchange.put(data, last=done)
        return exchange

    def waiting_for(self, key: IdKey | None) -> HttpExchange | None:
        """Return the exchange of a request; None if it is answered or unknown."""
        with self._lock:
            return next((one for one in self._open if key in one.waiting), None)

    def with_token(self, token: IdKey | None) -> HttpExchange | None:
        """Return the exchange of a progress token."""
        with self._lock:
            return next((one for one in self._open if token in one.tokens), None)

    def newest(self, fit: Callable[[HttpExchange], bool] = lambda _: True) -> HttpExchange | None:
        """Return the newest exchange that fits."""
        with self._lock:
            return max(filter(fit, self._open), key=lambda one: one.number, default=None)

    def drop(self, exchange: HttpExchange) -> None:
        """Stop waiting for an exchange; later messages for it have no addressee."""
        with self._lock:
            if exchange in self._open:
                self._open.remove(exchange)
        exchange.close()

    def drop_all(self, why: str) -> None:
        """Stop waiting for all exchanges, and accept no new ones: the process has exited."""
        with self._lock:
            self._lost = why
            left, self._open = self._open, []
        for exchange in left:
            exchange.lost = why
            exchange.close()

    def all(self) -> list[HttpExchange]:
        """Return the open exchanges."""
        with self._lock:
            return list(self._open)

    @property
    def idle(self) -> bool:
        """Whether there is no open exchange."""
        return not self.all()


def is_request(message: Any) -> bool:
    """Return whether a message is a request that a server can answer under its id.

    An answer to any other one has no id, so nobody could tell which request it ends.
    """
    return kind_of(message) is Kind.REQUEST and is_id(message["id"])


def is_id(value: Any) -> bool:
    """Return whether a value is a string or an integer; 5.0 is one, some clients have no others."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) < EXACT
    return isinstance(value, str) or (type(value) is int and abs(value) < LARGEST)


def _token(request: Any) -> IdKey | None:
    return id_key(value_in(request, "params", "_meta", "progressToken"))
