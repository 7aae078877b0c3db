"""Tools called as tasks, and the long-running tree digest of the reference server."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reference_server import bundle
from reference_server.failure import ToolError
from reference_server.features import tasks
from reference_server.protocol.errors import ProtocolError
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.cases import cases
from tests.client_questions import tool
from tests.reference_client import (
    PATIENCE,
    InProcess,
    Message,
    code_of,
    data_of,
    initialize,
    notification,
    request,
)

R = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
ENDED = ("completed", "failed", "cancelled")


class Bench:
    """A client with tools that it can call as tasks."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()
        self.stopped = threading.Event()
        self.client = InProcess(
            Settings([str(root)], **settings), [*bundle.ALL_FEATURES, self.offer]
        )
        self.statuses: list[Message] = []
        self.others: list[Message] = []

    def offer(self, surface: Surface) -> None:
        def wait(call: Any, _arguments: Any) -> Message:
            self.begun.set()
            call.progress(1, 2)
            deadline = time.monotonic() + PATIENCE
            while not self.go.wait(0.01):
                assert time.monotonic() < deadline
                try:
                    call.check()
                finally:
                    if call.cancelled:
                        self.stopped.set()
            call.progress(2, 2)
            return {"done": True}

        def stubborn(_call: Any, _arguments: Any) -> Message:
            self.begun.set()
            assert self.go.wait(PATIENCE)
            self.stopped.set()
            return {"done": True}

        def fail(_call: Any, _arguments: Any) -> Message:
            raise ToolError("It cannot be done.", code="NEVER")

        def refuse(_call: Any, _arguments: Any) -> Message:
            raise ProtocolError(-32603, "Refused", {"why": 1})

        def break_down(_call: Any, _arguments: Any) -> Message:
            raise ZeroDivisionError

        def elicit(call: Any, _arguments: Any) -> Message:
            schema = {"type": "object", "properties": {}}
            params = {"message": "Go on?", "requestedSchema": schema}
            answer: Message = call.ask("q", "elicitation/create", params)
            return answer

        works: list[tuple[str, Callable[[Any, Any], Message], bool]] = [
            *(("wait", wait, True), ("stubborn", stubborn, True), ("fail", fail, True)),
            *(("refuse", refuse, True), ("break", break_down, True), ("elicit", elicit, True)),
            ("plain", lambda _call, _arguments: {"done": True}, False),
        ]
        schema = {"type": "object", "additionalProperties": False}
        for name, work, task in works:
            surface.toolbox.add(tool(name, work, input_schema=schema, task=task))

    def hear(self, request_id: Any) -> Message:
        """Return the answer to a request; sort what comes before it."""
        while True:
            message: Message = self.client.hear()
            if "method" not in message and message["id"] == request_id:
                return message
            status = message.get("method") == "notifications/tasks/status"
            (self.statuses if status else self.others).append(message)

    def send(self, request_id: Any, method: str, **params: Any) -> None:
        self.client.send(request(request_id, method, params))

    def ask(self, request_id: Any, method: str, **params: Any) -> Message:
        self.send(request_id, method, **params)
        return self.hear(request_id)

    def start(self, name: str, task: Any = None, **more: Any) -> Message:
        """Start a task and return its first state."""
        answer = self.ask("start", "tools/call", name=name, task=task or {}, **more)
        assert set(answer["result"]) == {"task", "_meta"}, answer
        found: Message = answer["result"]["task"]
        assert answer["result"]["_meta"] == {RELATED: {"taskId": found["taskId"]}}
        assert found["status"] == "working"
        check_shape(found)
        return found

    def get(self, task: Message) -> Message:
        found: Message = self.ask("get", "tasks/get", taskId=task["taskId"])["result"]
        check_shape(found)
        return found

    def until_ended(self, task: Message) -> Message:
        deadline = time.monotonic() + PATIENCE
        while (found := self.get(task))["status"] not in ENDED:
            assert time.monotonic() < deadline
        return found

    def ids(self) -> list[str]:
        found = self.ask("list", "tasks/list")["result"]
        assert "nextCursor" not in found
        return [task["taskId"] for task in found["tasks"]]


def check_shape(task: Message) -> None:
    members = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}
    assert set(task) - {"statusMessage"} == members
    assert len(task["taskId"]) >= 22
    created, updated = (datetime.fromisoformat(task[key]) for key in ("createdAt", "lastUpdatedAt"))
    assert created.utcoffset() is not None
    assert created <= updated
    assert type(task["ttl"]) is int
    assert type(task["pollInterval"]) is int


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "sub").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / "b.txt").write_bytes(b"two")
    (place / "a").write_bytes(b"")
    (place / "sub" / "c.txt").write_bytes(b"three")
    (place / ".git" / "config").write_bytes(b"denied")
    return place


@pytest.fixture
def bench(root: Path) -> Iterator[Bench]:
    one = Bench(root)
    with one.client as client:
        client.open(R)
        yield one
        one.go.set()


def test_task_is_created_at_once_and_completes(bench: Bench) -> None:
    task = bench.start("wait")
    assert bench.get(task)["status"] == "working"
    bench.send("later", "tasks/result", taskId=task["taskId"])
    assert bench.get(task)["status"] == "working"
    bench.go.set()
    result = bench.hear("later")["result"]
    plain = bench.ask("plain", "tools/call", name="wait")["result"]
    assert result == {**plain, "_meta": {RELATED: {"taskId": task["taskId"]}}}
    assert bench.ask("again", "tasks/result", taskId=task["taskId"])["result"] == result
    ended = bench.get(task)
    assert ended["status"] == "completed"
    assert ended["createdAt"] == task["createdAt"]
    (status,) = bench.statuses
    assert status["params"] == ended
    assert not bench.others


@cases(
    ("refuse", {"code": -32603, "message": "Refused", "data": {"why": 1}}),
    ("break", {"code": -32603, "message": "Internal error", "data": {}}),
)
def test_protocol_error_makes_a_failed_task(bench: Bench, name: str, error: Message) -> None:
    task = bench.start(name)
    answer = bench.ask("result", "tasks/result", taskId=task["taskId"])
    assert {**answer["error"], "data": data_of(answer)} == error
    ended = bench.get(task)
    assert (ended["status"], ended["statusMessage"]) == ("failed", error["message"])


def test_tasks_and_calls_run_concurrently(bench: Bench) -> None:
    started = [bench.start("wait") for _ in range(8)]
    assert len({task["taskId"] for task in started}) == 8
    assert "result" in bench.ask("quick", "tools/call", name="plain")
    for number, task in enumerate(started):
        bench.send(number, "tasks/result", taskId=task["taskId"])
    assert "result" in bench.ask("ping", "ping")
    bench.go.set()
    for number in range(8):
        while number not in [message.get("id") for message in bench.others]:
            bench.others.append(bench.client.hear())


def test_task_progress_keeps_its_token_and_names_the_task(bench: Bench) -> None:
    bench.send("start", "tools/call", name="wait", task={}, _meta={"progressToken": "p"})
    task = bench.hear("start")["result"]["task"]
    bench.go.set()
    bench.until_ended(task)
    related = {RELATED: {"taskId": task["taskId"]}}
    reported = [message["params"] for message in bench.others]
    assert reported[0] == {"progressToken": "p", "progress": 1, "total": 2, "_meta": related}
    assert all(params["_meta"] == related for params in reported)
    assert RELATED not in bench.statuses[-1]["params"].get("_meta", {})


def test_task_that_asks_the_client_is_input_required(root: Path) -> None:
    bench = Bench(root)
    with bench.client as client:
        hello = initialize(R)
        hello["params"]["capabilities"] = {"elicitation": {}}
        client.send(hello, notification("notifications/initialized"))
        client.hear()
        task = bench.start("elicit")
        while not bench.others:
            bench.others.append(client.hear())
        question = bench.others[0]
        assert question["method"] == "elicitation/create"
        assert question["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        deadline = time.monotonic() + PATIENCE
        while bench.get(task)["status"] != "input_required":
            assert time.monotonic() < deadline
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert bench.until_ended(task)["status"] == "completed"
        seen = [message["params"]["status"] for message in bench.statuses]
        assert seen == ["input_required", "working", "completed"]


def test_no_task_status_is_sent_before_initialized(root: Path) -> None:
    bench = Bench(root)
    with bench.client as client:
        client.send(initialize(R))
        client.hear()
        bench.until_ended(bench.start("fail"))
        assert not bench.statuses


@cases({"ttl": "60000"}, {"ttl": -1}, {"ttl": None})
def test_invalid_task_member_is_refused(bench: Bench, task: Any) -> None:
    assert code_of(bench.ask(1, "tools/call", name="wait", task=task)) == -32602
    assert bench.ids() == []


def test_number_of_tasks_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_TASKS", 2)
    monkeypatch.setattr(tasks, "SHORTEST_TTL", 0)
    bench.start("wait")
    quick = bench.start("fail", {"ttl": 0})
    refused = bench.ask(1, "tools/call", name="wait", task={})
    if "error" in refused:  # the quick one may be over already
        assert code_of(refused) == -32600
        deadline = time.monotonic() + PATIENCE
        while "error" not in bench.ask("get", "tasks/get", taskId=quick["taskId"]):
            assert time.monotonic() < deadline
        bench.start("wait")


def test_cancelled_task_stops_and_stays_cancelled(bench: Bench) -> None:
    task = bench.start("wait")
    assert bench.begun.wait(PATIENCE)
    bench.send("waiting", "tasks/result", taskId=task["taskId"])
    bench.send("cancel", "tasks/cancel", taskId=task["taskId"])
    assert code_of(bench.hear("waiting")) == -32602
    cancelled = bench.hear("cancel")["result"]
    check_shape(cancelled)
    assert cancelled["status"] == "cancelled"
    assert cancelled["statusMessage"]
    assert bench.stopped.wait(PATIENCE)
    assert bench.get(task) == cancelled
    assert code_of(bench.ask("result", "tasks/result", taskId=task["taskId"])) == -32602
    assert code_of(bench.ask("again", "tasks/cancel", taskId=task["taskId"])) == -32602
    assert [message["params"]["status"] for message in bench.statuses] == ["cancelled"]


def test_cancelled_task_that_continues_working_stays_cancelled(bench: Bench) -> None:
    task = bench.start("stubborn")
    assert bench.begun.wait(PATIENCE)
    bench.ask("cancel", "tasks/cancel", taskId=task["taskId"])
    bench.go.set()
    assert bench.stopped.wait(PATIENCE)
    assert bench.client.hears_nothing(0.1)
    assert bench.get(task)["status"] == "cancelled"
    assert len(bench.statuses) == 1


def test_cancelling_a_result_request_does_not_cancel_the_task(bench: Bench) -> None:
    task = bench.start("wait")
    bench.send("waiting", "tasks/result", taskId=task["taskId"])
    bench.client.send(notification("notifications/cancelled", {"requestId": "waiting"}))
    assert bench.get(task)["status"] == "working"
    bench.go.set()
    assert bench.until_ended(task)["status"] == "completed"
    assert not bench.others


def test_cancelling_the_answered_call_does_not_cancel_the_task(bench: Bench) -> None:
    task = bench.start("wait")
    bench.client.send(notification("notifications/cancelled", {"requestId": "start"}))
    bench.go.set()
    assert bench.until_ended(task)["status"] == "completed"


@cases(
    ({}, tasks.DEFAULT_TTL),
    ({"ttl": 60_000}, 60_000),
    ({"ttl": 60_000.0}, 60_000),
    ({"ttl": 0}, tasks.SHORTEST_TTL),
    ({"ttl": 10**400}, tasks.LONGEST_TTL),
    ({"ttl": 1e300}, tasks.LONGEST_TTL),
    ({"taskId": "mine"}, tasks.DEFAULT_TTL),
)
def test_requested_ttl_is_limited(bench: Bench, wanted: Any, given: int) -> None:
    task = bench.start("fail", wanted)
    assert task["ttl"] == given
    assert bench.get(task)["ttl"] == given
    assert task["taskId"] != "mine"


def test_ended_task_is_removed_after_its_ttl(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SHORTEST_TTL", 0)
    task = bench.start("wait", {"ttl": 0})
    assert bench.get(task)["status"] == "working", "never while it works"
    bench.send("waiting", "tasks/result", taskId=task["taskId"])
    bench.ask("ping", "ping")
    bench.go.set()
    assert "result" in bench.hear("waiting")
    assert bench.ids() == []
    assert code_of(bench.ask("get", "tasks/get", taskId=task["taskId"])) == -32602


def test_end_of_input_waits_for_a_requested_task_result(root: Path) -> None:
    bench = Bench(root)
    with bench.client as client:
        client.open(R)
        task = bench.start("wait")
        abandoned = bench.start("stubborn")
        bench.send("owed", "tasks/result", taskId=task["taskId"])
        client.end_input()
        bench.go.set()
        assert "result" in bench.hear("owed")
        assert abandoned
    assert client.code == 0


def digest(root: Path, max_file_size: Any = 100, **arguments: Any) -> Message:
    with InProcess(Settings([str(root)], max_file_size=max_file_size)) as client:
        return client.call("workspace_digest", **arguments)


def expected(files: dict[str, bytes]) -> str:
    lines = [f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_digest_equals_sha256sum_output(root: Path) -> None:
    found = digest(root)
    assert found["sha256"] == expected({"a": b"", "b.txt": b"two", "sub/c.txt": b"three"})


def test_digest_covers_only_the_given_directory(root: Path) -> None:
    for arguments in ({"path": "sub"}, {"path": ".", "cwd": "sub"}):
        found = digest(root, **arguments)
        assert found["sha256"] == expected({"sub/c.txt": b"three"})


def test_digest_counts_files_over_the_size_limit(root: Path) -> None:
    found = digest(root, max_file_size=3)
    assert (found["files"], found["left_out"], found["bytes"]) == (2, 1, 3)
