"""One command judges the mutants or fakes of one clause."""

import pytest

from tests.cases import cases
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


def test_unknown_clause_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--clause", "nope"]) == 2
    assert capsys.readouterr().out == "no clause and no threat is called nope\n"
