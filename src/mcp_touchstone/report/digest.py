"""A run, gathered the way reports show it: by clause, by finding, by chapter. Pure."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from mcp_touchstone.clause import Clause
from mcp_touchstone.results import Run, Verdict
from mcp_touchstone.threat import Threat
from mcp_touchstone.tier import Tier
from mcp_touchstone.verdict import Judgement, Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    """One clause broken in one way, in one revision or several.

    Attributes:
        clause: the clause.
        outcome: what became of it.
        revisions: where it was found, oldest first.
        judgement: the judgement shown (of the newest revision).
        known: the reason the baseline gives; empty where it is not known.
    """

    clause: Clause
    outcome: Outcome
    revisions: tuple[str, ...]
    judgement: Judgement
    known: str = ""


@dataclass(frozen=True, slots=True)
class ChapterCount:
    """How the clauses of one chapter fared, each counted once by its gravest outcome."""

    name: str
    counts: dict[Outcome, int]


def findings(run: Run, *outcomes: Outcome, known: bool = False) -> list[Finding]:
    """Gather verdicts of some outcomes, the same finding in several revisions once.

    Args:
        run: the run.
        outcomes: what is gathered.
        known: what the baseline knows, or what it does not.
    """
    groups: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in run.of(*outcomes):
        if bool(verdict.known) is not known:
            continue
        judgement = verdict.gravest
        kind = (verdict.clause.id, verdict.outcome, verdict.known)
        key = (*kind, judgement.scenario, judgement.expected)
        groups.setdefault(key, []).append(verdict)
    found = [
        Finding(
            group[-1].clause,
            group[-1].outcome,
            tuple(verdict.revision for verdict in group),
            group[-1].gravest,
            group[-1].known,
        )
        for group in groups.values()
    ]
    return sorted(found, key=lambda finding: finding.outcome.rank)


def by_clause(verdicts: Iterable[Verdict]) -> dict[str, Outcome]:
    """Give each clause one outcome: the gravest of its revisions; unseen only where all are."""
    outcomes: dict[str, Outcome] = {}
    for verdict in verdicts:
        known = outcomes.get(verdict.clause.id)
        if known is None or verdict.outcome.rank < known.rank:
            outcomes[verdict.clause.id] = verdict.outcome
    return outcomes


def excused(run: Run) -> dict[Outcome, int]:
    """Count the clauses of which all that is as grave as it gets is known, by that outcome."""
    counts: dict[Outcome, int] = {}
    for clause, outcome in by_clause(run.verdicts).items():
        gravest = [v for v in run.of(outcome) if v.clause.id == clause]
        if all(verdict.known for verdict in gravest):
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def chapters(run: Run) -> list[ChapterCount]:
    """Count the clauses of each chapter by outcome."""
    places = {v.clause.id: f"{v.clause.group}/{v.clause.chapter}" for v in run.verdicts}
    found: dict[str, dict[Outcome, int]] = {}
    for clause, outcome in by_clause(run.verdicts).items():
        counts = found.setdefault(places[clause], {})
        counts[outcome] = counts.get(outcome, 0) + 1
    return [ChapterCount(name, counts) for name, counts in sorted(found.items())]


def noun(run: Run) -> str:
    """Name what was judged: clauses, threats, or rules where there are both."""
    judged = [slot.case.clauses[0] for slot in run.slots] or [v.clause for v in run.verdicts]
    kinds = {isinstance(clause, Threat) for clause in judged} or {False}
    return "rule" if len(kinds) > 1 else "threat" if True in kinds else "clause"


def again(run: Run, finding: Finding) -> str:
    """Give the one command that shows a finding again."""
    words = ["mcp-touchstone", "check", "-v"]
    if isinstance(finding.clause, Threat):
        words += ["--suite", "security"]
        tier = finding.clause.tier
        words += ["--attacks", str(tier)] if tier is not Tier.CORE else []
    words += ["--select", finding.clause.id, *finding.judgement.replay]
    words += ["--revision", finding.judgement.revision]
    return shlex.join([*words, *run.target.words()])
