"""Options and commands in arguments: what is theirs, and what it may cost to look."""

import io
import os
import time

import pytest
from rich.console import Console

from mcp_touchstone.attack import injecting
from mcp_touchstone.report.terminal import Terminal
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


def test_a_path_in_a_list_of_paths_is_no_option() -> None:
    run = attacked("ReadsAnyOfMany", ("injection-options",))

    (verdict,) = run.verdicts
    assert verdict.outcome is Outcome.PASS, verdict.gravest.actual
    assert "left to others, as plain paths do the like: args.option-" in verdict.gravest.actual


def test_a_tool_that_takes_long_is_left_at_some_point_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(injecting, "LEAST", 1.0)
    monkeypatch.setattr(injecting, "PURSE", 1.0)

    run = attacked("SortsSlowly", ("injection-commands",))

    (verdict,) = run.verdicts
    assert verdict.outcome is Outcome.NOTE
    left, _, fired = verdict.gravest.actual.partition("; no effect of ")
    assert left.startswith("left out, as it took too long: ")
    assert "sort_file" in left
    assert "live payloads through" in fired
    console = Console(file=io.StringIO(), width=100, record=True)
    Terminal(console).finish(run)
    assert "1 was not fired in full, as a tool took too long" in console.export_text()


def test_a_tool_that_does_not_answer_is_left_and_the_others_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(injecting, "LEAST", 1.0)
    monkeypatch.setattr(injecting, "PURSE", 1.0)

    begun = time.monotonic()
    run = attacked("SortsWithoutEnd", ("injection-options",))

    (verdict,) = run.verdicts
    assert time.monotonic() - begun < 20
    assert verdict.outcome is Outcome.NOTE, verdict.gravest.actual
    left, _, fired = verdict.gravest.actual.partition("; no effect of ")
    assert "sort_file" in left
    assert "list_directory" in fired
    assert "list_directory" not in left


def test_a_folder_is_not_copied_into_itself_again_and_again() -> None:
    begun = time.monotonic()
    run = attacked("CopiesFolders", ("injection",))

    assert {v.outcome for v in run.verdicts} == {Outcome.PASS}, run.verdicts
    assert time.monotonic() - begun < 20
