"""The requests of clients that wait for an answer of one process, and where its messages go."""

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from mcp_touchstone.bridge.streams import Stream, newest
from mcp_touchstone.framing import IdKey, id_key


class Exchange(Stream):
    """One HTTP request with JSON-RPC requests in it, and the stream of what answers them.

    Attributes:
        waiting: keys of the requests without an answer.
        tokens: keys of their progress tokens.
        request: what the server was asked, the first of it where it is a batch.
        asked: what the client asked, where the server was asked in other words.
        answer: the last answer.
        lost: why there will be no answer; empty while there may be one.
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


class Exchanges:
    """The open exchanges of one process; safe to share between threads."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: list[Exchange] = []
        self._lost = ""
        self._lock = threading.Lock()

    def open(self, messages: Iterable[Any]) -> Exchange | None:
        """Begin to wait for the answers to the requests among some messages.

        Returns:
            The stream of what comes; None if one of the ids is waiting already.
        """
        requests = [one for one in messages if "method" in one and "id" in one]
        keys = [key for one in requests if (key := id_key(one["id"])) is not None]
        tokens = [key for one in requests if (key := _token(one)) is not None]
        with self._lock:
            taken = set().union(*(one.waiting for one in self._open))
            if taken.intersection(keys) or len(set(keys)) < len(keys):
                return None
            exchange = Exchange(next(self._numbers), keys, tokens, requests[0])
            if not self._lost:
                self._open.append(exchange)
                return exchange
        exchange.lost = self._lost
        exchange.close()
        return exchange

    def answered(self, key: IdKey | None, data: bytes, answer: Any) -> Exchange | None:
        """Deliver an answer, as bytes and as their value; None if nobody waits for it.

        The stream ends behind the last answer it waits for.
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
        exchange.put(data)
        if done:
            exchange.close()
        return exchange

    def waiting_for(self, key: IdKey | None) -> Exchange | None:
        """Give the exchange a request belongs to, None if it is answered or unknown."""
        with self._lock:
            return next((one for one in self._open if key in one.waiting), None)

    def with_token(self, token: IdKey | None) -> Exchange | None:
        """Give the exchange a progress token belongs to."""
        with self._lock:
            return next((one for one in self._open if token in one.tokens), None)

    def newest(self, fit: Callable[[Exchange], bool] = lambda _: True) -> Exchange | None:
        """Give the exchange opened last, of those that fit."""
        with self._lock:
            found = newest(one for one in self._open if fit(one))
        return found if isinstance(found, Exchange) else None

    def drop(self, exchange: Exchange, why: str = "") -> None:
        """Wait no more; what still comes for it has no addressee."""
        with self._lock:
            if exchange in self._open:
                self._open.remove(exchange)
        exchange.lost = why
        exchange.close()

    def drop_all(self, why: str) -> None:
        """Wait for nothing more, now and later: the process is gone."""
        with self._lock:
            self._lost = why
            left, self._open = self._open, []
        for exchange in left:
            exchange.lost = why
            exchange.close()

    def all(self) -> list[Exchange]:
        """Give those that are waiting."""
        with self._lock:
            return list(self._open)

    @property
    def idle(self) -> bool:
        """Whether nothing is waited for."""
        with self._lock:
            return not self._open


def _token(request: Any) -> IdKey | None:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return id_key(meta.get("progressToken")) if isinstance(meta, dict) else None
