"""The option --quick, and verdicts that do not depend on the number of jobs."""

import json
from pathlib import Path

import jsonschema
import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.report import machine
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import Target, reference
from tests.conftest import mutant_command
from tests.runs import learning

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def quick() -> Run:
    return judge(reference(), load(), Choice(quick=True, select=("basic", "tools", "prompts")))


def test_a_quick_run_judges_the_newest_revision_alone(quick: Run) -> None:
    assert quick.exit_code == 0
    assert {verdict.revision for verdict in quick.verdicts} == {"2026-07-28"}
    assert len(quick.of(Outcome.PASS)) > 50


def test_a_quick_run_needs_one_process_for_each_era() -> None:
    run = judge(reference(), load(), Choice(quick=True))

    assert run.execution.processes == 2
    assert not run.of(Outcome.FAIL, Outcome.WARN, Outcome.BROKEN)


def test_quick_run_probes_no_tool(quick: Run) -> None:
    assert quick.tools.hurried
    assert not quick.tools.called


def test_quick_run_marks_omitted_clauses_as_left_out_by_choice(quick: Run) -> None:
    left = {row.clause for row in quick.absent if row.by_choice}

    assert "tools-call-result" not in {v.clause.id for v in quick.verdicts}
    assert all(row.why == "left out: --quick" for row in quick.absent if row.by_choice)
    assert left


def test_quick_run_finds_violations() -> None:
    target = Target(command=tuple(mutant_command("EndsMessagesWithABlankLine")))

    run = judge(target, load(), Choice(quick=True, select=("stdio",)))

    assert run.of(Outcome.WARN, Outcome.FAIL)


def test_quick_run_does_not_judge_a_slow_exit() -> None:
    target = Target(command=tuple(mutant_command("StaysAfterItsInputEnds")))

    run = judge(target, load(), Choice(quick=True, select=("stdio",)))

    (leaving,) = (v for v in run.verdicts if v.clause.id == "stdio-exit-on-eof")
    assert leaving.outcome is Outcome.UNSEEN
    assert not run.of(Outcome.WARN, Outcome.FAIL, Outcome.BROKEN)


def test_quick_run_does_not_judge_unprobed_revisions() -> None:
    target = Target(command=tuple(mutant_command("ListsBothEras")))

    run, profile = learning(target, load(), Choice(quick=True, select=("versioning",)))

    assert "2025-03-26" in profile.spoken["2026-07-28"].versions
    assert "2025-03-26" not in run.subject.asked
    assert not run.of(Outcome.FAIL)


def test_report_states_the_cost_of_the_run(quick: Run) -> None:
    document = machine.document(quick)
    schema = json.loads(Path(machine.SCHEMA).read_text("utf-8"))

    jsonschema.validate(document, schema)
    cost = document["summary"]["cost"]
    parts = cost["startup"] + cost["answers"] + cost["silence"] + cost["ours"]
    assert parts == pytest.approx(document["summary"]["seconds"], abs=0.01)
    assert cost["floor"] > 0
    assert 0 < cost["efficiency"] <= 1


def test_verdicts_and_their_order_do_not_depend_on_jobs() -> None:
    def outcomes(jobs: int) -> list[tuple[str, ...]]:
        choice = Choice(select=("ping", "pagination"), jobs=jobs, examples=0)
        run = judge(reference(), load(), choice)
        found = [(one.planned.case.id, one.planned.revision) for one in run.results]
        return found + [(v.clause.id, v.revision, str(v.outcome)) for v in run.verdicts]

    one = outcomes(1)

    assert len(one) > 10
    assert outcomes(8) == one
