"""Runs of a small suite against a small server: scenarios, verdicts, exit codes, processes."""

import _thread
import itertools
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Breach, CatalogueError
from mcp_touchstone.catalog.scenario import Place, Registry, Seen, ambient
from mcp_touchstone.engine.runner import Choice, UsageError, judge
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.judging.judge import LATE, Judge
from mcp_touchstone.judging.used_server import Broken
from mcp_touchstone.results.events import Done, Event, Learnt, Met, OnEvent, Planned, Started
from mcp_touchstone.results.verdict import Judgement, Outcome, worst
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Source
from tests.cases import cases
from tests.toy_suite import (
    LEGACY,
    LONG,
    Body,
    declare,
    declare_result,
    only_verdict,
    outcomes,
    server,
    toy_registry,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with toy_registry(tmp_path) as made:
        yield made


def test_suite_is_loaded_lazily_and_once(registry: Registry) -> None:
    read: list[Registry] = []

    @declare("toy-must")
    def _(talk: Conversation) -> None:
        talk.judge("toy-must", passed=True, expected="this")

    def late() -> Registry:
        read.append(registry)
        return registry

    assert outcomes(judge(server(), late, Choice())) == {"toy-must": Outcome.PASS}
    assert len(read) == 1


def test_suite_error_ends_all_server_processes() -> None:
    others = set(psutil.Process().children())
    servers: set[psutil.Process] = set()

    def wrong() -> Registry:
        servers.update(set(psutil.Process().children()) - others)
        raise CatalogueError("suite/toy.toml: it is wrong")

    with pytest.raises(CatalogueError, match="it is wrong"):
        judge(server(), wrong, Choice())

    assert servers
    assert not any(server.is_running() for server in servers)


def test_unknown_selection_starts_no_server(registry: Registry) -> None:
    missing = Target(command=("no-such-program",))

    with pytest.raises(UsageError, match="--select toyy"):
        judge(missing, lambda: registry, Choice(select=("toyy",)))


@cases(
    ({"id": 7, "method": "ping"}, Outcome.WARN),
    ({"method": "notifications/progress"}, Outcome.FAIL),
)
def test_judge_sends_nothing_and_late_answers_are_heard_after_the_scenario(
    registry: Registry, message: dict[str, Any], outcome: Outcome
) -> None:
    @declare("toy-must")
    def _(talk: Conversation) -> None:
        asked = talk.wire.say({"jsonrpc": "2.0", **message}, required=False)
        talk.judge("toy-must", False, expected="an answer in time", at=Reply(asked))
        assert [entry.source for entry in talk.since(asked - 1)].count(Source.US) == 1

    gravest = only_verdict(judge(server(), registry, Choice(revisions=(LEGACY,)))).gravest

    assert gravest.outcome is outcome
    assert gravest.because == (LATE if outcome is Outcome.WARN else "")


def test_clause_not_judged_by_its_scenario_is_broken(registry: Registry) -> None:
    @declare("toy-must", "toy-should")
    def _(talk: Conversation) -> None:
        talk.judge("toy-must", passed=True, expected="this")

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.PASS, "toy-should": Outcome.BROKEN}
    gravest = run.of(Outcome.BROKEN)[0].gravest
    assert gravest.actual == "the scenario ended without judging this clause"
    assert run.exit_code == 2


def test_scenario_exception_is_reported_with_its_line(registry: Registry) -> None:
    @declare("toy-must")
    def _(_: Conversation) -> None:
        raise ZeroDivisionError("by zero")

    run = judge(server(), registry, Choice())

    assert only_verdict(run).outcome is Outcome.BROKEN
    actual = only_verdict(run).gravest.actual
    assert actual.startswith("a fault of")
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "raise ZeroDivisionError" in text
    )
    assert actual.endswith(f"{Path(__file__).name}:{line})")
    assert run.exit_code == 2


@cases(
    (lambda talk: talk.judge("toy-may", passed=True, expected="x"), "does not declare toy-may"),
    (lambda talk: talk.judge.unseen("toy-must", "no"), "toy-must is not conditional"),
)
def test_judging_an_undeclared_clause_is_an_internal_fault(
    registry: Registry, body: Body, words: str
) -> None:
    @declare("toy-must")
    def _(talk: Conversation) -> None:
        body(talk)

    actual = only_verdict(judge(server(), registry, Choice())).gravest.actual

    assert actual.startswith("a fault")
    assert words in actual


def test_broken_scenario_reports_its_reason(registry: Registry) -> None:
    @declare("toy-must")
    def _(_: Conversation) -> None:
        raise Broken("the tide was out")

    run = judge(server(), registry, Choice())

    assert (only_verdict(run).outcome, only_verdict(run).gravest.actual) == (
        Outcome.BROKEN,
        "the tide was out",
    )


def test_verdict_before_an_exception_is_kept(registry: Registry) -> None:
    @declare("toy-must", "toy-should")
    def _(talk: Conversation) -> None:
        talk.judge("toy-must", passed=False, expected="this")
        raise RuntimeError

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.FAIL, "toy-should": Outcome.BROKEN}


def test_planned_clause_without_judgement_is_broken(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judge, "broken", lambda *_: None)
    declare_result("toy-must", passed=True)
    declare("toy-must")(lambda _: None)

    run = judge(server(), registry, Choice())

    assert only_verdict(run).outcome is Outcome.BROKEN
    assert "never judged" in only_verdict(run).gravest.actual


def test_verdicts_match_the_plan(registry: Registry) -> None:
    for clause in ("toy-must", "toy-old", "toy-tools", "toy-should"):
        declare_result(clause, passed=True)

    run = judge(server("2024-11-05", LEGACY), registry, Choice())

    planned = {(c.id, one.planned.revision) for one in run.results for c in one.planned.clauses}
    assert {(v.clause.id, v.revision) for v in run.verdicts} == planned
    assert planned == {
        ("toy-must", "2024-11-05"),
        ("toy-must", LEGACY),
        ("toy-should", "2024-11-05"),
        ("toy-should", LEGACY),
        ("toy-old", "2024-11-05"),
    }
    assert {(a.clause, a.revision, a.why) for a in run.absent} == {
        ("toy-tools", "2024-11-05", "the server offers no tools"),
        ("toy-tools", LEGACY, "the server offers no tools"),
    }
    assert all(one.done for one in run.results)


def test_verdicts_are_in_catalogue_order(registry: Registry) -> None:
    for clause in ("toy-may", "third-must", "toy-must", "other-must"):
        declare_result(clause, passed=True)

    run = judge(server(), registry, Choice())

    assert list(outcomes(run)) == ["third-must", "other-must", "toy-must", "toy-may"]


@cases(
    ("toy-must", True, None, False, Outcome.PASS, 0),
    ("toy-must", False, None, False, Outcome.FAIL, 1),
    ("toy-must", False, Breach.WARN, False, Outcome.WARN, 0),
    ("toy-must", False, Breach.WARN, True, Outcome.WARN, 0),
    ("toy-should", False, None, False, Outcome.WARN, 0),
    ("toy-should", False, None, True, Outcome.FAIL, 1),
    ("toy-should", False, Breach.NOTE, True, Outcome.NOTE, 0),
    ("toy-should", False, Breach.FAIL, False, Outcome.WARN, 0),
    ("toy-lenient", False, None, True, Outcome.WARN, 0),
    ("toy-may", False, None, True, Outcome.NOTE, 0),
)
def test_breach_and_strict_determine_the_outcome(
    registry: Registry,
    clause: str,
    passed: bool,
    mild: Breach | None,
    strict: bool,
    outcome: Outcome,
    code: int,
) -> None:
    declare_result(clause, passed, mild)

    run = judge(server(), registry, Choice(strict=strict, revisions=(LEGACY,)))

    assert only_verdict(run).outcome is outcome
    assert run.exit_code == code


def test_failure_outranks_broken_in_the_exit_code(registry: Registry) -> None:
    declare_result("toy-must", passed=False)
    declare("other-must")(lambda _: None)

    run = judge(server(), registry, Choice())

    assert len(run.of(Outcome.BROKEN)) == 1
    assert run.exit_code == 1


def test_server_exit_at_startup_gives_status_2_and_no_verdict(registry: Registry) -> None:
    declare_result("toy-must", passed=True)
    target = Target(command=(sys.executable, "-S", "-c", "raise SystemExit(3)"), timeout=LONG)

    run = judge(target, registry, Choice(select=("toy",)))

    assert run.exit_code == 2
    assert "(status 3)" in run.trouble
    assert run.verdicts == []


def test_missing_program_raises_a_launch_error(registry: Registry) -> None:
    declare_result("toy-must", passed=True)
    before = set(threading.enumerate())

    with pytest.raises(LaunchError, match="there is no program"):
        judge(Target(command=("no-such-server",)), registry, Choice())

    assert set(threading.enumerate()) <= before


def test_interrupted_run_keeps_its_verdicts(registry: Registry) -> None:
    declare_result("toy-must", passed=False)

    @declare("other-must", hurts=True)
    def _(talk: Conversation) -> None:
        _thread.interrupt_main()
        talk.wire.quiet(LONG)
        talk.judge("other-must", passed=True, expected="never reached")

    begun = time.monotonic()
    run = judge(server(), registry, Choice())

    assert time.monotonic() - begun < LONG
    assert run.exit_code == 130
    assert outcomes(run) == {"toy-must": Outcome.FAIL}


def test_interrupted_run_starts_no_further_process(registry: Registry) -> None:
    started: list[object] = []

    @declare("toy-must", place=Place.OWN_SESSION)
    def _(talk: Conversation) -> None:
        _thread.interrupt_main()
        talk.wire.wait(lambda: talk.wire.gone, LONG)
        started.append(talk.server.restart())

    run = judge(server(), registry, Choice())

    assert run.exit_code == 130
    assert started == []


def interrupt_at(moment: type[Event]) -> OnEvent:
    def interrupt(event: Event) -> None:
        if isinstance(event, moment):
            raise KeyboardInterrupt

    return interrupt


def test_run_interrupted_after_recon_has_no_verdicts(registry: Registry) -> None:
    declare_result("toy-must", passed=True)

    run = judge(server(), registry, Choice(), on_event=interrupt_at(Met))

    assert (run.exit_code, run.verdicts) == (130, [])


def test_run_interrupted_at_the_plan_keeps_the_verdicts_it_has(registry: Registry) -> None:
    # A case runs as soon as its needs are decided, which may be before the plan is complete.
    declare_result("toy-must", passed=True)

    run = judge(server(), registry, Choice(), on_event=interrupt_at(Planned))

    assert run.exit_code == 130
    assert {one.outcome for one in run.verdicts} <= {Outcome.PASS}


def test_run_leaves_no_thread_process_or_folder(registry: Registry) -> None:
    before = set(threading.enumerate())
    declare_result("toy-must", passed=True)
    declare_result("other-must", passed=True, place=Place.OWN_SESSION)

    run = judge(server(), registry, Choice())

    assert set(threading.enumerate()) <= before
    assert run.execution.processes == len(run.connections) == len(rev.ALL) + 1
    for connection in run.connections:
        assert not connection.process.running
        assert connection.process.ending is not None
        assert not Path(connection.process.command[-1]).exists(), "the world is removed"


@pytest.mark.parametrize(("graver", "lighter"), list(itertools.combinations(Outcome, 2)))
def test_worst_judgement_is_the_graver_one(graver: Outcome, lighter: Outcome) -> None:
    two = [
        Judgement(clause="c", revision="r", outcome=outcome, scenario="s")
        for outcome in (lighter, graver)
    ]

    assert worst(two).outcome is graver
    assert worst(reversed(two)).outcome is graver


def test_outcomes_are_ordered_by_gravity() -> None:
    assert [str(o) for o in Outcome] == ["fail", "broken", "warn", "note", "pass", "unseen"]


def test_clause_judged_several_times_has_one_verdict(registry: Registry) -> None:
    declare_result("toy-must", passed=True)
    declare_result("toy-must", passed=False)

    @ambient("toy-must")
    def watches_it(_: Any) -> Iterator[Seen]:
        """Watch it."""
        yield Seen("toy-must", passed=True)

    run = judge(server(), registry, Choice())

    assert only_verdict(run).outcome is Outcome.FAIL
    assert len(only_verdict(run).judgements) == 3


def test_once_scenario_runs_once_and_counts_for_all_revisions(registry: Registry) -> None:
    asked: list[str] = []

    @declare("toy-must", "toy-should", place=Place.OWN_SESSION, once=True)
    def _(talk: Conversation) -> None:
        asked.append(talk.revision)
        talk.judge("toy-must", passed=False, expected="this")
        talk.judge("toy-should", passed=True, expected="this")

    run = judge(server(*rev.ALL), registry, Choice(repeats=0))

    assert asked == [rev.LATEST_MODERN]
    failed = [v.revision for v in run.verdicts if v.outcome is Outcome.FAIL]
    passed = [v.revision for v in run.verdicts if v.outcome is Outcome.PASS]
    assert failed == passed == list(rev.ALL)
    assert all(v.gravest.revision == v.revision for v in run.verdicts)


def test_ambient_rule_counts_over_every_conversation(registry: Registry) -> None:
    declare_result("other-must", passed=True, place=Place.OWN_SESSION)

    @ambient("toy-must", "toy-maybe", "third-must", "toy-should")
    def watches_it(record: Any) -> Iterator[Seen]:
        """Watch it."""
        for entry in record.lines():
            yield Seen("toy-must", passed=False, n=entry.n, expected="less", actual="more")
            yield Seen("toy-should", passed=True)

    run = judge(server(), registry, Choice())
    found = {v.clause.id: v.gravest for v in run.verdicts}

    lines = [
        entry
        for connection in run.connections
        if connection.transcript.revision == LEGACY
        for entry in connection.transcript
        if entry.source == "them"
    ]
    assert (found["toy-must"].outcome, found["toy-must"].count) == (Outcome.FAIL, len(lines))
    assert (found["toy-should"].outcome, found["toy-should"].count) == (Outcome.PASS, len(lines))
    assert found["toy-maybe"].outcome is Outcome.UNSEEN
    assert found["third-must"].outcome is Outcome.BROKEN, "it looked at nothing"
    assert any(wire.guilty for wire in found["toy-must"].wire)


def test_hurting_scenarios_run_last_and_fresh_ones_alone(registry: Registry) -> None:
    order: list[str] = []

    def note(name: str, **marks: Any) -> None:
        @declare("toy-must", name=name, **marks)
        def _(talk: Conversation) -> None:
            order.append(f"{name} {len(talk.wire.transcript) > 0}")
            talk.judge("toy-must", passed=True, expected="this")

    note("hurts_first", hurts=True)
    note("is_fresh", place=Place.OWN_SESSION)
    note("is_plain")
    note("hurts_again", hurts=True)
    note("is_plain_too")

    judge(server(), registry, Choice(jobs=1))

    shared = [word for word in order if not word.startswith("is_fresh")]
    assert shared == ["is_plain True", "is_plain_too True", "hurts_first True", "hurts_again True"]
    assert "is_fresh False" in order


def test_server_death_is_recorded_on_its_scenario_only(registry: Registry) -> None:
    @declare("toy-must", name="kills_it")
    def _(talk: Conversation) -> None:
        talk.wire.request("die")
        talk.judge("toy-must", passed=True, expected="this")

    @declare("other-must", name="comes_after")
    def _(talk: Conversation) -> None:
        talk.judge("other-must", talk.wire.ping().answered, expected="a live server")

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.PASS, "other-must": Outcome.PASS}
    assert [one.left for one in run.results] == ["the server left (status 9)", ""]


def test_start_and_done_events_are_sent_for_every_slot(registry: Registry) -> None:
    declare_result("toy-must", passed=True)
    declare_result("other-must", passed=True)
    events: list[type[Event]] = []

    judge(server(), registry, Choice(jobs=1), on_event=lambda event: events.append(type(event)))

    assert [kind for kind in events if kind in {Started, Done}] == [Started, Done] * 2
    assert [kind for kind in events if kind not in {Started, Done}] == [Met, Learnt, Planned]
    assert events[0] is Met, "what needs nothing else may begin at once"
