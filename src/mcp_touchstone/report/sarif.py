"""A run as SARIF 2.1.0, in the shape that code scanning services display.

Each broken rule is one result for all revisions, so that one fault is one alert.
A rule that could not be checked is a notification of the tool.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.threat import CWE, OWASP, Severity, Threat
from mcp_touchstone.report.digest import again, findings
from mcp_touchstone.report.finding import Finding
from mcp_touchstone.report.text import cut, window
from mcp_touchstone.results.comparison import Change
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.version import __version__

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
HOME: Final = "https://modelcontextprotocol.io/specification"
TAXONOMY: Final = {"name": "CWE", "index": 0}
FINGERPRINT: Final = "mcpTouchstoneRule/v1"

_LEVELS: Final = {Outcome.FAIL: "error", Outcome.WARN: "warning", Outcome.NOTE: "note"}
_BREACHES: Final = {"fail": "error", "warn": "warning", "note": "note"}
_SCORES: Final = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "2.5",
}
"""Severity -> the score code scanning sorts by; a remark has none."""

_LONGEST: Final = 1000
"""Characters of a description that code scanning shows."""


def document(run: Run) -> dict[str, Any]:
    """Build the log."""
    rules = {verdict.clause.id: verdict.clause for verdict in run.verdicts}
    places = {name: number for number, name in enumerate(rules)}
    weaknesses = sorted({number for clause in rules.values() for number in _weaknesses(clause)})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "mcp-touchstone",
                        "semanticVersion": __version__,
                        "version": __version__,
                        "rules": [_rule(clause) for clause in rules.values()],
                        **({"supportedTaxonomies": [dict(TAXONOMY)]} if weaknesses else {}),
                    }
                },
                **({"taxonomies": [_taxonomy(weaknesses)]} if weaknesses else {}),
                "invocations": [_invocation(run, places)],
                "results": [_result(run, found, places) for found in _found(run)],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def render(run: Run) -> str:
    """Render the file."""
    return json.dumps(document(run), indent=2) + "\n"


def fingerprint(rule: str) -> str:
    """Return a fingerprint made of the rule alone: nothing else can change it."""
    return hashlib.sha256(rule.encode()).hexdigest()[:32]


def _weaknesses(clause: Clause) -> tuple[int, ...]:
    """Return the numbers of the weaknesses (CWE) that a rule is about."""
    return clause.cwe if isinstance(clause, Threat) else ()


def _taxonomy(weaknesses: list[int]) -> dict[str, Any]:
    """Return the weaknesses as a taxonomy, SARIF 2.1.0, section 3.19.3."""
    return {
        "name": TAXONOMY["name"],
        "organization": "MITRE",
        "informationUri": "https://cwe.mitre.org/",
        "shortDescription": {"text": "The Common Weakness Enumeration"},
        "isComprehensive": False,
        "taxa": [{"id": str(number), "helpUri": CWE.format(number)} for number in weaknesses],
    }


def _relationship(number: int) -> dict[str, Any]:
    """Return that a weakness includes what a rule is about; each result has it then, too."""
    return {"target": {"id": str(number), "toolComponent": dict(TAXONOMY)}, "kinds": ["superset"]}


def _found(run: Run) -> Iterator[list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    kinds = (Outcome.FAIL, Outcome.WARN, Outcome.NOTE)
    for known, of_sdk in ((False, False), (True, False), (False, True)):
        for finding in findings(run, *kinds, known=known, of_sdk=of_sdk):
            groups.setdefault(finding.clause.id, []).append(finding)
    order = list(dict.fromkeys(verdict.clause.id for verdict in run.verdicts))
    yield from (groups[rule] for rule in order if rule in groups)


def _rule(clause: Clause) -> dict[str, Any]:
    threat = clause if isinstance(clause, Threat) else None
    links = list(dict.fromkeys(link for r in clause.revisions for link in clause.links(r)))
    parts = [("Rule", clause.statement)]
    if threat:
        parts += [("Effect", threat.effect), ("Cause", threat.cause)]
    parts += [
        ("Usual cure", clause.cure),
        ("How it is checked", clause.how),
        ("Not flagged", clause.not_flagged),
        ("Decision", clause.decision),
    ]
    filled = [(label, text) for label, text in parts if text]
    tags = ["mcp", clause.group, clause.place, clause.grade]
    properties: dict[str, Any] = {"precision": "very-high", "revisions": list(clause.revisions)}
    level = _BREACHES[clause.breach]
    if threat:
        tags += ["security", *(f"external/cwe/cwe-{number:03}" for number in threat.cwe)]
        properties["owasp"] = list(threat.owasp)
        if threat.severity in _SCORES:
            properties["security-severity"] = _SCORES[threat.severity]
    else:
        properties["problem.severity"] = level if level != "note" else "recommendation"
    return {
        "id": clause.id,
        "name": "".join(word.capitalize() for word in clause.id.split("-")),
        "shortDescription": {"text": _escaped(cut(f"Broken rule: {clause.statement}", _LONGEST))},
        "fullDescription": {"text": _escaped(cut(clause.statement, _LONGEST))},
        "help": {
            "text": "\n\n".join([*(f"{a}: {b}" for a, b in filled), *links]),
            "markdown": "\n\n".join(
                [*(f"**{a}.** {b}" for a, b in filled), *(f"- <{link}>" for link in links)]
            ),
        },
        "helpUri": links[0] if links else OWASP if threat else HOME,
        "defaultConfiguration": {"level": level},
        **({"relationships": [_relationship(one) for one in threat.cwe]} if threat else {}),
        "properties": {"tags": list(dict.fromkeys(tags)), **properties},
    }


def _result(run: Run, group: list[Finding], places: dict[str, int]) -> dict[str, Any]:
    open_ones = [finding for finding in group if not _excuse(run, finding)]
    shown = min(open_ones or group, key=lambda finding: finding.outcome.rank)
    clause, judgement = shown.clause, shown.judgement
    revisions = tuple(r for r in clause.revisions if any(r in f.revisions for f in group))
    print_ = fingerprint(clause.id)
    reasons = dict.fromkeys(_excuse(run, finding) for finding in group)
    excuses = [{"kind": "external", "justification": reason} for reason in reasons]
    return {
        "ruleId": clause.id,
        "ruleIndex": places[clause.id],
        "kind": "fail",
        "level": _LEVELS[shown.outcome],
        "message": {"text": _escaped(_message(shown, revisions))},
        "locations": [_location(run, clause)],
        "partialFingerprints": {FINGERPRINT: print_, "primaryLocationLineHash": f"{print_[:16]}:1"},
        **_baseline(run, clause, revisions),
        **({} if open_ones else {"suppressions": excuses}),
        "properties": {
            "revisions": list(revisions),
            "scenario": judgement.scenario,
            "reproduce": again(run, shown),
            **({} if shown.sdk is None else {"sdk": str(shown.sdk.sdk)}),
            **({"script": judgement.reproduction} if judgement.reproduction else {}),
            "wire": [
                f"{'▸' if line.guilty else ' '} {line.n} {line.arrow} {safe(line.text)}"
                for line in judgement.wire
            ],
        },
    }


def _message(finding: Finding, revisions: tuple[str, ...]) -> str:
    judgement = finding.judgement
    lines = [f"Actual: {cut(safe(' '.join(judgement.actual.split())), _LONGEST)}"]
    if judgement.expected:
        lines.append(f"Expected: {judgement.expected}.")
    lines.append(f"{finding.clause.id} ({finding.clause.grade}) in {window(revisions)}.")
    if judgement.because:
        lines.append(f"Why a {_LEVELS[finding.outcome]}: {judgement.because}.")
    if finding.sdk is not None:
        lines.append(f"Whose: {finding.whose}.")
    lines += [
        f"Line {line.n} of the conversation: {cut(safe(line.text), _LONGEST)}"
        for line in judgement.wire
        if line.guilty
    ]
    return "\n".join(lines)


def _location(run: Run, clause: Clause) -> dict[str, Any]:
    """Return the location of the server's program if it is below the working folder."""
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _program(run.subject.command)},
            "region": {"startLine": 1},
        },
        "logicalLocations": [{"fullyQualifiedName": clause.place, "kind": "module"}],
    }


def _program(command: tuple[str, ...]) -> str:
    here = Path.cwd()
    for word in reversed(command):
        path = here / word
        is_file = os.path.isfile(path)  # noqa: PTH113  (Path.is_file raises if a name is too long)
        if is_file and path.is_relative_to(here) and ".." not in path.parts:
            return path.relative_to(here).as_posix()
    return "mcp-server"


def _baseline(run: Run, clause: Clause, revisions: tuple[str, ...]) -> dict[str, Any]:
    if run.since is None:
        return {}
    items = [
        item.change
        for item in run.since.items
        if item.rule == clause.id and item.revision in revisions
    ]
    old = not items or all(change is Change.OPEN for change in items)
    return {"baselineState": "unchanged" if old else "new"}


def _excuse(run: Run, finding: Finding) -> str:
    """Return the reason that a finding does not count; empty if it may count."""
    if finding.known or finding.sdk is None or run.floor.sdk:
        return finding.known
    return finding.whose


def _invocation(run: Run, places: dict[str, int]) -> dict[str, Any]:
    notes = [
        {
            "level": "error",
            "message": {
                "text": _escaped(
                    f"{finding.clause.id} could not be checked: {safe(finding.judgement.actual)}"
                )
            },
            "associatedRule": {
                "id": finding.clause.id,
                "index": places[finding.clause.id],
            },
        }
        for finding in findings(run, Outcome.BROKEN)
    ]
    if run.trouble:
        notes.append({"level": "error", "message": {"text": _escaped(safe(run.trouble))}})
    if run.execution.interrupted:
        notes.append({"level": "error", "message": {"text": "the run was interrupted"}})
    return {
        "executionSuccessful": not notes,
        "exitCode": run.exit_code,
        "commandLine": run.subject.shown,
        "toolExecutionNotifications": notes,
    }


def _escaped(text: str) -> str:
    """Escape a message so that no part of it is read as a link or a placeholder."""
    for char in "\\[]":
        text = text.replace(char, "\\" + char)
    return text.replace("{", "{{").replace("}", "}}")
