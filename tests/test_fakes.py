"""Every bad fake is caught by the threat that names its fault, and no good one is accused."""

import os

import pytest

from mcp_touchstone.loader import SECURITY, SUITES, home, load
from mcp_touchstone.verdict import Outcome
from tests.fakes.catalogue import FAKES
from tests.fakes.matrix import attacked, tripped

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


def near(name: str) -> tuple[str, ...]:
    """Give the families a fake is attacked by: those of its module; all of them on request."""
    if "MCP_TOUCHSTONE_WHOLE" in os.environ:
        return ()
    chapters = {threat.id: threat.chapter for threat in load(SECURITY).catalogue}
    return tuple(sorted({*FAKES[name].families, *(chapters[t] for t in FAKES[name].trips)}))


@pytest.mark.parametrize("name", FAKES)
def test_trips_exactly_what_it_declares(name: str) -> None:
    found = tripped(attacked(name, near(name)))

    assert set(found) == FAKES[name].trips, found


def test_a_finding_names_the_line_of_the_suite_that_judged_it() -> None:
    (found,) = attacked("EditsWhatItRead", ("crowds-confirmed",)).of(Outcome.FAIL)

    name, _, line = found.gravest.source.partition(":")
    text = (home() / SUITES[SECURITY] / "promises" / name).read_text(encoding="utf-8")
    assert "crowds-confirmed" in text.splitlines()[int(line) - 1]
