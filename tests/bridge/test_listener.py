"""The bridge serves a stdio server over streamable HTTP: sessions, refusals, faults, command."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.http_server.reading import BODY_LIMIT
from tests.bridge_client import (
    EVENTS,
    MODERN,
    SCRIBE,
    TOY,
    WAIT,
    Bridge,
    Http,
    Reply,
    notification,
    opening,
    refused,
    request,
    session,
)
from tests.cases import cases
from tests.conftest import eventually
from tests.hostile_cases import hostile

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def serverless_bridge() -> Iterator[Http]:
    """A bridge to a missing program; every answer comes from the bridge itself."""
    listener = Listener(Launch(command=("there-is-no-such-program",)), most=1, startup=1.0)
    listener.start()
    yield Http(listener.server_address[1])
    listener.stop()


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_session_lasts_from_initialize_to_delete(bridge: Bridge, revision: str) -> None:
    http = bridge(*SCRIBE)
    one = session(http, revision)

    assert len(one.headers["Mcp-Session-Id"]) > 20
    with one.request("anything") as reply:
        assert (reply.status, reply.kind) == (200, "application/json")
        assert reply.json()["id"] == 1
    with one.send("DELETE") as gone:
        assert gone.status == 204
    refused(one.request("anything"), 404, "no such session")
    refused(one.send("GET"), 404)
    refused(one.send("DELETE"), 404)


def test_each_session_has_its_own_process(bridge: Bridge) -> None:
    http = bridge(*SCRIBE)
    one, two = session(http), session(http)

    first, second = one.ask("a"), two.ask("b")

    assert first["result"]["pid"] != second["result"]["pid"]
    assert not any('"b"' in line for line in first["result"]["heard"])


def test_request_reaches_the_server_unchanged_except_line_breaks(bridge: Bridge) -> None:
    one = session(bridge(*SCRIBE))
    body = b'{"jsonrpc": "2.0",\r\n "id": 5.0,\n "method": "x", "params": {"n": 1e3, "s": "\\n"}}'

    with one.post(body) as reply:
        heard = reply.json()

    assert heard["result"]["heard"][-1] == body.replace(b"\n", b" ").replace(b"\r", b" ").decode()
    assert heard["id"] == 5.0


def test_legacy_request_needs_an_existing_session_id(bridge: Bridge) -> None:
    http = bridge(*SCRIBE)

    with http.post(request("tools/list", id="mine")) as reply:
        assert reply.json()["id"] == "mine"
    refused(http.request("tools/list"), 400, "Mcp-Session-Id")
    refused(http.request("tools/list", Mcp_Session_Id="made-up"), 404)
    refused(http.send("GET"), 400)
    refused(http.post(notification("notifications/initialized")), 400)


def test_unknown_protocol_version_header_is_refused(bridge: Bridge) -> None:
    one = session(bridge(*SCRIBE))

    refused(one.request("x", MCP_Protocol_Version="1999-01-01"), 400, "1999-01-01")
    with one.request("x", MCP_Protocol_Version=None) as reply:
        assert reply.status == 200


def test_failed_initialize_opens_no_session(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern-only")

    with http.post(opening()) as reply:
        assert reply.status == 200
        assert reply.header("Mcp-Session-Id") is None
        assert reply.json()["error"]["code"] == -32601


def test_stream_of_a_failed_initialize_has_no_event_ids(bridge: Bridge) -> None:
    """Without a session nothing can be resumed, and the next initialize would repeat the ids."""
    http = bridge(*SCRIBE, "early-log", "modern-only")

    with http.post(opening()) as reply:
        assert [event.id for event in reply.events()] == ["", ""]


def test_modern_initialize_request_gets_404(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern", "modern-only")

    with http.modern("initialize", {"protocolVersion": MODERN}) as reply:
        assert reply.status == 404


def test_unanswered_initialize_gets_504_and_an_immediate_exit_502(bridge: Bridge) -> None:
    mute = bridge(*hostile("never_answers"), startup=0.5)
    gone = bridge(sys.executable, "-c", "raise SystemExit(7)")

    refused(mute.post(opening()), 504, "no answer within 0.5 s")
    refused(gone.post(opening()), 502)


def test_closed_server_output_ends_the_session(bridge: Bridge) -> None:
    http = bridge(*hostile("closes_stdout_and_lives"))

    for _ in range(2):
        with http.post(opening()) as reply:
            named = reply.header("Mcp-Session-Id")
        with http.request("tools/list", Mcp_Session_Id=named) as reply:
            assert reply.status in {404, 502}


def test_progress_is_sent_on_the_stream_of_its_request(bridge: Bridge) -> None:
    one = session(bridge(*TOY, "nap"))

    def nap(token: str) -> Reply:
        meta = {"progressToken": token}
        params = {"name": "nap", "arguments": {"duration": 0.3}, "_meta": meta}
        return one.request("tools/call", params)

    with nap("a") as first, nap("b") as second:
        for token, reply in (("a", first), ("b", second)):
            assert reply.kind == EVENTS
            *progress, answer = reply.messages()
            assert progress
            assert {p["params"]["progressToken"] for p in progress} == {token}
            assert "napped" in answer["result"]["content"][0]["text"]


def test_server_request_is_sent_on_the_stream_of_its_cause(bridge: Bridge) -> None:
    one = session(bridge(*TOY, "elicit"), elicitation={})

    with one.request("tools/call", {"name": "elicit"}) as reply:
        events = (event for event in reply.events() if event.data)
        question = next(events).message
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        with one.post(answer) as taken:
            assert taken.status == 202
        assert "decline" in next(events).message["result"]["content"][0]["text"]
        assert list(events) == []


def test_unrelated_server_request_is_sent_to_the_get_stream(bridge: Bridge) -> None:
    one = session(bridge(*TOY, "curious"), roots={})

    with one.send("GET") as listening:
        assert (listening.status, listening.kind) == (200, EVENTS)
        question = next(event for event in listening.events() if event.data)
        assert question.message["method"] == "roots/list"
        refused(one.send("GET"), 409)
    with one.send("DELETE"):
        pass


def test_notification_is_queued_for_the_get_stream_and_sent_once(bridge: Bridge) -> None:
    one = session(bridge(*SCRIBE))
    one.ask("news", {"n": 1})
    one.ask("news", {"n": 2})

    with one.send("GET") as listening:
        events = (event.message for event in listening.events() if event.data)
        assert [next(events)["params"]["n"] for _ in range(2)] == [1, 2]
    one.ask("news", {"n": 3})
    with one.send("GET") as listening:
        events = (event.message for event in listening.events() if event.data)
        assert next(events)["params"]["n"] == 3


def test_broken_stream_resumes_after_the_last_event_id(bridge: Bridge) -> None:
    one = session(bridge(*TOY, "nap"))
    meta = {"progressToken": "t"}
    params = {"name": "nap", "arguments": {"duration": 1.0}, "_meta": meta}

    with one.request("tools/call", params) as broken:
        events = broken.events()
        prime = next(events)
        assert (prime.data, bool(prime.id), bool(prime.retry)) == ("", True, True)
        first = next(events)
    with one.send("GET", Last_Event_ID=first.id) as resumed:
        assert resumed.status == 200
        rest = [event for event in resumed.events() if event.data]
    turns = [e.message["params"]["progress"] for e in rest[:-1]]

    assert turns == list(range(2, len(turns) + 2))
    assert "napped" in rest[-1].message["result"]["content"][0]["text"]
    refused(one.send("GET", Last_Event_ID="99-1"), 400)
    refused(one.send("GET", Last_Event_ID="nonsense"), 400)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_older_revisions_get_no_event_without_data(bridge: Bridge, revision: str) -> None:
    one = session(bridge(*TOY, "nap"), revision)
    params = {"name": "nap", "arguments": {"duration": 0.2}, "_meta": {"progressToken": "t"}}

    with one.request("tools/call", params) as reply:
        assert all(event.data for event in reply.events())


def test_legacy_disconnect_does_not_cancel_the_request(bridge: Bridge) -> None:
    one = session(bridge(*SCRIBE))

    one.request("sleep", {"seconds": 2.5}).close()
    heard = one.ask("then")["result"]["heard"]

    assert not any("cancelled" in line for line in heard)


def test_cancelled_request_closes_its_stream(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_touchstone.bridge.sessions.AFTERMATH", 0.2)
    one = session(bridge(*SCRIBE))
    ended: list[Any] = []

    def ask() -> None:
        with one.post(request("silence", id="s")) as reply:
            ended.append(reply.messages() if reply.kind == EVENTS else reply.status)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: any('"s"' in line for line in one.ask("look")["result"]["heard"]))
    with one.post(notification("notifications/cancelled", {"requestId": "s"})) as reply:
        assert reply.status == 202
    thread.join(WAIT)

    assert ended == [[]]


@contextlib.contextmanager
def unanswered(http: Http, own: str) -> Iterator[None]:
    """Keep a request open, and cancel it at the end."""
    thread = threading.Thread(target=lambda: http.post(request("silence", id=own)).close())
    thread.start()
    eventually(lambda: any(f'"{own}"' in line for line in http.ask("look")["result"]["heard"]))
    yield
    http.post(notification("notifications/cancelled", {"requestId": own})).close()
    thread.join(WAIT)


def test_duplicate_request_id_in_flight_is_refused(bridge: Bridge) -> None:
    one = session(bridge(*SCRIBE))

    with unanswered(one, "x"):
        refused(one.post(request("y", id="x")), 400, "in use")


def test_batch_is_answered_only_in_2025_03_26(bridge: Bridge) -> None:
    http = bridge(*SCRIBE)
    batch = [request("a", id=1), notification("b"), request("c", id="1")]

    with session(http, "2025-03-26").post(batch) as reply:
        assert reply.status == 200
        assert [one["id"] for one in reply.messages()] == [1, "1"]
    refused(session(http, "2025-06-18").post(batch), 400, "2025-03-26")
    stateless = http.post(batch, **{"MCP-Protocol-Version": MODERN})
    assert refused(stateless, 400, "has no batches")["code"] == -32600


def test_server_exit_gets_502_and_ends_the_session(bridge: Bridge) -> None:
    one = session(bridge(*SCRIBE))

    error = refused(one.request("leave"), 502, "status 3")

    assert error["code"] == -32603
    eventually(lambda: one.request("x").status == 404)


def test_server_exit_sends_an_error_on_the_open_stream(bridge: Bridge) -> None:
    one = session(bridge(*TOY, "nap", "die"))
    params = {"name": "nap", "arguments": {"duration": 20}, "_meta": {"progressToken": "t"}}

    with one.request("tools/call", params) as reply:
        events = reply.events()
        next(events), next(events)
        one.request("tools/call", {"name": "die"}).close()
        last = list(events)[-1].message
    assert last["error"]["code"] == -32603
    assert last["id"] == 1


def test_new_session_evicts_an_idle_session_but_no_busy_one(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, most=2)
    one, two = session(http), session(http)
    one.ask("x")
    session(http)

    assert two.request("x").status == 404, "the one that was idle longest has gone"
    with one.send("GET"), unanswered(session(http), "x"):
        refused(http.post(opening()), 503, "in use")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example.com"},
        {"Host": "127.0.0.1.evil.example.com"},
        {"Host": "localhost@evil.example.com"},
        {"Host": "[::1]:99999"},
        {"Host": "127.0.0.1:65536"},
        {"Origin": "http://localhost:65536"},
        {"Origin": "http://evil.example.com"},
        {"Origin": "http://localhost.evil.example.com"},
        {"Origin": "null"},
        {"Origin": "file://localhost"},
        {"Origin": "http://localhost/"},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
def test_foreign_host_or_origin_is_refused(
    serverless_bridge: Http, method: str, headers: dict[str, str | None]
) -> None:
    body = opening() if method == "POST" else None

    refused(
        serverless_bridge.send(method, body, path="/mcp", **headers), 403, "is not this machine"
    )


def test_headers_of_usual_clients_are_accepted(bridge: Bridge) -> None:
    http = bridge(*SCRIBE)
    for name, value in (
        *(("Host", "localhost:1"), ("Host", "[::1]")),
        *(("Origin", "http://localhost:6274"), ("Origin", "https://127.0.0.1")),
        *(("Accept", "*/*"), ("Accept", "application/*, text/*;q=0.5"), ("Accept", None)),
    ):
        with http.post(opening(), **{name: value}) as reply:
            assert reply.status == 200, value


ODD_IDS = (b"1.5", b"1e400", b"1e300", b"1" + b"0" * 400, b"true", b"{}", b"9007199254740992.0")


@cases(
    (400, b"{", {}),
    (400, b"", {}),
    (400, b"[]", {}),
    (400, b"5", {}),
    (400, b'"x"', {}),
    (400, b"{}", {}),
    (400, b'{"jsonrpc":"2.0","id":1,"method":5}', {}),
    (400, b'{"jsonrpc":"2.0","id":null,"method":"x"}', {}),
    (400, b'{"jsonrpc":"2.0","id":[],"method":"x"}', {}),
    (400, b'{"id":NaN,"method":"x"}', {}),
    *((400, b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % odd, {}) for odd in ODD_IDS),
    (400, b'[{"id":1.5,"method":"ping"},{"method":"x"}]', {}),
    (400, b'{"id":[],"method":5}', {}),
    (400, b'{"id":1,"id":2,"method":"x"}', {}),
    (400, b'{"id":1,"method":"\xff"}', {}),
    (400, b"[" * 100_000, {}),
    (415, b"{}", {"Content-Type": "text/plain"}),
    (415, b"{}", {"Content-Type": None}),
    (406, b"{}", {"Accept": "application/json"}),
    (406, b"{}", {"Accept": "text/html"}),
    (411, None, {"Transfer-Encoding": "chunked"}),
    (400, None, {"Content-Length": "-1"}),
    (413, None, {"Content-Length": str(BODY_LIMIT + 1)}),
)
def test_bad_request_is_refused_without_starting_a_process(
    serverless_bridge: Http, status: int, body: bytes | None, headers: dict[str, str | None]
) -> None:
    reply = serverless_bridge.send("POST", body, path="/mcp", **headers)

    assert refused(reply, status)["code"] in {-32700, -32600}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_request_without_a_string_or_integer_as_id_is_answered(bridge: Bridge, era: str) -> None:
    http = bridge(*SCRIBE, "modern")
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "silence"} if era == "modern" else {}
    one = session(http) if era == "legacy" else http
    for odd in ODD_IDS:
        body = b'{"jsonrpc":"2.0","id":%s,"method":"silence"}' % odd
        assert refused(one.post(body, **headers), 400)["code"] == -32600


def test_unusual_ids_are_answered(bridge: Bridge) -> None:
    one = session(bridge(*SCRIBE))
    for known in (5.0, -1.0, 2**53 + 1, 10**307, ""):
        with one.post(request("x", id=known)) as reply:
            assert reply.json()["id"] == known


def test_batch_with_an_odd_id_ends(bridge: Bridge) -> None:
    batch = [request("a", id=1.5), request("b", id=2)]

    with session(bridge(*SCRIBE), "2025-03-26").post(batch) as reply:
        assert 2 in {one["id"] for one in reply.messages()}


def test_endpoint_accepts_post_get_and_delete_only(serverless_bridge: Http) -> None:
    refused(serverless_bridge.send("POST", opening(), path="/"), 404, "/mcp")
    for method in ("PUT", "PATCH", "OPTIONS"):
        reply = serverless_bridge.send(method)
        assert reply.header("Allow") == "POST, GET, DELETE"
        refused(reply, 405)


def test_invalid_server_output_is_logged_and_not_forwarded(
    bridge: Bridge, capfd: pytest.CaptureFixture[str]
) -> None:
    one = session(bridge(*SCRIBE))

    with one.request("mumble") as reply:
        assert len(reply.messages()) == 1
    assert ": this is" in capfd.readouterr().err


def test_invalid_server_output_does_not_end_the_session(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern")
    one = session(http)

    assert "result" in one.ask("nonsense")
    assert "result" in one.ask("and then")
    for method in ("nonsense", "and then"):
        with http.modern(method) as reply:
            assert "result" in reply.messages()[-1]


def test_tool_with_a_very_deep_schema_can_be_called(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern", "deep")

    with http.modern("tools/call", {"name": "deep", "arguments": {}}) as reply:
        assert reply.status == 200


def test_request_of_a_modern_server_is_forwarded(bridge: Bridge) -> None:
    """A modern server must not send requests; a bridge that hid one would hide the fault."""
    with bridge(*SCRIBE, "modern").modern("ask") as reply:
        question, answer = reply.messages()
    assert question["method"] == "ping"
    assert "result" in answer


def test_server_ignoring_sigterm_is_killed(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_touchstone.bridge.child.PATIENCE", 0.3)
    http = bridge(*hostile("ignores_end_of_input_and_sigterm"), startup=2.0)
    with contextlib.suppress(AssertionError):
        http.post(opening()).close()


def run(*words: str, cwd: Path | None = None) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "mcp_touchstone", "bridge", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no signals there")
@pytest.mark.parametrize(("signal", "status"), [("SIGTERM", 0), ("SIGINT", 130)])
def test_command_prints_its_url_and_ends_its_processes_on_a_signal(
    signal: str, status: int
) -> None:
    import signal as signals  # noqa: PLC0415

    process = run("--env", "SCRIBE=yes", "--", *SCRIBE, "modern")
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("http://127.0.0.1:")
    assert line.endswith("/mcp\n")
    http = Http(int(line.split(":")[2].split("/")[0]))
    one = session(http)
    assert one.ask("x")["result"]["env"] == "yes"
    http.modern("y").close()
    listening = one.send("GET")
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 2

    process.send_signal(getattr(signals, signal))
    rest, errors = process.communicate(timeout=WAIT)

    assert (process.returncode, rest, errors) == (status, "", "")
    _, alive = psutil.wait_procs(children, timeout=1)
    assert not alive
    listening.close()


def test_self_option_serves_the_reference_server() -> None:
    process = run("--self")
    assert process.stdout
    port = int(process.stdout.readline().split(":")[2].split("/")[0])
    with Http(port).modern("server/discover") as reply:
        assert reply.json()["result"]["supportedVersions"] == [MODERN]
    process.terminate()
    process.communicate(timeout=WAIT)


@pytest.mark.parametrize(
    "words",
    [
        ("--port", "70000"),
        ("--port", "http"),
        ("--sessions", "0"),
        ("--env", "x"),
        ("--timeout", "-1"),
        ("--cwd", "/nonexistent", "--", *SCRIBE),
        ("--", "/nonexistent/program"),
        ("--", ""),
        ("--what",),
    ],
    ids=str,
)
def test_bad_input_prints_one_line_and_exits_with_status_2(words: tuple[str, ...]) -> None:
    process = run(*words)
    out, errors = process.communicate(timeout=WAIT)

    assert (process.returncode, out) == (2, "")
    assert errors.count("\n") == 1, errors
    assert errors.startswith("mcp-touchstone")


def test_port_in_use_prints_an_error(bridge: Bridge) -> None:
    port = bridge(*SCRIBE).port
    process = run("--self", "--port", str(port))
    _, errors = process.communicate(timeout=WAIT)

    assert process.returncode == 2
    assert errors.startswith(f"mcp-touchstone: port {port} cannot be used:")
