"""Threats and attacks match in both directions, and a fake proves each threat."""

import re
import tomllib
from pathlib import Path

import pytest

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog.clause import Breach, CatalogueError
from mcp_touchstone.catalog.loader import (
    BOTH,
    CLIENTS,
    CONFORMANCE,
    GATEWAYS,
    SECURITY,
    home,
    load,
    rows,
)
from mcp_touchstone.catalog.scenario import Scenario
from mcp_touchstone.catalog.threat import Severity, Threat, load_family
from mcp_touchstone.security import payload
from tests.cases import cases
from tests.fakes.__main__ import fake
from tests.fakes.catalogue import FAKES, ODD
from tests.fakes.matrix import proofs

REGISTRY = load(SECURITY)
THREATS = [row for row in REGISTRY.catalogue if isinstance(row, Threat)]
LIBRARY = payload.load(home() / "security_suite" / "payloads")


def test_every_judged_threat_has_an_attack() -> None:
    declared = {row.id for case in REGISTRY.cases() for row in case.clauses}

    assert len(THREATS) == len(REGISTRY.catalogue) > 0
    assert {threat.id for threat in THREATS if threat.judged} == declared


def test_attacks_declare_fixtures_and_own_folders() -> None:
    for case in REGISTRY.cases():
        assert isinstance(case, Scenario)
        assert case.fixtures, case.id
        assert case.place.has_folder, case.id


def test_attacks_name_existing_payload_classes() -> None:
    for path in (home() / "security_suite").glob("*/*.py"):
        for name in re.findall(r'"([a-z]+\.[a-z-]+)"', path.read_text(encoding="utf-8")):
            if not name.endswith(".txt"):
                assert name in LIBRARY, (path, name)


CODE = "".join(
    path.read_text(encoding="utf-8")
    for folder in (home() / "security_suite", Path(payload.__file__).parent)
    for path in sorted(folder.rglob("*.py"))
)


@pytest.mark.parametrize("group", LIBRARY)
def test_payload_class_is_used_or_names_the_threat_that_covers_it(group: str) -> None:
    judged = {threat.id for threat in THREATS}
    rows = LIBRARY[group]
    named = f'"{group}"' in CODE
    elsewhere = all(row.instead for row in rows)

    assert named is not elsewhere, "either an attack takes a class, or it says who judges that"
    assert {threat for row in rows for threat in row.instead} <= judged


@pytest.mark.parametrize("path", sorted((home() / "security_suite/payloads").glob("*.toml")))
def test_payload_file_has_no_unknown_key(path: Path) -> None:
    known = {"id", "payload", "via", "op", "expect", "live", "target", "fixture", "platforms"}
    known |= {"note", "tier", "gen", "enc", "names"}
    for group in tomllib.loads(path.read_text(encoding="utf-8"))["class"]:
        assert {*group} - known <= {"instead"}, group["id"]
        for row in group["payload"]:
            assert {*row} <= known, row["id"]


def test_each_payload_is_proven_by_a_fake() -> None:
    """``test_fakes`` shows that the fakes are caught by these payloads."""
    due = {row.id for rows in LIBRARY.values() for row in rows if not row.instead}
    rows_of = proofs()

    assert set().union(*rows_of.values()) == due
    assert {*rows_of} <= {*FAKES}


FEATURES = {
    "callers-crossed": {"callable-tool", "tools", "resources", "prompts"},
    "callers-listed": {"task-tool", "tasks.list"},
    "callers-overheard": {"resources.subscribe"},
    "users-task": {"task-tool"},
}
"""Threat -> the features that it needs besides operations on files."""


def test_threat_needs_are_known_operations() -> None:
    for threat in THREATS:
        known = {*needs.OPERATIONS, *FEATURES.get(threat.id, ())}
        for need in threat.needs:
            assert all(word in known for word in needs.choices(need)), threat.id
    features = {word.partition(".")[0] for words in FEATURES.values() for word in words}
    assert features <= {*needs.WORDS, *needs.CAPABILITIES}


def test_severity_determines_the_breach_level() -> None:
    weights = {threat.severity: threat.breach for threat in THREATS}

    assert weights[Severity.CRITICAL] is Breach.FAIL
    assert weights.get(Severity.INFO, Breach.NOTE) is Breach.NOTE


def test_every_threat_is_tripped_alone_by_some_fake() -> None:
    alone = {next(iter(fake.trips)) for fake in FAKES.values() if len(fake.trips) == 1}

    assert {threat.id for threat in THREATS if threat.judged} <= alone


def test_each_fake_is_started_by_its_name() -> None:
    known = {**FAKES, **ODD}

    assert {name: fake(name) for name in known} == known


def test_no_two_fakes_have_one_name() -> None:
    files = (Path(__file__).parents[1] / "fakes").glob("*.py")
    defined = re.compile(r"^(?:class (?=\w+\()|    (?=\w+=has\())(\w+)", re.MULTILINE)
    names = [name for path in files for name in defined.findall(path.read_text(encoding="utf-8"))]

    assert sorted(names) == sorted(set(names))
    assert {*names} > {*FAKES, *ODD}


def test_at_least_seven_fakes_trip_no_threat() -> None:
    assert len([name for name, fake in FAKES.items() if not fake.trips]) >= 7


def test_conformance_and_security_ids_are_distinct() -> None:
    both = rows(BOTH)

    suites = sum(len(rows(one)) for one in (CONFORMANCE, CLIENTS, GATEWAYS))
    assert len(both) == suites + len(THREATS)
    assert len(load(BOTH).cases()) == len(load().cases()) + len(REGISTRY.cases())


@cases(
    ('id = "a-b"', "severity is missing"),
    ('id = "a-b"\nseverity = "grave"', "promise is missing"),
    ('id = "a-b"\ncolour = "red"', "unknown key 'colour'"),
)
def test_invalid_threat_row_is_refused(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "group" / "family.toml"
    path.parent.mkdir()
    path.write_text(f'title = "T"\nsummary = "S"\n[[threat]]\n{row}\n', encoding="utf-8")

    with pytest.raises(CatalogueError, match=re.escape(said)):
        load_family(path)
