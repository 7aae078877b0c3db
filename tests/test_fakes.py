"""Every bad fake is caught by the threat that names its fault, and no good one is accused."""

import os

import pytest

from mcp_touchstone.loader import SECURITY, SUITES, home
from mcp_touchstone.verdict import Outcome
from tests.fakes.catalogue import FAKES
from tests.fakes.matrix import attacked, near, proofs, tripped

PROOFS = proofs()

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


@pytest.mark.parametrize("name", FAKES)
def test_trips_exactly_what_it_declares(name: str) -> None:
    run = attacked(name, near(name))
    found = tripped(run)

    assert set(found) == FAKES[name].trips, found
    assert PROOFS.get(name, set()) <= run.fired, "python tests/fakes --proofs"


def test_a_finding_names_the_line_of_the_suite_that_judged_it() -> None:
    (found,) = attacked("EditsWhatItRead", ("crowds-confirmed",)).of(Outcome.FAIL)

    name, _, line = found.gravest.source.partition(":")
    text = (home() / SUITES[SECURITY] / "promises" / name).read_text(encoding="utf-8")
    assert "crowds-confirmed" in text.splitlines()[int(line) - 1]


def test_what_a_plain_path_gives_is_counted_there_and_said_elsewhere() -> None:
    run = attacked("JoinedWithMore", ("lines-strings", "messages-keys"))

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 2
    for verdict in run.verdicts:
        assert "a plain path does the like" in verdict.judgements[0].actual
