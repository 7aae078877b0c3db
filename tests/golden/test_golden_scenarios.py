"""The responses in the scenarios of a suite: recorded files, differences, pytest and the action."""

import json
import shlex
import shutil
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.cli import main
from mcp_touchstone.golden import scenarios
from mcp_touchstone.golden.recorder import record, recorded_suite, verify
from mcp_touchstone.report import golden as report
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.wire.framing import Line, encode
from mcp_touchstone.wire.json_diff import VOLATILE
from mcp_touchstone.wire.transcript import Transcript
from tests.bridge_client import WAIT
from tests.conftest import HERE, LEAN
from tests.http_canned import mcp, message_of, serving
from tests.project.test_action import needs_bash, run_step

pytestmark = pytest.mark.slow

REVISION = "2025-11-25"
SERVER = (sys.executable, "-S", str(HERE / "golden_server.py"), ROOT)


def target(*features: str) -> Target:
    return Target(command=(*SERVER, *features), timeout=20.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording, made by the command line."""
    folder = tmp_path_factory.mktemp("golden") / "kept"
    words = ["golden", "record", "--suite", "conformance", "--folder", str(folder), "--", *SERVER]
    assert main(words) == 0
    return folder


@pytest.fixture(scope="module")
def over_http(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a server that speaks HTTP, which ran already."""
    folder = tmp_path_factory.mktemp("golden") / "kept"
    with Listener(Launch(command=SERVER), most=16, startup=WAIT) as listener:
        words = ["golden", "record", "--suite", "conformance", "--revision", REVISION]
        assert main([*words, "--folder", str(folder), listener.start()]) == 0
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the recording that a test may change."""
    return Path(shutil.copytree(recorded, tmp_path / "kept"))


def chapter(folder: Path, name: str) -> Any:
    path = folder / "scenarios" / REVISION / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_recording_has_one_file_per_chapter(recorded: Path) -> None:
    names = {path.stem for path in (recorded / "scenarios" / REVISION).iterdir()}

    assert {"basic-ping", "basic-jsonrpc", "basic-lifecycle", "server-tools"} <= names
    assert chapter(recorded, "basic-ping")["answers_a_ping"][0] == {
        "ask": {"method": "ping"},
        "answer": {"result": {}},
    }
    assert recorded_suite(recorded) == "conformance"


def test_recording_holds_errors_and_invalid_lines(recorded: Path) -> None:
    exchanges = [one for found in chapter(recorded, "basic-jsonrpc").values() for one in found]
    codes = {one["answer"]["error"]["code"] for one in exchanges if "error" in one["answer"]}

    assert -32601 in codes
    assert any("line" in one["ask"] for one in exchanges)


def test_recording_does_not_contain_folders_or_ids_of_the_run(recorded: Path) -> None:
    text = "".join(path.read_text("utf-8") for path in recorded.rglob("*.json"))

    assert "mcp-touchstone-held" not in text
    assert '"id"' not in json.dumps(chapter(recorded, "server-tools"))


def test_recording_over_http_holds_unusual_requests_with_the_status(over_http: Path) -> None:
    foreign = chapter(over_http, "http-origin")["refuses_a_request_of_a_foreign_page_in_a_session"]
    ended = chapter(over_http, "http-sessions")["answers_404_after_the_end_of_a_session"]

    sent = {(one["ask"].get("http"), one.get("answer", {}).get("http")) for one in foreign}
    assert ("POST /mcp with Origin: http://touchstone.invalid", 403) in sent
    asked = [(one["ask"].get("http", ""), one.get("answer", {}).get("http")) for one in ended]
    statuses = {(line.split()[0], status) for line, status in asked if line}
    assert statuses >= {("DELETE", 204), ("POST", 404), ("GET", 404), ("DELETE", 404)}
    assert any("Mcp-Session-Id: <session>" in line for line, _ in asked)


def test_error_without_an_id_answers_the_request_of_its_exchange(over_http: Path) -> None:
    refused = chapter(over_http, "basic-jsonrpc")["refuses_invalid_requests"]

    assert refused[0]["ask"]["method"] == 5
    assert refused[0]["answer"]["error"]["code"] == -32600
    pings = [one for one in refused if one["ask"] == {"method": "ping"}]
    assert {str(one.get("answer")) for one in pings} == {"{'result': {}}"}


def test_server_on_another_port_matches_the_recording_over_http(over_http: Path) -> None:
    with Listener(Launch(command=SERVER), most=16, startup=WAIT) as listener:
        words = ["golden", "verify", "--folder", str(over_http), "--revision", REVISION]
        assert main([*words, listener.start()]) == 0


def test_unchanged_server_matches_the_recorded_scenarios(recorded: Path) -> None:
    questions, scenarios = verify(target(), recorded)

    assert (questions.exit_code, scenarios.exit_code) == (0, 0)
    assert not scenarios.unsteady


def test_changed_response_names_the_scenario_and_the_request(folder: Path) -> None:
    _questions, scenarios = verify(target("loud"), folder)
    lines = list(report.verified(scenarios))

    assert scenarios.exit_code == 1
    changed = [line for line in lines if line.startswith("CHANGED")]
    assert changed
    assert all(
        line.split()[1] in {"server-tools", "basic-stdio"} or "-" in line for line in changed
    )
    assert any("tools/call echo: answer.result.content" in line for line in lines)


def test_update_records_changed_scenarios(folder: Path) -> None:
    verify(target("loud"), folder, update=True)

    assert [one.exit_code for one in verify(target("loud"), folder)] == [0, 0]


def test_file_of_an_unknown_chapter_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder / "scenarios" / REVISION
    (place / "basic-ping.json").rename(place / "basic-pong.json")

    assert main(["golden", "verify", "--folder", str(folder), "--", *SERVER]) == 2
    assert "scenarios/*/basic-pong.json belongs" in capsys.readouterr().err


def run(pytester: pytest.Pytester, folder: Path, *words: str, loud: bool = False) -> Any:
    server = shlex.join([*SERVER, *(["loud"] if loud else [])])
    options = ["--mcp-server", server, "--mcp-select", "ping", "--mcp-golden", str(folder)]
    return pytester.runpytest_inprocess(*LEAN[:2], "-q", *options, *words)


def test_pytest_item_prints_differences_and_update_records_them(
    pytester: pytest.Pytester, folder: Path
) -> None:
    node = "mcp-golden::answers_as_recorded"
    failed = run(pytester, folder, node, loud=True)
    updated = run(pytester, folder, node, "--mcp-golden-update", loud=True)
    again = run(pytester, folder, node, loud=True)

    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["CHANGED *echo*", "*pytest --mcp-golden-update*"])
    failed.stdout.no_fnmatch_line("*Traceback*")
    updated.assert_outcomes(passed=1)
    again.assert_outcomes(passed=1)


@needs_bash
def test_action_fails_if_answers_differ_from_the_recording(tmp_path: Path, folder: Path) -> None:
    server = shlex.join([*SERVER, "loud"])
    done = run_step(
        tmp_path, "judge", command=server, golden=str(folder), arguments="--select ping"
    )

    assert done.code == 1, done.log
    assert "CHANGED" in done.log
    assert done.outputs["verdict"] == "passed, 2 clauses; answers differ from the golden recording"


def test_pytest_refuses_a_missing_recording(pytester: pytest.Pytester, tmp_path: Path) -> None:
    result = run(pytester, tmp_path / "none")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--mcp-golden *none: there is no such folder*"])


def test_attacks_with_several_calls_at_once_are_not_recorded() -> None:
    registry = load(SECURITY)
    chapters = set(scenarios.chapters_of(registry).values())

    assert "promises-patches" in chapters
    assert "promises-crowds" in {f"{c.group}-{c.chapter}" for c in registry.catalogue}
    assert "promises-crowds" not in chapters


def test_state_of_a_listed_task_is_volatile_while_only_time_decides() -> None:
    listed = [{"taskId": "a", "status": one} for one in ("working", "completed", "failed")]
    session = Transcript(REVISION, clock=lambda: 1.0, scenario="a.py::lists")
    session.said(b"", {"jsonrpc": "2.0", "id": 1, "method": "tasks/list"})
    raw = encode({"jsonrpc": "2.0", "id": 1, "result": {"tasks": listed}})
    session.heard(Line(raw, len(raw)))

    [(_, sent)] = scenarios._lines(session)
    [answer] = sent.answers

    assert [one["status"] for one in answer["result"]["tasks"]] == [VOLATILE, VOLATILE, "failed"]


def test_second_recording_is_made_in_another_second(tmp_path: Path) -> None:
    """Clocks often show seconds; the first recording answers late, and the second one at once."""
    answered: list[float] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        if message_of(request).get("method") == "ping":
            time.sleep(len(answered) == 1)  # discovery asks first
            answered.append(time.monotonic())
        mcp()(connection, request)

    with serving(answer) as server:
        record(Target(command=(), url=server.url), tmp_path / "kept", (REVISION,))

    _, first, second, _third = answered
    assert second - first >= 1.0
