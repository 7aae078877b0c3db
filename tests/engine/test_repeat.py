"""Findings are repeated, and report how often they occurred."""

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.scenario import Place
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import REPEATS
from mcp_touchstone.engine.runner import Choice, Run, judge
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.results.events import Done, Event, Found
from mcp_touchstone.results.verdict import Judgement, Outcome, worst
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.wire.reply import Reply
from tests.cases import cases
from tests.conftest import HERE, mutant_command
from tests.toy_suite import LONG, declare, outcomes, server, toy_registry

pytestmark = pytest.mark.slow

REVISION = "2025-11-25"


def judged(fault: str, *select: str, **choice: object) -> Run:
    command = (sys.executable, str(HERE / "flaky_server.py"), fault, ROOT)
    return judge(
        Target(command=command, timeout=30.0),
        load(),
        Choice(select=select, revisions=(REVISION,), examples=0, **choice),  # type: ignore[arg-type]
    )


def finding(run: Run, clause: str) -> Judgement:
    (verdict,) = [v for v in run.of(Outcome.FAIL) if v.clause.id == clause]
    assert verdict.sometimes is verdict.gravest.sometimes
    return verdict.gravest


def test_repeated_finding_is_not_intermittent() -> None:
    shown = finding(judged("FailsAlways", "answers_a_ping"), "ping-empty-response")

    assert (shown.found, shown.tried, shown.sometimes) == (2, 2, False)


def test_scenarios_that_shared_a_process_are_repeated_on_one() -> None:
    ping, tools = "answers_a_ping", "refuses_an_unknown_tool"
    one = judged("RunsUnknownTools", ping)
    both = judged("RunsUnknownTools", ping, tools)

    found = {s.planned.case.name: j for s in both.results for j in s.judgements if j.tried > 1}
    assert {name: (j.found, j.tried) for name, j in found.items()} == {ping: (2, 2), tools: (2, 2)}
    assert both.execution.processes == one.execution.processes


def test_repetitions_count_as_processes_of_the_run() -> None:
    repeated = judged("FailsAlways", "answers_a_ping")
    single = judged("FailsAlways", "answers_a_ping", repeats=0)

    assert repeated.execution.processes == single.execution.processes + 1


def test_finding_is_repeated_while_other_scenarios_go_on(tmp_path: Path) -> None:
    held: list[str] = []
    repeated = threading.Event()
    with toy_registry(tmp_path) as registry:

        @declare("toy-must", place=Place.OWN_SESSION)
        def _(talk: Conversation) -> None:
            held.append(talk.judge.name)
            if len(held) > 1:
                repeated.set()
            talk.judge("toy-must", passed=False, expected="this")

        @declare("toy-should", name="waits", place=Place.OWN_SESSION)
        def _(talk: Conversation) -> None:
            talk.judge("toy-should", passed=repeated.wait(LONG), expected="a repetition")

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.FAIL, "toy-should": Outcome.PASS}
    (found,) = run.of(Outcome.FAIL)
    assert (found.gravest.found, found.gravest.tried) == (2, 2)


@pytest.mark.parametrize("always", [True, False])
def test_finding_is_reported_as_soon_as_it_appeared_again(always: bool, tmp_path: Path) -> None:
    held: list[bool] = []
    ended, reported = threading.Event(), threading.Event()
    with toy_registry(tmp_path) as registry:

        @declare("toy-must", "toy-should", place=Place.OWN_SESSION)
        def _(talk: Conversation) -> None:
            held.append(True)
            talk.judge("toy-must", passed=len(held) > 1 and not always, expected="this")
            talk.judge("toy-should", passed=False, expected="this")

        @declare("toy-may", name="waits", place=Place.OWN_SESSION)
        def _(talk: Conversation) -> None:
            talk.judge("toy-may", passed=reported.wait(LONG), expected="a finding")
            ended.set()

    found: list[str] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Found):
            assert not ended.is_set()
            found.extend(judgement.clause for judgement in event.findings)
            reported.set()

    judge(server(), registry, Choice(repeats=1), on_event=on_event)

    assert sorted(found) == (["toy-must", "toy-should"] if always else ["toy-should"])


def test_finding_is_certain_while_its_process_goes_on(tmp_path: Path) -> None:
    told = threading.Event()
    with toy_registry(tmp_path) as registry:

        @declare("toy-must", name="fails")
        def _(talk: Conversation) -> None:
            talk.judge("toy-must", passed=False, expected="this")

        @declare("toy-should", name="goes_on")
        def _(talk: Conversation) -> None:
            talk.judge("toy-should", told.wait(LONG), expected="an event")

    def note(event: Event) -> None:
        if isinstance(event, Found):
            told.set()

    run = judge(server(), registry, Choice(), on_event=note)

    assert outcomes(run) == {"toy-must": Outcome.FAIL, "toy-should": Outcome.PASS}


def test_one_conversation_at_a_time_is_repeated_so(tmp_path: Path) -> None:
    talking = threading.Semaphore()
    alone: list[bool] = []
    with toy_registry(tmp_path) as registry:
        for name in ("first", "second", "third"):

            @declare("toy-must", name=name, place=Place.OWN_SESSION, lasts=True)
            def _(talk: Conversation) -> None:
                alone.append(talking.acquire(blocking=False))
                talk.wire.open()
                talk.judge("toy-must", passed=False, expected="this")
                if alone[-1]:
                    talking.release()

    judge(server(), registry, Choice(jobs=1))

    assert alone == [True] * 6


@cases(
    (False, None, Outcome.WARN),
    (True, None, Outcome.FAIL),
    (False, {"error": {"code": 1, "message": "no"}}, Outcome.FAIL),
)
def test_silence_that_does_not_come_again_is_a_warning(
    tmp_path: Path, always: bool, answer: dict[str, object] | None, outcome: Outcome
) -> None:
    held: list[str] = []
    with toy_registry(tmp_path) as registry:

        @declare("toy-must", place=Place.OWN_SESSION)
        def _(talk: Conversation) -> None:
            held.append(talk.revision)
            talk.wire.open()
            line = talk.wire.notify("notifications/x")
            found = Reply(line, value=answer, why="no answer within 5.0 s")
            talk.judge("toy-must", len(held) > 1 and not always, expected="this", at=found)

    run = judge(server(), registry, Choice(jobs=1))

    assert len(held) > 1
    assert outcomes(run) == {"toy-must": outcome}


def test_finding_seen_once_reports_the_number_of_attempts() -> None:
    shown = finding(judged("FailsOnce", "answers_a_ping"), "ping-empty-response")

    assert (shown.found, shown.tried, shown.sometimes) == (1, 1 + REPEATS, True)


def test_traffic_rule_is_repeated_with_the_scenario_that_broke_it() -> None:
    run = judged("AnswersTwiceOnce", "answers_a_ping", "jsonrpc-no-orphan-response")
    shown = finding(run, "jsonrpc-no-orphan-response")

    assert shown.origin.endswith("::answers_a_ping")
    assert (shown.found, shown.tried) == (1, 1 + REPEATS)


def test_nothing_is_repeated_with_zero_repeats() -> None:
    shown = finding(judged("FailsOnce", "answers_a_ping", repeats=0), "ping-empty-response")

    assert (shown.found, shown.tried, shown.sometimes) == (1, 1, False)


def test_every_finding_of_a_race_is_by_chance_for_the_gate(tmp_path: Path) -> None:
    """It appears in each repetition here, and is neither stale when it is absent nor new."""
    known, old, new = tmp_path / "known.toml", tmp_path / "old.json", tmp_path / "new.json"
    racing = "tolerates_immediate_cancellations"

    def check(server: Sequence[str], *words: str) -> int:
        chosen = ("--select", racing, "--revision", REVISION, "--baseline", str(known))
        return main(["check", "-q", *chosen, *words, "--", *server])

    loses = mutant_command("HangsOnACancelledPing")
    wins = (sys.executable, "-m", "mcp_touchstone", "serve", "--root", ROOT)
    assert check(loses, "--update-baseline", "--json", str(old)) == 0
    (verdict,) = json.loads(old.read_text("utf-8"))["verdicts"]
    assert (verdict["judgements"][0]["found"], verdict["sometimes"]) == (2, True)
    assert "sometimes = true" in known.read_text("utf-8")

    assert check(wins, "--json", str(new)) == 0
    assert main(["diff", str(old), str(new)]) == main(["diff", str(new), str(old)]) == 0


def test_worst_finding_is_the_most_reproducible() -> None:
    def one(found: int) -> Judgement:
        return Judgement(
            clause="c", revision=REVISION, outcome=Outcome.FAIL, scenario="s", tried=3, found=found
        )

    assert worst([one(1), one(3)]).found == 3


def test_interrupted_run_repeats_nothing() -> None:
    stop = threading.Event()

    def on_event(event: Event) -> None:
        if isinstance(event, Done):
            stop.set()

    command = (sys.executable, str(HERE / "flaky_server.py"), "FailsAlways", ROOT)
    choice = Choice(select=("answers_a_ping",), revisions=(REVISION,), examples=0)
    run = judge(Target(command=command), load(), choice, on_event=on_event, stop=stop)

    assert all(j.tried == 1 for one in run.results for j in one.judgements)
