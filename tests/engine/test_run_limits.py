"""Deadlines, internal errors and output limits of a run."""

import json
from dataclasses import replace
from typing import Any

import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.needs import Probe
from mcp_touchstone.discovery import probes
from mcp_touchstone.engine import launcher, process_pool
from mcp_touchstone.engine.runner import Choice, Run, judge
from mcp_touchstone.judging import ambient
from mcp_touchstone.report.standing import closing
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target, reference
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.allowance import BIG, Allowance
from mcp_touchstone.wire.framing import Line
from mcp_touchstone.wire.transcript import Transcript
from tests.hostile_cases import hostile

pytestmark = pytest.mark.slow

REVISION = "2025-11-25"
FAULT = "a fault of mcp-touchstone itself"


def judged(*select: str, target: Target | None = None, **choice: Any) -> Run:
    chosen = Choice(select=select, revisions=(REVISION,), examples=0, **choice)
    return judge(target or reference(timeout=30.0), load(), chosen)


def why(run: Run) -> dict[str, str]:
    return {v.clause.id: v.gravest.actual for v in run.of(Outcome.BROKEN)}


def test_run_ends_at_its_deadline_and_stops_its_servers() -> None:
    command = hostile("answers_late", ROOT, argument="2")
    begun = now()

    run = judged(target=Target(command=command, timeout=30.0), deadline=20.0)

    assert now() - begun < 120.0
    assert "ended after 20 s (--deadline)" in run.trouble
    assert run.exit_code in {1, 2}
    assert not run.execution.interrupted
    assert not [c for c in run.connections if c.process.running]


def test_deadline_before_the_first_answer_is_not_a_server_failure() -> None:
    run = judged(target=Target(command=hostile("never_answers"), timeout=600.0), deadline=1.0)

    assert run.exit_code == 2
    assert "--deadline" in run.trouble
    assert not run.of(Outcome.FAIL)


def test_screen_says_that_a_deadline_left_out_a_part() -> None:
    run = judged("ping", deadline=600.0)
    assert (run.trouble, run.exit_code) == ("", 0)
    run = replace(run, trouble="the run was ended after 1 s (--deadline); not all was judged")

    _, _, rest = closing(run)

    assert "in part" in rest


def broken(*_: object) -> None:
    raise ZeroDivisionError("ours")


def test_discovery_error_breaks_only_dependent_clauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(probes.FINDERS, Probe.READS, broken)

    run = judged("resources", "ping")

    assert why(run)
    assert all(FAULT in reason for reason in why(run).values()), why(run)
    assert {v.clause.id for v in run.of(Outcome.PASS)} >= {"ping-empty-response"}
    assert run.exit_code == 2


def test_process_pool_error_breaks_only_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool.ProcessPool, "apart", broken)

    run = judged("cancellation-no-response", "answers_a_ping")

    assert FAULT in why(run)["cancellation-no-response"]
    assert {v.clause.id for v in run.of(Outcome.PASS)} == {"ping-empty-response"}


def test_traffic_rule_error_breaks_only_that_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ambient.judge

    def judge_rule(rule: Any, *more: Any) -> Any:
        return broken() if rule.name == "writes_one_message_a_line" else before(rule, *more)

    monkeypatch.setattr(ambient, "judge", judge_rule)
    run = judged("stdio-stdout-only-messages", "answers_a_ping")

    assert all(FAULT in reason for reason in why(run).values())
    assert "stdio-stdout-only-messages" in why(run)


def result(number: int, text: str) -> Line:
    message = {"jsonrpc": "2.0", "id": number, "result": {"tools": [{"description": text}]}}
    raw = json.dumps(message).encode()
    return Line(raw, len(raw))


def transcript(allowance: Allowance) -> Transcript:
    return Transcript(REVISION, clock=lambda: 0.0, allowance=allowance)


def values(record: Transcript) -> list[Any]:
    return [entry.reading.value["result"] for entry in record if entry.reading]


def test_equal_long_results_are_stored_once_across_processes() -> None:
    allowance = Allowance()
    one, two = transcript(allowance), transcript(allowance)
    one.heard(result(1, "x" * BIG))
    one.heard(result(2, "y" * BIG))
    two.heard(result(7, "x" * BIG))

    assert values(one)[0] is values(two)[0]
    assert values(one)[1] is not values(two)[0]
    assert [entry.reading.value["id"] for entry in two if entry.reading] == [7]


def test_total_output_of_all_processes_is_limited() -> None:
    allowance = Allowance(limit=8 * BIG)
    one, two = transcript(allowance), transcript(allowance)
    for number in range(3):
        one.heard(result(number, f"{number}" * BIG))
    two.heard(result(1, "z" * BIG))
    two.heard(result(2, "q" * BIG))

    assert one.limit == ""
    assert "all processes" in two.limit
    assert two.overflow == two.limit


def test_output_limit_causes_no_failures_or_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "Allowance", lambda lock: Allowance(40_000, lock))

    run = judged("ping", "jsonrpc", "tools")

    assert "all processes" in run.trouble
    assert not run.of(Outcome.FAIL, Outcome.WARN)
    assert run.exit_code == 2


def test_limit_of_the_output_grows_with_our_requests() -> None:
    answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    asked, silent = Allowance(limit=0), Allowance(limit=0)
    asked.ask()

    assert asked.take(answer, {}) == ""
    assert silent.take(answer, {})
