"""One command judges the mutants or fakes of one clause."""

from types import SimpleNamespace

import pytest

from mcp_touchstone.results.verdict import Outcome
from tests.cases import cases
from tests.mutants import by_clause
from tests.mutants.__main__ import main

pytestmark = pytest.mark.slow


@cases(
    ("ping-empty-response", "RefusesPings", "fail"),
    ("stdio-server-initiated-close", "ClosesItsOutputAndStays", "note"),
    ("client-cache-stale", "good client", "pass"),
    ("storage-full", "TruncatesFirst", "found"),
)
def test_clause_is_shown_against_its_mutants(
    capsys: pytest.CaptureFixture[str], clause: str, name: str, outcome: str
) -> None:
    status = main(["--clause", clause])

    printed = capsys.readouterr().out
    rows = {line[:48].strip(): line[48:].split(maxsplit=1)[0] for line in printed.splitlines()}
    assert (status, rows.get(name)) == (0, outcome), printed


def test_attack_that_fails_on_a_sound_fake_is_broken_and_found_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threat, judged = SimpleNamespace(id="storage-full"), SimpleNamespace(actual="")
    broken = SimpleNamespace(clause=threat, gravest=judged)
    run = SimpleNamespace(of=lambda *wanted: [broken] if Outcome.BROKEN in wanted else [])
    monkeypatch.setattr(by_clause, "attacked", lambda *_: run)
    found = {(expected, outcome) for _, expected, outcome in by_clause.fakes("storage-full")}
    assert found == {("found", "found"), ("silent", "broken")}


def test_unknown_clause_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--clause", "nope"]) == 2
    assert capsys.readouterr().out == "no clause and no threat is called nope\n"
