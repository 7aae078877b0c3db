"""Sessions of the older revisions, with a server that is given."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcp_touchstone.bridge.exchanges import HttpExchange
from mcp_touchstone.bridge.sessions import BridgeSession
from mcp_touchstone.http_server.streams import EventStream


class Silent:
    """A server that takes each message and answers none."""

    running = True

    def begin(self, hear: Callable[[bytes, Any], object], _gone: object) -> "Silent":
        del hear
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


def test_a_stream_has_ended_when_its_reader_sees_the_last_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Answering(Silent):
        def begin(self, hear: Callable[[bytes, Any], object], _gone: object) -> Silent:
            self.hear = hear
            return self

    server = Answering()
    exchange = ask(BridgeSession(server), 1)
    assert exchange is not None
    seen: list[bytes | None] = []

    def put(stream: HttpExchange, data: bytes, **how: bool) -> None:
        EventStream.put(stream, data, **how)
        seen.append(stream.only())  # as a reader that looks at once

    monkeypatch.setattr(HttpExchange, "put", put)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    server.hear(json.dumps(answer).encode(), answer)

    assert seen == [json.dumps(answer).encode()]
