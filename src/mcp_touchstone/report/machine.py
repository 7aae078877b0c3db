"""A run as JSON. The format is versioned; ``schema.json`` beside this file describes it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.advisories.known import KnownAdvisory
from mcp_touchstone.advisories.table import seen_in
from mcp_touchstone.catalog.loader import renamed
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.report import clients, comparison, install
from mcp_touchstone.report.digest import by_clause, tally
from mcp_touchstone.results import budgets
from mcp_touchstone.results.advice import advice
from mcp_touchstone.results.clause_sets import Kept, kept
from mcp_touchstone.results.run import Run, SdkFault, Settlement, Verdict
from mcp_touchstone.results.tool_use import ToolUse
from mcp_touchstone.results.verdict import AffectedTool, Judgement, Outcome
from mcp_touchstone.runtime.timing import Cost
from mcp_touchstone.version import __version__

FORMAT: Final = 1
"""Version of the format; incremented if a reader of the old format would misread a new report."""

SCHEMA: Final = Path(__file__).with_name("schema.json")

VOLATILE: Final = ("started", "seconds", "startup_seconds", "cost", "judgements", "processes")
"""Members of ``summary`` that differ from run to run, even if the server does not change."""


def document(run: Run) -> dict[str, Any]:
    """Build the report."""
    subject = run.subject
    return {
        "format": FORMAT,
        "tool": {"name": "mcp-touchstone", "version": __version__},
        "target": {
            "command": list(subject.command),
            "bundled": subject.bundled,
            "again": list(subject.again[1:] if subject.checked else subject.again),
            **_some(judged="" if subject.checked else subject.kind, url=subject.url),
            **_some(sandbox=subject.sandbox),
            "server": subject.reported,
            "sdk": [asdict(sdk) for sdk in subject.sdk.sdks],
            **_some(
                sdk_hint=subject.sdk.hint,
                packages=[asdict(one) for one in subject.sdk.packages],
            ),
        },
        "revisions": {
            "spoken": list(subject.revisions),
            "refused": subject.refused,
            **_some(silent=subject.silent),
        },
        "summary": _summary(run),
        **({"tools": run.tools.document()} if run.tools != ToolUse() else {}),
        **_installation(run),
        **({} if run.locked is None else {"lock": run.locked.document()}),
        **clients.document(run),
        **_budgets(run),
        **_some(advisories=[_advisory(one) for one in run.advisories]),
        "verdicts": [_verdict(v, counts=run.counts(v)) for v in run.verdicts],
        **_some(scenarios=[one.document() for one in run.scenarios]),
        "lost": [
            {"scenario": one.planned.case.id, "revision": one.planned.revision, "how": one.left}
            for one in run.lost
        ],
        "gate": {
            "fail_on": list(run.floor.words),
            "failed": sum(map(run.counts, run.verdicts)),
            "known": sum(bool(verdict.known) for verdict in run.verdicts),
            "sdk": sum(map(run.is_of_sdk, run.verdicts)),
            **_some(scenarios=len(run.troubled) * run.scenarios_count),
        },
        **({} if run.since is None else {"since": comparison.document(run.since)}),
        **({} if run.settled is None else {"baseline": _baseline(run.settled)}),
        "not_applicable": [
            {
                "clause": row.clause,
                "revision": row.revision,
                "why": row.why,
                **_some(by_choice=row.by_choice),
            }
            for row in run.absent
        ],
    }


def _installation(run: Run) -> dict[str, Any]:
    found = advice(run)
    if found is None:
        return {}
    return {
        "installation": {
            "word": str(found.word),
            "reasons": list(found.reasons),
            "abilities": [one.document() for one in run.abilities],
            "untried": [{"what": what, "option": way} for what, way in install.untried(run)],
            "selected": run.selected,
        }
    }


def _some(**members: Any) -> dict[str, Any]:
    """Return the members that are not empty."""
    return {name: value for name, value in members.items() if value}


def _budgets(run: Run) -> dict[str, Any]:
    costs = run.budgets
    if not costs.tokens:
        return {}
    results = {
        name: {"bytes": one.bytes, "tokens": budgets.tokens(one.bytes), "seen": one.seen}
        for name, one in costs.results.items()
    }
    held = {"file": costs.name, "over": list(costs.over)} if costs.name else {}
    measured = {"tokenizer": budgets.TOKENIZER, "tokens": costs.tokens, "results": results}
    return {"budgets": {**measured, **held}}


def _advisory(one: KnownAdvisory) -> dict[str, Any]:
    return {
        "id": one.advisory.id,
        "aliases": list(one.advisory.aliases),
        "package": asdict(one.package),
        "title": one.advisory.title,
        "state": str(one.state),
        **_some(rules=list(one.rules), why=one.why, remedy=one.remedy),
        "source": one.advisory.source,
    }


def _summary(run: Run) -> dict[str, Any]:
    outcomes = list(by_clause(run.verdicts).values())
    return {
        "conclusion": str(run.conclusion),
        **_some(gap=run.gap),
        "exit_code": run.exit_code,
        "interrupted": run.execution.interrupted,
        "trouble": run.trouble,
        **_some(unbound=run.unbound, unbound_tools=list(run.subject.unbound)),
        **_some(unattacked=run.unattacked),
        "clauses": {str(outcome): outcomes.count(outcome) for outcome in Outcome},
        "tally": tally(run),
        "kept": {one.revision: _kept(one) for one in kept(run, renamed) if one.applicable},
        "planned": sum(len(one.planned.clauses) for one in run.results),
        "judgements": sum(
            judgement.outcome is not Outcome.UNSEEN
            for verdict in run.verdicts
            for judgement in verdict.judgements
        ),
        "processes": run.execution.processes,
        "strays": run.execution.strays,
        **_some(notes=list(run.execution.notes), started=run.execution.started),
        **_some(quick=run.execution.quick),
        "seconds": round(run.execution.seconds, 3),
        "startup_seconds": round(run.subject.startup, 3),
        **({} if run.execution.cost is None else {"cost": _cost(run.execution.cost)}),
    }


def _kept(one: Kept) -> dict[str, str | int]:
    return {
        "set": one.name,
        "applicable": one.applicable,
        "kept": one.kept,
        "unjudged": one.unjudged,
    }


def _cost(cost: Cost) -> dict[str, float]:
    parts = {**asdict(cost), "efficiency": cost.efficiency}
    return {name: round(seconds, 3) for name, seconds in parts.items()}


def _verdict(verdict: Verdict, *, counts: bool) -> dict[str, Any]:
    return {
        "clause": verdict.clause.id,
        "group": verdict.clause.group,
        "chapter": verdict.clause.chapter,
        "level": str(verdict.clause.level),
        "revision": verdict.revision,
        "outcome": str(verdict.outcome),
        **_some(counts=counts, known=verdict.known, sdk=verdict.sdk and _fault(verdict.sdk)),
        **_some(alike=list(verdict.alike), sometimes=verdict.sometimes),
        "spec": list(verdict.clause.links(verdict.revision)),
        **(_threat(verdict.clause) if isinstance(verdict.clause, Threat) else {}),
        "judgements": [_judgement(judgement) for judgement in _shown(verdict)],
    }


def _fault(fault: SdkFault) -> dict[str, str]:
    return {
        **asdict(fault.sdk),
        **_some(like=fault.like, fixed=fault.fixed, last=fault.last),
        "remedy": fault.remedy,
    }


def _baseline(settled: Settlement) -> dict[str, Any]:
    return {
        "file": settled.file,
        "entries": settled.entries,
        "stale": [{**asdict(entry), "revisions": list(entry.revisions)} for entry in settled.stale],
    }


def _threat(threat: Threat) -> dict[str, Any]:
    return {
        "threat": {
            "severity": str(threat.severity),
            "promise": str(threat.promise),
            "effect": threat.effect,
            "cause": threat.cause,
            "cwe": list(threat.cwe),
            "owasp": list(threat.owasp),
            "seen_in": list(seen_in(threat.id)),
        }
    }


def _shown(verdict: Verdict) -> list[Judgement]:
    """Return the most severe judgement of each scenario; repeated passes add no information."""
    gravest: dict[str, Judgement] = {}
    for judgement in verdict.judgements:
        known = gravest.get(judgement.scenario)
        if known is None or judgement.outcome.rank < known.outcome.rank:
            gravest[judgement.scenario] = judgement
    return list(gravest.values())


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {
        "scenario": judgement.scenario,
        "outcome": str(judgement.outcome),
        "expected": judgement.expected,
        "actual": judgement.actual,
        **_some(because=judgement.because),
        "count": judgement.count,
        "source": judgement.source,
        "process": judgement.process,
        **_some(origin=judgement.origin, replay=list(judgement.replay), raced=judgement.raced),
        **_some(severity=str(judgement.severity or "")),
        **_tools(judgement.tools),
        **({"tried": judgement.tried, "found": judgement.found} if judgement.tried > 1 else {}),
        **_some(reproduction=judgement.reproduction),
        "wire": [
            {
                "line": line.n,
                "from": SIDES[line.arrow],
                "text": line.text,
                "guilty": line.guilty,
                **_some(http=line.http),
            }
            for line in judgement.wire
        ],
    }


def _tools(tools: tuple[AffectedTool, ...]) -> dict[str, Any]:
    arguments = {tool.name: dict(tool.arguments) for tool in tools if tool.arguments}
    return _some(tools={tool.name: tool.payloads for tool in tools}, arguments=arguments)


SIDES: Final = {"→": "client", "←": "server", "·": "event"}
