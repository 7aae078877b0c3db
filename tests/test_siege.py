"""What an attack shows: the call, the effect, and a script that shows it again without us."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.terminal import in_full
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked

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


def shows_it_again(script: str, said: str, place: Path) -> None:
    """Run a reproduction with nothing but a shell: it finds what we found, and leaves nothing."""
    done = subprocess.run(
        ["sh", "-c", script.replace("sleep 5", "sleep 1")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(place)},
    )

    assert said in done.stdout, done.stdout + done.stderr
    assert list(place.iterdir()) == []


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
    script = run.of(Outcome.FAIL)[0].gravest.reproduction

    shows_it_again(script, said, tmp_path)


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
    assert "protocol/lines           4 pass" in told
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
    script = attacked(name, (threat,)).of(Outcome.FAIL)[0].gravest.reproduction

    assert len(script) < 4000
    shows_it_again(script, said, tmp_path)


def test_a_server_that_no_longer_reads_its_own_files_has_not_passed() -> None:
    run = attacked("SulksAfterAClimb", ("traversal-dotdot",))

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.BROKEN]


def test_a_finding_of_several_steps_is_reproduced_step_by_step(tmp_path: Path) -> None:
    run = attacked("UndoesByName", ("moves-undo",))
    script = run.of(Outcome.FAIL)[0].gravest.reproduction

    done = subprocess.run(
        ["sh", "-c", script.replace("sleep 5", "sleep 1")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
    )

    assert "FOUND: the outside changed" in done.stdout, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
