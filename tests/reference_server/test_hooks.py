"""The hooks of the reference server, and its end."""

import json
import signal
import threading
from pathlib import Path

import pytest

from reference_server.protocol.calls import Call
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.client_questions import tool
from tests.reference_client import MODERN, InProcess, Message, ask, modern, request
from tests.reference_log import call, records, writer


def test_hooks_receive_the_facts_of_each_request(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    seen: list[Message] = []
    with InProcess(Settings([str(tmp_path)], hooks=[seen.append], log_level="off")) as client:
        for line in (
            call(1, "file_read", path="a.txt"),
            call(2, "file.read", path="none"),  # an alias, shown under the listed name
            call(3, "no.such.tool"),
            modern(4, "tools/list"),
            modern(5, "no/such/method"),
        ):
            client.send(line)
            client.hear()
    began = [one for one in seen if one["event"] == "request_began"]
    seen = [one for one in seen if one["event"] == "request_finished"]
    facts = [[one[name] for name in ("method", "tool", "status", "code")] for one in seen]
    assert facts == [
        ["tools/call", "file_read", "success", None],
        ["tools/call", "file_read", "error", "NOT_FOUND"],
        ["tools/call", None, "error", -32602],
        ["tools/list", None, "success", None],
        [None, None, "error", -32601],
    ]
    assert all(one["bytes"] > 50 for one in seen)
    assert all(one["duration_ms"] >= 0 and one["revision"] == MODERN for one in seen[:4])
    assert len({one["request_id"] for one in seen}) == 5
    known = [{name: one[name] for name in began[0] if name != "event"} for one in seen[:4]]
    assert [{**one, "event": "request_began"} for one in known] == began


def test_hooks_receive_an_event_for_each_batch_member() -> None:
    seen: list[Message] = []
    with InProcess(Settings(hooks=[seen.append])) as client:
        client.open("2025-03-26")
        client.send([request(1, "ping"), request(2, "ping")])
        assert len(client.hear()) == 2
    finished = [one["method"] for one in seen if one["event"] == "request_finished"]
    assert finished == ["initialize", "ping", "ping"]


def test_hook_is_called_before_the_tool_runs(tmp_path: Path) -> None:
    """The hook therefore also sees a request that hangs."""
    seen: list[str] = []

    def feature(surface: Surface) -> None:
        def work(_call: Call, _arguments: Message) -> Message:
            seen.append("tool")
            return {}

        surface.toolbox.add(tool("slow", work))

    def hook(facts: Message) -> None:
        seen.append(facts["event"])

    with InProcess(Settings([str(tmp_path)], hooks=[hook]), [feature]) as client:
        client.send(call(1, "slow"))
        client.hear()
    assert seen == ["request_began", "tool", "request_finished"]


def test_hooks_receive_the_start_and_end_of_a_session() -> None:
    seen: list[Message] = []
    with InProcess(Settings(hooks=[seen.append])) as client:
        client.open("2025-11-25")
        client.send(request(1, "ping"))
        client.hear()
        client.end_input()
        client.rest()
    events = [one["event"] for one in seen]
    assert events == [
        *("request_began", "session_began", "request_finished"),
        *("request_began", "request_finished", "session_ended"),
    ]
    opened, ended = seen[1], seen[-1]
    assert opened["client"] == {"name": "test", "version": "1"}
    assert opened["revision"] == "2025-11-25"
    assert opened["request_id"] == seen[0]["request_id"]
    assert ended.pop("duration_ms") >= 0
    assert {**ended, "event": "session_began"} == opened


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_request_id_of_an_error_appears_in_the_log(revision: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    key = "mcp-touchstone/request_id"
    with writer(tmp_path, "--log-level=debug") as client:
        client.open(revision)
        client.send(
            ask(revision, 1, "tools/call", name="file_read", arguments={"path": "none"}),
            ask(revision, 2, "no/such/method"),
            ask(revision, 3, "resources/read", uri="workspace:///none"),
            b"not json",
            ask(revision, 4, "tools/call", name="write", arguments={"path": "b", "file_text": ""}),
        )
        heard = [client.hear() for _ in range(5)]
        entries = records(client)
    answers = {one.get("id"): one for one in heard}
    ids = {
        1: answers[1]["result"]["_meta"][key],
        2: answers[2]["error"]["data"]["request_id"],
        3: answers[3]["error"]["data"]["request_id"],
        None: answers[None]["error"]["data"]["request_id"],
    }
    for number, request_id in ids.items():
        found = [one for one in entries if one.get("request_id") == request_id]
        last = found[-1]
        assert last.get("id") == (number if last["event"] != "refused" else None)
        began = [one["event"] for one in found[:-1]]
        assert began == (["request_began"] if number in (1, 3) else [])
    (written,) = (one for one in entries if one["event"] == "write")
    (finished,) = (one for one in entries if one.get("tool") == "write" and "status" in one)
    assert written["request_id"] == finished["request_id"]


def test_debug_level_adds_request_began_and_part_loaded(tmp_path: Path) -> None:
    events = {}
    for level in ("info", "debug"):
        with writer(tmp_path, "--log-level", level) as client:
            client.open("2025-11-25")
            client.send(request(1, "tools/call", {"name": "write", "arguments": {"path": "a"}}))
            client.hear()
            events[level] = {one["event"] for one in records(client)}
    assert events["debug"] - events["info"] == {"request_began", "part_loaded"}
    assert events["info"] >= {"session_began", "session_ended"}


def test_exception_in_a_hook_is_logged_and_ignored(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Message] = []

    def broken(facts: Message) -> None:
        facts.clear()
        raise KeyError("canary")

    with InProcess(Settings(hooks=[broken, seen.append])) as client:
        client.send(modern(1, "server/discover"), modern(2, "server/discover"))
        assert [client.hear()["id"] for _ in range(2)] == [1, 2]
    assert [one["method"] for one in seen] == ["server/discover"] * 4
    found = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(one["event"], one["type"]) for one in found] == [("hook_failed", "KeyError")] * 4


def test_sigterm_finishes_and_audits_running_writes(tmp_path: Path) -> None:
    with writer(tmp_path, "--log-level=info") as client:
        client.send(
            *[call(n, "write", path=f"{n}.txt", file_text="x" * 100_000) for n in range(30)]
        )
        assert "result" in client.hear()
        client.process.send_signal(signal.SIGTERM)
        heard = 1 + sum("result" in one for one in client.rest())
        assert client.exit_code() == 0
        entries = [json.loads(line) for line in client.stderr().splitlines()]
    files = sorted(tmp_path.iterdir())
    assert [one for one in files if one.stat().st_size != 100_000] == []
    audit = {one["path"] for one in entries if one["event"] == "write"}
    assert audit == {one.name for one in files}
    assert heard == len(files)


def test_server_without_log_output_starts_no_log_thread() -> None:
    with InProcess() as client:
        client.send(modern(1, "server/discover"))
        client.hear()
        assert "mcp-log" not in {thread.name for thread in threading.enumerate()}
