"""Small suites against a small server: what is planned is judged, and folds to one exit code."""

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

from mcp_touchstone import answer
from mcp_touchstone import revision as rev
from mcp_touchstone.clause import Breach, CatalogueError, Level, load_catalogue
from mcp_touchstone.client import Client
from mcp_touchstone.conversation import Broken, Conversation
from mcp_touchstone.gate import Choice, Run, UsageError, judge, survey
from mcp_touchstone.loader import load
from mcp_touchstone.pace import Pace
from mcp_touchstone.process import LaunchError
from mcp_touchstone.results import Verdict
from mcp_touchstone.scenario import Registry, Seen, ambient, collecting, scenario
from mcp_touchstone.target import ROOT, Target, reference
from mcp_touchstone.verdict import Judgement, Outcome, worst
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
    """Give a server of a few lines that speaks these revisions, by default the newest handshake."""
    words = (sys.executable, "-S", "-c", SERVER, ",".join(spoken or (LEGACY,)), ROOT)
    return Target(command=words, startup=LONG)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """Take the declarations of one test."""
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


def declare(*clauses: str, name: str = "does_it", **marks: bool) -> Callable[[Body], Body]:
    """Declare a scenario whose name and docstring do not matter."""

    def take(body: Body) -> Body:
        body.__name__ = name
        body.__doc__ = "Do it."
        return scenario(*clauses, **marks)(body)

    return take


def says(clause: str, held: bool, mild: Breach | None = None, **marks: Any) -> None:
    """Declare a scenario that finds this."""

    @declare(clause, name=f"finds_{len(marks)}_{clause.replace('-', '_')}_{held}", **marks)
    def _(talk: Conversation) -> None:
        talk.judge(clause, held, expected="this", actual="that", mild=mild)


def outcomes(run: Run) -> dict[str, Outcome]:
    return {verdict.clause.id: verdict.outcome for verdict in run.verdicts}


def only(run: Run) -> Verdict:
    (verdict,) = run.verdicts
    return verdict


# --- a suite that is read while the server starts


def test_a_suite_may_be_read_late_and_is_read_once(registry: Registry) -> None:
    read: list[Registry] = []

    @declare("toy-must")
    def _(talk: Conversation) -> None:
        talk.judge("toy-must", held=True, expected="this")

    def late() -> Registry:
        read.append(registry)
        return registry

    assert outcomes(judge(server(), late, Choice())) == {"toy-must": Outcome.PASS}
    assert len(read) == 1


def test_a_suite_that_cannot_be_read_leaves_no_server_behind() -> None:
    pids: list[int] = []

    def wrong() -> Registry:
        pids.extend(child.pid for child in psutil.Process().children())
        raise CatalogueError("suite/toy.toml: it is wrong")

    with pytest.raises(CatalogueError, match="it is wrong"):
        judge(server(), wrong, Choice())

    assert pids
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_choice_that_names_nothing_starts_no_server(registry: Registry) -> None:
    missing = Target(command=("no-such-program",))

    with pytest.raises(UsageError, match="--select toyy"):
        judge(missing, lambda: registry, Choice(select=("toyy",)))


# --- a scenario that does not do its part


def test_a_scenario_that_judges_nothing_is_broken(registry: Registry) -> None:
    @declare("toy-must", "toy-should")
    def _(talk: Conversation) -> None:
        talk.judge("toy-must", held=True, expected="this")

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.PASS, "toy-should": Outcome.BROKEN}
    gravest = run.of(Outcome.BROKEN)[0].gravest
    assert gravest.actual == "the scenario ended without judging this clause"
    assert run.exit_code == 2


def test_a_scenario_that_raises_is_a_fault_of_ours_with_its_place(registry: Registry) -> None:
    @declare("toy-must")
    def _(_: Conversation) -> None:
        raise ZeroDivisionError("by zero")

    run = judge(server(), registry, Choice())

    assert only(run).outcome is Outcome.BROKEN
    said = only(run).gravest.actual
    assert said.startswith("a fault of mcp-touchstone itself: ZeroDivisionError: by zero (")
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "raise ZeroDivisionError" in text
    )
    assert said.endswith(f"{Path(__file__).name}:{line})")
    assert run.exit_code == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda talk: talk.judge("toy-may", held=True, expected="x"), "does not declare toy-may"),
        (lambda talk: talk.unseen("toy-must", "no"), "toy-must is not conditional"),
    ],
)
def test_judging_what_is_not_ones_own_is_a_fault_of_ours(
    registry: Registry, body: Body, words: str
) -> None:
    @declare("toy-must")
    def _(talk: Conversation) -> None:
        body(talk)

    said = only(judge(server(), registry, Choice())).gravest.actual

    assert said.startswith("a fault of mcp-touchstone itself")
    assert words in said


def test_a_scenario_that_cannot_ask_says_why(registry: Registry) -> None:
    @declare("toy-must")
    def _(_: Conversation) -> None:
        raise Broken("the tide was out")

    run = judge(server(), registry, Choice())

    assert (only(run).outcome, only(run).gravest.actual) == (Outcome.BROKEN, "the tide was out")


def test_what_was_judged_before_a_fault_is_kept(registry: Registry) -> None:
    @declare("toy-must", "toy-should")
    def _(talk: Conversation) -> None:
        talk.judge("toy-must", held=False, expected="this")
        raise RuntimeError

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.FAIL, "toy-should": Outcome.BROKEN}


def test_what_is_planned_and_lost_is_broken_whoever_else_judged_the_clause(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Conversation, "broken", lambda *_: None)
    says("toy-must", held=True)
    declare("toy-must")(lambda _: None)

    run = judge(server(), registry, Choice())

    assert only(run).outcome is Outcome.BROKEN
    assert "planned, but never judged" in only(run).gravest.actual


def test_what_is_planned_is_judged_and_nothing_else(registry: Registry) -> None:
    for clause in ("toy-must", "toy-old", "toy-tools", "toy-should"):
        says(clause, held=True)

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


def test_verdicts_stand_in_the_order_of_the_catalogue(registry: Registry) -> None:
    for clause in ("toy-may", "third-must", "toy-must", "other-must"):
        says(clause, held=True)

    run = judge(server(), registry, Choice())

    assert list(outcomes(run)) == ["third-must", "other-must", "toy-must", "toy-may"]


# --- exit codes


@pytest.mark.parametrize(
    ("clause", "held", "mild", "strict", "outcome", "code"),
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
def test_a_breach_counts_by_its_clause_and_strict_raises_only_a_plain_should(
    registry: Registry,
    clause: str,
    held: bool,
    mild: Breach | None,
    strict: bool,
    outcome: Outcome,
    code: int,
) -> None:
    says(clause, held, mild)

    run = judge(server(), registry, Choice(strict=strict, revisions=(LEGACY,)))

    assert only(run).outcome is outcome
    assert run.exit_code == code


def test_a_failure_counts_before_what_could_not_be_judged(registry: Registry) -> None:
    says("toy-must", held=False)
    declare("other-must")(lambda _: None)

    run = judge(server(), registry, Choice())

    assert run.count(Outcome.BROKEN) == 1
    assert run.exit_code == 1


def test_a_server_that_says_nothing_is_not_conforming_and_not_failing(registry: Registry) -> None:
    says("toy-must", held=True)
    target = Target(command=(sys.executable, "-S", "-c", "raise SystemExit(3)"), startup=LONG)

    run = judge(target, registry, Choice(select=("toy",)))

    assert run.exit_code == 2
    assert "the server left (status 3)" in run.trouble
    assert run.verdicts == []


def test_a_program_that_is_not_there_is_no_verdict(registry: Registry) -> None:
    says("toy-must", held=True)
    before = set(threading.enumerate())

    with pytest.raises(LaunchError, match="there is no program"):
        judge(Target(command=("no-such-server",)), registry, Choice())

    assert set(threading.enumerate()) <= before


def test_an_interrupted_run_keeps_what_was_judged_until_then(registry: Registry) -> None:
    says("toy-must", held=False)

    @declare("other-must", hurts=True)
    def _(talk: Conversation) -> None:
        _thread.interrupt_main()
        talk.quiet(LONG)
        talk.judge("other-must", held=True, expected="never reached")

    begun = time.monotonic()
    run = judge(server(), registry, Choice())

    assert time.monotonic() - begun < LONG
    assert run.exit_code == 130
    assert outcomes(run) == {"toy-must": Outcome.FAIL}


@pytest.mark.parametrize("moment", ["recon", "plan"])
def test_a_run_interrupted_before_it_began_judges_nothing(registry: Registry, moment: str) -> None:
    says("toy-must", held=True)

    def interrupt(what: str, _: object) -> None:
        if what == moment:
            raise KeyboardInterrupt

    run = judge(server(), registry, Choice(), on_event=interrupt)

    assert (run.exit_code, run.verdicts) == (130, [])


def test_nothing_of_a_run_stays(registry: Registry) -> None:
    before = set(threading.enumerate())
    says("toy-must", held=True)
    says("other-must", held=True, fresh=True)

    run = judge(server(), registry, Choice())

    assert set(threading.enumerate()) <= before
    assert run.processes == len(run.connections) == len(rev.ALL) + 1
    for connection in run.connections:
        assert not connection.process.running
        assert connection.process.ending is not None
        assert not Path(connection.process.command[-1]).exists(), "the world is removed"


# --- folding


@pytest.mark.parametrize(("graver", "lighter"), list(itertools.combinations(Outcome, 2)))
def test_of_two_judgements_the_graver_counts(graver: Outcome, lighter: Outcome) -> None:
    two = [
        Judgement(clause="c", revision="r", outcome=outcome, scenario="s")
        for outcome in (lighter, graver)
    ]

    assert worst(two).outcome is graver
    assert worst(reversed(two)).outcome is graver


def test_outcomes_are_ordered_from_grave_to_light() -> None:
    assert [str(o) for o in Outcome] == ["fail", "broken", "warn", "note", "pass", "unseen"]


def test_a_clause_judged_by_several_has_one_verdict(registry: Registry) -> None:
    says("toy-must", held=True)
    says("toy-must", held=False)

    @ambient("toy-must")
    def watches_it(_: Any) -> Iterator[Seen]:
        """Watch it."""
        yield Seen("toy-must", held=True)

    run = judge(server(), registry, Choice())

    assert only(run).outcome is Outcome.FAIL
    assert len(only(run).judgements) == 3


def test_what_happens_once_is_found_once_and_holds_for_every_handshake(registry: Registry) -> None:
    asked: list[str] = []

    @declare("toy-must", "toy-should", fresh=True, once=True)
    def _(talk: Conversation) -> None:
        asked.append(talk.revision)
        talk.judge("toy-must", held=False, expected="this")
        talk.judge("toy-should", held=True, expected="this")

    run = judge(server(*rev.ALL), registry, Choice())

    assert asked == [LEGACY]
    failed = [v.revision for v in run.verdicts if v.outcome is Outcome.FAIL]
    passed = [v.revision for v in run.verdicts if v.outcome is Outcome.PASS]
    assert failed == passed == list(rev.LEGACY)
    assert all(v.gravest.revision == v.revision for v in run.verdicts)


def test_a_rule_about_all_traffic_looks_at_every_conversation_and_counts(
    registry: Registry,
) -> None:
    says("other-must", held=True, fresh=True)

    @ambient("toy-must", "toy-maybe", "third-must", "toy-should")
    def watches_it(record: Any) -> Iterator[Seen]:
        """Watch it."""
        for entry in record.lines():
            yield Seen("toy-must", held=False, n=entry.n, expected="less", actual="more")
            yield Seen("toy-should", held=True)

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


# --- choosing


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
def test_words_choose_clauses(
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
def test_a_word_that_chooses_nothing_is_refused_before_anything_starts(
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
            Choice(select=("toy-tools",)),
            "nothing selected applies to this server: the server offers no tools",
        ),
    ],
)
def test_a_choice_that_fits_nothing_of_this_server_is_refused(
    registry: Registry, choice: Choice, message: str
) -> None:
    says("toy-must", held=True)
    says("toy-tools", held=True)

    with pytest.raises(UsageError) as caught:
        judge(server(), registry, choice)

    assert str(caught.value) == message


def test_cases_are_chosen_exactly(registry: Registry) -> None:
    says("toy-must", held=True)
    says("other-must", held=True)
    case = registry.scenarios[0].id

    run = judge(server(), registry, Choice(cases=frozenset({case})))

    assert [slot.case.id for slot in run.slots] == [case]


# --- processes


def test_what_hurts_comes_last_and_what_is_fresh_meets_nobody(registry: Registry) -> None:
    order: list[str] = []

    def note(name: str, **marks: bool) -> None:
        @declare("toy-must", name=name, **marks)
        def _(talk: Conversation) -> None:
            order.append(f"{name} {len(talk.wire.transcript) > 0}")
            talk.judge("toy-must", held=True, expected="this")

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


def test_a_scenario_that_leaves_the_server_dead_is_named_and_hurts_no_other(
    registry: Registry,
) -> None:
    @declare("toy-must", name="kills_it")
    def _(talk: Conversation) -> None:
        talk.request("die")
        talk.judge("toy-must", held=True, expected="this")

    @declare("other-must", name="comes_after")
    def _(talk: Conversation) -> None:
        talk.judge("other-must", talk.probe().answered, expected="a live server")

    run = judge(server(), registry, Choice())

    assert outcomes(run) == {"toy-must": Outcome.PASS, "other-must": Outcome.PASS}
    assert [slot.left for slot in run.slots] == ["the server left (status 9)", ""]


def test_every_slot_is_told_from_its_start_to_its_end(registry: Registry) -> None:
    says("toy-must", held=True)
    says("other-must", held=True)
    told: list[str] = []

    judge(server(), registry, Choice(jobs=1), on_event=lambda what, _: told.append(what))

    assert [what for what in told if what in {"start", "done"}] == ["start", "done"] * 2
    assert [what for what in told if what not in {"start", "done"}] == ["recon", "learnt", "plan"]
    assert told[0] == "recon", "what needs nothing else may begin at once"


def test_one_conversation_at_a_time_and_eight_find_the_same() -> None:
    suite = load()
    words = ("ping", "discover", "meta")

    runs = [
        judge(reference(startup=LONG), suite, Choice(select=words, jobs=jobs)) for jobs in (1, 8)
    ]

    one, eight = ([(v.clause.id, v.revision, v.outcome) for v in r.verdicts] for r in runs)
    assert one == eight
    assert {outcome for _, _, outcome in one} <= {Outcome.PASS, Outcome.UNSEEN}
    assert len(one) > 30


# --- what has to be tried first

TOY_SERVER = (sys.executable, "-S", str(HERE / "toy_server.py"), ROOT, "echo", "elicit", "old")
NEEDING = {
    "toy-called": 'needs = ["callable-tool"]',
    "toy-asked": 'needs = ["elicits"]\nconditional = true',
    "toy-slow": 'needs = ["slow-call"]',
    "toy-plain": 'needs = ["tools"]',
}


@pytest.fixture
def needing(tmp_path: Path) -> Iterator[Registry]:
    """Take the declarations of one test, on clauses that need something tried."""
    path = tmp_path / "suite" / "toy.toml"
    path.parent.mkdir()
    source = f'"2025-06-18" = "toy"\n"{LEGACY}" = "toy"'
    rows = [
        ROW.format(id=clause, level="MUST", more=more, source=source)
        for clause, more in NEEDING.items()
    ]
    path.write_text(TOY + "".join(rows))
    made = Registry(load_catalogue(tmp_path), place="suite/toy.py")
    collecting(made)
    yield made
    collecting(None)


def toy(registry: Registry, *select: str) -> Run:
    return judge(Target(command=TOY_SERVER, startup=LONG), registry, Choice(select=select))


@pytest.mark.parametrize("revision", ["2025-06-18", LEGACY])
def test_a_server_is_asked_for_the_revisions_chosen_and_the_newest_of_each_era(
    needing: Registry, revision: str
) -> None:
    says("toy-called", held=True)
    chosen = {revision, rev.LATEST_LEGACY, rev.LATEST_MODERN}
    choice = Choice(select=("toy-called",), revisions=(revision,))

    run = judge(Target(command=TOY_SERVER, startup=LONG), needing, choice)

    assert run.processes == len(chosen)
    assert set(run.dossier.asked) == chosen
    assert {verdict.revision for verdict in run.verdicts} == {revision}


def test_a_server_is_asked_for_all_revisions_where_a_scenario_compares_them(
    needing: Registry,
) -> None:
    says("toy-called", held=True, everywhere=True)
    choice = Choice(revisions=("2025-06-18",))

    run = judge(Target(command=TOY_SERVER, startup=LONG), needing, choice)

    assert run.dossier.asked == rev.ALL
    assert {verdict.revision for verdict in run.verdicts} == {"2025-06-18"}


def test_what_a_chosen_clause_needs_is_tried_and_nothing_else(needing: Registry) -> None:
    for clause in NEEDING:
        says(clause, held=True)

    run = toy(needing, "toy-plain")
    assert run.processes == len(rev.ALL)
    assert all(not spoken.tried for spoken in run.dossier.spoken.values())

    run = toy(needing, "toy-called")
    assert run.processes == len(rev.ALL)
    assert run.dossier.spoken[LEGACY].examples("callable-tool")
    assert not run.dossier.spoken["2024-11-05"].tried

    run = toy(needing, "toy-asked")
    assert run.processes == len(rev.ALL) + 1
    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 2


def test_what_was_tried_in_vain_does_not_apply_and_says_why(needing: Registry) -> None:
    says("toy-slow", held=True)
    says("toy-plain", held=True)

    run = toy(needing)

    assert {(row.clause, row.revision) for row in run.absent} == {
        ("toy-slow", "2025-06-18"), ("toy-slow", LEGACY),
    }  # fmt: skip
    assert "no callable tool that lasts a second or more" in run.absent[0].why


def test_willing_scenarios_share_one_process_for_each_revision(needing: Registry) -> None:
    """The one recon has opened is gone on with; an older revision gets its own."""
    seen: list[tuple[str, int, bool]] = []

    def body(talk: Conversation) -> None:
        declared = talk.wire.transcript.capabilities
        seen.append((talk.revision, id(talk.wire), "elicitation" in declared))
        told = talk.provoke(talk.example("elicits"))
        talk.judge("toy-asked", bool(told.questions), expected="a question")
        talk.use(Client(elicitation=answer.silence()))

    for number in range(3):
        declare("toy-asked", name=f"asks_{number}", willing=True)(body)
    says("toy-plain", held=True)

    run = toy(needing)

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 4
    assert len(seen) == 6
    assert all(declared for _, _, declared in seen)
    assert len({(revision, wire) for revision, wire, _ in seen}) == 2
    assert run.processes == len(rev.ALL) + 2


def test_an_ordinary_scenario_never_meets_a_willing_client(needing: Registry) -> None:
    @declare("toy-plain", name="is_plain")
    def _(talk: Conversation) -> None:
        talk.judge("toy-plain", not talk.wire.client.capabilities, expected="nothing declared")

    @declare("toy-asked", name="is_willing", willing=True)
    def _(talk: Conversation) -> None:
        talk.judge("toy-asked", bool(talk.wire.client.capabilities), expected="everything")

    assert toy(needing).exit_code == 0


def test_what_is_tried_can_be_interrupted(needing: Registry) -> None:
    says("toy-called", held=True)
    target = Target(command=(*TOY_SERVER, "hang"), startup=LONG)

    def interrupt(what: str, _: object) -> None:
        if what == "recon":
            threading.Timer(1.0, _thread.interrupt_main).start()

    begun = time.monotonic()
    run = judge(target, needing, Choice(), on_event=interrupt)

    assert run.interrupted
    assert run.exit_code == 130
    assert time.monotonic() - begun < Pace(LONG).reply
    assert all(connection.process.ending for connection in run.connections)


def test_a_survey_finds_out_everything_and_judges_nothing() -> None:
    dossier, processes = survey(Target(command=TOY_SERVER, startup=LONG), [LEGACY])

    assert processes == len(rev.ALL) + 2, "a willing client, and the search for bindings"
    assert {"callable-tool", "elicits"} <= dossier.spoken[LEGACY].found.keys()
    assert dossier.spoken["2025-06-18"].found == {}
