"""What an attack shows: the call, the effect, and a script that shows it again without us."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.attack import siege
from mcp_touchstone.cli import main
from mcp_touchstone.gate import judge
from mcp_touchstone.loader import SECURITY, load
from mcp_touchstone.plan import Choice
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.terminal import in_full
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked, target_of
from tests.rerun import script_of, shows_it_again

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")

FAKES = Path(__file__).parent / "fakes"


def test_a_finding_says_what_came_back_by_which_call_and_why_it_matters() -> None:
    run = attacked("NetworkShare", ("traversal-absolute",))
    (finding,) = findings(run, Outcome.FAIL)
    told = in_full(run, finding)

    assert "critical" in told
    assert "CWE-36" in told
    assert "the bytes of outside/canary-file.txt came back: read_file" in told
    assert "--suite security --select traversal-absolute" in " ".join(told.split())
    assert len(finding.judgement.wire) == 2


@pytest.mark.parametrize(
    ("name", "threat", "said"),
    [
        ("NetworkShare", "traversal-absolute", "FOUND: a canary came back"),
        ("ResolvesThenNormalises", "traversal-two-readings", "FOUND: a canary came back"),
        ("OpensAnyRepository", "traversal-dotdot", "FOUND: a canary came back"),
        ("MakesRepositoriesAnywhere", "traversal-absolute", "FOUND: the outside changed"),
        ("AddsFilesOfOthers", "traversal-dotdot", "FOUND: a canary stands in the repository"),
        ("TrustsProc", "special-procfs", "FOUND: a canary came back"),
        ("ExpandsBehindCheck", "traversal-expansion", "FOUND: a canary came back"),
        ("OpensPipes", "special-pipes", "FOUND: the plain file was not read"),
    ],
)
def test_the_reproduction_runs_by_itself(name: str, threat: str, said: str, tmp_path: Path) -> None:
    run = attacked(name, (threat,))
    shows_it_again(script_of(run), said, tmp_path)


def test_what_passed_says_how_much_was_fired(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(FAKES), "Resolves", "{root}"]

    status = main([
        "check", "-q", "--suite", "security", "--select", "traversal-dotdot",
        "--json", str(report), "--", *command,
    ])  # fmt: skip

    (verdict,) = json.loads(report.read_text(encoding="utf-8"))["verdicts"]
    assert status == 0
    assert verdict["threat"]["severity"] == "critical"
    assert "live payloads through" in verdict["judgements"][0]["actual"]
    assert int(verdict["judgements"][0]["actual"].split()[0]) > 40


def test_the_files_of_a_server_without_a_root_are_not_attacked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, str(FAKES), "Resolves", "."]

    status = main(["check", "--suite", "security", "--select", "traversal", "--", *command])

    assert status == 2
    assert "put {root} into its command" in capsys.readouterr().err


def test_the_protocol_of_a_server_without_a_root_is_attacked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, str(FAKES), "Resolves", "."]

    status = main(["check", "--suite", "security", "--select", "lines", "--", *command])

    told = capsys.readouterr().out
    assert status == 0
    assert "protocol/lines           5 pass" in told
    assert "no {root} in the command" in " ".join(told.split())


@pytest.mark.parametrize(
    ("name", "threat", "said"),
    [
        ("LeavesOnBadUtf8", "lines-broken", "FOUND: the question at the end got no answer"),
        ("LeavesOnLongLines", "load-oversize", "FOUND: the question at the end got no answer"),
    ],
)
def test_the_reproduction_of_a_line_runs_by_itself(
    name: str, threat: str, said: str, tmp_path: Path
) -> None:
    script = script_of(attacked(name, (threat,)))

    assert len(script) < 4000
    shows_it_again(script, said, tmp_path)


def test_a_server_that_no_longer_reads_its_own_files_has_not_passed() -> None:
    run = attacked("SulksAfterAClimb", ("traversal-dotdot",))

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.BROKEN]


@pytest.mark.parametrize(
    ("name", "outcome", "told"),
    [
        ("PondersOverLongNames", Outcome.NOTE, "left out, as it took too long: 1 at read_file"),
        ("PondersOverNames", Outcome.BROKEN, "2 calls got no answer"),
    ],
)
def test_a_call_without_an_answer_is_said_and_many_are_no_judgement(
    name: str, outcome: Outcome, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(siege, "PATIENCE", 0.5)
    target = replace(target_of(name), startup=3.0)

    run = judge(target, load(SECURITY), Choice(select=("traversal-hostile-names",)))

    (verdict,) = run.verdicts
    assert (verdict.outcome, told in verdict.gravest.actual) == (outcome, True), verdict.gravest


def test_a_walk_that_never_ends_is_caught_where_it_would_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(siege, "PATIENCE", 0.5)
    target = replace(target_of("WalksForEver"), startup=3.0)

    (verdict,) = judge(target, load(SECURITY), Choice(select=("links-walk",))).verdicts

    assert verdict.outcome is Outcome.FAIL
    assert "near" in verdict.gravest.actual


def test_a_finding_of_several_steps_is_reproduced_step_by_step(tmp_path: Path) -> None:
    run = attacked("UndoesByName", ("moves-undo",))

    shows_it_again(script_of(run), "FOUND: the outside changed", tmp_path)
