"""``mcp-touchstone serve --http``: the reference server over HTTP, its guards and its limits."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.bridge import exchanges, sessions
from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.bridge.reference import WrongWordError, read
from mcp_touchstone.issuer.mint import FLAWS, USERS
from mcp_touchstone.issuer.server import shared
from mcp_touchstone.wire.framing import encode
from tests.bridge_client import SCRIBE, WAIT, Http, opening, refused, request, session
from tests.cases import cases
from tests.commands import ran, touchstone
from tests.conftest import eventually

pytestmark = pytest.mark.slow

TOKEN = "a-token-made-at-random"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def serve(*words: str, **env: str) -> Iterator[Http]:
    command = [sys.executable, "-m", "mcp_touchstone", "serve", "--http", "127.0.0.1:0", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", url)
        yield Http(int(url.rpartition(":")[2].partition("/")[0]))
    finally:
        process.terminate()
        assert process.wait(WAIT) == 0
        process.stdout.close()


@contextmanager
def listening() -> Iterator[Listener]:
    with Listener(Launch(command=SCRIBE), most=4, startup=WAIT) as served:
        served.start()
        yield served


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as served:
        yield served


def raw(port: int, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send pieces of a request and return all that is answered until the end."""
    with socket.create_connection(("127.0.0.1", port), WAIT) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except OSError:
                break
            time.sleep(pause)
        answer = b""
        try:
            while data := connection.recv(65536):
                answer += data
        except ConnectionResetError:
            pass
    return answer


def head(*lines: str) -> bytes:
    fixed = ("POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*fixed, *lines)).encode() + b"\r\n\r\n"


def test_both_eras_are_served_with_the_options_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")

    with serve("--root", str(tmp_path), "--read-only") as http:
        legacy = session(http).ask("tools/list")["result"]["tools"]
        with http.modern("tools/list") as reply:
            modern = reply.messages()[0]["result"]["tools"]

    names = {tool["name"] for tool in legacy}
    assert "file_read" in names
    assert "file_apply_patch_only" not in names
    assert names == {tool["name"] for tool in modern}


def test_request_needs_the_token_of_the_variable(tmp_path: Path) -> None:
    with serve("--root", str(tmp_path), "--http-token", "MY_TOKEN", MY_TOKEN=TOKEN) as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
            with http.post(opening(), **headers) as reply:
                assert reply.status == 401
                assert (reply.header("WWW-Authenticate") or "").startswith("Bearer ")
        with http.post(opening(), **BEARER) as reply:
            assert reply.status == 200
        with http.send("GET") as reply:
            assert reply.status == 401


@cases(
    (["--http"], "needs a value"),
    (["--http", "8080"], "write HOST:PORT"),
    (["--http", "127.0.0.1:65536"], "write HOST:PORT"),
    (["--http", "0.0.0.0:0"], "only loopback"),
    (["--http", "0.0.0.0:0", "--http-name", "me.example"], "needs --http-token"),
    (["--http", "127.0.0.1:0", "--http-name", "http://me"], "a host name without"),
    (["--http", "127.0.0.1:0", "--http-token", "NONE"], "is not set"),
    (["--http", "127.0.0.1:0", "--http-token", "SHORT"], "16 or more"),
    (["--http-token", "GOOD"], "write --http"),
    (["--http", "127.0.0.1:0", "--issuer", "http://127.0.0.1:9"], "and --audience URL"),
    (["--http", "127.0.0.1:0", "--scope", "read"], "both --issuer URL"),
)
def test_wrong_http_options_are_refused(words: list[str], why: str) -> None:
    with pytest.raises(WrongWordError, match=why) as error:
        read(words, {"SHORT": "secret", "GOOD": TOKEN})

    assert "secret" not in str(error.value)


@cases(
    (["--root", "no-such-folder"], "no such directory"),
    (["--http-tokens", "X"], "unknown argument"),
)
def test_wrong_options_end_the_program_with_status_2(words: list[str], why: str) -> None:
    command = [sys.executable, "-m", "mcp_touchstone", "serve", "--http", "127.0.0.1:0", *words]
    done = ran(command)

    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_and_the_address_are_read() -> None:
    words = ["--root", "a", "--http=0.0.0.0:80", "--http-name", "Me.Example", "--http-token=GOOD"]
    options = read(words, {"GOOD": TOKEN, "PATH": "p"})

    assert (options.host, options.port, options.token) == ("0.0.0.0", 80, TOKEN)  # noqa: S104
    assert options.names == {"me.example"}
    assert options.rest == ("--root", "a")
    assert options.env == {"PATH": "p"}
    assert read(["--http", "[::1]:0"], {}).host == "::1"
    assert read(["--http", "localhost:0"], {}).host == "127.0.0.1"


def test_further_host_names_are_accepted_only_if_named() -> None:
    launch = Launch(command=("there-is-no-such-program",))
    with Listener(launch, most=1, startup=1.0, names={"me.example"}, token=TOKEN) as served:
        served.start()
        http = Http(served.server_address[1], BEARER)
        for name, status in (("me.example", 406), ("ME.example:80", 406), ("you.example", 403)):
            with http.send("GET", Host=name, Accept="text/html") as reply:
                assert reply.status == status
            with http.send("GET", Origin=f"https://{name}", Accept="text/html") as reply:
                assert reply.status == status


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: 2", "content-length: 2"),
        ("Content-Length : 2",),
        ("A: b\rContent-Length: 2",),
        ("A: b", " Content-Length: 2"),
        ("Content-Length: 0x2",),
        ("Content-Length: +2",),
        ("Content-Length: 2, 2",),
        ("Content-Length: 2", "Host: other"),
        ("Transfer-Encoding: chunked", "Content-Length: 2"),
        ("Content-Length: 2", "Transfer-Encoding : chunked"),
    ],
)
def test_ambiguous_end_of_a_body_is_refused(listener: Listener, lines: tuple[str, ...]) -> None:
    inner = b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"

    answer = raw(listener.server_address[1], head(*lines) + b"{}" + inner)

    assert re.match(rb"HTTP/1\.1 (400|411) ", answer)
    assert answer.count(b"HTTP/1.1 ") == 1, "the rest was read as a request"


def test_long_headers_are_refused(listener: Listener) -> None:
    lines = [f"X-{n}: {'a' * 4000}" for n in range(40)]

    answer = raw(listener.server_address[1], head(*lines))

    assert answer.startswith(b"HTTP/1.1 431 ")


def test_slow_request_is_given_up(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_touchstone.http_server.responses.READING", 0.5)
    slow = [b"POST /mcp HTTP/1.1\r\n", *(b"X-%d: y\r\n" % n for n in range(400))]
    begin = time.monotonic()

    assert raw(listener.server_address[1], *slow, pause=0.02) == b""
    assert time.monotonic() - begin < WAIT


SLOW = {
    "nothing": b"",
    "headers": b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
    "body": head("Content-Length: 100") + b"{",
    "refused body": b"PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
}


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """A server for three connections."""
    monkeypatch.setattr("mcp_touchstone.http_server.server.CONNECTIONS", 3)
    with listening() as served:
        yield served


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_slow_connections_lock_nobody_out(crowded: Listener, sent: bytes) -> None:
    port = crowded.server_address[1]
    with contextlib.ExitStack() as stack:
        slow = []
        for _ in range(3):
            slow.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), WAIT)))
            slow[-1].sendall(sent)
            eventually(lambda: slow_ones(crowded) == len(slow))

        with Http(port).post(opening()) as reply:
            assert reply.status == 200
        eventually(lambda: not is_open(slow[0]))
        assert is_open(slow[1])


def test_idle_connections_lock_nobody_out(crowded: Listener) -> None:
    http = Http(crowded.server_address[1])
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            reply = stack.enter_context(http.post(opening()))
            assert reply.json()["result"]
            assert reply.connection.sock is not None, "it is not kept alive"


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return True
    return False


def slow_ones(listener: Listener) -> int:
    return len(listener.waiting._since)


def test_connection_that_is_served_is_not_closed_for_a_new_one(crowded: Listener) -> None:
    port = crowded.server_address[1]
    with session(Http(port)).request("sleep", {"seconds": 3}) as served:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), WAIT) as slow:
                slow.sendall(b"POST")
                Http(port).send("DELETE").close()
        assert served.messages()[-1]["result"]


def test_new_connection_is_closed_if_all_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_touchstone.http_server.server.CONNECTIONS", 1)
    with listening() as served:
        one = session(Http(served.server_address[1]))
        with one.send("GET"):
            assert raw(one.port, head("Content-Length: 0")) == b""


def test_client_that_does_not_read_its_answer_is_closed_for_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcp_touchstone.http_server.server.CONNECTIONS", 1)
    monkeypatch.setattr("mcp_touchstone.http_server.responses.SLOW", 0.0)
    with listening() as crowded:
        one = session(Http(crowded.server_address[1]))
        [served] = crowded.sessions._all.values()
        body = encode(request("x", {"text": "x" * 8_000_000}))
        lines = (*(f"{name}: {value}" for name, value in one.headers.items()), "Accept: */*")
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", one.port))
            slow.sendall(head(*lines, f"Content-Length: {len(body)}") + body)
            eventually(lambda: len(served._finished) == 2 and served._exchanges.idle)
            eventually(lambda: slow_ones(crowded))

            assert "result" in one.ask("y")


def test_body_that_ends_early_is_not_used(listener: Listener) -> None:
    body = encode(opening())
    with socket.create_connection(("127.0.0.1", listener.server_address[1]), WAIT) as connection:
        connection.sendall(head(f"Content-Length: {len(body) + 5}") + body)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")


def test_open_requests_of_a_session_are_limited(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges, "OPEN", 2)
    one = session(Http(listener.server_address[1]))
    threads = [
        threading.Thread(target=lambda n=n: one.post(request("silence", id=f"s{n}")).close())
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    [served] = listener.sessions._all.values()
    eventually(lambda: len(served._exchanges.all()) == 2)

    refused(one.request("x"), 503, "2 requests are open")
    for thread in threads:
        thread.join(WAIT)


def test_old_streams_are_not_kept_without_a_limit(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "REPLAYED", 100)
    one = session(Http(listener.server_address[1]))
    for n in range(5):
        one.ask("x", {"n": n})
    [served] = listener.sessions._all.values()

    assert len(served._finished) <= 2


def test_idle_session_ends(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    one = session(Http(listener.server_address[1]))
    monkeypatch.setattr(sessions, "IDLE", 0.0)
    eventually(lambda: not listener.sessions._all)

    refused(one.request("x"), 404)


def test_batch_with_one_wrong_member_is_the_servers_to_judge() -> None:
    with serve() as http:
        one = session(http, "2025-03-26")
        batch = [request("ping", id="a"), 1, request("ping", id="b")]
        with one.post(encode(batch)) as reply:
            answers = reply.messages()

    assert {answer.get("id") for answer in answers} == {"a", "b", None}


def test_check_starts_it_on_a_port_and_passes_it() -> None:
    server = ("--", sys.executable, "-m", "mcp_touchstone", "serve", "--http", "127.0.0.1:{port}")
    chosen = ("answers_a_ping", "jsonrpc-batch*", "meta-server-info")
    words = [word for each in chosen for word in ("--select", each)]
    done = touchstone("check", *words, "--http", "http://127.0.0.1:{port}/mcp", *server)

    assert done.returncode == 0, done.stdout
    assert "4 revisions" in done.stdout


AUDIENCE = "http://127.0.0.1/mcp"
KNOWN = "/.well-known/oauth-protected-resource/mcp"


def test_access_tokens_of_an_issuer_are_checked(tmp_path: Path) -> None:
    mint = shared().mint
    words = ["--issuer", shared().url, "--audience", AUDIENCE, "--scope", "read"]
    with serve("--root", str(tmp_path), *words) as http:

        def status(token: str, message: Any, **headers: str) -> int:
            with http.post(message, Authorization=f"Bearer {token}", **headers) as reply:
                return reply.status

        good, other = (mint.token(AUDIENCE, "read", user=user) for user in USERS)
        statuses = {
            flaw: status(mint.token(AUDIENCE, "read", flaw=flaw), opening()) for flaw in FLAWS
        }
        with http.post(opening()) as bare:
            challenge = bare.header("WWW-Authenticate")
        with http.post(opening(), Authorization=f"Bearer {good}") as opened:
            known = {"Mcp-Session-Id": opened.header("Mcp-Session-Id") or ""}
        ping = request("ping")

        assert challenge == f'Bearer resource_metadata="http://127.0.0.1{KNOWN}", scope="read"'
        # only its issuer knows that a token is revoked
        assert [flaw for flaw in FLAWS if statuses[flaw] == 200] == ["listed-audience", "revoked"]
        assert [flaw for flaw in FLAWS if statuses[flaw] == 403] == ["no-scope"]
        assert {*statuses.values()} == {200, 401, 403}
        assert [status(one, ping, **known) for one in (good, other)] == [200, 404]
        for path, key in (
            (KNOWN, "resource"),
            ("/.well-known/oauth-authorization-server", "issuer"),
        ):
            with http.send("GET", path=path) as document:
                assert document.messages()[0][key] in {AUDIENCE, shared().url}


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:9", "http://example.org"])
def test_issuer_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, issuer: str) -> None:
    words = ["--http", "127.0.0.1:0", "--issuer", issuer, "--audience", "http://[::1]/"]
    done = touchstone("serve", *words, "--root", str(tmp_path))

    assert done.returncode == 2
    assert done.stderr.startswith(f"mcp-touchstone serve: --issuer: {issuer}")
    assert done.stderr.count("\n") == 1
