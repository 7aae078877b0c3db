"""The HTTP channel: sessions, streams, hostile servers, and servers that cannot be judged."""

import gzip
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.discovery.recon import explore
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.transport.http_channel import MOST_RESUMED, HttpChannel
from mcp_touchstone.transport.http_endpoint import FIRST_PORT, Endpoint, EndpointError, free_port
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.transport.process import now, sleep
from mcp_touchstone.wire.framing import encode
from mcp_touchstone.wire.lifecycle import Phase, Role
from mcp_touchstone.wire.transcript import Source
from tests.cases import cases
from tests.commands import ran
from tests.conftest import eventually
from tests.http_canned import (
    Answer,
    Canned,
    endless,
    fixed,
    mcp,
    message_of,
    response,
    serving,
    silent,
    trickle,
)

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
EVENTS = "text/event-stream"


@contextmanager
def connected(
    url: str, revision: str = LEGACY, patience: float = 1.0, **more: Any
) -> Iterator[Connection]:
    born = now()
    transcript = LiveTranscript(revision, clock=lambda: now() - born)
    channel = HttpChannel(Endpoint(url), transcript, born=born, **more)
    connection = Connection(channel, transcript, Pace(patience))
    try:
        yield connection
    finally:
        connection.end()
        channel.join(1.0)


@contextmanager
def talking(
    answer: Answer, revision: str = LEGACY, **more: Any
) -> Iterator[tuple[Connection, Canned]]:
    with serving(answer) as server, connected(server.url, revision, **more) as connection:
        yield connection, server


def headers(request: bytes) -> dict[str, str]:
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


def open_listening(wire: Connection, server: Canned) -> None:
    """Open a session, and wait until its GET, which a thread sends, has arrived."""
    assert wire.open().result is not None
    eventually(lambda: any(one.startswith(b"GET") for one in server.requests), 300)


def stream(*events: bytes) -> bytes:
    return response("200 OK", EVENTS, b"".join(events))


def answer_to(request: bytes, result: Any = None) -> bytes:
    return encode({"jsonrpc": "2.0", "id": message_of(request).get("id"), "result": result or {}})


def test_session_id_and_version_are_repeated_and_the_session_is_deleted() -> None:
    with talking(mcp(session="abc")) as (wire, server):
        open_listening(wire, server)
        assert wire.ping().answered
        wire.end()
        sent = [(one.split(b" ")[0], headers(one)) for one in server.requests]

    opening, *later = sent
    assert "mcp-session-id" not in opening[1]
    assert {verb for verb, _ in later} == {b"POST", b"GET", b"DELETE"}
    assert all(found["mcp-session-id"] == "abc" for _, found in later)
    assert all(found["mcp-protocol-version"] == LEGACY for _, found in later)
    assert opening[1]["accept"] == "application/json, text/event-stream"


def test_stateless_request_repeats_parts_of_its_body() -> None:
    with talking(mcp(), MODERN) as (wire, server):
        wire.request("tools/call", {"name": "größe", "arguments": {}})

    found = headers(server.requests[0])
    assert found["mcp-protocol-version"] == MODERN
    assert found["mcp-method"] == "tools/call"
    assert found["mcp-name"] == "=?base64?Z3LDtsOfZQ==?="


def test_annotated_arguments_are_sent_as_headers() -> None:
    kind = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": kind}}

    def answer(connection: socket.socket, request: bytes) -> None:
        listed = {"tools": [{"name": "query", "inputSchema": schema}]}
        connection.sendall(response(body=answer_to(request, listed)))

    with talking(answer, MODERN) as (wire, server):
        wire.request("tools/list")
        wire.request("tools/call", {"name": "query", "arguments": {"region": "eu"}})

    assert headers(server.requests[1])["mcp-param-region"] == "eu"


def test_messages_of_a_stream_know_their_origin() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        note = encode({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        events = b"id: 1\ndata:\n\n", b"id: 2\ndata: " + note + b"\n"
        connection.sendall(stream(*events, b"data: " + answer_to(request) + b"\n"))

    with talking(answer) as (wire, _):
        reply = wire.ping()
        heard = [one for one in wire.transcript if one.source is Source.THEM]

    assert reply.answered
    assert [m.role for one in heard for m in one.messages] == [Role.NOTIFICATION, Role.ANSWER]
    origin = heard[0].origin
    assert origin is not None
    assert origin.event is not None
    assert (origin.event.id, origin.exchange.status, origin.exchange.line) == ("2", 200, 1)
    assert origin.exchange.header("content-type") == EVENTS


def test_pretty_printed_body_is_one_message() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        text = json.dumps(json.loads(answer_to(request)), indent=2).encode()
        connection.sendall(response(body=text))

    with talking(answer) as (wire, _):
        assert wire.ping().answered


def test_interrupted_stream_is_resumed_with_the_last_event_id() -> None:
    asked: list[bytes] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        if request.startswith(b"POST"):
            asked.append(request)
            connection.sendall(stream(b"id: e1\nretry: 10\ndata:\n\n"))
        else:
            connection.sendall(stream(b"data: " + answer_to(asked[0]) + b"\n"))

    with talking(answer) as (wire, server):
        assert wire.ping().answered

    assert headers(server.requests[1])["last-event-id"] == "e1"


def test_stream_that_always_breaks_off_is_resumed_by_one_thread() -> None:
    with talking(lambda c, _r: c.sendall(stream(b"id: 1\nretry: 1\ndata:\n\n"))) as (wire, server):
        line = wire.say(wire.build("ping"))
        wire.wait(lambda: len(server.requests) > MOST_RESUMED, 10.0)
        wire.quiet(0.5)
        verbs = [one.split(b" ")[0] for one in server.requests]

    assert verbs == [b"POST"] + [b"GET"] * MOST_RESUMED
    assert wire.channel.silence(line)


def test_no_get_follows_the_delete_of_a_session() -> None:
    ordinary = mcp(session="abc")

    def answer(connection: socket.socket, request: bytes) -> None:
        if request.startswith(b"GET"):
            connection.sendall(stream(b"id: 1\nretry: 50\ndata:\n\n"))
        elif request.startswith(b"DELETE"):
            sleep(0.5)  # ten times as long as the client waits before it resumes its stream
            connection.sendall(response())
        else:
            ordinary(connection, request)

    with talking(answer) as (wire, server):
        open_listening(wire, server)
        wire.end()
        verbs = [exchange.verb for exchange in wire.transcript.exchanges]

    assert "GET" in verbs
    assert verbs[-1] == "DELETE"


def test_http_error_without_the_id_answers_its_request() -> None:
    refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}'
    with talking(fixed(response("400 Bad Request", body=refusal))) as (wire, _):
        reply = wire.ping()
        [entry] = [one for one in wire.transcript if one.source is Source.THEM]

    assert reply.code == -32000
    assert entry.messages[0].role is Role.REFUSAL


def expiring(body: bytes = b"", after: int = 1) -> Answer:
    """Serve a session; answer every request after some pings by 404."""
    alive = mcp(session="abc")
    pings = 0

    def write(connection: socket.socket, request: bytes) -> None:
        nonlocal pings
        pings += message_of(request).get("method") == "ping"
        if pings > after:
            connection.sendall(response("404 Not Found", body=body))
        else:
            alive(connection, request)

    return write


NO_SESSION = b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}'


@pytest.mark.parametrize("body", [b"", NO_SESSION], ids=["no body", "an error"])
def test_nothing_is_sent_after_the_server_ended_the_session(body: bytes) -> None:
    with talking(expiring(body)) as (wire, server):
        open_listening(wire, server)
        assert wire.ping().result == {}
        refused = wire.ping()
        sent = len(server.requests)
        later, other = wire.ping(), wire.request("tools/list")
        wire.notify("notifications/cancelled", {"requestId": 1})
        wire.end()
        asked = wire.transcript.session.asked

        assert wire.gone
        assert len(server.requests) == sent

    why = f"the server ended the session: HTTP 404 to line {refused.asked}"
    assert (str(later), str(other)) == (why, why)
    assert [e.text for e in wire.transcript if e.source is Source.EVENT].count(why) == 2
    assert [one.phase is Phase.CLOSING for one in asked][-3:] == [False, True, True]
    assert [one.expired for one in asked][-3:] == [True, False, False]
    assert refused.asked not in [one.line for one in wire.transcript.session.unanswered()]


def test_cancellation_of_a_stateless_request_closes_its_stream() -> None:
    with talking(silent, MODERN) as (wire, server):
        line = wire.say(wire.build("tools/call", {"name": "slow"}, id=7))
        eventually(lambda: server.requests)
        wire.notify("notifications/cancelled", {"requestId": 7})
        reply = wire.answer_to(line)

    assert not reply.answered
    assert len(server.requests) == 1
    assert wire.transcript.exchanges[0].left


def test_secret_that_the_server_repeats_is_hidden() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        said = {"you": headers(request)["authorization"].removeprefix("Bearer ")}
        connection.sendall(response(body=answer_to(request, said)))

    with talking(answer, secrets={"Authorization": "Bearer abcdefgh-1234"}) as (wire, _):
        assert wire.ping().result == {"you": "(hidden)"}


def test_http_error_to_a_malformed_notification_is_no_answer() -> None:
    refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"params"}}'
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}
    with talking(fixed(response("400 Bad Request", body=refusal))) as (wire, _):
        wire.say(note, malformed=True)
        wire.say([note], malformed=True)
        wire.say({"jsonrpc": "2.0", "id": 5, "method": 5}, malformed=True)
        heard = [one for one in wire.transcript if one.source is Source.THEM]

    roles = [message.role for one in heard for message in one.messages]
    assert roles == [Role.REFUSAL, Role.REFUSAL, Role.UNADDRESSED]


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
LONG = b"x" * 65_536
BOMB = gzip.compress(bytes(1 << 20))
HOSTILE: dict[str, tuple[Answer, str]] = {
    "never answers": (silent, "no answer within"),
    "closes at once": (fixed(b""), "closed the connection"),
    "endless headers": (
        endless(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 1000 + b"\r\n"),
        "HTTP",
    ),
    "endless body": (endless(CHUNKED, b"10000\r\n" + LONG + b"\r\n"), "stopped listening"),
    "slow by bytes": (trickle(response(body=b"{}"), 0.3), "no answer within"),
    "compressed": (
        fixed(response("200 OK", "application/json", b"\x1f\x8b", "Content-Encoding: gzip")),
        "encoded as gzip",
    ),
    "wrong chunks": (fixed(CHUNKED + b"zz\r\n{}\r\n"), "broken HTTP"),
    "short body": (
        fixed(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"),
        "broken HTTP",
    ),
    "interim responses": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "interim"),
    "endless event": (endless(ENDLESS_STREAM, b"data: " + LONG + b"\n"), "stopped listening"),
    "gzip bomb": (
        endless(ENDLESS_STREAM.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"), BOMB),
        "encoded as gzip",
    ),
    "slow headers": (trickle(b"HTTP/1.1 200 OK\r\nX-A: b\r\n" * 20, 0.2), "no answer within"),
    "endless comments": (endless(ENDLESS_STREAM, b": still here\n" * 1000), "no answer within"),
    "endless events": (
        endless(ENDLESS_STREAM, b"id: 1\n\n" * 1000),
        "more than 5,000 events",
    ),
    "status of no meaning": (fixed(b"HTTP/1.1 99999 What\r\n\r\n"), "broken HTTP"),
    "no HTTP": (fixed(b"SSH-2.0-OpenSSH_9.6\r\n"), "broken HTTP"),
    "redirect loop": (fixed(response("307 Temporary Redirect", "text/plain")), "HTTP 307"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_server_is_left_within_the_deadline(name: str) -> None:
    answer, why = HOSTILE[name]
    with talking(answer) as (wire, _):
        seconds = 1.0 if why == "no answer within" else 60.0
        reply = wire.answer_to(wire.say(wire.build("ping")), seconds)

    assert why in reply.why
    assert reply.timed_out == (why == "no answer within")


def trouble(url: str, patience: float = 1.0, **more: Any) -> str:
    opened = []

    def spawn(revision: str, label: str, *, judged: bool = True) -> Connection:
        context = connected(url, revision, patience, **more)
        opened.append(context)
        return context.__enter__()

    try:
        profile, *_ = explore(spawn, Pace(patience), (LEGACY,))
        return profile.trouble
    finally:
        for context in opened:
            context.__exit__(None, None, None)


def old_transport(connection: socket.socket, request: bytes) -> None:
    if request.startswith(b"GET"):
        connection.sendall(stream(b"event: endpoint\ndata: /messages\n\n"))
    else:
        connection.sendall(response("405 Method Not Allowed", "text/plain"))


HTML = b"<html><head><title>Welcome</title></head></html>"
TROUBLES: dict[str, tuple[Answer, str]] = {
    "wrong path": (fixed(response("404 Not Found", "text/plain", b"no")), "is the path right?"),
    "redirect": (
        fixed(response("308 Permanent Redirect", "text/plain", b"", "Location: /mcp/")),
        "a redirect to /mcp/; name that URL",
    ),
    "web page": (fixed(response("200 OK", "text/html", HTML)), "a web page (Welcome)"),
    "proxy": (
        fixed(response("502 Bad Gateway", "text/html", HTML, "Server: nginx")),
        "the answer of a proxy (nginx)",
    ),
    "no token": (
        fixed(response("401 Unauthorized", "text/plain", b"", "WWW-Authenticate: Bearer")),
        "--header 'Authorization=env:NAME'",
    ),
    "old transport": (old_transport, "it speaks HTTP+SSE of 2024-11-05"),
    "frames of HTTP/2": (fixed(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00" + bytes(6)), "HTTP/2 only"),
    "HTTP/2 by status": (fixed(response("505 HTTP Version Not Supported")), "HTTP/1.1"),
    "TLS on the port": (fixed(b"\x15\x03\x01\x00\x02\x02\x46"), "write https://"),
    "compressed": (HOSTILE["gzip bomb"][0], "its body is encoded as gzip, which we did not accept"),
    "endless event": (HOSTILE["endless event"][0], "an event of more than 32 MiB"),
    "endless body": (HOSTILE["endless body"][0], "a body of more than 32 MiB"),
    "hanging": (silent, "took the request and sent nothing back"),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_server_that_cannot_be_judged_gets_one_line_with_the_remedy(name: str) -> None:
    answer, line = TROUBLES[name]
    patience = 60.0 if name.startswith("endless") else 1.0  # 32 MiB take time on a busy machine
    with serving(answer) as server:
        said = trouble(server.url, patience)

    assert line in said
    assert said.startswith(server.url)
    assert "\n" not in said


def test_silent_handshake_of_tls_ends_within_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = Endpoint(f"https://127.0.0.1:{listener.getsockname()[1]}/mcp")
        with pytest.raises(TimeoutError):
            endpoint.connect(0.3)


def test_secret_in_a_header_of_the_response_is_hidden() -> None:
    echo = response("200 OK", "text/plain", b"", "X-Echo: Bearer a-long-secret")
    with talking(fixed(echo), secrets={"Authorization": "Bearer a-long-secret"}) as (wire, _):
        wire.answer_to(wire.say(wire.build("ping")), 5.0)
        [exchange] = wire.transcript.exchanges

    assert exchange.header("X-Echo") == "(hidden)"


def test_refused_connection_is_named() -> None:
    said = trouble(f"http://127.0.0.1:{free_port()}/mcp")

    assert "connection was" in said


def test_refused_token_is_named() -> None:
    with serving(fixed(response("401 Unauthorized", "text/plain"))) as server:
        said = trouble(server.url, secrets={"Authorization": "Bearer wrong"})

    assert "the token" in said
    assert "wrong" not in said


def test_http_on_a_port_for_https_is_named() -> None:
    with serving(mcp()) as server:
        said = trouble(server.url.replace("http:", "https:"))

    assert "write http://" in said


@cases("ftp://a/", "http://", "http://a b/", "http://a:99999/", "http://user:pw@a/", "http://a/#b")
def test_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(EndpointError):
        Endpoint(url)


@cases(
    ("http://127.0.0.1:{port}/mcp", "127.0.0.1:10240", "/mcp", True),
    ("https://example.org", "example.org", "/", False),
    ("http://[::1]:8080/a?b=c", "[::1]:8080", "/a?b=c", True),
    ("http://127.0.0.1.example.org/", "127.0.0.1.example.org", "/", False),
)
def test_url_is_taken_apart(url: str, authority: str, path: str, local: bool) -> None:
    endpoint = Endpoint(url)

    assert (endpoint.authority, endpoint.path, endpoint.local) == (authority, path, local)


def test_other_runs_choose_other_ports() -> None:
    code = (
        "import itertools; from mcp_touchstone.transport import http_endpoint;"
        "http_endpoint._ports = itertools.count({}); print(http_endpoint.free_port())"
    )
    ours = free_port() - FIRST_PORT

    done = ran([sys.executable, "-X", "dev", "-c", code.format(ours)])

    assert int(done.stdout) > FIRST_PORT + ours
    assert not done.stderr


RESULT = b'{"jsonrpc":"2.0","id":%s,"result":{}}'


@pytest.mark.parametrize(
    ("kind", "form", "cause"),
    [
        (EVENTS, b"data: %s\n", "an event without the empty line that ends it"),
        (EVENTS, b"event: result\ndata: %s\n\n", 'an event named "result" is no message'),
        (EVENTS, b"%s", "JSON without `data:`, which is application/json"),
        (EVENTS, b"%s\n\n", "JSON without `data:`, which is application/json"),
        ("application/json", b"data: %s\n\n", "events, which are text/event-stream"),
        ("application/json", b'{"of": %s', "a body that is no JSON"),
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_response_that_holds_no_message_has_its_cause(
    kind: str, form: bytes, cause: str, is_open: bool
) -> None:
    def write(connection: socket.socket, request: bytes) -> None:
        body = form % (RESULT % str(message_of(request)["id"]).encode())
        length = "" if is_open else f"Content-Length: {len(body)}\r\n"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{length}\r\n"
        connection.sendall(head.encode() + body)
        if is_open and kind == EVENTS:
            connection.recv(1)

    with talking(write) as (wire, _server):
        reply = wire.ping()

    assert not reply.answered
    assert cause in reply.why


def test_a_stream_that_ends_without_a_message_is_called_that() -> None:
    def write(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: no\n\n")

    with talking(write) as (wire, _server):
        reply = wire.ping()

    assert reply.why == "its stream ended without an answer (HTTP 200, text/event-stream)"
