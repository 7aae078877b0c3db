"""A run as JSON. The format is versioned; ``schema.json`` beside this file describes it."""

from pathlib import Path
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone.catalog.loader import renamed
from mcp_touchstone.catalog.sdk import Sdk
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.report import clients, comparison
from mcp_touchstone.report.digest import by_clause, tally
from mcp_touchstone.results import budgets
from mcp_touchstone.results.clause_sets import Kept, kept
from mcp_touchstone.results.run import Run, SdkFault, Settlement, Verdict
from mcp_touchstone.results.tool_use import ToolUse
from mcp_touchstone.results.verdict import AffectedTool, Judgement, Outcome
from mcp_touchstone.runtime.timing import Cost

FORMAT: Final = 1
"""Version of the format; incremented if a reader of the old format would misread a new report."""

SCHEMA: Final = Path(__file__).with_name("schema.json")

VOLATILE: Final = ("started", "seconds", "startup_seconds", "cost", "judgements", "processes")
"""Members of ``summary`` that differ from run to run, even if the server does not change."""


def document(run: Run) -> dict[str, Any]:
    """Build the report."""
    return {
        "format": FORMAT,
        "tool": {"name": "mcp-touchstone", "version": __version__},
        "target": {
            "command": list(run.target.command),
            "bundled": run.target.bundled,
            "again": run.target.words(),
            **({"judged": run.judged} if run.again else {}),
            **({"url": run.target.url} if run.target.url else {}),
            **({"sandbox": str(run.target.method)} if run.target.method is not None else {}),
            "server": {r: s.server_info for r, s in run.profile.spoken.items()},
            "sdk": [_sdk(sdk) for sdk in run.profile.sdk.sdks],
            **({"sdk_hint": run.profile.sdk.hint} if run.profile.sdk.hint else {}),
        },
        "revisions": {
            "spoken": list(run.profile.spoken),
            "refused": {r: str(reply) for r, reply in run.profile.refused.items()},
        },
        "summary": _summary(run),
        **({"tools": run.tools.document()} if run.tools != ToolUse() else {}),
        **clients.document(run),
        **_budgets(run),
        "verdicts": [_verdict(v, counts=run.counts(v)) for v in run.verdicts],
        "lost": [
            {"scenario": slot.case.id, "revision": slot.revision, "how": slot.left}
            for slot in run.lost
        ],
        "gate": {
            "fail_on": list(run.floor.words),
            "failed": sum(map(run.counts, run.verdicts)),
            "known": sum(bool(verdict.known) for verdict in run.verdicts),
            "sdk": sum(map(run.is_of_sdk, run.verdicts)),
        },
        **({} if run.since is None else {"since": comparison.document(run.since)}),
        **({} if run.settled is None else {"baseline": _baseline(run.settled)}),
        "not_applicable": [
            {
                "clause": row.clause,
                "revision": row.revision,
                "why": row.why,
                **({"by_choice": True} if row.by_choice else {}),
            }
            for row in run.absent
        ],
    }


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


def _summary(run: Run) -> dict[str, Any]:
    outcomes = list(by_clause(run.verdicts).values())
    return {
        "exit_code": run.exit_code,
        "interrupted": run.interrupted,
        "trouble": run.trouble,
        **({"unbound": run.unbound} if run.unbound else {}),
        **_unbound(run),
        "clauses": {str(outcome): outcomes.count(outcome) for outcome in Outcome},
        "tally": tally(run),
        "kept": {one.revision: _kept(one) for one in kept(run, renamed) if one.applicable},
        "planned": sum(len(slot.clauses) for slot in run.slots),
        "judgements": sum(
            judgement.outcome is not Outcome.UNSEEN
            for verdict in run.verdicts
            for judgement in verdict.judgements
        ),
        "processes": run.processes,
        "strays": run.strays,
        **({"started": run.started} if run.started else {}),
        "seconds": round(run.seconds, 3),
        "startup_seconds": round(run.profile.pace.started, 3),
        **({} if run.cost is None else {"cost": _cost(run.cost)}),
    }


def _unbound(run: Run) -> dict[str, Any]:
    known = run.profile.bindings
    return {"unbound_tools": list(known.unbound)} if known is not None and known.unbound else {}


def _kept(one: Kept) -> dict[str, str | int]:
    return {
        "set": one.name,
        "applicable": one.applicable,
        "kept": one.kept,
        "unjudged": one.unjudged,
    }


def _cost(cost: Cost) -> dict[str, float]:
    return {
        "startup": round(cost.startup, 3),
        "answers": round(cost.answers, 3),
        "silence": round(cost.silence, 3),
        "ours": round(cost.ours, 3),
        "floor": round(cost.floor, 3),
        "efficiency": round(cost.efficiency, 3),
    }


def _verdict(verdict: Verdict, *, counts: bool) -> dict[str, Any]:
    return {
        "clause": verdict.clause.id,
        "group": verdict.clause.group,
        "chapter": verdict.clause.chapter,
        "level": str(verdict.clause.level),
        "revision": verdict.revision,
        "outcome": str(verdict.outcome),
        **({"counts": True} if counts else {}),
        **({"known": verdict.known} if verdict.known else {}),
        **({} if verdict.sdk is None else {"sdk": _fault(verdict.sdk)}),
        **({"alike": list(verdict.alike)} if verdict.alike else {}),
        **({"sometimes": True} if verdict.sometimes else {}),
        "spec": list(verdict.clause.links(verdict.revision)),
        **(_threat(verdict.clause) if isinstance(verdict.clause, Threat) else {}),
        "judgements": [_judgement(judgement) for judgement in _shown(verdict)],
    }


def _sdk(sdk: Sdk) -> dict[str, str]:
    return {"name": sdk.name, "version": sdk.version, "registry": sdk.registry}


def _fault(fault: SdkFault) -> dict[str, str]:
    return {
        **_sdk(fault.sdk),
        **({"like": fault.like} if fault.like else {}),
        **({"fixed": fault.fixed} if fault.fixed else {}),
        **({"last": fault.last} if fault.last else {}),
        "remedy": fault.remedy,
    }


def _baseline(settled: Settlement) -> dict[str, Any]:
    return {
        "file": settled.file,
        "entries": settled.entries,
        "stale": [
            {
                "rule": entry.rule,
                "revisions": list(entry.revisions),
                "reason": entry.reason,
                "why": entry.why,
            }
            for entry in settled.stale
        ],
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
            "seen_in": list(threat.seen_in),
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
        **({"because": judgement.because} if judgement.because else {}),
        "count": judgement.count,
        "source": judgement.source,
        "process": judgement.process,
        **({"origin": judgement.origin} if judgement.origin else {}),
        **({"replay": list(judgement.replay)} if judgement.replay else {}),
        **({"raced": True} if judgement.raced else {}),
        **({} if judgement.severity is None else {"severity": str(judgement.severity)}),
        **_tools(judgement.tools),
        **({"tried": judgement.tried, "found": judgement.found} if judgement.tried > 1 else {}),
        **({"reproduction": judgement.reproduction} if judgement.reproduction else {}),
        "wire": [
            {
                "line": line.n,
                "from": SIDES[line.arrow],
                "text": line.text,
                "guilty": line.guilty,
                **({"http": line.http} if line.http else {}),
            }
            for line in judgement.wire
        ],
    }


def _tools(tools: tuple[AffectedTool, ...]) -> dict[str, Any]:
    if not tools:
        return {}
    arguments = {tool.name: dict(tool.arguments) for tool in tools if tool.arguments}
    return {
        "tools": {tool.name: tool.payloads for tool in tools},
        **({"arguments": arguments} if arguments else {}),
    }


SIDES: Final = {"→": "client", "←": "server", "·": "event"}
