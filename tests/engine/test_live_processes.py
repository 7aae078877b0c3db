"""No more processes live than conversations run, whatever the server does with them."""

import sys

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import CONFORMANCE, SECURITY, load
from mcp_touchstone.engine import process_pool
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.process_pool import SPINS
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport import process
from tests.cases import cases
from tests.hostile_cases import hostile

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the time on a core is known on Linux"),
    pytest.mark.slow,
]

JOBS = 2


class Live(set[int]):
    """The processes that were started and have not ended.

    Attributes:
        most: the most there were at a time.
    """

    most = 0

    def add(self, pid: int, /) -> None:
        """Add one."""
        super().add(pid)
        self.most = max(self.most, len(self))


@cases("mortal", "deaf")
def test_server_that_spins_after_each_call_has_few_processes_and_one_note(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    live = Live()
    monkeypatch.setattr(process, "launched", live)
    monkeypatch.setattr(process_pool, "PATIENT", 1)
    command = hostile("spins_after_each_call", ROOT, ".", kind)
    choice = Choice(
        select=("traversal-*", "deny-*"), revisions=(rev.LATEST_LEGACY,), jobs=JOBS, repeats=0
    )

    run = judge(Target(command=command), load(SECURITY), choice)

    assert {verdict.outcome for verdict in run.verdicts} & {Outcome.PASS}
    assert run.execution.notes == (SPINS,)
    assert run.execution.processes > 2 * JOBS
    # Those of conversations, one that ends, that of discovery, and that in which tools are bound.
    assert live.most <= JOBS + 1 + 1 + 1
    assert not live


LEAVES = '(setsid sleep 60 </dev/null >/dev/null 2>&1 &); exec "$0" -m mcp_touchstone serve'


def test_processes_that_a_server_leaves_are_a_note() -> None:
    choice = Choice(select=("ping-empty-response",), revisions=(rev.LATEST_LEGACY,), repeats=0)

    run = judge(Target(command=("sh", "-c", LEAVES, sys.executable)), load(CONFORMANCE), choice)

    (note,) = (one for one in run.execution.notes if "left in the end" in one)
    assert run.execution.strays
    assert note.endswith(f"left in the end: {run.execution.strays}; we ended them")
