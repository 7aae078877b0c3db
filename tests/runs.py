"""Runs with given outcomes, which no server made."""

from collections.abc import Mapping
from typing import Any

from mcp_touchstone.catalog.loader import BOTH, CLIENTS, load, rows
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.results.events import Event, Learnt
from mcp_touchstone.results.run import Run, Verdict
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Judgement, Outcome
from mcp_touchstone.target.target import Target


def learning(target: Target, registry: Registry, choice: Choice) -> tuple[Run, ServerProfile]:
    """Judge a server; return the run, and what discovery learnt."""
    learnt: list[ServerProfile] = []

    def note(event: Event) -> None:
        if isinstance(event, Learnt):
            learnt.append(event.profile)

    run = judge(target, registry, choice, on_event=note)
    return run, learnt[-1]


Found = Mapping[tuple[str, str], Outcome]
"""(clause, revision) -> the outcome."""

SERVER = Subject.of(Target(command=("./server",)))


def run_of(
    found: Found, judgement: Mapping[str, Any], subject: Subject = SERVER, **more: Any
) -> Run:
    """Return a run with these outcomes, whose judgements have these members."""
    made = Run(subject, **more)
    for (rule, revision), outcome in found.items():
        one = Judgement(clause=rule, revision=revision, outcome=outcome, **judgement)
        known = load(BOTH).catalogue
        clause = known[rule] if rule in known else rows(CLIENTS)[rule]
        made.verdicts.append(Verdict(clause, revision, outcome, one, [one]))
    return made
