"""Runs with given outcomes, which no server made."""

from collections.abc import Mapping
from typing import Any

from mcp_touchstone.catalog.loader import BOTH, load
from mcp_touchstone.client.server_profile import ServerProfile
from mcp_touchstone.results.run import Run, Verdict
from mcp_touchstone.results.verdict import Judgement, Outcome
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import Target

Found = Mapping[tuple[str, str], Outcome]
"""(clause, revision) -> the outcome."""


def run_of(found: Found, judgement: Mapping[str, Any], **more: Any) -> Run:
    """Return a run with these outcomes, whose judgements have these members."""
    made = Run(Target(command=("./server",)), ServerProfile(Pace(1.0)), **more)
    for (rule, revision), outcome in found.items():
        one = Judgement(clause=rule, revision=revision, outcome=outcome, **judgement)
        made.verdicts.append(Verdict(load(BOTH).catalogue[rule], revision, outcome, one, [one]))
    return made
