"""Show one clause, clause on clients or threat against the mutants and fakes that prove it."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from mcp_touchstone.catalog.loader import CLIENTS, CONFORMANCE, SECURITY, rows
from mcp_touchstone.results.verdict import Outcome
from tests.fakes.catalogue import FAKES
from tests.fakes.matrix import attacked, near, tripped
from tests.mutants.clients.client import Mutant
from tests.mutants.clients.http_client import FAULTS
from tests.mutants.clients.judged import outcomes, over_http
from tests.mutants.clients.rows import MUTANTS as CLIENT_MUTANTS
from tests.mutants.judged import MUTANTS, chapters_of, run_mutant

FOUND = ("silent", "found")
"""What an attack comes to."""

Row = tuple[str, str, str]
"""The name of a mutant or fake, what it must come to, and what it came to."""


def printed(clause: str) -> int:
    """Print a line for each subject; 1 if one came to something else, 2 if the id is unknown."""
    kinds = {CONFORMANCE: servers, CLIENTS: clients, SECURITY: fakes}
    suite = next((suite for suite in kinds if clause in {row.id for row in rows(suite)}), None)
    if suite is None:
        print(f"no clause and no threat is called {clause}")
        return 2
    wrong = 0
    for name, expected, found in kinds[suite](clause):
        wrong += found != expected
        said = "as expected" if found == expected else f"EXPECTED {expected}"
        print(f"{name:<48} {found:<12} {said}", flush=True)
    return bool(wrong)


def servers(clause: str) -> Iterator[Row]:
    """Judge the mutants that break a clause, and the controls that keep it.

    The other scenarios of their chapters make the traffic that a rule on all traffic judges. A
    fault that shows only among all clauses is judged by all of them.
    """
    breach = str(rows(CONFORMANCE)[clause].breach)
    for name, mutant in MUTANTS.items():
        if clause in (*mutant.breaks, *mutant.passes):
            expected = (mutant.weight(clause) or breach) if clause in mutant.breaks else "pass"
            found = ""
            for words in ((clause, *chapters_of(mutant)), ()):
                if found != expected:
                    judged = run_mutant(mutant, words).verdicts
                    by_id = {verdict.clause.id: str(verdict.outcome) for verdict in judged}
                    found = by_id.get(clause, "not judged")
            yield name, expected, found


def clients(clause: str) -> Iterator[Row]:
    """Judge the mutants of clients that break a clause, and the good client in their place."""
    breach = rows(CLIENTS)[clause].breach.value
    with tempfile.TemporaryDirectory() as folder:
        for mutant in CLIENT_MUTANTS:
            if mutant.clause == clause:
                yield _client(mutant.scenario, breach, outcomes(mutant, _new(folder)), clause)
                good = Mutant("", mutant.scenario)
                yield _client("good client", "", outcomes(good, _new(folder)), clause)
        if clause in FAULTS:
            scenario = FAULTS[clause][0]
            found = over_http(clause, scenario, _new(folder))
            yield _client(f"{scenario} over HTTP", breach, found, clause)
            found = over_http("none", scenario, _new(folder))
            yield _client("good client over HTTP", "", found, clause)


def _client(name: str, expected: str, found: Mapping[str, Outcome], clause: str) -> Row:
    """Return a row; a good client may pass, or do nothing that the clause is about."""
    outcome = found[clause].value if clause in found else "not judged"
    kept = {"pass", "unseen", "not judged"}
    return name, expected or (outcome if outcome in kept else "pass"), outcome


def _new(folder: str) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))


def fakes(threat: str) -> Iterator[Row]:
    """Attack the fakes that have a weakness, and the sound ones that the same attacks concern."""
    chapter = rows(SECURITY)[threat].chapter
    for name, fake in FAKES.items():
        if threat in fake.trips or (not fake.trips and chapter in near(name)):
            run = attacked(name, (threat,))
            found = FOUND[threat in tripped(run)]
            broken = any(verdict.clause.id == threat for verdict in run.of(Outcome.BROKEN))
            sound = threat not in fake.trips
            yield name, FOUND[not sound], "broken" if broken and sound else found
