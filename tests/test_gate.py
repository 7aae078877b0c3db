"""Small suites run against a small server: plan, verdicts and exit code."""

import _thread
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Breach, CatalogueError, Level, load_catalogue
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.scenario import Registry, Seen, ambient, collecting, scenario
from mcp_touchstone.client import answers
from mcp_touchstone.client.profile import Client
from mcp_touchstone.engine.runner import Choice, Run, UsageError, judge, survey
from mcp_touchstone.judging.conversation import Broken, Conversation
from mcp_touchstone.results.run import Verdict
from mcp_touchstone.results.verdict import Judgement, Outcome, worst
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import ROOT, Target, reference
from mcp_touchstone.transport.process import LaunchError
from tests.conftest import HERE

LONG = 20.0
LEGACY = rev.LATEST_LEGACY

TOY = """
title = "Toy"
summary = "What a toy does."
"""
ROW = """
[[clause]]
id = "{id}"
level = "{level}"
statement = "The toy is {id}."
how = "We look."
{more}
[clause.source]
{source}
"""
EVERYWHERE = tuple(rev.ALL)
ROWS: dict[str, list[tuple[str, str, tuple[str, ...], str]]] = {
    "suite/toy.toml": [
        ("toy-must", "MUST", EVERYWHERE, ""),
        ("toy-should", "SHOULD", EVERYWHERE, ""),
        ("toy-lenient", "SHOULD NOT", EVERYWHERE, "strict = false"),
        ("toy-may", "MAY", EVERYWHERE, ""),
        ("toy-old", "MUST", ("2024-11-05",), ""),
        ("toy-tools", "MUST", EVERYWHERE, 'needs = ["tools"]'),
        ("toy-maybe", "MUST", EVERYWHERE, "conditional = true"),
        ("toy-later", "MUST", EVERYWHERE, 'deferred = "nobody has written it"'),
    ],
    "suite/other.toml": [("other-must", "MUST", EVERYWHERE, "")],
    "more/third.toml": [("third-must", "MUST NOT", EVERYWHERE, "")],
}

SERVER = """
import json, os, sys
spoken = sys.argv[1].split(",")
legacy = [r for r in spoken if r != "2026-07-28"]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message["method"], {"error": {"code": -32601, "message": "no"}}
    if method == "die":
        os._exit(9)
    if method == "initialize" and legacy:
        asked = message["params"]["protocolVersion"]
        named = asked if asked in legacy else legacy[-1]
        answer = {"result": {"protocolVersion": named, "capabilities": {}}}
    elif method == "server/discover" and legacy != spoken:
        answer = {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"]}}
    elif method == "ping":
        answer = {"result": {}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def server(*spoken: str) -> Target:
    """Return a small server that speaks these revisions, by default the newest legacy one."""
    words = (sys.executable, "-S", "-c", SERVER, ",".join(spoken or (LEGACY,)), ROOT)
    return Target(command=words, startup=LONG)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """Collect the declarations of one test."""
    for name, rows in ROWS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            TOY
            + "".join(
                ROW.format(
                    id=clause,
                    level=level,
                    more=more,
                    source="\n".join(f'"{revision}" = "toy"' for revision in revisions),
                )
                for clause, level, revisions, more in rows
            )
        )
    made = Registry(load_catalogue(tmp_path), place="suite/toy.py")
    collecting(made)
    yield made
    collecting(None)


Body = Callable[[Conversation], None]


def declare(*clauses: str, name: str = "does_it", **marks: Any) -> Callable[[Body], Body]:
    """Declare a scenario whose name and docstring do not matter."""

    def take(body: Body) -> Body:
        body.__name__ = name
        body.__doc__ = "Do it."
        return scenario(*clauses, **marks)(body)

    return take


def declare_result(clause: str, passed: bool, mild: Breach | None = None, **marks: Any) -> None:
    """Declare a scenario with this result."""

    @declare(clause, name=f"finds_{len(marks)}_{clause.replace('-', '_')}_{passed}", **marks)
    def _(talk: Conversation) -> None:
        talk.judge(clause, passed, expected="this", actual="that", mild=mild)


def outcomes(run: Run) -> dict[str, Outcome]:
    return {verdict.clause.id: verdict.outcome for verdict in run.verdicts}


def only_verdict(run: Run) -> Verdict:
    (verdict,) = run.verdicts
    return verdict


# --- lazy loading of a suite


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


# --- faulty scenarios


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
    assert actual.startswith("a fault of mcp-touchstone itself: ZeroDivisionError: by zero (")
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "raise ZeroDivisionError" in text
    )
    assert actual.endswith(f"{Path(__file__).name}:{line})")
    assert run.exit_code == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda talk: talk.judge("toy-may", passed=True, expected="x"), "does not declare toy-may"),
        (lambda talk: talk.unseen("toy-must", "no"), "toy-must is not conditional"),
    ],
)
def test_judging_an_undeclared_clause_is_an_internal_fault(
    registry: Registry, body: Body, words: str
) -> None:
    @declare("toy-must")
    def _(talk: Conversation) -> None:
        body(talk)

    actual = only_verdict(judge(server(), registry, Choice())).gravest.actual

    assert actual.startswith("a fault of mcp-touchstone itself")
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
    monkeypatch.setattr(Conversation, "broken", lambda *_: None)
    declare_result("toy-must", passed=True)
    declare("toy-must")(lambda _: None)

    run = judge(server(), registry, Choice())

    assert only_verdict(run).outcome is Outcome.BROKEN
    assert "planned, but never judged" in only_verdict(run).gravest.actual


def test_verdicts_match_the_plan(registry: Registry) -> None:
    for clause in ("toy-must", "toy-old", "toy-tools", "toy-should"):
        declare_result(clause, passed=True)

    run = judge(server("2024-11-05", LEGACY), registry, Choice())

    planned = {(c.id, slot.revision) for slot in run.slots for c in slot.clauses}
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
    assert all(slot.done for slot in run.slots)


def test_verdicts_are_in_catalogue_order(registry: Registry) -> None:
    for clause in ("toy-may", "third-must", "toy-must", "other-must"):
        declare_result(clause, passed=True)

    run = judge(server(), registry, Choice())

    assert list(outcomes(run)) == ["third-must", "other-must", "toy-must", "toy-may"]


# --- exit codes


@pytest.mark.parametrize(
    ("clause", "passed", "mild", "strict", "outcome", "code"),
    [
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
    ],
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

    assert run.count(Outcome.BROKEN) == 1
    assert run.exit_code == 1


def test_server_exit_at_startup_gives_status_2_and_no_verdict(registry: Registry) -> None:
    declare_result("toy-must", passed=True)
    target = Target(command=(sys.executable, "-S", "-c", "raise SystemExit(3)"), startup=LONG)

    run = judge(target, registry, Choice(select=("toy",)))

    assert run.exit_code == 2
    assert "the server left (status 3)" in run.trouble
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
        talk.quiet(LONG)
        talk.judge("other-must", passed=True, expected="never reached")

    begun = time.monotonic()
    run = judge(server(), registry, Choice())

    assert time.monotonic() - begun < LONG
    assert run.exit_code == 130
    assert outcomes(run) == {"toy-must": Outcome.FAIL}


def interrupt_at(moment: str) -> Callable[[str, object], None]:
    def interrupt(what: str, _: object) -> None:
        if what == moment:
            raise KeyboardInterrupt

    return interrupt


def test_run_interrupted_after_recon_has_no_verdicts(registry: Registry) -> None:
    declare_result("toy-must", passed=True)

    run = judge(server(), registry, Choice(), on_event=interrupt_at("recon"))

    assert (run.exit_code, run.verdicts) == (130, [])


def test_run_interrupted_at_the_plan_keeps_the_verdicts_it_has(registry: Registry) -> None:
    # A case runs as soon as its needs are decided, which may be before the plan is complete.
    declare_result("toy-must", passed=True)

    run = judge(server(), registry, Choice(), on_event=interrupt_at("plan"))

    assert run.exit_code == 130
    assert {one.outcome for one in run.verdicts} <= {Outcome.PASS}


def test_run_leaves_no_thread_process_or_folder(registry: Registry) -> None:
    before = set(threading.enumerate())
    declare_result("toy-must", passed=True)
    declare_result("other-must", passed=True, fresh=True)

    run = judge(server(), registry, Choice())

    assert set(threading.enumerate()) <= before
    assert run.processes == len(run.connections) == len(rev.ALL) + 1
    for connection in run.connections:
        assert not connection.process.running
        assert connection.process.ending is not None
        assert not Path(connection.process.command[-1]).exists(), "the world is removed"


# --- several judgements of one clause


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


def test_once_scenario_runs_once_and_counts_for_all_legacy_revisions(registry: Registry) -> None:
    asked: list[str] = []

    @declare("toy-must", "toy-should", fresh=True, once=True)
    def _(talk: Conversation) -> None:
        asked.append(talk.revision)
        talk.judge("toy-must", passed=False, expected="this")
        talk.judge("toy-should", passed=True, expected="this")

    run = judge(server(*rev.ALL), registry, Choice(repeats=0))

    assert asked == [LEGACY]
    failed = [v.revision for v in run.verdicts if v.outcome is Outcome.FAIL]
    passed = [v.revision for v in run.verdicts if v.outcome is Outcome.PASS]
    assert failed == passed == list(rev.LEGACY)
    assert all(v.gravest.revision == v.revision for v in run.verdicts)


def test_ambient_rule_counts_over_every_conversation(
    registry: Registry,
) -> None:
    declare_result("other-must", passed=True, fresh=True)

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
        if connection.revision == LEGACY
        for entry in connection.transcript
        if entry.source == "them"
    ]
    assert (found["toy-must"].outcome, found["toy-must"].count) == (Outcome.FAIL, len(lines))
    assert (found["toy-should"].outcome, found["toy-should"].count) == (Outcome.PASS, len(lines))
    assert found["toy-maybe"].outcome is Outcome.UNSEEN
    assert found["third-must"].outcome is Outcome.BROKEN, "it looked at nothing"
    assert any(wire.guilty for wire in found["toy-must"].wire)


# --- selection


@pytest.fixture
def chosen(registry: Registry) -> Callable[..., set[str]]:
    for clause in ("toy-must", "toy-should", "other-must", "third-must"):
        registry.place = f"{registry.catalogue[clause].file.removesuffix('.toml')}.py"
        declare(clause, name=f"keeps_{clause.replace('-', '_')}")(lambda _: None)

    def choose(**what: Any) -> set[str]:
        choice = Choice(**what)
        choice.check(registry)
        return {c.id for case in registry.cases() for c in case.clauses if choice.takes(case, c)}

    return choose


@pytest.mark.parametrize(
    ("words", "clauses"),
    [
        ((), {"toy-must", "toy-should", "other-must", "third-must"}),
        (("toy-must",), {"toy-must"}),
        (("toy",), {"toy-must", "toy-should"}),
        (("suite/toy",), {"toy-must", "toy-should"}),
        (("suite",), {"toy-must", "toy-should", "other-must"}),
        (("keeps_third_must",), {"third-must"}),
        (("more/third.py",), {"third-must"}),
        (("more/third.py::keeps_third_must",), {"third-must"}),
        (("*-must",), {"toy-must", "other-must", "third-must"}),
        (("suite/*",), {"toy-must", "toy-should", "other-must"}),
        (("toy-should", "more"), {"toy-should", "third-must"}),
    ],
)
def test_select_words_choose_clauses(
    chosen: Callable[..., set[str]], words: tuple[str, ...], clauses: set[str]
) -> None:
    assert chosen(select=words) == clauses


def test_levels_choose_clauses(chosen: Callable[..., set[str]]) -> None:
    assert chosen(levels=(Level.SHOULD,)) == {"toy-should"}
    assert chosen(levels=(Level.MUST, Level.MUST_NOT), select=("more", "toy")) == {
        "toy-must",
        "third-must",
    }


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("toy-mist", "did you mean 'toy-must'?; `mcp-touchstone list` shows them"),
        ("toy-later", "clause toy-later is not judged: nobody has written it"),
        ("zzz*", "--select zzz*: no clause, chapter or scenario is called that; `mcp"),
        ("Toy-Must", "--select Toy-Must: no clause, chapter or scenario is called that"),
    ],
)
@pytest.mark.usefixtures("chosen")
def test_unknown_select_word_is_refused_before_the_server_starts(
    registry: Registry, word: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        judge(Target(command=("no-such-server",)), registry, Choice(select=("toy", word)))

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice(revisions=("2024-11-05",)), f"--revision 2024-11-05: the server speaks {LEGACY}"),
        (Choice(levels=(Level.MAY,)), "nothing selected applies to this server"),
        (Choice(cases=frozenset()), "nothing selected applies to this server"),
        (
            Choice(cases=frozenset(), quick=True),
            (
                f"nothing selected applies to this server in {LEGACY}, the only revision that "
                "--quick judges"
            ),
        ),
        (
            Choice(select=("toy-tools",)),
            "nothing selected applies to this server: the server offers no tools",
        ),
    ],
)
def test_selection_not_applicable_to_the_server_is_refused(
    registry: Registry, choice: Choice, message: str
) -> None:
    declare_result("toy-must", passed=True)
    declare_result("toy-tools", passed=True)

    with pytest.raises(UsageError) as caught:
        judge(server(), registry, choice)

    assert str(caught.value) == message


def test_selected_cases_run_exactly(registry: Registry) -> None:
    declare_result("toy-must", passed=True)
    declare_result("other-must", passed=True)
    case = registry.scenarios[0].id

    run = judge(server(), registry, Choice(cases=frozenset({case})))

    assert [slot.case.id for slot in run.slots] == [case]


# --- processes


def test_hurting_scenarios_run_last_and_fresh_ones_alone(registry: Registry) -> None:
    order: list[str] = []

    def note(name: str, **marks: bool) -> None:
        @declare("toy-must", name=name, **marks)
        def _(talk: Conversation) -> None:
            order.append(f"{name} {len(talk.wire.transcript) > 0}")
            talk.judge("toy-must", passed=True, expected="this")

    note("hurts_first", hurts=True)
    note("is_fresh", fresh=True)
    note("is_plain")
    note("hurts_again", hurts=True)
    note("is_plain_too")

    judge(server(), registry, Choice(jobs=1))

    shared = [word for word in order if not word.startswith("is_fresh")]
    assert shared == [
        "is_plain True",
        "is_plain_too True",
        "hurts_first True",
        "hurts_again True",
    ]
    assert "is_fresh False" in order


def test_server_death_is_recorded_on_its_scenario_only(
    registry: Registry,
) -> None:
    @declare("toy-must", name="kills_it")
    def _(talk: Conversation) -> None:
        talk.request("die")
        talk.judge("toy-must", passed=True, expected="this")

    @declare("other-must", name="comes_after")
    def _(talk: Conversation) -> None:
        talk.judge("other-must", talk.probe().answered, expected="a live server")

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.PASS, "other-must": Outcome.PASS}
    assert [slot.left for slot in run.slots] == ["the server left (status 9)", ""]


def test_start_and_done_events_are_sent_for_every_slot(registry: Registry) -> None:
    declare_result("toy-must", passed=True)
    declare_result("other-must", passed=True)
    events: list[str] = []

    judge(server(), registry, Choice(jobs=1), on_event=lambda what, _: events.append(what))

    assert [what for what in events if what in {"start", "done"}] == ["start", "done"] * 2
    assert [what for what in events if what not in {"start", "done"}] == ["recon", "learnt", "plan"]
    assert events[0] == "recon", "what needs nothing else may begin at once"


def test_number_of_jobs_does_not_change_the_verdicts() -> None:
    suite = load()
    words = ("ping", "discover", "meta")

    runs = [
        judge(reference(startup=LONG), suite, Choice(select=words, jobs=jobs)) for jobs in (1, 8)
    ]

    one, eight = ([(v.clause.id, v.revision, v.outcome) for v in r.verdicts] for r in runs)
    assert one == eight
    assert {outcome for _, _, outcome in one} <= {Outcome.PASS, Outcome.UNSEEN}
    assert len(one) > 30


# --- discovery

TOY_SERVER = (sys.executable, "-S", str(HERE / "toy_server.py"), ROOT, "echo", "elicit", "old")
CLAUSES_WITH_NEEDS = {
    "toy-called": 'needs = ["callable-tool"]',
    "toy-asked": 'needs = ["elicits"]\nconditional = true',
    "toy-slow": 'needs = ["slow-call"]',
    "toy-plain": 'needs = ["tools"]',
}


@pytest.fixture
def needs_registry(tmp_path: Path) -> Iterator[Registry]:
    """Collect the declarations of one test, for clauses with needs."""
    path = tmp_path / "suite" / "toy.toml"
    path.parent.mkdir()
    source = f'"2025-06-18" = "toy"\n"{LEGACY}" = "toy"'
    rows = [
        ROW.format(id=clause, level="MUST", more=more, source=source)
        for clause, more in CLAUSES_WITH_NEEDS.items()
    ]
    path.write_text(TOY + "".join(rows))
    made = Registry(load_catalogue(tmp_path), place="suite/toy.py")
    collecting(made)
    yield made
    collecting(None)


def judge_toy(registry: Registry, *select: str) -> Run:
    return judge(Target(command=TOY_SERVER, startup=LONG), registry, Choice(select=select))


@pytest.mark.parametrize("revision", ["2025-06-18", LEGACY])
def test_chosen_revision_and_the_newest_of_each_era_are_requested(
    needs_registry: Registry, revision: str
) -> None:
    declare_result("toy-called", passed=True)
    chosen = {revision, rev.LATEST_LEGACY, rev.LATEST_MODERN}
    choice = Choice(select=("toy-called",), revisions=(revision,))

    run = judge(Target(command=TOY_SERVER, startup=LONG), needs_registry, choice)

    assert run.processes == len(chosen)
    assert set(run.profile.asked) == chosen
    assert {verdict.revision for verdict in run.verdicts} == {revision}


def test_all_revisions_are_requested_if_a_scenario_compares_them(
    needs_registry: Registry,
) -> None:
    declare_result("toy-called", passed=True, everywhere=True)
    choice = Choice(revisions=("2025-06-18",))

    run = judge(Target(command=TOY_SERVER, startup=LONG), needs_registry, choice)

    assert run.profile.asked == rev.ALL
    assert {verdict.revision for verdict in run.verdicts} == {"2025-06-18"}


def test_discovery_tries_only_the_needs_of_selected_clauses(needs_registry: Registry) -> None:
    for clause in CLAUSES_WITH_NEEDS:
        declare_result(clause, passed=True)

    run = judge_toy(needs_registry, "toy-plain")
    assert run.processes == len(rev.ALL)
    assert all(not spoken.tried for spoken in run.profile.spoken.values())

    run = judge_toy(needs_registry, "toy-called")
    assert run.processes == len(rev.ALL)
    assert run.profile.spoken[LEGACY].examples("callable-tool")
    assert not run.profile.spoken["2024-11-05"].tried

    run = judge_toy(needs_registry, "toy-asked")
    assert run.processes == len(rev.ALL) + 1
    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 2


def test_clause_with_unmet_need_is_absent_with_a_reason(needs_registry: Registry) -> None:
    declare_result("toy-slow", passed=True)
    declare_result("toy-plain", passed=True)

    run = judge_toy(needs_registry)

    assert {(row.clause, row.revision) for row in run.absent} == {
        ("toy-slow", "2025-06-18"), ("toy-slow", LEGACY),
    }  # fmt: skip
    assert "no callable tool that lasts a second or more" in run.absent[0].why


def test_willing_scenarios_share_one_process_per_revision(needs_registry: Registry) -> None:
    """The process opened by recon is used again; an older revision gets a new one."""
    seen: list[tuple[str, int, bool]] = []

    def body(talk: Conversation) -> None:
        declared = talk.wire.transcript.capabilities
        seen.append((talk.revision, id(talk.wire), "elicitation" in declared))
        provoked = talk.provoke(talk.example("elicits"))
        talk.judge("toy-asked", bool(provoked.questions), expected="a question")
        talk.use(Client(elicitation=answers.silence()))

    for number in range(3):
        declare("toy-asked", name=f"asks_{number}", willing=True)(body)
    declare_result("toy-plain", passed=True)

    run = judge_toy(needs_registry)

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 4
    assert len(seen) == 6
    assert all(declared for _, _, declared in seen)
    assert len({(revision, wire) for revision, wire, _ in seen}) == 2
    assert run.processes == len(rev.ALL) + 2


def test_ordinary_scenario_gets_no_willing_client(needs_registry: Registry) -> None:
    @declare("toy-plain", name="is_plain")
    def _(talk: Conversation) -> None:
        talk.judge("toy-plain", not talk.wire.client.capabilities, expected="nothing declared")

    @declare("toy-asked", name="is_willing", willing=True)
    def _(talk: Conversation) -> None:
        talk.judge("toy-asked", bool(talk.wire.client.capabilities), expected="everything")

    assert judge_toy(needs_registry).exit_code == 0


def test_discovery_can_be_interrupted(needs_registry: Registry) -> None:
    declare_result("toy-called", passed=True)
    target = Target(command=(*TOY_SERVER, "hang"), startup=LONG)

    def interrupt(what: str, _: object) -> None:
        if what == "recon":
            threading.Timer(1.0, _thread.interrupt_main).start()

    begun = time.monotonic()
    run = judge(target, needs_registry, Choice(), on_event=interrupt)

    assert run.interrupted
    assert run.exit_code == 130
    assert time.monotonic() - begun < Pace(LONG).reply
    assert all(connection.process.ending for connection in run.connections)


def test_survey_explores_the_requested_revision() -> None:
    profile, processes = survey(Target(command=TOY_SERVER, startup=LONG), [LEGACY])

    assert processes == len(rev.ALL) + 3, "a willing client, and two passes for bindings"
    assert {"callable-tool", "elicits"} <= profile.spoken[LEGACY].found.keys()
    assert profile.spoken["2025-06-18"].found == {}
