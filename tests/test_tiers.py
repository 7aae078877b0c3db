"""How far attacks go: core always, more on request, and what is left out is said to be."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.attack import payload
from mcp_touchstone.clause import CatalogueError
from mcp_touchstone.cli import main
from mcp_touchstone.gate import judge
from mcp_touchstone.loader import SECURITY, home, load
from mcp_touchstone.plan import Choice, UsageError
from mcp_touchstone.scenario import Registry
from mcp_touchstone.threat import Threat, load_family
from mcp_touchstone.tier import MEANING, Tier, tiers
from tests.fakes.matrix import target_of

ROW = """
title = "T"
summary = "S"
[[threat]]
id = "a-b"
severity = "high"
promise = "containment"
statement = "s"
effect = "e"
cause = "c"
cwe = [22]
how = "h"
tier = "{}"
"""


def test_core_is_fired_whatever_is_asked_for() -> None:
    assert tiers() == {Tier.CORE}
    assert tiers(("race",)) == {Tier.CORE, Tier.RACE}
    assert set(MEANING) == set(Tier)


def test_a_row_names_its_level_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "group" / "family.toml"
    path.parent.mkdir()
    path.write_text(ROW.format("race"), encoding="utf-8")
    (row,) = load_family(path).clauses
    assert isinstance(row, Threat)
    assert row.tier is Tier.RACE

    path.write_text(ROW.format("rase"), encoding="utf-8")
    with pytest.raises(CatalogueError, match="did you mean 'race'"):
        load_family(path)


def test_payloads_of_foreign_systems_are_fired_on_request_alone() -> None:
    library = payload.load(home() / "security_suite" / "payloads")
    rows = [row for group in library.values() for row in group]

    foreign = [row for row in rows if row.platforms and not {"linux", "posix"} & {*row.platforms}]
    assert foreign
    assert all(row.tier is Tier.PLATFORM for row in foreign)
    assert sum(row.tier is Tier.CORE for row in rows) > 1000


@pytest.fixture
def raised() -> Registry:
    """The suite with one of its threats at another level."""
    registry = load(SECURITY)
    scenarios = [
        replace(
            case,
            clauses=tuple(
                replace(row, tier=Tier.DEEP)
                if isinstance(row, Threat) and row.id == "traversal-absolute"
                else row
                for row in case.clauses
            ),
        )
        for case in registry.scenarios
    ]
    return Registry(registry.catalogue, scenarios)


@pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")
def test_what_is_not_asked_for_is_left_out_and_said_to_be(raised: Registry) -> None:
    fake = target_of("NetworkShare")
    select = ("traversal-absolute", "bases-smuggled")

    plain = judge(fake, raised, Choice(select=select))
    assert [(row.clause, row.by_choice) for row in plain.absent] == [("traversal-absolute", True)]
    assert [verdict.clause.id for verdict in plain.verdicts] == ["bases-smuggled"]

    deep = judge(fake, raised, Choice(select=select, tiers=tiers(("deep",))))
    assert {verdict.clause.id for verdict in deep.verdicts} == set(select)

    with pytest.raises(UsageError, match="an attack of level deep: --attacks deep"):
        judge(fake, raised, Choice(select=select[:1]))


def test_the_command_line_names_the_levels(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["check", "--suite", "security", "--attacks", "everything"])

    assert left.value.code == 2
    assert "deep" in capsys.readouterr().err
