"""``golden record`` and ``golden verify``: recorded files, differences and exit status."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import UsageError
from mcp_touchstone.golden import recorder
from mcp_touchstone.golden.recorder import GoldenResult
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.target.values import Arguments
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.json_diff import ANY_ORDER, VOLATILE, where
from tests.cases import cases
from tests.commands import run_here
from tests.conftest import HERE
from tests.hostile_cases import hostile

pytestmark = pytest.mark.slow

SERVER = (sys.executable, "-S", str(HERE / "golden_server.py"), ROOT)
REVISION = "2025-11-25"


def record(*arguments: Any, **options: Any) -> GoldenResult:
    """Record the questions only."""
    return recorder.record(*arguments, **options)[0]


def verify(*arguments: Any, **options: Any) -> GoldenResult:
    """Compare the questions only."""
    return recorder.verify(*arguments, **options)[0]


SECRET = {"MY_API_KEY": "s3cret-s3cret"}
Calls = tuple[tuple[str, Arguments], ...]
ENV = ("--env", "MY_API_KEY=s3cret-s3cret")


def target(*features: str, call: Calls = ()) -> Target:
    command = (*SERVER, *features)
    return Target(command=command, timeout=20.0, call=call, env=SECRET)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "kept"
    record(target(), folder)
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """A copy of a recording that a test may change."""
    return Path(shutil.copytree(recorded, tmp_path / "kept"))


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / REVISION / f"{name}.json").read_text(encoding="utf-8"))


def answered_json(folder: Path, name: str) -> Any:
    """Return the JSON value in the text of a tool's answer."""
    return read(folder, name)["answer"]["result"]["content"][0]["text"]["<JSON>"]


def differences(held: GoldenResult) -> dict[str, list[tuple[str, Any, Any]]]:
    return {
        name: [(where(one.path), one.old, one.new) for one in found]
        for (_revision, name), found in held.differing.items()
    }


def test_recording_has_one_file_per_request(recorded: Path) -> None:
    assert {path.stem for path in (recorded / REVISION).iterdir()} == {
        "opening",
        "ping",
        "list-tools",
        "call-echo",
        "call-look",
        "unasked",
        "error-unknown-method",
        "error-unknown-tool",
        "error-tool-without-a-name",
        "error-argument-missing",
        "error-argument-mistyped",
    }
    assert [path.name for path in recorded.iterdir()] == [REVISION]


def test_recording_replaces_values_that_vary_between_runs(recorded: Path) -> None:
    assert answered_json(recorded, "call-look") == {
        "root": "{root}",
        "now": "<time>",
        "day": "<weekday>",
        "seconds": "<time>",
        "static": "2020-02-20T20:20:20Z",
        "environment": "<environment>",
        "secret": "<MY_API_KEY>",
        "lines": {"<text>": ["first", "second"]},
    }


def test_random_values_and_random_order_are_marked(tmp_path: Path) -> None:
    server = replace(
        target("random", "shuffled"), env={**SECRET, "COUNTER": str(tmp_path / "counter")}
    )
    held = record(server, tmp_path / "kept")

    assert answered_json(tmp_path / "kept", "call-look")["id"] == VOLATILE
    assert answered_json(tmp_path / "kept", "call-look")["lines"] == {"<text>": ["first", VOLATILE]}
    assert held.exit_code == 0
    tools = read(tmp_path / "kept", "list-tools")["answer"]["result"]["tools"]
    assert [tools[0], *(tool["name"] for tool in tools[1:])] == [ANY_ORDER, "echo", "look", "write"]
    assert verify(server, tmp_path / "kept").exit_code == 0


def test_tools_that_are_not_called_are_reported(recorded: Path, tmp_path: Path) -> None:
    assert verify(target(), recorded).silent_tools == ["write"]

    held = record(target(call=(("more", {}),)), tmp_path / "kept")
    assert not (tmp_path / "kept" / REVISION / "call-more.json").exists(), "it is not offered"
    assert held.exit_code == 0


def test_user_arguments_may_contain_the_root_placeholder(tmp_path: Path) -> None:
    record(target(call=(("echo", {"word": "{root}/notes"}),)), tmp_path / "kept")

    kept = read(tmp_path / "kept", "call-echo")
    assert kept["ask"]["params"]["arguments"] == {"word": "{root}/notes"}
    assert kept["answer"]["result"]["content"][0]["text"] == "{root}/notes"


def test_recording_is_replaced_only_with_update(folder: Path) -> None:
    with pytest.raises(UsageError, match="holds a recording"):
        record(target("loud"), folder)
    before = read(folder, "call-echo")

    held = record(target("loud", "without-look"), folder, update=True)

    assert read(folder, "call-echo") != before
    assert [path.stem for path in held.removed] == ["call-look"]
    assert held.exit_code == 0


def test_unchanged_server_matches_its_recording(recorded: Path) -> None:
    for _ in range(2):
        held = verify(target(), recorded)
        assert (held.exit_code, differences(held), held.unsteady) == (0, {}, {})
        assert (held.missing, held.unused, held.written) == ([], [], [])


def test_difference_names_tool_field_and_both_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = verify(target("described", "loud", "released"), folder)

    assert held.exit_code == 1
    assert differences(held) == {
        "opening": [("answer.result.serverInfo.version", "1", "2")],
        "list-tools": [
            ("answer.result.tools.echo.description", "Says it again.", "Says it once more.")
        ],
        "call-echo": [("answer.result.content[0].text", "hello", "HELLO")],
    }
    words = ["golden", "verify", "--folder", str(folder), "--", *SERVER, "described"]
    assert main(words) == 1
    shown = capsys.readouterr().out
    assert "CHANGED  tools/list" in shown
    assert "echo: description" in shown
    assert '- "Says it again."' in shown
    assert '+ "Says it once more."' in shown


def test_changed_order_is_a_difference(folder: Path) -> None:
    held = verify(target("turned"), folder)

    assert differences(held)["list-tools"] == [
        ("answer.result.tools.(order)", ["echo", "look", "write"], ["write", "look", "echo"])
    ]


def test_any_version_option_ignores_the_server_version(tmp_path: Path) -> None:
    record(target(), tmp_path / "kept", any_version=True)

    assert verify(target("released"), tmp_path / "kept").exit_code == 0


def test_crash_is_a_difference_and_other_requests_continue(folder: Path) -> None:
    held = verify(target("crashing"), folder)

    last = differences(held)["call-echo"][-1]
    assert last == ("answer.silence", last[1], "the server left")
    assert set(differences(held)) == {"call-echo"}


def test_tool_that_is_no_longer_read_only_is_not_called(folder: Path) -> None:
    held = verify(target("dangerous"), folder)

    assert (REVISION, "call-echo") in held.unused
    assert ("answer.result.tools.echo.annotations.readOnlyHint", True, False) in differences(held)[
        "list-tools"
    ]


def test_intermittent_difference_is_reported_as_unsteady_and_passes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")  # recon calls it too, so the first tour finds an odd number
    words = [
        "golden",
        "verify",
        "--folder",
        str(folder),
        "--env",
        f"COUNTER={counter}",
        *ENV,
        "--",
        *SERVER,
        "sometimes",
    ]

    assert main(words) == 0
    assert "unsteady tools/call look" in capsys.readouterr().out
    assert answered_json(folder, "call-look")["lines"] == {"<text>": ["first", "second"]}

    assert main([*words[:2], "--update", *words[2:]]) == 0
    assert answered_json(folder, "call-look")["lines"] == {"<text>": ["first", VOLATILE]}


def test_missing_record_fails_unless_create_is_set(folder: Path) -> None:
    before = read(folder, "call-echo")
    path = folder / REVISION / "call-echo.json"
    path.unlink()

    held = verify(target(), folder)
    assert (held.exit_code, held.missing, path.exists()) == (1, [(REVISION, "call-echo")], False)

    held = verify(target(), folder, create=True)
    assert (held.exit_code, held.written) == (0, [path])
    assert read(folder, "call-echo") == before


def test_new_tool_changes_the_list_and_has_a_missing_record(folder: Path) -> None:
    held = verify(target("more"), folder)

    assert [one[0] for one in differences(held)["list-tools"]] == [
        "pages[0]",
        "answer.result.tools.more",
    ]
    assert held.missing == [(REVISION, "call-more")]


def test_unused_record_is_a_failure(folder: Path) -> None:
    (folder / REVISION / "call-gone.json").write_text(
        '{"ask": {"method": "tools/call", '
        '"params": {"name": "gone", "arguments": {}}}, "answer": {}}'
    )
    (folder / "2024-11-05").mkdir()
    (folder / "2024-11-05" / "opening.json").write_text("{}")

    held = verify(target(), folder)

    assert held.exit_code == 1
    assert held.unused == [("2024-11-05", "opening"), (REVISION, "call-gone")]
    assert verify(target(), folder, (REVISION,)).unused == [(REVISION, "call-gone")]


def test_update_writes_differences_and_keeps_manual_marks(folder: Path) -> None:
    marked = read(folder, "list-tools")
    marked["answer"]["result"]["tools"][1]["inputSchema"] = VOLATILE
    tools = marked["answer"]["result"]["tools"]
    marked["answer"]["result"]["tools"] = [ANY_ORDER, *tools]
    (folder / REVISION / "list-tools.json").write_text(json.dumps(marked))

    held = verify(target("described", "without-look", "turned"), folder, update=True)

    assert held.exit_code == 0
    assert (folder / REVISION / "call-look.json") in held.removed
    assert read(folder, "list-tools")["answer"]["result"]["tools"][0] == ANY_ORDER
    assert verify(target("described", "without-look"), folder).exit_code == 0


def test_manual_volatile_mark_accepts_any_value(folder: Path) -> None:
    kept = read(folder, "call-echo")
    kept["answer"]["result"]["content"] = VOLATILE
    (folder / REVISION / "call-echo.json").write_text(json.dumps(kept))

    assert verify(target("loud"), folder).exit_code == 0


def test_verify_sends_the_recorded_arguments(folder: Path) -> None:
    kept = read(folder, "call-echo")
    kept["ask"]["params"]["arguments"]["word"] = "hand-made in {root}"
    (folder / REVISION / "call-echo.json").write_text(json.dumps(kept))

    held = verify(target(), folder)

    assert differences(held)["call-echo"] == [
        ("answer.result.content[0].text", "hello", "hand-made in {root}")
    ]


def test_server_that_exits_at_start_raises_launch_error(folder: Path, tmp_path: Path) -> None:
    mute = Target(command=hostile("exits_at_once"), timeout=9.0)
    with pytest.raises(LaunchError):
        verify(mute, folder)
    with pytest.raises(LaunchError):
        record(mute, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@cases(
    (["--", str(HERE / "none")], "none"),
    (["--revision", "2026-07-28", "--", *SERVER], "the server speaks only 2025-11-25"),
)
def test_record_without_usable_server_prints_one_line_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["golden", "record", "--folder", str(tmp_path / "new"), *words]) == 2

    complaint = capsys.readouterr().err
    assert said in complaint
    assert complaint.count("\n") == 1


def test_invalid_json_record_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / REVISION / "ping.json").write_text("{")

    assert main(["golden", "verify", "--folder", str(folder), "--", *SERVER]) == 2
    assert "ping.json" in capsys.readouterr().err


def test_verify_records_nothing_without_create(folder: Path) -> None:
    shutil.rmtree(folder)
    for words, status in (((), 2), (("--create",), 0)):
        server = ("--folder", str(folder), "--", *SERVER)
        done = run_here("golden", "verify", *words, *server, CI="true")
        assert done.returncode == status, done.stdout + done.stderr
        assert ("no recording" in done.stderr) == (status == 2)
        assert folder.exists() == (status == 0)
