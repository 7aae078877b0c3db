"""A run as the JSON that shields.io makes a badge of (its "endpoint" badge)."""

import json
from typing import Any, Final

from mcp_touchstone.catalog.loader import renamed
from mcp_touchstone.report import standing
from mcp_touchstone.report.digest import by_clause, noun, sdk_failures
from mcp_touchstone.report.text import cut, plural
from mcp_touchstone.results.clause_sets import kept
from mcp_touchstone.results.run import Conclusion, Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.printable import safe

NAMED: Final = 40
"""Characters of the name of the server."""

_COLORS: Final = {Conclusion.PASSED: "brightgreen", Conclusion.FAILED: "red"}
"""Conclusion -> colour; the others are grey."""

KNOWN: Final = "yellow"
"""Colour of a run that passes with failures that the gate does not count."""


def document(run: Run) -> dict[str, Any]:
    """Build the badge: the checked catalogue and server on the left, the result on the right."""
    word, _, _ = standing.closing(run)
    kind = "MCP security" if noun(run) == "threat" else "MCP"
    judged = [outcome for outcome in by_clause(run.verdicts).values() if outcome in _JUDGED]
    broken = judged.count(Outcome.FAIL)
    count = plural(len(judged), noun(run))
    theirs = sdk_failures(run)
    figures = [f"{one.figure} in {one.revision}" for one in kept(run, renamed) if one.figure]
    passed = run.conclusion is Conclusion.PASSED
    if run.conclusion in _COLORS and judged:
        word += f" but for {theirs}" if theirs and passed else ""
        if figures and noun(run) == "clause":
            word += f", {figures[-1]}"
        else:
            word += f", {broken} of {count} broken" if broken else f", {count}"
    color = _COLORS.get(run.conclusion, "lightgrey")
    if passed and (theirs or broken):
        color = "yellowgreen" if theirs else KNOWN
    return {
        "schemaVersion": 1,
        "label": f"{kind}: {cut(safe(standing.server(run)), NAMED)}",
        "message": word,
        "color": color,
        "isError": not passed,
    }


def render(run: Run) -> str:
    """Render the file."""
    return json.dumps(document(run), indent=2) + "\n"


_JUDGED: Final = set(Outcome) - {Outcome.UNSEEN, Outcome.BROKEN}
