"""The frozen sets of clauses do not change, and a run is counted against the newest."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import CONFORMANCE, renamed, rows
from mcp_touchstone.catalog.sdk import Package
from mcp_touchstone.report import badge, html, machine
from mcp_touchstone.results import clause_sets
from mcp_touchstone.results.clause_sets import kept, sets
from mcp_touchstone.results.run import Absent, Run, SdkFault
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Outcome
from tests.cases import cases
from tests.runs import run_of

DIGESTS = {
    "2024-11-05/1": "beffefbcd74b212f",
    "2025-03-26/1": "31672dff4839f389",
    "2025-06-18/1": "d72227c91ede84de",
    "2025-11-25/1": "b8088cd72b66843a",
    "2026-07-28/1": "fe0abb2cfc2e8165",
}
"""Set -> the beginning of the SHA-256 of its ids. A new set adds a line; no line changes."""

PING, BATCH, INFO = "ping-empty-response", "jsonrpc-batch-receive", "meta-server-info"
R = "2025-03-26"


def test_no_frozen_set_has_changed() -> None:
    found = {
        f"{revision}/{number}": hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]
        for revision, numbered in sets().items()
        for number, ids in enumerate(numbered, 1)
    }

    assert found == DIGESTS


def test_each_clause_of_the_newest_sets_is_judged_in_its_revision() -> None:
    """If this fails, a clause was retired: run scripts/clause_sets.py, and add the digests."""
    catalogue, now = rows(CONFORMANCE), renamed()
    clauses = [
        (catalogue[now.get(one, one)], revision)
        for revision, numbered in sets().items()
        for one in numbered[-1]
    ]

    assert set(sets()) == set(rev.ALL)
    assert [(c.id, r) for c, r in clauses if not c.judged or r not in c.revisions] == []


def run(
    found: Mapping[str, Outcome], absent: Mapping[str, bool], monkeypatch: pytest.MonkeyPatch
) -> Run:
    outcomes = {(rule, R): outcome for rule, outcome in found.items()}
    made = run_of(outcomes, {"scenario": "s"}, Subject(reported={R: {}}))
    made = replace(made, absent=[Absent(rule, R, "why", chosen) for rule, chosen in absent.items()])
    monkeypatch.setattr(clause_sets, "sets", lambda: {R: ((), (PING, BATCH, INFO))})
    return made


@cases(
    ({PING: Outcome.PASS, BATCH: Outcome.FAIL}, {INFO: False}, "1 of 2"),
    ({PING: Outcome.WARN, BATCH: Outcome.NOTE, INFO: Outcome.UNSEEN}, {}, "2 of 2"),
    ({PING: Outcome.PASS, BATCH: Outcome.BROKEN, INFO: Outcome.PASS}, {}, "2 of 3"),
    ({PING: Outcome.PASS, BATCH: Outcome.PASS}, {INFO: True}, ""),
    ({PING: Outcome.PASS, BATCH: Outcome.PASS}, {}, ""),
    ({}, {PING: False, BATCH: False, INFO: False}, ""),
)
def test_applicable_clauses_are_counted(
    monkeypatch: pytest.MonkeyPatch,
    found: Mapping[str, Outcome],
    absent: Mapping[str, bool],
    figure: str,
) -> None:
    (one,) = kept(run(found, absent, monkeypatch), dict)

    assert one.name == f"{R}/2"
    assert one.figure == (f"{figure} applicable clauses kept" if figure else "")


def test_a_merged_clause_counts_as_the_one_it_is_part_of(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run({PING: Outcome.PASS, INFO: Outcome.PASS}, {}, monkeypatch)

    (one,) = kept(made, lambda: {BATCH: PING})

    assert one.figure == "2 of 2 applicable clauses kept"


def test_a_breach_raised_by_strict_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run({PING: Outcome.WARN, BATCH: Outcome.PASS, INFO: Outcome.PASS}, {}, monkeypatch)
    made.verdicts[0] = replace(made.verdicts[0], outcome=Outcome.FAIL)

    assert kept(made, dict)[0].kept == 3


def test_a_fault_of_the_sdk_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {PING: Outcome.PASS, BATCH: Outcome.FAIL, INFO: Outcome.PASS}
    made = run(found, {}, monkeypatch)
    fault = SdkFault(Package("mcp", "1.30.0", "pypi"))
    made.verdicts[1] = replace(made.verdicts[1], sdk=fault)

    assert kept(made, dict)[0].figure == "2 of 2 applicable clauses kept"
    strict = replace(made, floor=replace(made.floor, sdk=True))
    assert kept(strict, dict)[0].figure == "2 of 3 applicable clauses kept"


def test_reports_have_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run({PING: Outcome.PASS, BATCH: Outcome.FAIL}, {INFO: False}, monkeypatch)

    assert machine.document(made)["summary"]["kept"] == {
        R: {"set": f"{R}/2", "applicable": 2, "kept": 1, "unjudged": 0}
    }
    assert f"{R}: 1 of 2 applicable clauses kept <small>(set {R}/2)" in html.render(made)
    assert f"1 of 2 applicable clauses kept in {R}" in badge.document(made)["message"]
