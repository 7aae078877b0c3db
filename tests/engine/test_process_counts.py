"""How many processes a run of few clauses starts. The server itself counts them."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.report.digest import again, findings
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target, absolute, reference
from tests.cases import cases
from tests.conftest import HERE

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="a shell counts the starts"),
    pytest.mark.slow,
]

COUNTED = 'echo >> "$0"; exec "$@"'
NEWEST = rev.LATEST_LEGACY
BREAKS_A_RULE = "KeepsIdsAsText"
"""A mutant whose finding is one of a rule on all traffic."""


def judged(log: Path, choice: Choice, server: Target) -> tuple[Run, int]:
    """Judge a server, and return the number of its processes."""
    command = ("sh", "-c", COUNTED, str(log), *absolute(server.command))
    run = judge(replace(server, command=command), load(), choice)
    starts = len(log.read_text().splitlines())
    assert starts == run.execution.processes
    return run, starts


@cases(
    ("answers_a_ping", (NEWEST,), 1),
    ("answers_a_ping", (), len(rev.ALL)),
    ("ping-during-call", (NEWEST,), 3),  # the search for the call, and an unused process
    ("accepts_every_revision_it_offers", (NEWEST,), 2),  # the newest of each era
)
def test_run_of_one_scenario_starts_few_processes(
    tmp_path: Path, select: str, revisions: tuple[str, ...], processes: int
) -> None:
    choice = Choice(select=(select,), revisions=revisions)

    run, starts = judged(tmp_path / "starts", choice, reference())

    assert {verdict.outcome for verdict in run.verdicts} == {Outcome.PASS}
    assert starts == processes


def test_printed_command_of_a_rule_runs_its_scenario_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mutant = Target(command=(sys.executable, str(HERE / "mutants"), BREAKS_A_RULE, ROOT))
    choice = Choice(select=("jsonrpc-response-id-echo",), revisions=(NEWEST,), repeats=0)
    run, _ = judged(tmp_path / "starts", choice, mutant)
    finding = findings(run, Outcome.FAIL)[0]
    rules = {rule.id for rule in load().ambients}
    words = shlex.split(again(run, finding))
    (tmp_path / "starts").unlink()

    status = main([*words[1:], "--no-baseline"])

    assert finding.judgement.scenario in rules
    assert status == 1
    assert finding.clause.id in capsys.readouterr().out
    assert len((tmp_path / "starts").read_text().splitlines()) <= 3
