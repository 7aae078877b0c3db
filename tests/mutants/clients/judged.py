"""The verdicts on mutants of clients."""

import sys
from pathlib import Path

from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.tap.breaches import CLIENT
from mcp_touchstone.tap.drive import play
from mcp_touchstone.tap.judge import judge
from mcp_touchstone.target.target import Target
from tests.mutants.clients import http_client
from tests.mutants.clients.client import Mutant, talk


def outcomes(mutant: Mutant, folder: Path) -> dict[str, Outcome]:
    """Return the outcome of each clause on a mutant that talks in this process."""
    first = [Mutant("", mutant.before, habits="dual")] if mutant.before else []
    run = judge([talk(one, folder) for one in (*first, mutant)], CLIENT, Choice())
    return {v.clause.id: v.outcome for v in run.verdicts}


def over_http(fault: str, scenario: str, folder: Path) -> dict[str, Outcome]:
    """Return the outcome of each clause on the client over HTTP with a fault, or with ``none``."""
    command = (sys.executable, http_client.__file__, fault)
    played = play(Target(command=command), scenario, folder, http=True)
    assert played.scenario.outcome.is_whole
    run = judge(played.recordings, CLIENT, Choice(select=("*",)))  # with those of drafts
    return {v.clause.id: v.outcome for v in run.verdicts}
