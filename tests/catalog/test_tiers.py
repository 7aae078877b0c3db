"""Attack tiers: core always runs, others on request, and left out tiers are reported."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.catalog.attack_level import MEANING, Tier, tiers
from mcp_touchstone.catalog.clause import CatalogueError, Clause
from mcp_touchstone.catalog.loader import SECURITY, home, load
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.catalog.threat import Threat, load_family
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import Choice, UsageError
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.security import payload
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


def test_core_tier_is_always_included() -> None:
    assert tiers() == {Tier.CORE}
    assert tiers(("race",)) == {Tier.CORE, Tier.RACE}
    assert set(MEANING) == set(Tier)


def test_threat_tier_is_read_and_unknown_tier_refused(tmp_path: Path) -> None:
    path = tmp_path / "group" / "family.toml"
    path.parent.mkdir()
    path.write_text(ROW.format("race"), encoding="utf-8")
    (row,) = load_family(path).clauses
    assert isinstance(row, Threat)
    assert row.tier is Tier.RACE

    path.write_text(ROW.format("rase"), encoding="utf-8")
    with pytest.raises(CatalogueError, match="did you mean 'race'"):
        load_family(path)


def test_payloads_of_other_platforms_are_in_the_platform_tier() -> None:
    library = payload.load(home() / "security_suite" / "payloads")
    tier_of = {row.id: row.tier for group in library.values() for row in group}

    windows, macos, posix = "deny.equivalence-22", "deny.case-12", "path.sibling-16"
    assert tier_of[windows] is tier_of[macos] is Tier.PLATFORM
    assert tier_of[posix] is Tier.CORE
    assert [*tier_of.values()].count(Tier.CORE) > 1000


@pytest.fixture
def raised() -> Registry:
    """Return the suite with one of its threats in another tier."""
    registry = load(SECURITY)

    def deeper(row: Clause) -> Clause:
        if isinstance(row, Threat) and row.id == "traversal-absolute":
            return replace(row, tier=Tier.DEEP)
        return row

    scenarios = [replace(c, clauses=tuple(map(deeper, c.clauses))) for c in registry.scenarios]
    return Registry(registry.catalogue, scenarios)


@pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")
def test_unselected_tier_is_reported_as_absent(raised: Registry) -> None:
    fake = target_of("NetworkShare")
    select = ("traversal-absolute", "bases-smuggled")

    plain = judge(fake, raised, Choice(select=select))
    assert [(row.clause, row.by_choice) for row in plain.absent] == [("traversal-absolute", True)]
    assert [verdict.clause.id for verdict in plain.verdicts] == ["bases-smuggled"]

    deep = judge(fake, raised, Choice(select=select, tiers=tiers(("deep",))))
    assert {verdict.clause.id for verdict in deep.verdicts} == set(select)

    with pytest.raises(UsageError, match="an attack of level deep: --attacks deep"):
        judge(fake, raised, Choice(select=select[:1]))


def test_unknown_attack_level_error_lists_the_levels(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["check", "--suite", "security", "--attacks", "everything"])

    assert left.value.code == 2
    assert "deep" in capsys.readouterr().err
