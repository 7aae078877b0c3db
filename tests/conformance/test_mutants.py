"""A mutant breaks every judged clause, and each mutant breaks exactly its declared clauses."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.engine.runner import Choice, UsageError, judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import reference
from tests.cases import cases
from tests.conftest import RETRIED
from tests.mutants import kit
from tests.mutants.__main__ import HERE
from tests.mutants.judged import (
    MUTANTS,
    REGISTRY,
    described,
    findings,
    near,
    run_mutant,
    target_of,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Work in an empty folder: each run looks twice for new files in the folder of the user."""
    with contextlib.chdir(tmp_path_factory.mktemp("user")):
        yield


def expected_findings(mutant: kit.Mutant, *, everything: bool) -> dict[str, str]:
    """Return the clauses that a mutant breaks, and how each breach counts."""
    return {
        clause: mutant.weight(clause) or str(REGISTRY.catalogue[clause].breach)
        for clause in (*mutant.breaks, *(mutant.elsewhere if everything else ()))
    }


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_breaks_exactly_its_declared_clauses(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    mutant = MUTANTS[name]
    # A fault may show only among all clauses, or only at a moment that a busy machine missed. A
    # surplus finding is a false alarm, even if the next try does not repeat it.
    for whole, jobs in ((False, 8), (True, 8), (True, 1)):
        try:
            run = run_mutant(mutant, () if whole else near(mutant), jobs=jobs)
        except UsageError:  # a busy machine can hide the revision of the mutant
            if jobs == 1:
                raise
            record_property(RETRIED, name)
            continue
        everything = whole or not near(mutant)
        expected = expected_findings(mutant, everything=everything)
        found = findings(run, mutant, everything=everything)
        passed = {verdict.clause.id for verdict in run.of(Outcome.PASS)}
        if not set(found) <= set(expected):
            break
        if found == expected and set(mutant.passes) <= passed:
            break
        record_property(RETRIED, name)

    assert found == expected, "\n".join(described(run))
    assert set(mutant.passes) <= passed
    assert run.trouble == "" or mutant.breaks


@cases(
    (
        "AnswersGetWith404",
        (
            "resources-list-changed-notification-legacy",
            "resources-updated-notification-legacy",
            "roots-handles-list-changes",
        ),
    ),
    ("AnswersPingsWithNull", ("stdio-carriage-return",)),
    ("RefusesRetries", ("lifecycle-stateless-no-affinity",)),
    ("RejectsMismatchesAsInvalidRequests", ("jsonrpc-method-not-found",)),
)
def test_fault_breaks_no_clause_of_another_chapter(name: str, clauses: tuple[str, ...]) -> None:
    mutant = MUTANTS[name]
    choice = Choice(
        select=clauses, revisions=(mutant.revision,), examples=100, rules_fed=False, repeats=0
    )

    run = judge(target_of(mutant), REGISTRY, choice)

    assert [each for each in described(run) if each.split()[0] in clauses] == []
    assert {verdict.clause.id for verdict in run.verdicts} >= set(clauses)


def test_every_judged_clause_is_broken_by_a_mutant() -> None:
    killed = {clause for mutant in MUTANTS.values() for clause in mutant.breaks}

    assert [c.id for c in REGISTRY.catalogue if c.judged and c.id not in killed] == []


def test_every_judged_clause_is_broken_with_its_full_outcome() -> None:
    """A MUST clause that only ever warns is not judged at its weight."""
    full = {clause for m in MUTANTS.values() for clause in m.breaks if not m.weight(clause)}

    assert [c.id for c in REGISTRY.catalogue if c.judged and c.id not in full] == []


def test_every_judged_clause_passes_on_some_server() -> None:
    """The reference server or a control passes it; an unmet condition proves nothing."""
    missing = {clause.id for clause in REGISTRY.catalogue if clause.judged}
    missing -= {clause for mutant in MUTANTS.values() for clause in mutant.passes}
    # A busy machine can leave a clause without a verdict; no failure is hidden by a second run.
    for alone in (False, True):
        choice = Choice(select=tuple(sorted(missing)), jobs=1) if alone else Choice()
        run = judge(reference(timeout=60.0), REGISTRY, choice)
        assert list(run.of(Outcome.FAIL)) == []
        missing -= {verdict.clause.id for verdict in run.of(Outcome.PASS)}
        if not missing:
            break

    assert sorted(missing) == []


def test_mutants_name_known_clauses_properties_and_revisions() -> None:
    properties = {scenario.name for scenario in REGISTRY.scenarios if scenario.drawn}
    for mutant in MUTANTS.values():
        assert mutant.found_by in (properties if mutant.examples else {""}), mutant.name
        assert mutant.revision in rev.ALL
        moves = (mutant.moves,) if mutant.moves else ()
        for clause in (*mutant.breaks, *mutant.elsewhere, *mutant.passes, *moves):
            assert mutant.revision in REGISTRY.catalogue[clause].revisions, mutant.name
        assert mutant.fault.__doc__


def test_matrix_command_lists_no_surviving_clause() -> None:
    done = subprocess.run(
        [sys.executable, HERE, "--matrix"], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"(?m)^ping-empty-response +.*\bRefusesPings\b", done.stdout)
    assert "SURVIVES" not in done.stdout
