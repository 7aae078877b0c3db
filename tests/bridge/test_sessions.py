"""Sessions of the older revisions, with a server that is given."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcp_touchstone.bridge.exchanges import HttpExchange
from mcp_touchstone.bridge.sessions import BridgeSession


class Silent:
    """A server that takes each message and answers none."""

    running = True

    def begin(self, _hear: object, _gone: object) -> "Silent":
        return self

    def send(self, line: bytes) -> None:
        pass

    def end(self) -> None:
        pass

    def sweep(self) -> int:
        return 0

    def log(self, sentence: str) -> None:
        pass


def ask(session: BridgeSession, number: int) -> HttpExchange | None:
    """Send a request in a session."""
    message = {"jsonrpc": "2.0", "id": number, "method": "ping"}
    return session.say(json.dumps(message).encode(), [message])


def test_two_requests_may_come_while_the_size_of_streams_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = BridgeSession(Silent())
    ask(session, 1)
    others: list[threading.Thread] = []
    failed: list[BaseException] = []

    def attempt(work: Callable[[], Any]) -> None:
        try:
            work()
        except RuntimeError as error:
            failed.append(error)

    def size(_exchange: HttpExchange) -> int:
        if not others:
            others.append(threading.Thread(target=attempt, args=(lambda: ask(session, 3),)))
            others[0].start()
            others[0].join(0.2)  # it has to wait until the sizes are counted
        return 1

    monkeypatch.setattr(HttpExchange, "size", property(size))
    attempt(lambda: ask(session, 2))
    others[0].join(60)

    assert failed == []
    assert not others[0].is_alive()
