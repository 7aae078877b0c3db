"""Client roots narrow the files that the reference server serves."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reference_server.bundle import roots
from reference_server.protocol.calls import Call
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.cases import cases
from tests.client_questions import failure_of, tool
from tests.reference_client import InProcess, Message, notification, request, result


class Reader:
    """A feature with one tool that says whether a file can be found."""

    def __init__(self) -> None:
        self.read = threading.Event()

    def __call__(self, surface: Surface) -> None:
        def work(call: Call, arguments: Message) -> Message:
            self.read.set()
            found = surface.workspace.find(arguments["path"], check=call.check)
            return {"found": found is not None}

        surface.toolbox.add(tool("find", work))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path


@contextmanager
def with_roots(tree: Path, revision: str = "2025-11-25", **settings: Any) -> Iterator[InProcess]:
    reader = Reader()
    with InProcess(Settings([str(tree)], **settings), [roots, reader]) as client:
        client.open(revision, {"roots": {"listChanged": True}})
        yield client


def find(path: str, request_id: Any = 1) -> Message:
    return request(request_id, "tools/call", {"name": "find", "arguments": {"path": path}})


def outcome(answer: Message) -> str:
    if answer["result"].get("isError"):
        code = failure_of(answer)["code"]
        assert isinstance(code, str)
        return code
    found = json.loads(answer["result"]["content"][0]["text"])["found"]
    return "found" if found else "missing"


def uris(*paths: Path) -> list[Message]:
    return [{"uri": path.as_uri(), "name": path.name} for path in paths]


def look(client: InProcess, *paths: str) -> list[str]:
    client.send(*(find(path, number) for number, path in enumerate(paths)))
    heard = sorted((client.hear() for _ in paths), key=lambda message: int(message["id"]))
    return [outcome(message) for message in heard]


def test_requests_wait_for_the_roots_answer(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with with_roots(tree, log_level="info") as client:
        client.send(*(find("two/file", number) for number in range(200)))
        question = client.hear()
        assert question["method"] == "roots/list"
        assert client.hears_nothing()
        client.send(result(question, roots=uris(tree / "one")))
        heard = [client.hear() for _ in range(200)]
    assert {outcome(message) for message in heard} == {"OUTSIDE_CLIENT_ROOTS"}
    assert sorted(message["id"] for message in heard) == list(range(200))
    assert '"event": "roots", "count": 1' in capfd.readouterr().err


def test_unanswered_roots_request_delays_calls_only_briefly(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reference_server.features.roots.PATIENCE", 0.5)
    with with_roots(tree) as client:
        question = client.hear()
        client.send(request("p", "ping"))
        assert client.hear()["id"] == "p"
        began = time.monotonic()
        assert look(client, "two/file") == ["found"]
        assert time.monotonic() - began < 4
        began = time.monotonic()
        assert look(client, "one/file") == ["found"]
        assert time.monotonic() - began < 1
        client.send(result(question, roots=uris(tree / "one")))
        while look(client, "two/file") != ["OUTSIDE_CLIENT_ROOTS"]:
            assert time.monotonic() - began < 5


def test_waiting_request_can_be_cancelled(tree: Path) -> None:
    with with_roots(tree) as client:
        question = client.hear()
        client.send(find("one/file", 1), notification("notifications/cancelled", {"requestId": 1}))
        client.send(find("one/file", 2))
        client.send(result(question, roots=[]))
        assert client.hear()["id"] == 2
        assert client.hears_nothing()


def test_end_of_input_ends_the_wait_for_roots(tree: Path) -> None:
    with with_roots(tree) as client:
        client.hear()
        client.send(find("one/file"))
        client.end_input()
        (answer,) = client.rest()
    assert outcome(answer) == "found"
    assert client.code == 0


@cases(
    {"error": {"code": -32603, "message": "no"}},
    {"result": {}},
    {"result": {"roots": {}}},
    {"result": {"roots": [{"name": "no uri"}]}},
    {"result": {"roots": ["file:///"]}},
    {"result": {"roots": [{"uri": f"file:///{number}"} for number in range(1001)]}},
    {"result": {"roots": []}},
)
def test_roots_answer_without_a_boundary_changes_nothing(tree: Path, answer: Message) -> None:
    with with_roots(tree) as client:
        client.send({"jsonrpc": "2.0", "id": client.hear()["id"], **answer})
        assert look(client, "one/file", "two/file") == ["found", "found"]


def test_repeated_root_changes_cause_one_further_request(tree: Path) -> None:
    changed = notification("notifications/roots/list_changed")
    with with_roots(tree) as client:
        question = client.hear()
        client.send(*[changed] * 500, find("one/file"))
        client.send(result(question, roots=uris(tree / "one")))
        question = client.hear()
        assert question["method"] == "roots/list"
        client.send(result(question, roots=uris(tree / "two")))
        assert outcome(client.hear()) == "OUTSIDE_CLIENT_ROOTS"
        assert client.hears_nothing()
