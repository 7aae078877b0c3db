"""Injection of options and commands: false positives and time limits."""

import io
import os
import time

import pytest
from rich.console import Console

from mcp_touchstone.report.terminal import Terminal
from mcp_touchstone.results.verdict import Outcome
from tests.fakes.matrix import attack_file, attacked

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


def test_path_in_a_list_of_paths_is_not_an_option() -> None:
    run = attacked("ReadsAnyOfMany", ("injection-options",))

    (verdict,) = run.verdicts
    assert verdict.outcome is Outcome.PASS, verdict.gravest.actual
    assert (
        "left to others, as plain paths have the same effect: args.option-"
        in verdict.gravest.actual
    )


def test_slow_tool_is_abandoned_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attack_file("containment.injection"), "LEAST", 1.0)
    monkeypatch.setattr(attack_file("containment.injection"), "PURSE", 1.0)

    run = attacked("SortsSlowly", ("injection-commands",))

    (verdict,) = run.verdicts
    assert verdict.outcome is Outcome.NOTE
    left, _, fired = verdict.gravest.actual.partition("; no effect of ")
    assert left.startswith("left out, as it took too long: ")
    assert "sort_file" in left
    assert "live payloads through" in fired
    console = Console(file=io.StringIO(), width=100, record=True)
    Terminal(console).finish(run)
    assert "1 was not attacked in full, because a tool took too long" in console.export_text()


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


def test_folder_is_not_copied_into_itself() -> None:
    begun = time.monotonic()
    run = attacked("CopiesFolders", ("injection",))

    assert {v.outcome for v in run.verdicts} == {Outcome.PASS}, run.verdicts
    assert time.monotonic() - begun < 20
