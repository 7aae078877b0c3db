"""The threats and the attacks agree, in both directions, and each is proven by a fake."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mcp_touchstone import needs
from mcp_touchstone.attack import payload
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.clause import Breach, CatalogueError
from mcp_touchstone.dice import Dice
from mcp_touchstone.loader import BOTH, CONFORMANCE, SECURITY, home, load, rows
from mcp_touchstone.scenario import Scenario
from mcp_touchstone.threat import Severity, Threat, load_family
from mcp_touchstone.tier import Tier
from tests.fakes.catalogue import FAKES
from tests.fakes.matrix import proofs

REGISTRY = load(SECURITY)
THREATS = [row for row in REGISTRY.catalogue if isinstance(row, Threat)]
LIBRARY = payload.load(home() / "security_suite" / "payloads")


def test_every_row_is_a_threat_that_some_attack_judges() -> None:
    declared = {row.id for case in REGISTRY.cases() for row in case.clauses}

    assert len(THREATS) == len(REGISTRY.catalogue) > 0
    assert {threat.id for threat in THREATS if threat.judged} == declared


def test_an_attack_says_what_stands_around_the_root() -> None:
    for case in REGISTRY.cases():
        assert isinstance(case, Scenario)
        assert case.fixtures, case.id
        assert case.fresh, case.id
        assert case.apart, case.id


def test_an_attack_fires_classes_that_exist() -> None:
    for path in (home() / "security_suite").glob("*/*.py"):
        for name in re.findall(r'"([a-z]+\.[a-z-]+)"', path.read_text(encoding="utf-8")):
            assert name in LIBRARY, (path, name)


CODE = "".join(
    path.read_text(encoding="utf-8")
    for folder in (home() / "security_suite", Path(payload.__file__).parent)
    for path in sorted(folder.rglob("*.py"))
)


@pytest.mark.parametrize("group", LIBRARY)
def test_payloads_are_fired_or_say_why_not(group: str) -> None:
    judged = {threat.id for threat in THREATS}
    rows = LIBRARY[group]
    named = f'"{group}"' in CODE
    elsewhere = all(row.instead or row.unfired for row in rows)

    assert named is not elsewhere, "either an attack takes a class, or it says who judges that"
    assert {threat for row in rows for threat in row.instead} <= judged
    assert not any(row.instead and row.unfired for row in rows)


def test_each_row_is_fired_by_a_fake_or_says_why_not() -> None:
    """That the fakes do fire what they are named for, test_fakes shows."""
    due = {row.id for rows in LIBRARY.values() for row in rows if not (row.unfired or row.instead)}
    rows_of = proofs()

    assert set().union(*rows_of.values()) == due
    assert {*rows_of} <= {*FAKES}


def test_what_nobody_fires_is_given_to_no_attack() -> None:
    kept = [row for rows in LIBRARY.values() for row in rows if row.unfired]
    siege = SimpleNamespace(_library=LIBRARY, dice=Dice(tiers=frozenset(Tier)))
    given = {
        row.id
        for row in kept
        for one in Siege.payloads(cast("Siege", siege), row.group, via=row.via)
    if one.id == row.id}  # fmt: skip

    assert kept
    assert given == set()


def test_a_threat_needs_what_the_binder_can_find() -> None:
    for threat in THREATS:
        for need in threat.needs:
            assert all(word in needs.OPERATIONS for word in needs.choices(need)), threat.id


def test_severity_decides_how_a_finding_counts() -> None:
    weights = {threat.severity: threat.breach for threat in THREATS}

    assert weights[Severity.CRITICAL] is Breach.FAIL
    assert weights.get(Severity.INFO, Breach.NOTE) is Breach.NOTE


def test_every_threat_is_tripped_alone_by_some_fake() -> None:
    alone = {next(iter(fake.trips)) for fake in FAKES.values() if len(fake.trips) == 1}

    assert {threat.id for threat in THREATS if threat.judged} <= alone


def test_there_are_fakes_that_nothing_may_accuse() -> None:
    assert len([name for name, fake in FAKES.items() if not fake.trips]) >= 7


def test_no_id_stands_in_both_books() -> None:
    both = rows(BOTH)

    assert len(both) == len(rows(CONFORMANCE)) + len(THREATS)
    assert len(load(BOTH).cases()) == len(load().cases()) + len(REGISTRY.cases())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('id = "a-b"', "severity is missing"),
        ('id = "a-b"\nseverity = "grave"', "promise is missing"),
        ('id = "a-b"\ncolour = "red"', "unknown key 'colour'"),
    ],
)
def test_a_wrong_row_is_refused_by_name(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "group" / "family.toml"
    path.parent.mkdir()
    path.write_text(f'title = "T"\nsummary = "S"\n[[threat]]\n{row}\n', encoding="utf-8")

    with pytest.raises(CatalogueError, match=re.escape(said)):
        load_family(path)
