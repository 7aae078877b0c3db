"""Findings of attacks: the call, the effect and the reproduction script."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.report import items
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.machine import document
from mcp_touchstone.report.sections import in_full
from mcp_touchstone.results.verdict import AffectedTool, Outcome
from mcp_touchstone.security import call_attack
from mcp_touchstone.security.attack_session import called
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Transcript
from tests.cases import cases
from tests.commands import run_here
from tests.conftest import HERE
from tests.fakes.matrix import attacked, target_of
from tests.reproduction import script_of, shows_it_again
from tests.runs import learning

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]

FAKES = HERE / "fakes"


def test_finding_shows_the_effect_the_call_and_the_weakness() -> None:
    run = attacked("NetworkShare", ("traversal-absolute",))
    (finding,) = findings(run, Outcome.FAIL)
    text = in_full(run, finding)

    assert "critical" in text
    assert "CWE-36" in text
    assert "outside/canary-file.txt came" in text
    assert "--suite security --select traversal-absolute" in " ".join(text.split())
    assert [line.arrow for line in finding.judgement.wire] == ["→", "←", "·"]


@cases(
    ("OpensAnyRepository", "traversal-dotdot", "FOUND: a canary came back"),
    ("MakesRepositoriesAnywhere", "traversal-absolute", "FOUND: the outside changed"),
    ("AddsFilesOfOthers", "traversal-dotdot", "FOUND: the repository contains a canary"),
    ("TrustsProc", "special-procfs", "FOUND: a canary came back"),
    ("ExpandsAfterCheck", "traversal-expansion", "FOUND: a canary came back"),
    ("OpensPipes", "special-pipes", "FOUND: the plain file was not read"),
    ("WaitsInThreads", "special-pipes", "FOUND: the read waited until we wrote to the pipe"),
    ("ComparesBaseNames", "commands-unlisted", "FOUND: a refused program ran"),
    ("RedirectsAnywhere", "commands-shell", "FOUND: the outside changed"),
    ("PassesOptionsThatRun", "commands-options", "FOUND: a refused program ran"),
    ("TrustsTheConfiguration", "repositories-programs", "FOUND: the outside changed"),
    ("FollowsGitFiles", "repositories-outside", "FOUND: a canary came back"),
    ("DescribesTargets", "stats-links", "FOUND: size or time came back"),
    ("UndoesByName", "moves-undo", "FOUND: the outside changed"),
)
def test_reproduction_script_shows_the_finding(
    tmp_path: Path, name: str, threat: str, said: str
) -> None:
    run = attacked(name, (threat,))
    shows_it_again(script_of(run), said, tmp_path)


@pytest.mark.parametrize(("server", "status"), [("", 1), ("Resolves", 0), ("Missing", 2)])
def test_script_file_exits_by_what_it_finds(server: str, status: int, tmp_path: Path) -> None:
    """It runs on the server of the finding, on a safe one, and on one that does not start."""
    place = tmp_path / "scripts"
    check(tmp_path, "Joined", "--select", "traversal-dotdot", "--scripts", str(place))
    (script,) = place.iterdir()
    assert script.name == "traversal-dotdot-2025-11-25.sh"
    if server:
        script.write_text(script.read_text().replace(" Joined ", f" {server} "))

    done = subprocess.run(
        [script], env={**os.environ, "SANDBOX": "off"}, check=False, capture_output=True, timeout=60
    )

    assert done.returncode == status, done.stdout
    assert (b"FOUND" in done.stdout) is (status == 1)


@cases((1, (AffectedTool("read_file", 1),)), (2, ()), (0, ()), (9, ()))
def test_called_tool_is_found_on_the_line_of_its_request(
    asked: int, tools: tuple[AffectedTool, ...]
) -> None:
    """Line 2 is no call, 0 is no line, and 9 belongs to a process that was replaced."""
    transcript = Transcript("2025-11-25", clock=lambda: 0.0, label="x")
    for method, params in (("tools/call", {"name": "read_file"}), ("ping", {})):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        transcript.said(json.dumps(message).encode(), message)

    assert called(transcript, Reply(asked)) == tools


def check(folder: Path, fake: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Attack a fake by the command; return the status and the verdict in the report."""
    report = folder / "report.json"
    words = ("-q", "--no-baseline", "--suite", "security", "--json", str(report), *words)
    status = main(["check", *words, "--", sys.executable, str(FAKES), fake, "{root}"])
    (verdict,) = json.loads(report.read_text("utf-8"))["verdicts"]
    return status, verdict


def test_passed_attack_reports_the_number_of_payloads(tmp_path: Path) -> None:
    status, verdict = check(tmp_path, "Resolves", "--select", "traversal-dotdot")

    assert status == 0
    assert verdict["threat"]["severity"] == "critical"
    assert "payloads through" in verdict["judgements"][0]["actual"]
    assert int(verdict["judgements"][0]["actual"].split()[0]) > 40


def test_files_of_a_server_with_a_folder_of_its_own_are_not_attacked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = [sys.executable, str(FAKES), "Resolves", str(tmp_path)]

    status = main(["check", "--suite", "security", "--select", "traversal", "--", *command])

    assert status == 2
    assert "put {root}" in capsys.readouterr().err


def test_protocol_of_a_server_with_a_folder_of_its_own_is_attacked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = [sys.executable, str(FAKES), "Resolves", str(tmp_path)]

    status = main(["check", "--suite", "security", "--select", "lines", "--", *command])

    screen = capsys.readouterr().out
    assert status == 0
    assert "protocol/lines           5 pass" in screen
    assert "put {root}" in " ".join(screen.split())


@cases(
    ("ExitsOnBadUtf8", "lines-broken", "FOUND: the question at the end got no answer"),
    ("ExitsOnLongLines", "load-oversize", "FOUND: the question at the end got no answer"),
)
def test_reproduction_script_of_a_line_shows_the_finding(
    tmp_path: Path, name: str, threat: str, said: str
) -> None:
    script = script_of(attacked(name, (threat,)))

    assert len(script) < 4000
    shows_it_again(script, said, tmp_path)


def test_attack_on_a_server_that_stops_reading_files_is_broken() -> None:
    run = attacked("RefusesAllAfterAClimb", ("traversal-dotdot",))

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.BROKEN]


def vast(tree: FixtureTree, _areas: object) -> list[object]:
    """Fail as a search does in a root with too large files, or with files that were replaced."""
    return [tree.root.parent.iterdir(), (tree.root / "gone").read_bytes()]


@cases(("NetworkShare", Outcome.FAIL), ("Resolves", Outcome.BROKEN))
def test_finding_is_kept_if_a_file_of_ours_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, fake: str, outcome: Outcome
) -> None:
    monkeypatch.setattr(FixtureTree, "laundered", vast)

    (found,) = attacked(fake, ("traversal-absolute",)).verdicts

    assert found.outcome is outcome
    if outcome is Outcome.BROKEN:
        assert "throw-away folder" in found.gravest.actual


def test_error_of_the_system_elsewhere_is_no_fault_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise FileNotFoundError(2, "no such file", "payloads.toml")

    monkeypatch.setattr(FixtureTree, "laundered", fails)

    (found,) = attacked("Resolves", ("traversal-absolute",)).verdicts

    assert "a fault of mcp-touchstone itself" in found.gravest.actual


@cases(
    ("HangsOnHugeNames", Outcome.NOTE, "left out, as it took too long: 1 at read_file"),
    ("HangsOnLongNames", Outcome.BROKEN, "2 calls got no answer"),
)
def test_unanswered_call_is_a_note_and_several_are_broken(
    monkeypatch: pytest.MonkeyPatch, name: str, outcome: Outcome, part: str
) -> None:
    monkeypatch.setattr(call_attack, "PATIENCE", 0.5)
    target = replace(target_of(name), timeout=3.0)

    run = judge(target, load(SECURITY), Choice(select=("traversal-hostile-names",)))

    (verdict,) = run.verdicts
    assert (verdict.outcome, part in verdict.gravest.actual) == (outcome, True), verdict.gravest


def test_endless_directory_walk_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_attack, "PATIENCE", 0.5)
    target = replace(target_of("WalksEndlessly"), timeout=3.0)

    (verdict,) = judge(target, load(SECURITY), Choice(select=("links-walk",))).verdicts

    assert verdict.outcome is Outcome.FAIL
    assert "near" in verdict.gravest.actual


def test_security_run_that_attacked_no_file_tool_is_not_judged() -> None:
    target = Target(command=(sys.executable, "-S", str(HERE / "toy_server.py"), ROOT, "count"))
    chosen = Choice(select=("lines-strings", "traversal-dotdot"), jobs=1)

    run, profile = learning(target, load(SECURITY), chosen)
    accepted = judge(target, load(SECURITY), replace(chosen, accept_unbound=True))

    assert run.unbound == "no tool and no resource gave back, listed or changed a file of the root"
    assert profile.remarks == [f"no file tool is attacked: {run.unbound}"]
    assert document(run)["summary"]["unbound"] == run.unbound
    assert (run.exit_code, accepted.exit_code) == (2, 0)
    cases = [case for case in load(SECURITY).cases() if chosen.selects(case)]
    for made, failing in ((run, 1), (accepted, 0)):
        found = items.results(made, cases)
        assert [one.outcome for one in found.values()].count(items.FAIL) == failing


@cases(("ListsAnything", "medium"), ("Joined", "critical"))
def test_disclosed_names_weigh_less_than_disclosed_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, severity: str
) -> None:
    words = ("--select", "traversal-sibling", "--fail-on", "critical")
    status, verdict = check(tmp_path, name, *words)

    assert (verdict["outcome"], verdict["threat"]["severity"]) == ("fail", severity)
    assert status == (severity == "critical")
    assert f"  {severity} " in capsys.readouterr().out


def test_hole_in_another_argument_of_a_known_tool_is_new(tmp_path: Path) -> None:
    """The tool of the second server has another name for the path."""

    def check_of(open_argument: str, *more: str) -> tuple[int, str]:
        server = (sys.executable, str(FAKES), "ReadsByAnotherArgument", "{root}", open_argument)
        words = ("--suite", "security", "--select", "traversal-dotdot", *more, "--", *server)
        done = run_here("check", *words, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    known = tmp_path / "known.toml"
    reports = [f"--report={name}:{tmp_path / name}" for name in ("json", "html", "markdown")]
    check_of("path", "--baseline", str(known), "--update-baseline", *reports)
    assert 'tool = "read_file"\nargument = "path"' in known.read_text("utf-8")
    (verdict,) = json.loads((tmp_path / "json").read_text("utf-8"))["verdicts"]
    assert [*verdict["judgements"][0]["arguments"]["read_file"]] == ["path"]
    assert "read_file(path): " in (tmp_path / "html").read_text("utf-8")
    for gate in (("--baseline", str(known)), ("--since", str(tmp_path / "json"))):
        assert check_of("path", *gate)[0] == 0
        status, said = check_of("filename", *gate)
        assert status == 1, said
        assert "read_file(filename)" in said


def test_roots_are_created_in_the_given_world_folder(tmp_path: Path) -> None:
    target = replace(target_of("JoinedWithMore"), world=tmp_path)

    run = judge(target, load(SECURITY), Choice(select=("traversal-dotdot",), jobs=1))

    commands = [connection.process.command for connection in run.connections]
    assert all(Path(command[-1]).is_relative_to(tmp_path) for command in commands), commands
    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.FAIL]
    assert target.words()[:2] == ["--world", str(tmp_path)]


@pytest.mark.parametrize(("name", "blamed"), [("EndsAtAQuote", True), ("EndsAtAnyText", False)])
def test_no_character_is_blamed_if_a_plain_text_ends_the_server_too(
    name: str, blamed: bool
) -> None:
    (found,) = attacked(name, ("injection-ended",)).of(Outcome.FAIL)

    assert ("no character is to blame" not in found.gravest.actual) == blamed
