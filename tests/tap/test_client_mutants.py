"""Each rule on clients is broken by one mutant, and by nothing else."""

from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.tap.judge import CLIENT, judge
from mcp_touchstone.tap.scenarios import SCENARIOS
from tests.mutants.clients.client import Mutant, talk
from tests.mutants.clients.rows import MUTANTS


def outcomes(mutant: Mutant, folder: Path) -> dict[str, Outcome]:
    run = judge([talk(mutant, folder)], CLIENT, Choice())
    return {v.clause.id: v.outcome for v in run.verdicts}


def broken(found: dict[str, Outcome]) -> set[str]:
    return {clause for clause, one in found.items() if one not in {Outcome.PASS, Outcome.UNSEEN}}


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.clause for mutant in MUTANTS])
def test_a_mutant_breaks_its_rule_and_no_other(mutant: Mutant, tmp_path: Path) -> None:
    found = outcomes(mutant, tmp_path)

    assert broken(found) == {mutant.clause}
    breach = load(CLIENTS).catalogue[mutant.clause].breach
    assert found[mutant.clause].value == breach.value


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_good_client_breaks_no_rule(scenario: str, revision: str, tmp_path: Path) -> None:
    if SCENARIOS[scenario].modern and revision != "2025-11-25":
        pytest.skip("it offers no revision there")
    can: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}

    assert broken(outcomes(Mutant("", scenario, revision=revision, can=can), tmp_path)) == set()


def test_the_good_client_meets_each_rule(tmp_path: Path) -> None:
    met = set()
    for number, (scenario, revision) in enumerate(
        [*((name, "2025-11-25") for name in SCENARIOS), ("tools_call", "2024-11-05")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = outcomes(Mutant("", scenario, revision=revision), folder)
        met |= {clause for clause, one in found.items() if one is Outcome.PASS}

    never = {clause.id for clause in load(CLIENTS).catalogue} - met
    # The good client reports no progress, undeclared modes and versions only as a mutant.
    assert never == {
        "client-initialize-alone",
        "client-elicitation-mode",
        "client-progress-known",
        "client-progress-increases",
        "client-selects-supported-version",
    }


def test_every_rule_has_a_mutant() -> None:
    assert sorted(m.clause for m in MUTANTS) == sorted(c.id for c in load(CLIENTS).catalogue)
