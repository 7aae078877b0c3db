"""Reports of runs over HTTP: the exchanges, curl, and no secrets."""

import json
import os
import shlex
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.wire.curl import curl
from mcp_touchstone.wire.exchange import Exchange, Origin, SentRequest
from mcp_touchstone.wire.sse import ServerEvent
from tests.commands import ran
from tests.http_canned import Answer, mcp, message_of, response, serving
from tests.transport.test_http_targets import check

SECRET = "s3cret-token-of-a-user"


def broken(session: str = "") -> Answer:
    """Serve a session whose pings are answered with a wrong member, and echo our token."""
    inner = mcp("2025-11-25", session)

    def write(connection: socket.socket, request: bytes) -> None:
        if b'"ping"' in request:
            number = json.loads(request.partition(b"\r\n\r\n")[2])["id"]
            body = json.dumps({"jsonrpc": "2.0", "id": number, "result": []}).encode()
            echo = f"X-Echo: Bearer {SECRET}"
            connection.sendall(response("200 OK", "application/json", body, echo))
        else:
            inner(connection, request)

    return write


def test_reports_show_requests_responses_and_curl_without_a_secret(tmp_path: Path) -> None:
    header = ("--header", "Authorization=env:MY_TOKEN")
    paths = ["--json", str(tmp_path / "r.json")]
    for kind, name in (("html", "r.html"), ("markdown", "r.md")):
        paths += ["--report", f"{kind}:{tmp_path / name}"]
    with serving(broken()) as server:
        done = check(
            "-v",
            "--select",
            "ping",
            *paths,
            "--save",
            str(tmp_path / "wire"),
            *header,
            server.url,
            MY_TOKEN=f"Bearer {SECRET}",
        )

    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads((tmp_path / "r.json").read_text())["verdicts"]
    [judgement] = [j for v in found for j in v["judgements"] if j["outcome"] == "fail"]
    https = [line["http"] for line in judgement["wire"] if "http" in line]
    assert any(text.startswith("POST; MCP-Protocol-Version: 2025-11-25") for text in https)
    assert any(text.startswith("HTTP 200, application/json") for text in https)
    assert "-H 'Authorization: '\"$MY_TOKEN\"" in judgement["reproduction"]
    assert judgement["reproduction"].startswith("curl ")
    assert server.url in judgement["reproduction"]
    for path in (tmp_path / "r.html", tmp_path / "r.md", *(tmp_path / "wire").iterdir()):
        assert "HTTP 200, application/json" in path.read_text(), path
    assert "HTTP 200, application/json" in done.stdout
    for path in (p for p in tmp_path.rglob("*") if p.is_file()):
        assert SECRET not in path.read_text(), path
    assert SECRET not in done.stdout + done.stderr


def test_unanswered_call_has_the_cause_in_its_stream() -> None:
    inner = mcp()
    tool = {"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}

    def write(connection: socket.socket, request: bytes) -> None:
        asked = message_of(request)
        result: dict[str, Any] = {"tools": [tool]}
        if asked.get("method") == "initialize":
            info = {"name": "canned", "version": "1"}
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result}).encode()
        if asked.get("method") in {"initialize", "tools/list"}:
            connection.sendall(response(body=body))
        elif asked.get("method") == "tools/call":
            event = b"event: result\ndata: " + body + b"\n\n"
            connection.sendall(response("200 OK", "text/event-stream", event))
        else:
            inner(connection, request)

    with serving(write) as server:
        done = check("--select", "tools-call-answered", server.url)

    assert 'event named "result"' in " ".join(done.stdout.split())


def test_exchange_and_event_are_named_in_few_words() -> None:
    sent = (("Content-Type", "application/json"), ("Mcp-Session-Id", "a"), ("Origin", "http://b"))
    exchange = Exchange(1, "POST", 3, sent, 0.0, 200, (("Content-Type", "text/event-stream"),))

    assert exchange.request == "POST; Mcp-Session-Id: a; Origin: http://b"
    assert str(Origin(exchange)) == "HTTP 200, text/event-stream"
    assert str(Origin(exchange, ServerEvent(None, id="4-2"))) == (
        "HTTP 200, text/event-stream; an event with the id 4-2"
    )


def sent(number: int, *headers: tuple[str, str], **members: Any) -> Exchange:
    """Return a POST to http://a/mcp with a body."""
    request = SentRequest("http://a", "/mcp?b=1&c", b'{"a":"\'$x\'"}', {"X-Key": "KEY"}, False)
    return Exchange(number, "POST", number, headers, 0.0, request_parts=request, **members)


def test_curl_quotes_what_a_shell_would_read() -> None:
    one = sent(1, ("X-Note", "it's $(id)"), ("Content-Length", "3"), ("X-Key", "(hidden)"))

    command = curl([one], one)

    assert "Content-Length" not in command
    assert shlex.split(command)[-3:] == ["--data-binary", '{"a":"\'$x\'"}', "http://a/mcp?b=1&c"]
    assert "-H 'X-Note: it'\"'\"'s $(id)'" in command
    assert "-H 'X-Key: '\"$KEY\"" in command
    assert "-H Accept: -H Content-Type:" in command  # curl has its own


def test_no_curl_is_shown_for_what_it_could_not_send() -> None:
    binary, secret = sent(1), sent(2, ("Authorization", "Bearer (hidden)"))
    binary.request_parts = SentRequest("http://a", "/", b"\xff", {}, False)

    assert [curl([one], one) for one in (binary, secret, Exchange(3, "GET", 3, (), 0.0))] == [
        ""
    ] * 3


def test_curl_opens_a_session_as_the_connection_did() -> None:
    opening = sent(1, headers=(("mcp-session-id", "$(id)"),))
    ready = sent(2, ("Mcp-Session-Id", "$(id)"))
    other = sent(3, ("Mcp-Session-Id", "$(id)"))
    last = sent(4, ("Mcp-Session-Id", "$(id)"))
    note = b'{"method":"notifications/initialized"}'
    ready.request_parts = SentRequest("http://a", "/mcp", note, {}, False)

    first, *rest = curl([opening, ready, other, last], last).splitlines()

    assert first.startswith("SESSION=$(curl ")
    assert len(rest) == 2
    assert all('-H "Mcp-Session-Id: $SESSION"' in line for line in rest)
    assert "$(id)" not in "".join(rest)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("session", ["", "5-a'b"])
def test_the_commands_on_the_screen_show_the_finding_again(session: str) -> None:
    header = ("--header", "Authorization=env:MY_TOKEN")
    with serving(broken(session)) as server:
        done = check("--select", "ping", *header, server.url, MY_TOKEN=f"Bearer {SECRET}")
        lines = done.stdout.splitlines()
        begin = next(n for n, line in enumerate(lines) if line.strip().startswith("by hand"))
        end = next(n for n, line in enumerate(lines) if line.strip().startswith("again"))
        script = "\n".join(lines[begin:end]).replace("by hand", "", 1)
        server.requests.clear()
        again = ran(["bash", "-c", script], env={**os.environ, "MY_TOKEN": f"Bearer {SECRET}"})

    assert '"result": []' in again.stdout
    last = server.requests[-1].decode()
    assert f"Authorization: Bearer {SECRET}" in last
    assert not session or f"Mcp-Session-Id: {session}" in last
    assert SECRET not in done.stdout
