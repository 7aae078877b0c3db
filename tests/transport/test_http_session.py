"""A session over HTTP, without sockets: its states, its headers, and what responses mean for it."""

from typing import Any

from mcp_touchstone.transport.http_session import (
    HttpSession,
    can_continue,
    delay,
    last_id,
)
from mcp_touchstone.wire.exchange import Exchange, Headers
from mcp_touchstone.wire.sse import ServerEvent
from tests.cases import cases

LEGACY, MODERN = "2025-11-25", "2026-07-28"
OPENING = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
STREAM = (("Content-Type", "text/event-stream"),)


def exchange(verb: str = "POST", sent: Headers = (), **more: Any) -> Exchange:
    return Exchange(number=1, verb=verb, line=1, sent=sent, began=0.0, **more)


def opened(version: str = LEGACY) -> HttpSession:
    session = HttpSession(LEGACY, "host")
    answer = {"result": {"protocolVersion": version}}
    session.learn("initialize", answer, exchange(headers=(("Mcp-Session-Id", "abc"),)))
    return session


def event(id: str | None, retry: int | None = None) -> ServerEvent:  # noqa: A002
    return ServerEvent(None, "message", id, retry)


def test_closed_connection_stays_closed() -> None:
    session = HttpSession(LEGACY, "host")
    session.is_left = True

    assert not session.may_listen
    assert not session.teaches(b"")
    session.expire("ended the session")
    assert session.closed == "gets no more messages: we closed the connection"


def test_no_get_may_follow_the_delete() -> None:
    session = opened()
    assert session.may_listen
    session.is_ending = True

    assert not session.may_listen
    assert not session.closed


def test_opened_session_is_named_in_every_later_request() -> None:
    session = HttpSession(LEGACY, "host")
    assert "Mcp-Session-Id" not in dict(session.post(OPENING, 2))

    session = opened()

    named = {"Mcp-Session-Id": "abc", "MCP-Protocol-Version": LEGACY}
    assert dict(session.named()) == named
    assert named.items() <= dict(session.post(PING, 2)).items()
    assert dict(session.get("e1")) == {
        "Accept": "text/event-stream",
        **named,
        "Last-Event-ID": "e1",
    }
    assert dict(session.post(PING, 7))["Content-Length"] == "7"
    assert "Mcp-Session-Id" not in dict(session.post(OPENING, 2))


def test_first_revision_names_no_version() -> None:
    assert dict(opened("2025-03-26").named()) == {"Mcp-Session-Id": "abc"}


def test_only_the_first_answer_opens_the_session() -> None:
    assert HttpSession(LEGACY, "host").teaches(b"")
    assert not opened().teaches(b"")
    assert not HttpSession(MODERN, "host").teaches(b"")
    assert HttpSession(MODERN, "host").teaches(b'"x-mcp-header"')


def test_secrets_are_sent_and_not_recorded() -> None:
    session = HttpSession(LEGACY, "host", {"Authorization": "Bearer 0123456789"})

    assert ("Authorization", "Bearer 0123456789") in session.complete(())
    assert session.shown(()) == (("Authorization", "(hidden)"),)
    assert session.hide(b"you sent 0123456789") == b"you sent (hidden)"


def not_found(session_id: str | None = "abc", **more: Any) -> Exchange:
    sent = () if session_id is None else (("Mcp-Session-Id", session_id),)
    return exchange(**{"sent": sent, "status": 404, **more})


@cases(
    (not_found(), None, True),
    (not_found(), {"error": {"code": -32001}}, True),
    (not_found(), {"error": {"code": -32601}}, False),
    (not_found(), {"result": {}}, False),
    (not_found(messages=1), None, False),
    (not_found(None), None, False),
    (not_found("other"), None, False),
    (not_found(verb="GET"), None, False),
    (not_found(crafted=True), None, False),
    (not_found(status=400), None, False),
    ids=[
        "no message",
        "an error",
        "an error about the method",
        "a result",
        "read before",
        "a request without the session",
        "another session",
        "a GET",
        "a crafted request",
        "400",
    ],
)
def test_404_ends_the_session_that_its_request_names(
    response: Exchange, answer: Any, ends: bool
) -> None:
    assert bool(opened().expires(response, answer)) is ends


def test_expired_session_gets_nothing_more() -> None:
    session = opened()
    session.expire(session.expires(not_found()))
    session.expire("another reason")

    assert session.closed == "ended the session: HTTP 404 to line 1"
    assert not session.may_listen
    assert not session.resumes(exchange(headers=STREAM, events=[event("e1")]), answered=False)


@cases(
    (exchange(headers=STREAM, events=[event("e1")]), False, True),
    (exchange(headers=STREAM, events=[event("e1")]), True, False),
    (exchange(headers=STREAM, events=[event("e1"), event(None)]), False, False),
    (exchange(headers=STREAM), False, False),
    (exchange(events=[event("e1")]), False, False),
    (exchange("GET", headers=STREAM, events=[event("e1")]), False, False),
    (exchange(headers=STREAM, events=[event("e1")], crafted=True), False, False),
    ids=["open", "answered", "no last id", "no event", "no stream", "a GET", "crafted"],
)
def test_stream_is_resumed_behind_its_last_id(
    response: Exchange, answered: bool, resumes: bool
) -> None:
    assert opened().resumes(response, answered=answered) is resumes
    assert not HttpSession(MODERN, "host").resumes(response, answered=answered)


def test_stream_is_continued_after_the_delay_that_the_server_asks_for() -> None:
    stream = exchange("GET", status=200, headers=STREAM, events=[event("e1", 200), event(None)])

    assert can_continue(stream)
    assert (last_id(stream, "e0"), delay(stream)) == ("e1", 0.2)
    assert (last_id(exchange(), "e0"), delay(exchange())) == ("e0", 1.0)
    assert delay(exchange(events=[event(None, 600_000)])) == 5.0
    assert not can_continue(exchange("GET", status=405))
    assert not can_continue(exchange("GET", status=200, headers=STREAM, left=True))


def test_cancellation_closes_the_response_in_stateless_connections_only() -> None:
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 2}}
    for session, line in ((HttpSession(MODERN, "host"), 5), (HttpSession(LEGACY, "host"), None)):
        assert session.asks([PING], 5)
        assert not session.asks(cancelled, 6)
        assert session.withdrawn(cancelled) == line
        assert session.withdrawn({**cancelled, "params": {"requestId": 9}}) is None
        assert session.withdrawn(PING) is None


def test_listening_begins_after_initialized_was_accepted() -> None:
    initialized = {"method": "notifications/initialized"}

    assert opened().opens_listening(initialized, exchange(status=202))
    assert not opened().opens_listening(initialized, exchange(status=400))
    assert not opened().opens_listening(PING, exchange(status=202))
    assert not HttpSession(MODERN, "host").opens_listening(initialized, exchange(status=202))
