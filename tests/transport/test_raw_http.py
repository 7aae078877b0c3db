"""HTTP requests that a scenario writes: exact headers and bodies, responses as they came."""

import socket
from typing import Any

import pytest

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.pending import came_instead, first_response
from mcp_touchstone.connection.raw_http import RawHttp, changed
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.transport.http_endpoint import free_port
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.wire.framing import encode
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.transcript import Source
from tests.http_canned import mcp, response, silent
from tests.transport.test_http_channel import EVENTS, answer_to, connected, headers, stream, talking

HEADERS = (("Host", "a"), ("Accept", "x"), ("Connection", "close"))


def events(wire: Connection) -> list[str]:
    return [entry.text for entry in wire.transcript if entry.source is Source.EVENT]


def test_headers_are_changed_at_their_place() -> None:
    assert changed(HEADERS, {"host": ("b", "c"), "accept": None, "Origin": "d"}) == (
        ("host", "b"),
        ("host", "c"),
        ("Connection", "close"),
        ("Origin", "d"),
    )


def test_message_is_posted_with_other_headers_and_answered() -> None:
    with talking(mcp(session="abc")) as (wire, server):
        wire.open()
        answer = RawHttp(wire).post(wire.build("ping"), {"Host": ("a", "b"), "Accept": None})
        sent = next(one for one in server.requests if b'"ping"' in one)

    assert sent.count(b"Host: ") == 2
    assert b"Accept" not in sent
    assert headers(sent)["mcp-session-id"] == "abc"
    assert answer.status == 200
    assert answer.reply.result == {}
    assert "with Host: a; Host: b; no Accept" in " ".join(events(wire))
    assert [m.role for entry in answer.entries for m in entry.messages] == [Role.ANSWER]


def test_refusal_without_a_message_has_a_status_and_a_line() -> None:
    with talking(lambda c, _r: c.sendall(response("405 Method Not Allowed"))) as (wire, _):
        answer = RawHttp(wire).get()

    assert (answer.status, answer.messages, answer.refused) == (405, [], True)
    assert events(wire)[:2] == [
        "we sent GET /mcp",
        "to that GET: HTTP 405, application/json (its body is empty)",
    ]


def test_error_without_an_id_in_the_refusal_of_a_get_answers_no_message() -> None:
    body = b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"no such session"}}'
    with talking(lambda c, _r: c.sendall(response("404 Not Found", body=body))) as (wire, _):
        answer = RawHttp(wire).get()

    assert [m.role for entry in answer.entries for m in entry.messages] == [Role.REFUSAL]
    assert answer.error_code == -32000


def test_half_a_body_is_sent_and_more_of_it_later() -> None:
    with talking(mcp()) as (wire, server):
        message = wire.build("ping")
        body = b'{"jsonrpc":"2.0","id":101,"method":"ping"}'
        change = {"Content-Length": str(len(body))}
        answer = RawHttp(wire).post(message, change, body=body[:10], wait=False)
        assert answer.status == 0
        assert answer.write(body[10:])
        assert answer.wait_closed()

    assert server.requests[0].endswith(body)
    assert answer.reply.answered


def test_stream_that_breaks_off_is_not_resumed() -> None:
    def answer(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(stream(b"id: 1\nretry: 1\ndata:\n\n"))

    with talking(answer) as (wire, server):
        got = RawHttp(wire).post(wire.build("ping"))
        assert got.wait_closed()

    assert [one.id for one in got.exchange.events] == ["1"]
    assert len(server.requests) == 1


def test_stream_is_read_while_it_is_open() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {EVENTS}\r\n\r\n".encode()
        connection.sendall(head + b"data: " + answer_to(request) + b"\n")
        connection.recv(1)

    with talking(answer) as (wire, _):
        got = RawHttp(wire).post(wire.build("ping"))
        assert got.reply.answered
        assert not got.closed
        got.close()
        assert got.wait_closed()

    assert got.exchange.left


def test_server_that_is_not_reached_has_a_fault() -> None:
    with connected(f"http://127.0.0.1:{free_port()}/mcp") as wire:
        answer = RawHttp(wire).get()

    assert answer.status == 0
    assert str(answer) == "the connection was refused"


def test_secret_is_sent_and_not_recorded() -> None:
    with talking(mcp(), secrets={"Authorization": "Bearer s3cret-token"}) as (wire, server):
        RawHttp(wire).post(wire.build("ping"))
        RawHttp(wire).get(path="/mcp?access_token=s3cret-token")
        RawHttp(wire).get({"Authorization": None})
        shown = repr([one.sent for one in wire.transcript.exchanges]) + repr(events(wire))

    assert headers(server.requests[0])["authorization"] == "Bearer s3cret-token"
    assert server.requests[1].startswith(b"GET /mcp?access_token=s3cret-token ")
    assert "authorization" not in headers(server.requests[2])
    assert "s3cret" not in shown


def test_refusal_without_a_message_is_not_called_silence() -> None:
    with talking(lambda c, _r: c.sendall(response("400 Bad Request"))) as (wire, _):
        line = wire.say([], malformed=True)
        said = came_instead(wire, line)

    assert said == "HTTP 400, application/json (its body is empty)"
    assert came_instead(wire, len(wire.transcript) + 1) == "silence"


def test_response_that_ended_without_an_answer_ends_the_wait_for_it() -> None:
    cut = response(body=b'{"jsonrpc":"2.0","id":101,"resu')
    with talking(lambda c, _r: c.sendall(cut), patience=600.0) as (wire, _):
        message = wire.build("ping")
        line = wire.say_raw(encode(message), message, malformed=True)
        reply, came = first_response(wire, line)

    assert (reply.answered, came) == (False, [])
    assert came_instead(wire, line) == "HTTP 200, application/json (a body that is no JSON)"


def test_delete_is_awaited_for_long_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    with talking(silent) as (wire, _):
        pace = wire.pace
        monkeypatch.setattr(wire, "wait", lambda _, seconds: waits.append(seconds))
        for _ in range(3):
            assert RawHttp(wire).delete().status == 0

    assert waits == [pace.reply, pace.silence, pace.silence]


def test_types_that_differ_are_all_known() -> None:
    more = ("Content-Type: text/plain", "content-type: application/json; charset=utf-8")
    answer = response("200 OK", "application/json", b"{}", *more)
    with talking(lambda c, _r: c.sendall(answer)) as (wire, _):
        got = RawHttp(wire).post(wire.build("ping"))

    assert got.exchange.kinds == ["application/json", "text/plain"]
    assert got.exchange.kind == "application/json"


def test_there_is_no_http_on_stdio() -> None:
    channel: Any = object()
    connection = Connection(channel, LiveTranscript("2025-11-25", clock=lambda: 0.0), Pace(1.0))

    with pytest.raises(LookupError, match="stdio"):
        RawHttp(connection)
