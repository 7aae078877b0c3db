"""Servers with which nothing can be compared: a clause passes only if it looked at something.

``looked_at_something.txt`` has the clauses that pass on them all the same: they read the opening,
the form of each message, or what the server refuses, or they forbid something that never came.
"""

import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import Target
from tests.cases import cases
from tests.mutants.judged import REGISTRY

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
KEPT = frozenset((HERE / "looked_at_something.txt").read_text("utf-8").split())


@cases(("empty", ""), ("refuse", ""), ("refuse", "{port}"), ("fail", "{port}"))
def test_no_clause_passes_without_a_comparison(mode: str, port: str) -> None:
    command = (sys.executable, str(HERE / "barren_server.py"), mode, port)
    url = f"http://127.0.0.1:{port}/mcp" if port else ""
    target = Target(command=tuple(filter(None, command)), url=url)

    # The older revisions are judged on stdio.
    revisions = (rev.LATEST_LEGACY, rev.LATEST_MODERN) if port else ()
    run = judge(target, REGISTRY, Choice(revisions=revisions))

    passed = {verdict.clause.id for verdict in run.of(Outcome.PASS)}
    assert passed
    assert passed <= KEPT
