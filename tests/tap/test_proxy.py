"""The tap before an HTTP server passes everything on unchanged, and its file has no secret."""

import http.client
import json
import os
import signal
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

from mcp_touchstone.cli import main
from mcp_touchstone.tap import proxy, recording, tape
from mcp_touchstone.tap.proxy import Proxy
from mcp_touchstone.tap.recording import Recording
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.http_headers import encoded
from tests.cases import cases
from tests.conftest import eventually
from tests.http_canned import Answer, fixed, mcp, response, serving

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
INFO = {"name": "x", "version": "1"}
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


_open: list[http.client.HTTPConnection] = []


@pytest.fixture(autouse=True)
def close_connections() -> Iterator[None]:
    yield
    while _open:
        _open.pop().close()


@contextmanager
def tapped(answer: Answer, folder: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Put a tap before a server of prepared bytes; yield its port and what the server read."""
    with serving(answer) as server:
        endpoint = proxy.upstream(server.url)
        recorder = recording.recorder(folder, {"url": server.url}, {})
        with Proxy(endpoint, recorder) as tap:
            tap.start()
            yield tap.server_address[1], server.requests


def asked(
    port: int, verb: str, path: str = "/mcp", body: Any = None, **headers: str
) -> http.client.HTTPResponse:
    """Send a request to the tap and return the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    _open.append(connection)
    connection.request(verb, path, body, {"Connection": "close", **headers})
    return connection.getresponse()


def said(port: int, session: str = "", **message: Any) -> http.client.HTTPResponse:
    """Send a message to the tap and read the response."""
    more = {"Mcp-Session-Id": session} if session else {}
    found = asked(port, "POST", body=json.dumps({"jsonrpc": "2.0", **message}), **JSON, **more)
    found.read()
    return found


def opened(port: int, session: str = "") -> str:
    """Open a session and return its id."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
    found = said(port, session, id=1, method="initialize", params=params)
    return found.getheader("Mcp-Session-Id") or ""


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def rows(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()][1:]


def only(folder: Path) -> Recording:
    (found,) = recording.read_all(folder)
    return found


def test_status_headers_and_bodies_pass_unchanged(tmp_path: Path) -> None:
    body = b'{"jsonrpc":\n"2.0", "x": "\xff"}'
    answer = response(
        "418 Odd", "application/json", body, "X-One: a", "X-One: b", "set-Cookie: c=d"
    )
    with tapped(fixed(answer), tmp_path) as (port, requests):
        found = asked(port, "POST", "/mcp?a=b%20c", b"[1,\n2", **JSON, **{"X-Odd": "caf\xe9"})
        assert (found.status, found.reason, found.read()) == (418, "Odd", body)

    assert found.msg.get_all("X-One") == ["a", "b"]
    head, _, sent = requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /mcp?a=b%20c HTTP/1.1\r\n")
    assert b"X-Odd: caf\xe9" in head
    assert sent == b"[1,\n2"
    texts = [row.line.raw for row in only(tmp_path).rows if row.headers is None]
    assert texts == [b"[1,\n2", body, b""]


@pytest.mark.parametrize("verb", ["GET", "DELETE", "HEAD", "PUT", "OPTIONS"])
def test_each_method_passes(verb: str, tmp_path: Path) -> None:
    with tapped(fixed(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n"), tmp_path) as (port, sent):
        assert asked(port, verb).status == 405

    assert sent[0].startswith(f"{verb} /mcp".encode())


def test_a_body_in_chunks_passes(tmp_path: Path) -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        while not request.endswith(b"0\r\n\r\n"):
            request += connection.recv(65536)
        connection.sendall(response(body=request.partition(b"\r\n\r\n")[2]))

    with tapped(answer, tmp_path) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        _open.append(connection)
        connection.request("POST", "/mcp", iter([b"one", b"two"]), encode_chunked=True)
        assert connection.getresponse().read() == chunk(b"one") + chunk(b"two") + b"0\r\n\r\n"

    assert only(tmp_path).rows[1].line.raw == b"onetwo"


def test_an_event_passes_before_the_next_one_comes(tmp_path: Path) -> None:
    read = threading.Event()

    def answer(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(STREAM + chunk(b'id: 7\ndata: {"a":1}\n\n'))
        assert read.wait(30)
        connection.sendall(chunk(b": quiet\n\ndata: {}\n\n") + b"0\r\n\r\n")

    with tapped(answer, tmp_path) as (port, _):
        found = asked(port, "GET")
        assert found.readline() + found.readline() + found.readline() == b'id: 7\ndata: {"a":1}\n\n'
        first = [row for row in only(tmp_path).rows if row.event]
        read.set()
        assert found.read() == b": quiet\n\ndata: {}\n\n"

    assert [(row.event.id, row.line.raw) for row in first if row.event] == [("7", b'{"a":1}')]


def test_a_client_that_leaves_closes_the_connection_to_the_server(tmp_path: Path) -> None:
    gone = threading.Event()

    def answer(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(STREAM + chunk(b"data: {}\n\n"))
        if connection.recv(1) == b"":
            gone.set()

    with tapped(answer, tmp_path) as (port, _):
        found = asked(port, "GET")
        found.readline()
        found.close()
        _open.pop().close()
        assert gone.wait(30)
        eventually(lambda: rows(tmp_path)[-1]["text"] == Happened.CLIENT_LEFT)


def test_a_response_that_breaks_off_breaks_off_for_the_client(tmp_path: Path) -> None:
    with tapped(fixed(STREAM + b"5\r\nda"), tmp_path) as (port, _):
        with pytest.raises(http.client.IncompleteRead):
            asked(port, "GET").read()
        eventually(lambda: rows(tmp_path)[-1]["text"].startswith(proxy.BROKE_OFF))


def test_a_server_that_cannot_be_reached_is_a_502_that_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tapped(mcp(), tmp_path) as (port, _):
        assert asked(port, "GET").status == 405
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    folder = tmp_path / "r"
    recorder = recording.recorder(folder, {"url": url}, {})
    record = recorder.http

    def late(side: Side, *row: Any, **more: Any) -> None:
        time.sleep(0.2 * (side is Side.EVENT))  # the client has its answer meanwhile
        record(side, *row, **more)

    monkeypatch.setattr(recorder, "http", late)
    with Proxy(proxy.upstream(url), recorder) as tap:
        tap.start()
        assert asked(tap.server_address[1], "POST", body=b"{}").status == 502

    assert "the connection was refused" in rows(folder)[-1]["text"]
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["judge", str(folder)]) == 2
    assert "the connection was refused" in capsys.readouterr().out.replace("\n             ", " ")


def test_only_clients_that_name_this_machine_are_served(tmp_path: Path) -> None:
    with tapped(mcp(), tmp_path) as (port, requests):
        assert asked(port, "POST", body=b"{}", Host="example.org").status == 403
        assert asked(port, "POST", body=b"{}", Origin="https://example.org").status == 403

    assert requests == []


def test_secrets_are_in_no_recording(tmp_path: Path) -> None:
    bearer, cookie, query, key, bare = (f"secret-{n}-0123456789" for n in range(5))

    def answer(connection: socket.socket, request: bytes) -> None:
        assert all(one.encode() in request for one in (bearer, cookie, query, key))
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"said": bearer}}).encode()
        connection.sendall(response("200 OK", "application/json", body, f"Set-Cookie: s={key}"))

    given = {"Authorization": f"Bearer {bearer}", "Cookie": f"sid={cookie}", "X-Api-Key": key}
    with tapped(answer, tmp_path) as (port, _):
        asked(port, "POST", f"/mcp?access_token={query}&x=1&{bare}", b"{}", **JSON, **given).read()
        asked(port, "POST", f"/token?access_token={query}", b"secret=hunter2", **given).read()

    (path,) = tmp_path.glob("*.jsonl")
    text = path.read_text()
    assert not [one for one in (bearer, cookie, query, key, bare, "hunter2") if one in text]
    assert '/mcp?access_token=HIDDEN&x=HIDDEN&HIDDEN"' in text
    assert path.stat().st_mode & 0o077 == 0


SESSION_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


def test_a_secret_of_a_header_is_hidden_wherever_it_is_said_again(tmp_path: Path) -> None:
    """However it is written there, and after more tokens than a client usually has."""
    odd = "".join(f"\\u{ord(char):04x}" for char in "secret-0-Zz0123456789")
    secret = "secret-0-Zz0123456789"
    bodies = (
        f'{{"x": "{secret}"}}',
        f'{{"x": "{odd}"}}',
        f"%73{secret[1:]}",
        f"a&#115;{secret[1:]}",
    )
    with tapped(fixed(response(body=b"{}")), tmp_path) as (port, _):
        for n in range(40):
            asked(port, "POST", body=b"{}", Authorization=f"Bearer secret-{n}-Zz0123456789").read()
        for body in bodies:
            asked(port, "POST", f"/mcp?{secret}", body.encode(), **{"X-Other": secret}).read()
            asked(port, "GET", f"/{secret}/x", **{"User-Agent": f"me {secret}"}).read()

    text = next(tmp_path.glob("*.jsonl")).read_text()
    assert "secret-0" not in text
    assert odd not in text.replace("\\\\", "\\")
    assert not [row for row in rows(tmp_path) if secret[1:] in row["text"]]


def test_what_tells_sessions_apart_stays(tmp_path: Path) -> None:
    """Even if a session id has the form of a token, and is said in an argument too."""
    with tapped(mcp(session=SESSION_TOKEN), tmp_path) as (port, requests):
        opened(port)
        argument = {"password": SESSION_TOKEN, "progressToken": "abc123xyz9"}
        said(port, SESSION_TOKEN, id=2, method="tools/call", params=argument)
        said(port, SESSION_TOKEN, id=3, method="ping")

    assert len(requests) == 3
    heads = [dict(row.headers) for row in only(tmp_path).rows if row.headers is not None]
    known = [head["Mcp-Session-Id"] for head in heads if "Mcp-Session-Id" in head]
    assert set(known) == {SESSION_TOKEN}
    assert any("abc123xyz9" in row.text for row in only(tmp_path).rows)


@pytest.mark.parametrize("secret", ["secret-1-Zz0123456789", "sécret-1-Zz0123456789"])
def test_a_hidden_argument_still_equals_its_header(secret: str, tmp_path: Path) -> None:
    params = {"name": "login", "arguments": {"api_key": secret}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(call, ensure_ascii=False).encode()
    with tapped(mcp(), tmp_path) as (port, _):
        header = {"Mcp-Param-Api-Key": encoded(secret)}
        asked(port, "POST", body=body, **JSON, **header).read()

    found = only(tmp_path).rows
    value = dict(found[0].headers or ())["Mcp-Param-Api-Key"]
    assert value.startswith("HIDDEN-")
    assert json.loads(found[1].text)["params"]["arguments"] == {"api_key": value}


def test_a_compressed_body_is_recorded_as_it_was(tmp_path: Path) -> None:
    import gzip  # noqa: PLC0415  (for one test)

    packed = gzip.compress(b'{"jsonrpc": "2.0"}')
    answer = response("200 OK", "application/json", packed, "Content-Encoding: gzip")
    with tapped(fixed(answer), tmp_path) as (port, _):
        assert asked(port, "POST", body=b"{}").read() == packed

    assert b'{"jsonrpc": "2.0"}' in [row.line.raw for row in only(tmp_path).rows]


def test_a_body_over_the_limit_passes_and_is_cut_in_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tape, "LINE_LIMIT", 10_000)
    with tapped(fixed(response(body=b"x" * 50_000)), tmp_path) as (port, _):
        assert len(asked(port, "POST", body=b"{}").read()) == 50_000

    cut = next(row.line for row in only(tmp_path).rows if row.line.raw.startswith(b"x"))
    assert (len(cut.raw), cut.length) == (4096, 50_000)


def test_sessions_are_judged_and_shown_each_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = iter("ab")

    def answer(connection: socket.socket, request: bytes) -> None:
        session = next(numbers) if b'"initialize"' in request else ""
        mcp(session=session)(connection, request)

    with tapped(answer, tmp_path) as (port, _):
        for one in (opened(port), opened(port)):
            said(port, one, method="notifications/initialized")
        said(port, "a", id=2, method="ping")
        said(port, "b", id=2, method="ping")
        said(port, "a", id=2, method="ping")

    found = recording.read_all(tmp_path)
    assert [len([row for row in one.rows if row.side is Side.CLIENT]) for one in found] == [8, 6]
    assert main(["judge", str(tmp_path), "--side", "client"]) == 1
    assert "client-request-id-unique" in capsys.readouterr().out
    assert main(["tap", "show", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("initialize ") == 2
    assert shown.count("client-request-id-unique") == 1


def test_a_question_for_the_eras_begins_a_further_connection(tmp_path: Path) -> None:
    numbers = iter("ab")

    def answer(connection: socket.socket, request: bytes) -> None:
        if b"server/discover" in request:
            connection.sendall(response("400 Bad Request", "application/json", b"{}"))
        else:
            mcp(session=next(numbers))(connection, request)

    with tapped(answer, tmp_path) as (port, _):
        for _ in range(2):
            said(port, id=0, method="server/discover")
            opened(port)

    found = recording.read_all(tmp_path)
    assert [len([row for row in one.rows if row.side is Side.CLIENT]) for one in found] == [4, 4]


def test_the_command_prints_its_url_and_ends_with_a_signal(tmp_path: Path) -> None:
    with serving(mcp()) as server:
        words = [sys.executable, "-m", "mcp_touchstone", "tap", "--listen", "0", "--to", server.url]
        with subprocess.Popen(
            [*words, "--report", str(tmp_path / "r")], stdout=subprocess.PIPE, text=True
        ) as tap:
            assert tap.stdout is not None
            port = int(tap.stdout.readline().rpartition(":")[2].partition("/")[0])
            opened(port)
            tap.send_signal(signal.SIGTERM)
    assert tap.returncode == 0
    assert main(["judge", str(tmp_path / "r"), "--side", "server"]) == 0


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["tap", "--listen", port, "--to", "http://127.0.0.1:9/mcp"]
        assert main([*words, "--report", str(tmp_path)]) == 2

    assert f"port {port} cannot be used" in capsys.readouterr().err
    assert f"port {port} cannot be used" in rows(tmp_path)[-1]["text"]


@cases(
    ["--listen", "0"],
    ["--to", "http://127.0.0.1/mcp"],
    ["--listen", "0", "--to", "http://127.0.0.1/mcp", "--report", "r", "--", "server"],
    ["--listen", "0", "--to", "http://127.0.0.1/mcp?token=x", "--report", "r"],
    ["--listen", "0", "--to", "no url", "--report", "r"],
)
def test_mistakes_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["tap", *words]) == 2

    assert len(capsys.readouterr().err.splitlines()) == 1
    assert os.listdir(tmp_path) == []  # noqa: PTH208  (names only)
