"""The tap over HTTP passes what was sent, or nothing: how requests and responses are framed."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h11
import pytest
from hypothesis import HealthCheck, given, settings

from mcp_touchstone.tap import proxy, recording, tape
from mcp_touchstone.tap.proxy import Proxy
from tests.cases import cases
from tests.http_readers import AMBIGUOUS, HEAD, REQUESTS, Fields, Reading, theirs

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BARE = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n"
CLOSE = BARE + b"Connection: close\r\n\r\n"


class Upstream:
    """A server that reads a request with h11, keeps it, and answers with prepared bytes."""

    def __init__(self) -> None:
        self.answer = ANSWER
        self.seen: list[Reading | None] = []
        self.raw: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/mcp"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(30)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        reader, raw = h11.Connection(h11.SERVER), b""
        reader_ended: Any = None
        while not isinstance(reader_ended, h11.EndOfMessage):
            try:
                reader_ended = reader.next_event()
            except h11.RemoteProtocolError:
                break
            if reader_ended is h11.NEED_DATA:
                data = connection.recv(65536)
                raw += data
                reader.receive_data(data)
                if not data:
                    break
        if raw:
            self.raw.append(raw)
            self.seen.append(theirs(raw))
            connection.sendall(self.answer)


@contextmanager
def tapped(folder: Path) -> Iterator[tuple[Upstream, int]]:
    server = Upstream()
    recorder = recording.recorder(folder, {"url": server.url}, {})
    with server.listener, Proxy(proxy.upstream(server.url), recorder) as tap:
        tap.start()
        yield server, tap.server_address[1]


def sent(port: int, raw: bytes) -> bytes:
    """Send bytes and nothing else; return all that is answered."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return answer


def asked(port: int, raw: bytes) -> bytes:
    """Send a request that closes its connection; return all that is answered."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(raw)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return answer


def texts(folder: Path) -> list[str]:
    (found,) = recording.read_all(folder)
    return [row.text for row in found.rows]


def passed(found: Fields) -> Fields:
    """Return the headers that are not of one connection."""
    ours = {"connection", "transfer-encoding", "host", "expect"}
    return [one for one in found if one[0] not in ours]


@pytest.mark.parametrize("raw", AMBIGUOUS)
def test_an_ambiguous_request_is_refused_and_not_passed_on(raw: bytes, tmp_path: Path) -> None:
    with tapped(tmp_path) as (server, port):
        answer = sent(port, raw)

    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
    assert answer.count(b"HTTP/1.1 ") == 1, "the rest was read as a request"
    assert server.raw == []
    assert any(text.startswith(tape.REFUSED) for text in texts(tmp_path))


@cases(
    (b"Connection: close, Content-Length", "content-length", "2"),
    (b"Connection: close\r\nConnection: content-length , HOST", "content-length", "2"),
    (b"Authorization: Bearer x\r\nConnection: close, Authorization", "authorization", "Bearer x"),
    (b"Mcp-Session-Id: x\r\nConnection: close, Mcp-Session-Id", "mcp-session-id", "x"),
)
def test_a_word_in_connection_drops_no_header_of_the_message(
    tmp_path: Path, lines: bytes, name: str, value: str
) -> None:
    inner = b"DELETE /mcp HTTP/1.1\r\nHost: x\r\n\r\n"
    with tapped(tmp_path) as (server, port):
        asked(port, HEAD + lines + b"\r\nContent-Length: 2\r\n\r\n{}")
        asked(port, HEAD + lines + b"\r\nContent-Length: %d\r\n\r\n" % len(inner) + inner)

    for found, body in zip(server.seen, (b"{}", inner), strict=True):
        assert found is not None
        assert (found.body, found.rest) == (body, b"")
    assert server.seen[0] is not None
    assert (name, value) in server.seen[0].headers


def test_a_header_that_is_said_to_be_of_the_connection_is_dropped(tmp_path: Path) -> None:
    with tapped(tmp_path) as (server, port):
        asked(port, BARE + b"Connection: close, Foo\r\nFoo: 1\r\nBar: 2\r\n\r\n")

    assert server.seen[0] is not None
    assert ("bar", "2") in server.seen[0].headers
    assert "foo" not in dict(server.seen[0].headers)


@pytest.mark.parametrize("method", ["FOO", "PROPFIND", "M-SEARCH", "TRACE"])
def test_any_method_passes(method: str, tmp_path: Path) -> None:
    with tapped(tmp_path) as (server, port):
        asked(port, CLOSE.replace(b"GET", method.encode()))

    assert server.seen[0] is not None
    assert server.seen[0].first == (method, "/mcp")


@pytest.mark.parametrize("target", ["//mcp", "/mcp?a=%00&b", "/mcp;x", "/%2e%2e/mcp"])
def test_a_target_passes_as_it_is(target: str, tmp_path: Path) -> None:
    with tapped(tmp_path) as (server, port):
        asked(port, CLOSE.replace(b"/mcp", target.encode()))

    assert server.seen[0] is not None
    assert server.seen[0].first == ("GET", target)


def test_trailers_of_a_request_pass(tmp_path: Path) -> None:
    end = b"2;a=b\r\n{}\r\n0\r\nX-Sum: 1\r\nx-sum: \xe9\r\n\r\n"
    head = HEAD + b"Connection: close\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n"
    with tapped(tmp_path) as (server, port):
        asked(port, head + end)

    assert server.seen[0] is not None
    assert ("trailer", "X-Sum") in server.seen[0].headers
    assert server.seen[0].body == b"{}"
    assert server.seen[0].trailers == [("x-sum", "1"), ("x-sum", "\xe9")]


def test_trailers_of_a_response_pass(tmp_path: Path) -> None:
    with tapped(tmp_path) as (server, port):
        server.answer = (
            b"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n"
        )
        found = theirs(asked(port, CLOSE), request=False)

    assert found is not None
    assert (found.body, found.trailers) == (b"{}", [("x-sum", "1")])


@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints"])
@pytest.mark.parametrize("headers", [b"", b"Link: </x>; rel=preload\r\n"])
@pytest.mark.parametrize("times", [1, 3])
def test_interim_responses_pass_and_the_final_one_arrives(
    status: str, headers: bytes, times: int, tmp_path: Path
) -> None:
    interim = b"HTTP/1.1 %s\r\n%s\r\n" % (status.encode(), headers)
    with tapped(tmp_path) as (server, port):
        server.answer = interim * times + ANSWER
        assert asked(port, CLOSE) == interim * times + ANSWER
        old = asked(port, b"GET /mcp HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert old == ANSWER, "HTTP/1.0 has no interim responses"

    assert texts(tmp_path).count(status) == 2 * times


def test_a_client_that_waits_for_100_gets_it(tmp_path: Path) -> None:
    head = HEAD + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    with (
        tapped(tmp_path) as (server, port),
        socket.create_connection(("127.0.0.1", port), 30) as connection,
    ):
        connection.sendall(head)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")

    assert server.seen[0] is not None
    assert server.seen[0].body == b"{}"


@cases(
    (b"HTTP/1.1 204 No Content\r\n\r\n", "GET"),
    (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "GET"),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD"),
    (b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "GET"),
    (b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", "GET"),
)
def test_a_response_without_a_body_passes_as_it_is(
    tmp_path: Path, answer: bytes, method: str
) -> None:
    with tapped(tmp_path) as (server, port):
        server.answer = answer
        assert asked(port, CLOSE.replace(b"GET", method.encode())) == answer


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}abc",
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        OK + b"Content-Length: -2\r\n\r\n{}",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"X: a\rSet-Cookie: evil=1\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"Content-Length: 2\n\n{}",
        OK + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\rSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 42 X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nabc",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhello" + ANSWER,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 101 + ANSWER,
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"HTTP/1.1 200 O",
        b"hello\r\n\r\n",
        b"\0\0\x12\x04\0\0\0\0\0" + b"\0" * 20,
    ],
)
def test_an_ambiguous_response_is_a_502_that_says_why(
    answer: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tapped(tmp_path) as (server, port):
        server.answer = answer
        found = asked(port, CLOSE)

    statuses = [part for part in found.split(b"\r\n") if part.startswith(b"HTTP/1.1 ")]
    assert statuses[-1].startswith(b"HTTP/1.1 502 ")
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "malformed" in said or "without a response" in said
    assert texts(tmp_path)[-1].startswith(f"{tape.REFUSED}502")


@pytest.mark.parametrize(
    "body",
    [b"zz\r\nhello\r\n", b"ffffffffffffffff\r\nhello", b"5\r\nhello!\r\n0\r\n\r\n", b"5\r\nhello"],
)
def test_a_malformed_body_of_a_response_breaks_off_and_the_recording_says_so(
    body: bytes, tmp_path: Path
) -> None:
    with tapped(tmp_path) as (server, port):
        server.answer = OK + b"Transfer-Encoding: chunked\r\n\r\n" + body
        found = asked(port, CLOSE)

    assert not found.endswith(b"0\r\n\r\n")
    assert texts(tmp_path)[-1].startswith(proxy.BROKE_OFF)


def test_a_body_over_the_limit_passes_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tape, "LINE_LIMIT", 10_000)
    body = b"x" * 400_000
    with tapped(tmp_path) as (server, port):
        asked(port, HEAD + b"Connection: close\r\nContent-Length: 400000\r\n\r\n" + body)

    assert server.seen[0] is not None
    assert server.seen[0].body == body
    (found,) = recording.read_all(tmp_path)
    assert [row.line.length for row in found.rows if row.line.raw[:1] == b"x"] == [400_000]


@pytest.mark.slow
def test_what_the_server_sees_is_what_the_client_sent_or_nothing(tmp_path: Path) -> None:
    @given(REQUESTS)
    @settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def pass_on(raw: bytes) -> None:
        server.seen.clear()
        sent(port, raw)
        meant, rest = [], raw
        while (found := theirs(rest)) is not None:
            meant.append((found.first, passed(found.headers), found.body, found.trailers))
            rest = found.rest.removeprefix(b"\r\n")
        for seen, one in zip(server.seen, meant, strict=False):
            assert seen is not None
            assert (seen.first, passed(seen.headers), seen.body, seen.trailers) == one
            assert seen.rest == b""
        assert len(server.seen) <= len(meant)

    with tapped(tmp_path) as (server, port):
        pass_on()
