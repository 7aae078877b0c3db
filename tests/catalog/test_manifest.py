"""The catalogue and the scenarios agree, in both directions."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import (
    Breach,
    CatalogueError,
    Clause,
    Level,
    Observable,
    load_catalogue,
)
from mcp_touchstone.catalog.loader import CLIENTS, GATEWAYS, home, load, rows
from mcp_touchstone.catalog.scenario import (
    Place,
    Registry,
    Scenario,
    Seen,
    ambient,
    collecting,
    scenario,
)
from tests.cases import cases

REGISTRY = load()
CATALOGUE = REGISTRY.catalogue
CASES = REGISTRY.cases()
OF_CLIENTS = load(CLIENTS)
OF_GATEWAYS = load(GATEWAYS)
CONFORMANCE = home() / "conformance"

COMPLETE = {
    "stdio",
    "jsonrpc",
    "lifecycle",
    "versioning",
    "discover",
    "ping",
    "meta",
    "schema",
    "tools",
    "pagination",
    "server",
    "resources",
    "subscriptions",
    "caching",
    "prompts",
    "completion",
    "logging",
}
"""Chapters without deferred clauses."""

GAPS = {
    "jsonrpc-no-batch-output": "batches exist in 2025-03-26 and nowhere else",
    "authorization-www-authenticate": "2025-06-18 has authorization-challenge",
}
"""Clauses that skip a revision between two others, and the reason."""


def test_every_judged_clause_is_declared_by_a_scenario_or_a_rule() -> None:
    declared = {clause.id for case in CASES for clause in case.clauses}

    assert [clause.id for clause in CATALOGUE if clause.judged and clause.id not in declared] == []


def test_every_reason_not_to_judge_a_clause_is_a_sentence() -> None:
    for clause in CATALOGUE:
        for reason in (clause.deferred, clause.unobservable):
            assert not reason or len(reason.split()) > 3, clause.id


def test_observability_of_every_clause_is_consistent() -> None:
    for clause in CATALOGUE:
        out_of_reach = clause.observable is Observable.NO
        assert out_of_reach == bool(clause.unobservable), clause.id
        assert not (out_of_reach and clause.judged), clause.id
        conditional = clause.observable is Observable.CONDITIONAL
        assert conditional == (clause.conditional and not out_of_reach), clause.id


@cases((Observable.YES, 0.95), (Observable.CONDITIONAL, 0.85))
def test_most_observable_clauses_are_judged(observable: Observable, least: float) -> None:
    seen = [clause for clause in CATALOGUE if clause.observable is observable]

    assert sum(clause.judged for clause in seen) >= least * len(seen)


def test_complete_chapters_defer_no_clause() -> None:
    assert {chapter.name for chapter in CATALOGUE.chapters} >= COMPLETE
    assert [c.id for c in CATALOGUE if c.chapter in COMPLETE and c.deferred] == []


def test_a_case_is_named_by_a_present_tense_sentence_about_the_server() -> None:
    for case in CASES:
        assert re.fullmatch(r"[a-z]+s(_[a-z0-9]+)+", case.name), case.id


def test_case_title_is_one_short_sentence() -> None:
    for case in CASES:
        assert re.fullmatch(r"[A-Za-z_].{10,98}\.", case.title), case.id


def test_case_id_names_its_file_and_function() -> None:
    for case in CASES:
        place, _, name = case.id.partition("::")
        lines = (home() / place).read_text(encoding="utf-8").splitlines()
        assert Path(case.path) == home() / place
        assert any(f"def {name}(" in line for line in lines[case.line - 1 : case.line + 20])


def test_clauses_of_a_once_case_belong_to_the_same_revisions() -> None:
    """The case runs only in the newest; a clause missing there would never be judged."""
    for case in REGISTRY.scenarios:
        assert not case.once or len({clause.revisions for clause in case.clauses}) == 1, case.id


def test_marks_of_scenarios_do_not_contradict_each_other() -> None:
    for case in REGISTRY.scenarios:
        assert not case.once or case.place is not Place.SHARED, f"{case.id}: it has no opening"
        if case.legacy:
            assert any(rev.is_modern(r) for c in case.clauses for r in c.revisions), case.id


def test_every_scenario_file_has_a_clause_file() -> None:
    """``jsonrpc_errors.py`` is a part of the chapter ``jsonrpc.toml``."""
    for path in CONFORMANCE.glob("*/*.py"):
        chapter = path.stem.partition("_")[0]
        assert path.with_name(f"{chapter}.toml").is_file(), path


def test_every_chapter_with_judged_clauses_has_a_scenario_file() -> None:
    for chapter in CATALOGUE.chapters:
        if any(clause.judged for clause in chapter.clauses):
            assert (CONFORMANCE / chapter.group / f"{chapter.name}.py").is_file(), chapter.name


def test_loader_reads_every_file() -> None:
    files = {path.relative_to(CONFORMANCE) for path in CONFORMANCE.rglob("*.toml")}
    suites = (REGISTRY, OF_CLIENTS, OF_GATEWAYS)
    chapters = [chapter for suite in suites for chapter in suite.catalogue.chapters]
    read = {Path(chapter.group, f"{chapter.name}.toml") for chapter in chapters}
    imported = {case.id.partition("::")[0] for suite in suites for case in suite.cases()}
    modules = {path.relative_to(home()).as_posix() for path in CONFORMANCE.rglob("*.py")}

    assert files == read
    assert modules == imported, "a file that declares nothing is dead"


def test_loading_again_gives_the_same_registry() -> None:
    assert load() is REGISTRY


def test_a_clause_id_begins_with_its_chapter() -> None:
    for clause in CATALOGUE:
        assert clause.id.startswith(f"{clause.chapter}-"), clause.file


def test_rules_on_clients_are_apart_and_named_so() -> None:
    assert all(clause.id.startswith("client-") for clause in OF_CLIENTS.catalogue)
    assert all(chapter.group == CLIENTS for chapter in rows(CLIENTS).chapters)
    assert not any(clause.id.startswith("client-") for clause in CATALOGUE)
    assert not OF_CLIENTS.scenarios


def test_rules_on_gateways_are_apart_and_named_so() -> None:
    assert all(clause.id.startswith("gateway-") for clause in OF_GATEWAYS.catalogue)
    assert not any(clause.id.startswith("gateway-") for clause in CATALOGUE)
    assert not OF_GATEWAYS.scenarios


def test_clause_revisions_are_contiguous_except_for_known_gaps() -> None:
    gaps = set()
    for clause in CATALOGUE:
        places = [rev.ALL.index(revision) for revision in clause.revisions]
        assert places, clause.id
        if places != list(range(places[0], places[-1] + 1)):
            gaps.add(clause.id)

    assert gaps == set(GAPS)


def test_every_revision_has_clauses_with_valid_links() -> None:
    for revision in rev.ALL:
        links = [link for clause in CATALOGUE for link in clause.links(revision)]
        assert len(links) > 50
        for link in links:
            assert re.fullmatch(r"https://[^\s#]+(#[^\s#]+)?", link), link
            extension = re.search("modelcontextprotocol/(experimental-)?ext-", link)
            assert extension or f"/{revision}/" in link


def test_must_clause_fails_unless_an_exception_is_recorded() -> None:
    for clause in CATALOGUE:
        grave = clause.level in {Level.MUST, Level.MUST_NOT, Level.SCHEMA}
        if clause.judged and grave and clause.breach is not Breach.FAIL:
            assert clause.not_flagged or clause.decision, clause.id


def test_every_need_is_a_known_word() -> None:
    """An unknown word would silently make its clause inapplicable."""
    known = {*needs.WORDS, *needs.OPERATIONS}
    for clause in CATALOGUE:
        for word in clause.words:
            capability = word.partition(".")[0]
            assert word in known or capability in needs.CAPABILITIES, f"{clause.id}: {word}"


def test_every_need_exists_in_every_revision_of_its_clause() -> None:
    for clause in CATALOGUE:
        for need in clause.needs:
            known = [
                needs.WORDS.get(word, needs.NeedWord("capability")) for word in needs.choices(need)
            ]
            for revision in clause.revisions:
                assert any(word.exists(revision) for word in known), f"{clause.id}: {need}"


def test_every_word_is_needed_by_a_clause() -> None:
    used = {word for clause in CATALOGUE for word in clause.words}

    assert set(needs.WORDS) - used <= {"icons"}


def test_clause_with_a_need_shown_only_in_use_is_conditional() -> None:
    for clause in CATALOGUE:
        if clause.judged and needs.SHOWN_ONLY & set(clause.needs):
            assert clause.conditional, clause.id


def test_clause_that_a_scenario_calls_unseen_is_conditional() -> None:
    named = {
        found
        for path in CONFORMANCE.rglob("*.py")
        for found in re.findall(r'\.unseen\(\s*"([a-z0-9-]+)"', path.read_text("utf-8"))
    }

    assert len(named) > 3
    assert {clause for clause in named if not CATALOGUE[clause].conditional} == set()


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    (tmp_path / "basic").mkdir()
    (tmp_path / "basic" / "tiny.toml").write_text(
        'title = "t"\nsummary = "s"\n'
        '[[clause]]\nid = "tiny-one"\nlevel = "MUST"\nstatement = "s"\nhow = "h"\n'
        'source = { "2025-11-25" = "x" }\n'
        '[[clause]]\nid = "tiny-later"\nlevel = "MUST"\nstatement = "s"\nhow = "h"\n'
        'source = { "2025-11-25" = "x" }\ndeferred = "for now"\n'
        '[[clause]]\nid = "tiny-never"\nlevel = "MUST"\nstatement = "s"\n'
        'source = { "2025-11-25" = "x" }\nunobservable = "nothing shows"\n'
    )
    made = Registry(load_catalogue(tmp_path), file="basic/tiny.py")
    collecting(made)
    yield made
    collecting(None)


def refused(*clauses: str, body: Any = None) -> str:
    def answers_it(talk: Any) -> None:
        """Answer it."""

    with pytest.raises(CatalogueError) as caught:
        scenario(*clauses)(body or answers_it)
    return str(caught.value)


@cases(
    (("tiny-onne",), "no clause is called 'tiny-onne'; did you mean 'tiny-one'?"),
    (("tiny-later",), "judges tiny-later, which the catalogue excludes"),
    (("tiny-never",), "judges tiny-never, which the catalogue excludes"),
    ((), "judges no clause"),
    (("tiny-one", "tiny-one"), "judges tiny-one twice"),
)
def test_invalid_clause_declaration_is_refused_at_import(
    registry: Registry, clauses: tuple[str, ...], message: str
) -> None:
    said = refused(*clauses)

    assert said.startswith("basic/tiny.py::answers_it")
    assert said.endswith(message)
    assert registry.cases() == []


def test_a_case_without_a_docstring_is_refused(registry: Registry) -> None:
    def answers_it(talk: Any) -> None:
        del talk

    assert "no docstring" in refused("tiny-one", body=answers_it)
    assert registry.cases() == []


def test_a_name_used_twice_in_a_file_is_refused(registry: Registry) -> None:
    @scenario("tiny-one")
    def answers_it(talk: Any) -> None:
        """Answer it."""

    assert refused("tiny-one") == "basic/tiny.py::answers_it is declared twice"
    assert len(registry.cases()) == 1


def test_cases_keep_their_declaration_order(registry: Registry) -> None:
    @scenario("tiny-one", place=Place.OWN_SESSION, hurts=True)
    def comes_first(talk: Any) -> None:
        """Come first.

        And say
        why.
        """

    @ambient("tiny-one")
    def comes_second(_: Any) -> Any:
        """Come second."""
        yield Seen("tiny-one", passed=True)

    @scenario("tiny-one")
    def comes_third(talk: Any) -> None:
        """Come third."""

    first, second, third = registry.cases()

    names = [case.name for case in (first, second, third)]
    assert names == ["comes_first", "comes_second", "comes_third"]
    assert (first.title, first.why) == ("Come first.", "And say why.")
    assert isinstance(first, Scenario)
    assert (first.place, first.hurts, first.once) == (Place.OWN_SESSION, True, False)


def test_suite_file_imported_without_the_loader_declares_nothing() -> None:
    @scenario("no-such-clause")
    def answers_it(talk: Any) -> None:
        """Answer it."""

    assert callable(answers_it)


@pytest.mark.usefixtures("registry")
def test_unknown_clause_fails_the_import_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp_touchstone.catalog import loader  # noqa: PLC0415  (its notion of home is moved)

    folder = tmp_path / "conformance" / "basic"
    folder.mkdir(parents=True)
    (tmp_path / "basic" / "tiny.toml").rename(folder / "tiny.toml")
    (folder / "tiny.py").write_text(
        "from mcp_touchstone.suite import scenario\n\n\n"
        "@scenario('tiny-onne')\ndef answers_it(talk):\n    '''Answer it.'''\n"
    )
    monkeypatch.setattr(loader, "home", lambda: tmp_path)
    monkeypatch.setattr(loader, "_loaded", {})

    with pytest.raises(CatalogueError, match="did you mean 'tiny-one'") as caught:
        loader.load()

    assert any(str(e.path).endswith("tiny.py") and e.lineno == 3 for e in caught.traceback)
    assert loader._loaded == {}


@pytest.mark.parametrize(
    "clause", [one for one in OF_CLIENTS.catalogue if one.same_as], ids=lambda one: str(one.id)
)
def test_a_clause_on_clients_can_have_the_rule_of_a_clause_on_servers(clause: Clause) -> None:
    twin = CATALOGUE[clause.same_as]
    shared = [case for case in OF_CLIENTS.ambients if clause in case.clauses]

    assert [case.id for case in shared] == [c.id for c in REGISTRY.ambients if twin in c.clauses]


def test_a_shared_rule_judges_under_the_id_of_the_suite() -> None:
    registry = Registry(OF_CLIENTS.catalogue)
    rule = replace(
        REGISTRY.ambients[0],
        watch=lambda _: iter([Seen("jsonrpc-version-member", True), Seen("another", True)]),
    )
    own = OF_CLIENTS.catalogue["client-jsonrpc-version"]
    registry.share(rule, {"jsonrpc-version-member": own})

    record = SimpleNamespace(lent=lambda rule: rule.watch(None))
    assert [one.clause for one in registry.ambients[0].watch(record)] == [own.id]
