"""Injection of options and commands: false positives, time limits, servers without a root."""

import io
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.report.standing import closing
from mcp_touchstone.report.terminal import Terminal
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.sandbox.sandbox import choose
from tests.fakes.matrix import attack_file, attacked, target_of
from tests.runs import learning

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]


def test_path_in_a_list_of_paths_is_not_an_option() -> None:
    run = attacked("ReadsAnyOfMany", ("injection-options",))

    (verdict,) = run.verdicts
    assert verdict.outcome is Outcome.PASS, verdict.gravest.actual
    assert "effect: args.option-" in verdict.gravest.actual


def test_slow_tool_is_abandoned_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack_file("containment.injection"), "LEAST", 1.0)
    monkeypatch.setattr(attack_file("containment.injection"), "PURSE", 1.0)

    run = attacked("SortsSlowly", ("injection-commands",))

    (verdict,) = run.verdicts
    assert verdict.outcome is Outcome.NOTE
    left, _, fired = verdict.gravest.actual.partition("; no effect of ")
    assert left.startswith("left out")
    assert "sort_file" in left
    assert "payloads through" in fired
    console = Console(file=io.StringIO(), width=100, record=True)
    Terminal(console).finish(run)
    said = " ".join(console.export_text().split())
    assert "1 was not attacked in full, because a tool took too long or ended the server" in said


def test_silent_tool_is_abandoned_and_other_tools_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attack_file("containment.injection"), "LEAST", 1.0)
    monkeypatch.setattr(attack_file("containment.injection"), "PURSE", 1.0)

    begun = time.monotonic()
    run = attacked("SortsWithoutEnd", ("injection-options",))

    (verdict,) = run.verdicts
    assert time.monotonic() - begun < 20
    assert verdict.outcome is Outcome.NOTE, verdict.gravest.actual
    left, _, fired = verdict.gravest.actual.partition("; no effect of ")
    assert "sort_file" in left
    assert "list_directory" in fired
    assert "list_directory" not in left


def test_root_is_not_copied_into_itself() -> None:
    run = attacked("CopiesFolders", ("injection",))

    assert {v.outcome for v in run.verdicts} == {Outcome.PASS}, run.verdicts
    values = [entry.value for one in run.connections for entry in one.transcript]
    calls = [v["params"] for v in values if isinstance(v, dict) and v.get("method") == "tools/call"]
    copies = [call["arguments"] for call in calls if call["name"] == "sync_folders"]
    assert len(copies) > 50
    for copy in copies:
        source, target = copy["source_dir"], copy["target_dir"]
        assert source == target or not (source == "." or source.endswith("/root")), copy


def without_root(name: str, *select: str, root: str = ".") -> tuple[Run, ServerProfile]:
    """Attack a fake whose command does not name the throw-away root."""
    sandbox, why = choose("auto")
    if sandbox is None:
        pytest.skip(why)
    target = replace(target_of(name), method=sandbox)
    command = tuple(root if word == "{root}" else word for word in target.command)
    choice = Choice(select=select, jobs=2)
    return learning(replace(target, command=command), load(SECURITY), choice)


def test_server_without_root_is_started_in_it_and_attacked() -> None:
    run, profile = without_root("ReportsByShell", "injection-commands", "traversal-dotdot")

    assert {v.clause.id: v.outcome for v in run.verdicts} == {
        "injection-commands": Outcome.FAIL,
        "traversal-dotdot": Outcome.PASS,
    }
    assert any("no {root}" in remark for remark in profile.remarks)


def test_server_with_another_folder_is_attacked_by_injection_only(tmp_path: Path) -> None:
    run, _ = without_root("Reports", "injection-commands", "traversal-dotdot", root=str(tmp_path))

    assert {v.clause.id: v.outcome for v in run.verdicts} == {"injection-commands": Outcome.PASS}
    assert run.exit_code == 0
    assert closing(run)[2].endswith(
        "no attack on the protocol and the arguments of fake 1 succeeded; its files: not attacked"
    )
    assert not [*tmp_path.iterdir()]


def test_server_that_does_not_start_in_the_root_is_attacked_where_the_user_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").touch()
    monkeypatch.chdir(tmp_path)
    python, fake, name, _ = target_of("ReportsByShell").command
    words = ("/bin/sh", "-c", f"test -e mine && exec {python} {fake} {name} .")
    target = replace(target_of(name), command=words)
    run = judge(target, load(SECURITY), Choice(select=("injection-commands",), jobs=2))

    assert [v.outcome for v in run.verdicts] == [Outcome.FAIL], run.trouble


def test_climb_counts_without_a_root_and_absolute_paths_of_a_roaming_server_do_not() -> None:
    climbs, _ = without_root("ClimbingNotes", "traversal-dotdot")
    roams, _ = without_root("ReadsAnyOfMany", "traversal-absolute", "traversal-dotdot")

    assert [v.outcome for v in climbs.verdicts] == [Outcome.FAIL]
    assert {v.outcome for v in roams.verdicts} == {Outcome.NOTE}
    assert "--cwd" in roams.verdicts[0].gravest.because
    assert roams.exit_code == 0
    rooted = attacked("ReadsAnyOfMany", ("traversal-absolute",))
    assert [v.outcome for v in rooted.verdicts] == [Outcome.FAIL]


def test_server_without_root_and_sandbox_is_asked_for_nothing_that_writes() -> None:
    target = replace(target_of("ClimbingNotes"), method=None)
    target = replace(target, command=(*target.command[:-1], "."))
    run = judge(target, load(SECURITY), Choice(select=("traversal-dotdot", "injection-commands")))

    assert [v.outcome for v in run.verdicts] == [Outcome.UNSEEN]
    assert not target.guesses
