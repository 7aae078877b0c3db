"""Mutants of servers by name, and the verdicts on them."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from unittest.mock import patch

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.needs import Probe
from mcp_touchstone.engine.choice import EXAMPLES, Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.judging.run_settings import Drawn
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.http_endpoint import PORT
from tests.mutants import http_kit, http_tokens, kit
from tests.mutants.__main__ import HERE
from tests.mutants.__main__ import load as load_mutants

REGISTRY = load()
MUTANTS = {
    name: mutant.due(lambda clause: REGISTRY.catalogue[clause].judged)
    for name, mutant in load_mutants().items()
}
JUDGED_IN: Final[dict[str, set[str]]] = {}
"""The files whose scenarios judge a clause."""
for scenario in REGISTRY.scenarios:
    for judged_clause in scenario.clauses:
        JUDGED_IN.setdefault(judged_clause.id, set()).add(scenario.id.partition("::")[0])
GIVE: Final = Drawn.give
FOUND = {Outcome.FAIL, Outcome.WARN, Outcome.NOTE, Outcome.BROKEN}


def chapters_of(mutant: kit.Mutant) -> set[str]:
    """Return the chapters of the clauses that a mutant breaks, and of those that it must pass."""
    return {REGISTRY.catalogue[clause].chapter for clause in (*mutant.breaks, *mutant.passes)}


def near(mutant: kit.Mutant) -> tuple[str, ...]:
    """Return the clauses a mutant is judged by; empty for all of them.

    These are the clauses of its chapters that the files of its scenarios judge, all of its chapters
    if a rule on all traffic finds it, and of the properties only the one that finds it. To these
    come the rules on all traffic for which discovery need not send more. If it would send nothing
    at all, such a rule may see no traffic: then discovery sends what all rules need. With
    MCP_TOUCHSTONE_WHOLE in the environment it is all clauses, which takes an hour or more.
    """
    chapters = chapters_of(mutant)
    if not chapters or "MCP_TOUCHSTONE_WHOLE" in os.environ:
        return ()
    own = [c for c in REGISTRY.catalogue if c.judged and c.chapter in chapters]
    if mutant.found_by:
        own = [c for c in own if c.group != "properties"]
    due = {*mutant.breaks, *mutant.passes}
    watched = {clause.id for rule in REGISTRY.ambients for clause in rule.clauses} & due
    if not watched:
        files = set().union(*(JUDGED_IN[clause] for clause in due))
        own = [c for c in own if files.intersection(JUDGED_IN.get(c.id, ()))]
    ids, sent = {c.id for c in own}, probes_of(own, mutant.revision)
    if watched and not sent:
        sent = {*Probe}
    for rule in REGISTRY.ambients:
        # The end of a process is only visible if a process is ended normally.
        visible = [clause for clause in rule.clauses if clause.chapter != "lifecycle"]
        if probes_of(visible, mutant.revision) <= sent:
            # Unlike names of clauses, that of the rule brings no scenarios of other chapters.
            whole = len(visible) == len(rule.clauses)
            ids |= {rule.id} if whole else {clause.id for clause in visible}
    return tuple(sorted(ids | ({mutant.found_by} if mutant.found_by else set())))


def probes_of(clauses: Iterable[Clause], revision: str) -> set[Probe]:
    """Return the probes with which discovery decides what clauses need in a revision."""
    return {
        probe
        for clause in clauses
        if revision in clause.revisions
        for probe in needs.probes(clause.words, revision)
    }


def target_of(mutant: kit.Mutant, *, over_http: bool = False) -> Target:
    """Return a mutant as a target; one of stdio can be served over HTTP."""
    if not (mutant.over_http or over_http):
        words = (sys.executable, HERE, mutant.name, ROOT)
        return Target(command=words, timeout=mutant.startup)
    os.environ.setdefault(http_kit.TOKEN, http_kit.BEARER)
    issued = getattr(mutant.fault, "issued", False)
    return Target(
        command=(sys.executable, HERE, "--http", PORT, mutant.name, ROOT),
        url=f"http://127.0.0.1:{PORT}/mcp",
        issuer="mock" if issued else "",
        scope=(mutant.fault.scope,) if issued else (),
        env=http_tokens.ENV if issued else {},
        header=getattr(mutant.fault, "headers_sent", {}),
        timeout=mutant.startup,
    )


DRAWN: Final[dict[str, Sequence[Any]]] = {}
"""The examples that were drawn for mutants so far: equal settings draw equal ones."""


def _give(drawn: Drawn, key: str, draw: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    if key not in DRAWN:
        DRAWN[key] = GIVE(drawn, key, draw)
    return DRAWN[key]


def run_mutant(mutant: kit.Mutant, select: tuple[str, ...] = (), *, jobs: int = 8) -> Run:
    """Judge one mutant in its revision, by all clauses or by those that ``select`` names."""
    examples = max(mutant.examples, EXAMPLES if "MCP_TOUCHSTONE_WHOLE" in os.environ else 0)
    choice = Choice(
        select=select or ("*",),  # with those of drafts
        revisions=(mutant.revision,),
        jobs=jobs,
        examples=examples,
        rules_fed=False,
        repeats=0,
    )
    with patch.object(Drawn, "give", _give):
        return judge(target_of(mutant), REGISTRY, choice)


def findings(run: Run, mutant: kit.Mutant, *, everything: bool = False) -> dict[str, str]:
    """Return what a run found on a mutant: clause -> how it counts.

    Unless all clauses were judged, a rule of another chapter that saw nothing it could judge is no
    finding: nothing was sent for it.
    """
    chapters = chapters_of(mutant)
    return {
        verdict.clause.id: str(verdict.outcome)
        for verdict in run.of(*FOUND)
        if everything or verdict.clause.chapter in chapters or verdict.gravest.count
    }


def described(run: Run) -> Iterator[str]:
    """Return the findings of a run, a line for each."""
    for verdict in run.of(*FOUND):
        judgement = verdict.gravest
        yield f"{verdict.clause.id} {verdict.outcome}: {judgement.expected}; {judgement.actual}"
