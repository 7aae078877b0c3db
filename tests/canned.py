"""A hand-made run with a finding of each kind, for the golden files of reports."""

from dataclasses import replace
from typing import Any

from mcp_touchstone.catalog.clause import Breach, Clause, Level
from mcp_touchstone.catalog.threat import Promise, Severity, Threat
from mcp_touchstone.results.comparison import Change, ComparedFinding, Comparison
from mcp_touchstone.results.run import Absent, Execution, Run, Settlement, Stale, Verdict
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.tool_use import FailedTool, ToolUse
from mcp_touchstone.results.verdict import Judgement, Outcome, WireLine
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.target.target import Target

OLD, NEW, MODERN = "2024-11-05", "2025-11-25", "2026-07-28"
PAGE = "basic/utilities/ping#behavior-requirements"


SERVER = {"name": "canned", "version": "1.2.3"}
TOOLS = ToolUse(
    ("get",), (FailedTool("list", safe('error -32602 "no <b> @you\x1b[2J"'), ()),), ("put`",)
)


def clause(name: str, chapter: str, level: Level, *revisions: str, **more: Any) -> Clause:
    breach = {Level.SHOULD: Breach.WARN, Level.MAY: Breach.NOTE}.get(level, Breach.FAIL)
    return Clause(
        id=name,
        group="basic",
        chapter=chapter,
        level=level,
        breach=breach,
        source=dict.fromkeys(revisions, (PAGE,)),
        statement=f"What {name} says of a server.",
        how="It is asked, and looked at.",
        not_flagged="A slow answer.",
        **more,
    )


BROKEN_RULE = clause("canned-must", "ping", Level.MUST, OLD, NEW, decision="The page says so.")
WEAK_RULE = clause("canned-should", "meta", Level.SHOULD, NEW, MODERN)
LIGHT_RULE = clause("canned-may", "meta", Level.MAY, NEW)
KEPT_RULE = clause("canned-kept", "lifecycle", Level.MUST, OLD, NEW, MODERN)
RARE_RULE = clause("canned-rare", "lifecycle", Level.MUST_NOT, NEW, conditional=True)
DUMB_RULE = clause("canned-unjudged", "stdio", Level.MUST, NEW)
KNOWN_RULE = clause("canned-known", "stdio", Level.SCHEMA, NEW)
THREAT = Threat(
    id="canned-climb",
    group="paths",
    chapter="traversal",
    level=Level.MUST_NOT,
    breach=Breach.FAIL,
    source={NEW: ()},
    statement="A path that climbs stays inside.",
    how="It is climbed.",
    severity=Severity.CRITICAL,
    promise=Promise.CONTAINMENT,
    effect="It reads what it likes.",
    cause="The path is joined and not resolved.",
    cwe=(22,),
    owasp=("MCP05",),
)


def verdict(rule: Clause, revision: str, outcome: Outcome, **more: Any) -> Verdict:
    judgement = Judgement(
        clause=rule.id,
        revision=revision,
        outcome=outcome,
        source="canned.py:7",
        scenario=f"suite/{rule.group}/{rule.chapter}.py::{rule.id.replace('-', '_')}",
        process=revision,
        **more,
    )
    return Verdict(rule, revision, outcome, judgement, [judgement])


def wire(answer: str) -> tuple[WireLine, ...]:
    return (
        WireLine(11, "·", "the server was started"),
        WireLine(12, "→", '{"jsonrpc":"2.0","id":7,"method":"ping"}'),
        WireLine(13, "←", answer, guilty=True),
    )


def run(**more: Any) -> Run:
    """Return a run with a finding of each kind."""
    spoken = dict.fromkeys((OLD, NEW, MODERN), SERVER)
    target = Target(command=("./server", "--root", "a b"))
    subject = Subject.of(target, reported=spoken, startup=0.5)
    made = Run(subject, tools=TOOLS, **more)
    made = replace(made, execution=Execution(processes=5, seconds=1.5))
    made = replace(
        made, absent=[Absent(KEPT_RULE.id, "2025-03-26", "the server does not speak 2025-03-26")]
    )
    details = {"expected": "an empty result", "actual": 'error -32603 "no <b>"', "wire": wire("{}")}
    verdicts = [
        verdict(BROKEN_RULE, OLD, Outcome.FAIL, **details),
        verdict(BROKEN_RULE, NEW, Outcome.FAIL, **details),
        verdict(WEAK_RULE, NEW, Outcome.PASS),
        verdict(WEAK_RULE, MODERN, Outcome.WARN, expected="a name", actual="none"),
        verdict(LIGHT_RULE, NEW, Outcome.NOTE, actual="it is slow"),
        verdict(KEPT_RULE, OLD, Outcome.PASS),
        verdict(KEPT_RULE, NEW, Outcome.PASS),
        verdict(KEPT_RULE, MODERN, Outcome.PASS),
        verdict(RARE_RULE, NEW, Outcome.UNSEEN),
        verdict(DUMB_RULE, NEW, Outcome.BROKEN, actual="no answer in 5 s"),
        verdict(KNOWN_RULE, NEW, Outcome.FAIL, expected="text", actual="a number"),
        verdict(
            THREAT,
            NEW,
            Outcome.FAIL,
            expected="a refusal",
            actual="a canary came back",
            wire=wire('{"text":"canary"}'),
            reproduction="#!/bin/sh\nprintf x | ./server",
        ),
    ]
    verdicts[-2] = replace(verdicts[-2], known="fixed in 2.0")
    settled = Settlement(
        "touchstone-baseline.toml", 2, [Stale("canned-gone", (NEW,), "it was so", "it passes now")]
    )
    return replace(made, verdicts=verdicts, settled=settled)


def since() -> Comparison:
    """Return what changed since an older report."""
    kinds = ((BROKEN_RULE, NEW, Change.NEW, "pass"), (THREAT, NEW, Change.OPEN, "fail"))
    return Comparison(
        "old.json",
        tuple(
            ComparedFinding(
                rule=rule.id,
                revision=revision,
                change=change,
                was=was,
                now="fail",
                grade=rule.grade,
                counts=change is Change.NEW,
                actual="no answer",
            )
            for rule, revision, change, was in kinds
        ),
        ("canned 1.2.2", "canned 1.2.3"),
        same=True,
    )
