"""Attacks over HTTP: on files, where we start the server; and those that only HTTP has."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.config import resolve
from mcp_touchstone.config.parser import parse
from mcp_touchstone.config.settings import Settings
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.sandbox.sandbox import choose
from mcp_touchstone.wire.exchange import Exchange
from tests.cases import cases
from tests.commands import run_here
from tests.conftest import HERE
from tests.fakes.matrix import attack_file, attacked
from tests.http_canned import Answer, fixed, mcp, response, serving

URL = "http://127.0.0.1:{port}/mcp"
BRIDGE = (sys.executable, "-m", "mcp_touchstone", "bridge", "--port", "{port}", "--")


def only(*words: str) -> Settings:
    [found] = resolve.settings(parse(["check", *words]))
    return found


@pytest.mark.skipif(choose("auto")[0] is None, reason="there is no sandbox here")
def test_file_attack_over_http_finds_the_fault_and_reproduces_it(tmp_path: Path) -> None:
    fake = (*BRIDGE, sys.executable, str(HERE / "fakes"), "Joined", "{root}")
    report, scripts = tmp_path / "report.json", tmp_path / "scripts"
    select = ("--suite", "security", "--select", "traversal-dotdot")
    kept = ("--json", str(report), "--scripts", str(scripts))

    done = run_here("check", *select, *kept, "--http", URL, "--", *fake)

    assert done.returncode == 1, done.stdout + done.stderr
    [verdict] = json.loads(report.read_text())["verdicts"]
    assert (verdict["clause"], verdict["outcome"]) == ("traversal-dotdot", "fail")
    [script] = scripts.iterdir()
    env = {**os.environ, "SANDBOX": "bwrap" if shutil.which("bwrap") else "off"}
    again = subprocess.run(
        ["sh", str(script)], env=env, capture_output=True, timeout=120, check=False
    )
    assert again.returncode == 1, (again.stdout, again.stderr)
    assert b"FOUND: a canary came back" in again.stdout


@pytest.mark.slow
@cases(
    ("IsBusyForOtherUsers", "users-session", "neither served nor refused"),
    ("ReplaysNothing", "callers-replayed", "not even to its own session"),
)
def test_an_attack_that_compared_nothing_does_not_pass(fake: str, threat: str, why: str) -> None:
    verdicts = [v for v in attacked(fake, (threat,)).verdicts if v.clause.id == threat]

    assert [v.outcome for v in verdicts] == [Outcome.UNSEEN] * len(verdicts)
    assert any(why in v.gravest.actual for v in verdicts)


def test_server_that_we_did_not_start_gets_no_file_attacks() -> None:
    with serving(mcp()) as server:
        select = ("--suite", "security", "--select", "traversal-dotdot")
        done = run_here("check", *select, server.url)

    assert done.returncode == 2
    assert "we start" in done.stderr
    assert "no file tool is attacked: we did not start the server" in done.stdout


def test_attacks_on_a_server_of_somebody_need_an_option() -> None:
    with pytest.raises(UserError, match="--intrusive allows that"):
        resolve.target(only("https://example.org/mcp", "--suite", "security"))
    assert resolve.target(only("https://example.org/mcp", "--suite", "security", "--intrusive"))


def test_attacks_on_lines_are_for_stdio_only() -> None:
    rows = load(SECURITY).catalogue

    assert rows["lines-broken"].transports == (Transport.STDIO,)
    assert rows["traversal-dotdot"].transports == tuple(Transport)


@cases(
    ("POST 200, DELETE 200, POST 500, GET 500", "our DELETE of another session"),
    ("POST 200, DELETE 500, POST 500", "our DELETE of another session"),
    ("POST 200, POST 500, POST 0", "our POST"),
    ("POST 500, POST 200", ""),
    ("POST 200, POST 404", ""),
    ("", ""),
)
def test_refusal_of_everything_names_its_beginning(seen: str, said: str) -> None:
    pairs = [one.split() for one in seen.split(", ") if one]
    exchanges = [
        Exchange(n, verb, 0, (), 0.0, status=int(status)) for n, (verb, status) in enumerate(pairs)
    ]

    found = attack_file("http.requests").refusal(exchanges)
    assert found == (f"HTTP 500 to everything since {said}" if said else "")


def dies_with_a_session() -> Answer:
    """Serve until a session ends after an attack; then answer everything by 500."""
    attacked: list[bytes] = []
    ended: list[bytes] = []

    def write(connection: socket.socket, request: bytes) -> None:
        answer = mcp(session="one")
        if ended:
            answer = fixed(response("500 Internal Server Error", "text/plain", b"no"))
        # noted before the answer: the next request may come while this thread still waits
        attacked.extend([request] * (b"touchstone\\r\\n" in request))
        if attacked and request.startswith(b"DELETE"):
            ended.append(request)
        answer(connection, request)

    return write


def test_unfinished_requests_are_not_blamed_for_a_server_that_is_broken_already() -> None:
    with serving(dies_with_a_session()) as server:
        select = ("--suite", "security", "--select", "http/requests", "--accept-unbound")
        done = run_here("check", *select, server.url)

    said = " ".join(done.stdout.split())
    assert "48 unfinished" not in said
    assert "HTTP 500 to everything since our DELETE of another session" in said


def serves_one_client() -> Answer:
    """Answer the initialize of a second client by 500, as an SDK does with one object for all."""

    def write(connection: socket.socket, request: bytes) -> None:
        if b'"initialize"' in request and b'"id":"call-' in request:
            connection.sendall(response("500 Internal Server Error", "text/plain", b"no"))
        else:
            mcp()(connection, request)

    return write


def test_server_that_serves_one_client_is_called_so() -> None:
    with serving(serves_one_client()) as server:
        select = ("--suite", "security", "--select", "callers-guessed", "--accept-unbound")
        done = run_here("check", *select, server.url)

    assert done.returncode == 2
    assert "the server serves one client only: HTTP 500" in " ".join(done.stdout.split())


@cases(
    (True, 40, 30),
    (False, 40, None),
    (False, 11, 1),
    (True, 11, 1),
    ids=["stays open", "server stands still", "closed", "closed after an answer"],
)
def test_descriptors_count_only_if_the_server_answered_a_later_request(
    monkeypatch: pytest.MonkeyPatch, answers: bool, open_now: int, left: int | None
) -> None:
    suite = attack_file("http.requests")
    monkeypatch.setattr(suite, "WAITING", 0.0)
    reply = SimpleNamespace(answered=answers)
    session = SimpleNamespace(wire=SimpleNamespace(ping=lambda **_more: reply))
    usage = SimpleNamespace(descriptors=lambda: open_now)

    assert suite.descriptors_left(session, usage, 10, 15) == left


def test_raw_answer_names_the_http_library() -> None:
    from mcp_touchstone.security.http_caller import RawAnswer  # noqa: PLC0415

    head = b"HTTP/1.1 200 OK\r\ndate: x\r\nserver: uvicorn\r\n\r\n"

    assert RawAnswer(head, 1).library == "uvicorn"
    assert RawAnswer(b"HTTP/1.1 200 OK\r\n\r\nserver: no", 1).library == ""
