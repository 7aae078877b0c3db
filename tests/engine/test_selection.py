"""The clauses and revisions that a run selects, and the needs that it discovers."""

import _thread
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Level, load_catalogue
from mcp_touchstone.catalog.loader import CLIENTS, CONFORMANCE, load
from mcp_touchstone.catalog.scenario import Registry, collecting
from mcp_touchstone.connection import answers, mrtr
from mcp_touchstone.connection.profile import Client
from mcp_touchstone.engine.runner import Choice, Run, UsageError, judge, survey
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.results.events import Event, Met
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import ROOT, Target
from tests.cases import cases
from tests.conftest import HERE
from tests.runs import learning
from tests.toy_suite import LEGACY, LONG, ROW, TOY, declare, declare_result, server, toy_registry

pytestmark = pytest.mark.slow


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with toy_registry(tmp_path) as made:
        yield made


@pytest.fixture
def chosen(registry: Registry) -> Callable[..., set[str]]:
    for clause in ("toy-must", "toy-should", "other-must", "third-must"):
        registry.file = f"{registry.catalogue[clause].file.removesuffix('.toml')}.py"
        declare(clause, name=f"keeps_{clause.replace('-', '_')}")(lambda _: None)

    def choose(**what: Any) -> set[str]:
        choice = Choice(**what)
        choice.check(registry)
        return {c.id for case in registry.cases() for c in case.clauses if choice.takes(case, c)}

    return choose


@cases(CONFORMANCE, CLIENTS)
def test_a_draft_is_chosen_by_its_own_names_only(suite: str) -> None:
    rows = [(case, c) for case in load(suite).cases() for c in case.clauses if c.draft]
    assert rows
    for case, clause in rows:
        for word in (clause.id, clause.chapter, clause.place, *clause.sections, "*"):
            assert Choice(select=(word,)).takes(case, clause)
        for words in ((), (clause.group,)):
            assert not Choice(select=words, levels=(clause.level,)).takes(case, clause)
        assert not Choice().supports(case)


@cases(
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


@cases(
    ("toy-mist", "did you mean 'toy-must'?; `mcp-touchstone list` shows them"),
    ("toy-later", "clause toy-later is not judged: nobody has written it"),
    ("zzz*", "--select zzz*: no clause, chapter, section or scenario is called that; `mcp"),
    ("Toy-Must", "--select Toy-Must: no clause, chapter, section or scenario is called that"),
)
@pytest.mark.usefixtures("chosen")
def test_unknown_select_word_is_refused_before_the_server_starts(
    registry: Registry, word: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        judge(Target(command=("no-such-server",)), registry, Choice(select=("toy", word)))

    assert message in str(caught.value)


@cases(
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

    assert [one.planned.case.id for one in run.results] == [case]


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
    made = Registry(load_catalogue(tmp_path), file="suite/toy.py")
    collecting(made)
    yield made
    collecting(None)


def judge_toy(registry: Registry, *select: str) -> Run:
    return judge(Target(command=TOY_SERVER, timeout=LONG), registry, Choice(select=select))


@pytest.mark.parametrize("eras", [False, True])
def test_newest_of_each_era_is_requested_if_a_scenario_uses_it(
    needs_registry: Registry, eras: bool
) -> None:
    declare_result("toy-called", passed=True, eras=eras)
    chosen = {"2025-06-18", *([rev.LATEST_LEGACY, rev.LATEST_MODERN] if eras else [])}
    choice = Choice(select=("toy-called",), revisions=("2025-06-18",))

    run = judge(Target(command=TOY_SERVER, timeout=LONG), needs_registry, choice)

    assert run.execution.processes == len(chosen)
    assert set(run.subject.asked) == chosen
    assert {verdict.revision for verdict in run.verdicts} == {"2025-06-18"}


def test_all_revisions_are_requested_if_a_scenario_compares_them(needs_registry: Registry) -> None:
    declare_result("toy-called", passed=True, everywhere=True)
    choice = Choice(revisions=("2025-06-18",))

    run = judge(Target(command=TOY_SERVER, timeout=LONG), needs_registry, choice)

    assert run.subject.asked == rev.ALL
    assert {verdict.revision for verdict in run.verdicts} == {"2025-06-18"}


def test_discovery_tries_only_the_needs_of_selected_clauses(needs_registry: Registry) -> None:
    for clause in CLAUSES_WITH_NEEDS:
        declare_result(clause, passed=True)

    toy = Target(command=TOY_SERVER, timeout=LONG)
    run, profile = learning(toy, needs_registry, Choice(select=("toy-plain",)))
    assert run.execution.processes == len(rev.ALL)
    assert all(not spoken.tried for spoken in profile.spoken.values())

    run, profile = learning(toy, needs_registry, Choice(select=("toy-called",)))
    assert run.execution.processes == len(rev.ALL)
    assert profile.spoken[LEGACY].examples("callable-tool")
    assert not profile.spoken["2024-11-05"].tried

    run = judge_toy(needs_registry, "toy-asked")
    assert run.execution.processes == len(rev.ALL) + 1
    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 2


def test_clause_with_unmet_need_is_absent_with_a_reason(needs_registry: Registry) -> None:
    declare_result("toy-slow", passed=True)
    declare_result("toy-plain", passed=True)

    run = judge_toy(needs_registry)

    assert {(row.clause, row.revision) for row in run.absent} == {
        ("toy-slow", "2025-06-18"),
        ("toy-slow", LEGACY),
    }
    assert "no callable tool that lasts a second or more" in run.absent[0].why


def test_willing_scenarios_share_one_process_per_revision(needs_registry: Registry) -> None:
    """The process opened by recon is used again; an older revision gets a new one."""
    seen: list[tuple[str, int, bool]] = []

    def body(talk: Conversation) -> None:
        declared = talk.wire.transcript.capabilities
        seen.append((talk.revision, id(talk.wire), "elicitation" in declared))
        provoked = mrtr.provoke(talk.wire, talk.examples.best("elicits"))
        talk.judge("toy-asked", bool(provoked.questions), expected="a question")
        talk.wire.answers.use(Client(elicitation=answers.silence()))

    for number in range(3):
        declare("toy-asked", name=f"asks_{number}", willing=True)(body)
    declare_result("toy-plain", passed=True)

    run = judge_toy(needs_registry)

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 4
    assert len(seen) == 6
    assert all(declared for _, _, declared in seen)
    assert len({(revision, wire) for revision, wire, _ in seen}) == 2
    assert run.execution.processes == len(rev.ALL) + 2


def test_ordinary_scenario_gets_no_willing_client(needs_registry: Registry) -> None:
    @declare("toy-plain", name="is_plain")
    def _(talk: Conversation) -> None:
        talk.judge(
            "toy-plain", not talk.wire.answers.client.capabilities, expected="nothing declared"
        )

    @declare("toy-asked", name="is_willing", willing=True)
    def _(talk: Conversation) -> None:
        talk.judge("toy-asked", bool(talk.wire.answers.client.capabilities), expected="everything")

    assert judge_toy(needs_registry).exit_code == 0


def test_discovery_can_be_interrupted(needs_registry: Registry) -> None:
    declare_result("toy-called", passed=True)
    target = Target(command=(*TOY_SERVER, "hang"), timeout=LONG)

    def interrupt(event: Event) -> None:
        if isinstance(event, Met):
            threading.Timer(1.0, _thread.interrupt_main).start()

    begun = time.monotonic()
    run = judge(target, needs_registry, Choice(), on_event=interrupt)

    assert run.execution.interrupted
    assert run.exit_code == 130
    assert time.monotonic() - begun < Pace(LONG).reply
    assert all(connection.process.ending for connection in run.connections)


def test_survey_explores_the_requested_revision() -> None:
    profile, processes = survey(Target(command=TOY_SERVER, timeout=LONG), [LEGACY])

    assert processes == len(rev.ALL) + 3, "a willing client, and two passes for bindings"
    assert {"callable-tool", "elicits"} <= profile.spoken[LEGACY].found.keys()
    assert profile.spoken["2025-06-18"].found == {}
