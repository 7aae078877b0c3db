"""One report of several targets, combined from the report of each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, fromstring, indent, tostring

from mcp_touchstone.report.sarif import SCHEMA
from mcp_touchstone.report.text import cell, plural
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.version import __version__

_TALLIES: Final = ("tests", "failures", "errors")


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one target.

    Attributes:
        text: its own report; empty if it could not be checked.
        trouble: the reason it could not be checked; empty if it has a report.
    """

    name: str
    text: str = ""
    trouble: str = ""


def combine(kind: str, parts: Sequence[Part]) -> str:
    """Return one report of several targets.

    Args:
        kind: one of `config.settings.SHARED_REPORTS`.
        parts: the targets, at least one.
    """
    return {"badge": _badge, "junit": _junit, "markdown": _markdown, "sarif": _sarif}[kind](parts)


def _badge(parts: Sequence[Part]) -> str:
    documents = [json.loads(part.text) for part in parts if part.text]
    missing = len(parts) - len(documents)
    failed = sum(document["isError"] for document in documents)
    worst: dict[str, Any] = max(documents, key=lambda one: bool(one["isError"]), default={})
    said = [f"{failed} of {len(parts)} targets failed"] if failed else []
    said += [f"{missing} of {len(parts)} targets not checked"] if missing else []
    color = "lightgrey" if missing and not failed else worst.get("color", "lightgrey")
    return (
        json.dumps(
            {
                "schemaVersion": 1,
                "label": "MCP",
                "message": ", ".join(said) or f"passed, {plural(len(parts), 'target')}",
                "color": color,
                "isError": bool(said),
            },
            indent=2,
        )
        + "\n"
    )


def _markdown(parts: Sequence[Part]) -> str:
    blocks = []
    for part in parts:
        lines = [f"# {cell(part.name)}", "", part.text.rstrip("\n")]
        if part.trouble:
            lines[2:] = ["## MCP: not checked", "", cell(part.trouble)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _junit(parts: Sequence[Part]) -> str:
    root = Element("testsuites", name="mcp-touchstone")
    for part in parts:
        name = safe(part.name)
        if part.trouble:
            suite = SubElement(root, "testsuite", name=name, tests="1", failures="0", errors="1")
            case = SubElement(suite, "testcase", classname=name, name="the server is checked")
            SubElement(case, "error", type="not checked", message=part.trouble)
            continue
        for suite in fromstring(part.text.encode()):  # noqa: S314  (our own)
            suite.set("name", f"{name}: {suite.get('name')}")
            for case in suite.iter("testcase"):
                case.set("classname", f"{name}.{case.get('classname')}")
            root.append(suite)
    for tally in _TALLIES:
        root.set(tally, str(sum(int(suite.get(tally, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _sarif(parts: Sequence[Part]) -> str:
    whole: dict[str, Any] = {}
    runs: list[Mapping[str, Any]] = []
    for part in parts:
        identity = {"automationDetails": {"id": f"mcp-touchstone/{part.name}/"}}
        if part.text:
            document = json.loads(part.text)
            whole = {**document, **whole}
            runs += [{**run, **identity} for run in document["runs"]]
            continue
        note = {"level": "error", "message": {"text": part.trouble}}
        runs.append(
            {
                "tool": {"driver": {"name": "mcp-touchstone", "version": __version__}},
                "invocations": [
                    {"executionSuccessful": False, "toolExecutionNotifications": [note]}
                ],
                **identity,
            }
        )
    whole = whole or {"$schema": SCHEMA, "version": "2.1.0"}
    return json.dumps({**whole, "runs": runs}, indent=2) + "\n"
