"""What a run says of the advisories on the packages of its server."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from mcp_touchstone.advisories.known import Scanned, State
from mcp_touchstone.catalog.sdk import PYPI, Package, SdkIdentity
from mcp_touchstone.cli import main
from mcp_touchstone.report import kinds, machine, terminal
from mcp_touchstone.report.reread import read
from mcp_touchstone.results.advisories import compared
from mcp_touchstone.results.run import Absent, Run
from mcp_touchstone.results.verdict import Outcome
from tests.advisories.test_table import AUDIENCE
from tests.cases import cases
from tests.runs import SERVER, run_of

RULE, NEW = "authorization-audience", "2025-11-25"
OPTION = "AuthSettings(validate_token_resource=True)"
JUDGEMENT = {"scenario": "http/authorization.py::x", "expected": "401", "actual": "HTTP 200"}


def run_on(version: str, *outcomes: Outcome, **more: object) -> Run:
    """Return a run on this release of mcp, in which the rule had these outcomes."""
    subject = replace(SERVER, sdk=SdkIdentity((Package("mcp", version, PYPI),)))
    found = {(RULE, (NEW, "2025-06-18")[n]): one for n, one in enumerate(outcomes)}
    return run_of(found, JUDGEMENT, subject, **more)


def state(run: Run) -> State:
    (one,) = (one for one in compared(run, Scanned()).advisories if one.advisory.id == AUDIENCE)
    return one.state


@cases(
    ("2.1.1", (Outcome.FAIL,), State.OPEN),
    ("2.1.1", (Outcome.PASS, Outcome.WARN), State.OPEN),
    ("2.1.1", (Outcome.NOTE,), State.OPEN),
    ("2.1.1", (Outcome.PASS,), State.CLOSED),
    ("2.2.0", (Outcome.FAIL,), State.OPEN),
    ("2.2.0", (Outcome.PASS,), State.BY_OPTION),
    ("2.2.0", (Outcome.UNSEEN,), State.UNTESTED),
    ("2.2.0", (Outcome.BROKEN,), State.UNTESTED),
    ("2.2.0", (), State.UNTESTED),
)
def test_state_is_that_of_the_rules(
    version: str, outcomes: tuple[Outcome, ...], expected: State
) -> None:
    assert state(run_on(version, *outcomes)) is expected


@cases(
    ((Outcome.UNSEEN,), [], f"{RULE}: it was never triggered"),
    ((Outcome.BROKEN,), [], f"{RULE}: it could not be checked"),
    ((), [Absent(RULE, NEW, "needs an issuer")], f"{RULE}: needs an issuer"),
    ((), [], f"`mcp-touchstone explain {RULE}` says how to test it"),
)
def test_reason_is_named_if_it_was_not_tested(
    outcomes: tuple[Outcome, ...], absent: list[Absent], why: str
) -> None:
    made = compared(run_on("2.2.0", *outcomes, absent=absent), Scanned())
    assert next(one for one in made.advisories if one.advisory.id == AUDIENCE).why == why


def printed(run: Run, width: int = 300) -> str:
    console = Console(width=width, no_color=True, force_terminal=False)
    with console.capture() as capture:
        terminal.Terminal(console).finish(run)
    return capture.get()


def test_finding_on_an_upgraded_sdk_says_which_line_closes_it() -> None:
    said = " ".join(printed(run_on("2.2.0", Outcome.FAIL)).split())
    assert (
        f" advisory {AUDIENCE}: {OPTION}, which is off by default, closes it (mcp 2.2.0) " in said
    )


def test_line_of_an_open_advisory_has_what_closes_it() -> None:
    said = printed(compared(run_on("2.2.0", Outcome.FAIL), Scanned()), width=80)
    assert f"\n  open       {AUDIENCE}: {OPTION}," in said


def test_pass_in_spite_of_an_option_says_what_may_have_closed_it() -> None:
    said = " ".join(printed(compared(run_on("2.2.0", Outcome.PASS), Scanned())).split())
    assert f"by option {AUDIENCE}: {OPTION} is on, or the server closes it in its own way; " in said


def test_finding_on_an_old_sdk_says_which_release_closes_it() -> None:
    said = " ".join(printed(run_on("2.1.1", Outcome.FAIL)).split())
    assert f"use mcp 2.2.0 or newer with {OPTION}, which is off by default" in said


def test_finding_on_another_sdk_names_no_advisory_of_this_one() -> None:
    subject = replace(SERVER, sdk=SdkIdentity((Package("fastmcp", "4.2.3", PYPI),)))
    assert " advisory " not in printed(run_of({(RULE, NEW): Outcome.FAIL}, JUDGEMENT, subject))


@pytest.mark.parametrize("kind", ["html", "markdown"])
def test_pages_list_the_advisories(kind: str) -> None:
    made = compared(run_on("2.2.0", Outcome.PASS), Scanned())
    page = kinds.RENDERERS[kind](made)
    assert "Advisories" in page
    assert f"{AUDIENCE}: AuthSettings(" in page


def test_saved_report_has_them_again(tmp_path: Path) -> None:
    made = compared(run_on("2.1.1", Outcome.PASS), Scanned())
    path = tmp_path / "run.json"
    path.write_text(json.dumps(machine.document(made)), "utf-8")

    assert read(path).advisories == made.advisories


def test_packages_of_osv_scanner_count_unless_the_run_knows_better() -> None:
    packages = (Package("mcp", "1.9.0", PYPI), Package("mcp-server-git", "2025.9.25", PYPI))
    scanned = Scanned("osv.json", packages, 3)
    made = compared(run_on("2.2.0"), scanned)

    assert {str(one.package) for one in made.advisories} == {
        "mcp 2.2.0",
        "mcp-server-git 2025.9.25",
    }
    assert made.execution.notes == ("advisories in osv.json that are not about MCP: 3",)


def test_packages_without_an_advisory_are_named() -> None:
    subject = replace(SERVER, sdk=SdkIdentity((Package("fastmcp", "4.2.3", PYPI),)))
    made = compared(run_of({}, {}, subject), Scanned())
    assert made.advisories == ()
    assert "nothing on its packages (fastmcp 4.2.3)" in made.execution.notes[0]


def test_unknown_packages_are_said_to_be_unknown() -> None:
    made = compared(run_of({}, {}), Scanned())
    (note,) = made.execution.notes
    assert note.startswith("its own packages are unknown")
    assert "--sdk 'NAME VERSION'" in note


@pytest.fixture
def old_server(tmp_path: Path) -> list[str]:
    """Return the command of a server whose files say that it runs on an old release of mcp."""
    site = tmp_path / "site"
    (site / "mcp-1.27.1.dist-info").mkdir(parents=True)
    (site / "mcp-1.27.1.dist-info/METADATA").write_text("Name: mcp\nVersion: 1.27.1\n\n")
    (site / "mcp.py").write_text("")
    script = tmp_path / "server.py"
    script.write_text(
        "import mcp\nimport runpy\nrunpy.run_module('reference_server', run_name='__main__')\n"
    )
    return [sys.executable, str(script)]


def test_command_lists_them_beside_its_result(
    old_server: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = f"PYTHONPATH={tmp_path / 'site'}"
    words = ["--select", "ping-empty-response", "--quick", "--advisories", "--env", site]

    main(["check", *words, "--", *old_server])

    said = capsys.readouterr().out
    assert "\nadvisories\n" in said
    assert "not tested GHSA-jpw9-pfvf-9f58: use mcp 1.27.2 or newer with " in " ".join(said.split())


def test_wrong_file_of_osv_scanner_is_refused_before_the_server_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "osv.json"
    path.write_text("{}", "utf-8")

    assert main(["check", "--osv", str(path), "--", "no-such-program"]) == 2

    assert capsys.readouterr().err == (
        f"mcp-touchstone: {path}: it has no results; write it with `osv-scanner --format json`\n"
    )
