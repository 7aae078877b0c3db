"""Every judged clause is killed by a mutant, and each mutant trips exactly what it declares."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mcp_touchstone import revision as rev
from mcp_touchstone.gate import Choice, Run, judge
from mcp_touchstone.loader import load
from mcp_touchstone.plan import EXAMPLES
from mcp_touchstone.target import ROOT, Target
from mcp_touchstone.verdict import Outcome
from tests.crowd import Crowd
from tests.mutants import kit
from tests.mutants.__main__ import HERE
from tests.mutants.__main__ import load as load_mutants

REGISTRY = load()
MUTANTS = {
    name: mutant.due(lambda clause: REGISTRY.catalogue[clause].judged)
    for name, mutant in load_mutants().items()
}
FOUND = {Outcome.FAIL, Outcome.WARN, Outcome.NOTE, Outcome.BROKEN}


def near(mutant: kit.Mutant) -> tuple[str, ...]:
    """Give the clauses a mutant is held against; empty for all of them.

    The chapters it has to do with, and every rule that watches all traffic. With
    MCP_TOUCHSTONE_WHOLE in the environment it is all of them, which takes an hour or more.
    """
    chapters = {REGISTRY.catalogue[c].chapter for c in (*mutant.breaks, *mutant.passes)}
    if not chapters or "MCP_TOUCHSTONE_WHOLE" in os.environ:
        return ()
    ids = {c.id for c in REGISTRY.catalogue if c.judged and c.chapter in chapters}
    # How processes end is only seen where some are ended in the ordinary way.
    watched = [clause for case in REGISTRY.ambients for clause in case.clauses]
    ids |= {clause.id for clause in watched if clause.chapter != "lifecycle"}
    if mutant.examples:
        ids |= {c.id for c in REGISTRY.catalogue if c.judged and c.group == "properties"}
    return tuple(sorted(ids))


def run_mutant(mutant: kit.Mutant, *, whole: bool = False, jobs: int = 8) -> Run:
    """Judge one mutant in its revision."""
    target = Target(command=(sys.executable, str(HERE), mutant.name, ROOT), startup=mutant.startup)
    select = () if whole else near(mutant)
    examples = max(mutant.examples, EXAMPLES if "MCP_TOUCHSTONE_WHOLE" in os.environ else 0)
    choice = Choice(select=select, revisions=(mutant.revision,), jobs=jobs, examples=examples)
    return judge(target, REGISTRY, choice)


def described(run: Run) -> Iterator[str]:
    for verdict in run.of(*FOUND):
        judgement = verdict.gravest
        yield f"{verdict.clause.id} {verdict.outcome}: {judgement.expected}; {judgement.actual}"


@pytest.fixture(scope="session")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    """The processes that test mutants now; those of one run have one parent folder."""
    base = tmp_path_factory.getbasetemp()
    return Crowd(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@pytest.mark.parametrize("name", MUTANTS)
def test_trips_exactly_what_it_declares(name: str, crowd: Crowd) -> None:
    mutant = MUTANTS[name]
    expected = {
        clause: mutant.outcome or str(REGISTRY.catalogue[clause].breach) for clause in mutant.breaks
    }
    # Its own chapters first; what does not show there has to show among all of them, or, where a
    # fault has to come at a moment that a busy machine misses, with nothing else going on.
    for whole, jobs, room in (
        (False, 8, crowd.among),
        (True, 8, crowd.among),
        (False, 1, crowd.alone),
    ):
        with room():
            run = run_mutant(mutant, whole=whole, jobs=jobs)
        found = {verdict.clause.id: str(verdict.outcome) for verdict in run.of(*FOUND)}
        passed = {verdict.clause.id for verdict in run.of(Outcome.PASS)}
        if found == expected and set(mutant.passes) <= passed:
            break

    assert found == expected, "\n".join(described(run))
    assert set(mutant.passes) <= passed
    assert run.trouble == "" or mutant.breaks


def test_every_judged_clause_has_a_killer() -> None:
    killed = {clause for mutant in MUTANTS.values() for clause in mutant.breaks}

    assert [c.id for c in REGISTRY.catalogue if c.judged and c.id not in killed] == []


def test_a_mutant_kills_with_the_full_weight_of_its_clause() -> None:
    """A clause that only ever warns, though it is a MUST, is not judged at its weight."""
    full = {clause for m in MUTANTS.values() if not m.outcome for clause in m.breaks}

    assert [c.id for c in REGISTRY.catalogue if c.judged and c.id not in full] == []


def test_every_conditional_clause_is_seen_to_hold_somewhere(crowd: Crowd) -> None:
    """On the reference server or on a control: a condition never met proves nothing."""
    from mcp_touchstone.target import reference  # noqa: PLC0415

    passed = {clause for mutant in MUTANTS.values() for clause in mutant.passes}
    # Once more alone, where a moment was missed among all that goes on at once.
    for jobs, room in ((0, crowd.among), (1, crowd.alone)):
        with room():
            run = judge(reference(startup=20.0), REGISTRY, Choice(jobs=jobs))
        passed |= {verdict.clause.id for verdict in run.of(Outcome.PASS)}
        if not [c for c in REGISTRY.catalogue if c.judged and c.id not in passed]:
            break

    assert [c.id for c in REGISTRY.catalogue if c.judged and c.id not in passed] == []


def test_mutants_name_known_clauses_and_revisions() -> None:
    for mutant in MUTANTS.values():
        assert mutant.revision in rev.ALL
        moves = (mutant.moves,) if mutant.moves else ()
        for clause in (*mutant.breaks, *mutant.passes, *moves):
            assert mutant.revision in REGISTRY.catalogue[clause].revisions, mutant.name
        assert mutant.fault.__doc__


def test_the_matrix_is_printed_by_one_command() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE), "--matrix"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"(?m)^ping-empty-response +RefusesPings ", done.stdout)
    assert "SURVIVES" not in done.stdout
