"""Write docs/witnesses.md from JSON reports: ``python scripts/witnesses.py REPORTS_DIR``.

A report is a ``NAME.json`` of ``mcp-touchstone check --json``, with a ``NAME.label`` beside it: one
line with the server and its version. The reason for a finding is the ``decision`` of its clause.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.clause import Catalogue
from mcp_touchstone.catalog.loader import load

PAGE = Path(__file__).resolve().parent.parent / "docs" / "witnesses.md"
SHOWN = 240

INTRO = """\
# Witnesses

These servers were written by other people, except for minimal ones on the official SDKs. Each was
judged with `mcp-touchstone check --json NAME.json -- COMMAND`. `python scripts/witnesses.py DIR`
writes this page from the reports. For each server it lists the revisions, the number of judged
clauses, and each failure and warning with the line that proves it and the decision. On
server-everything four tools that are not annotated read-only were named too:
`--call trigger-elicitation-request`, `--call trigger-url-elicitation`,
`--call trigger-sampling-request` and `--call simulate-research-query`.
"""


def page(reports: list[tuple[str, dict[str, Any]]], catalogue: Catalogue) -> Iterator[str]:
    """Write the page."""
    yield INTRO
    yield "| server | revisions | judged | fail | warn | note |"
    yield "|---|---|---|---|---|---|"
    for label, report in reports:
        counts = report["summary"]["clauses"]
        judged = sum(counts.values()) - counts["unseen"]
        spoken = ", ".join(report["revisions"]["spoken"])
        row = [label, spoken, judged, counts["fail"], counts["warn"], counts["note"]]
        yield "| " + " | ".join(map(str, row)) + " |"
    for label, report in reports:
        yield f"\n## {label}\n"
        found = list(findings(report, catalogue))
        yield from found or ["Nothing to report.\n"]


def findings(report: dict[str, Any], catalogue: Catalogue) -> Iterator[str]:
    """Write each failure and warning once, with all its revisions."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for verdict in report["verdicts"]:
        if verdict["outcome"] in {"fail", "warn"}:
            groups.setdefault((verdict["outcome"], verdict["clause"]), []).append(verdict)
    for (outcome, clause), verdicts in sorted(groups.items()):
        judgement = next(j for j in verdicts[-1]["judgements"] if j["outcome"] == outcome)
        revisions = ", ".join(verdict["revision"] for verdict in verdicts)
        word = "FAIL" if outcome == "fail" else outcome
        yield f"**{word} `{clause}`** in {revisions}\n"
        yield f"Expected: {placeless(judgement['expected'])}. Actual: {code(judgement['actual'])}\n"
        for line in judgement["wire"]:
            if line["guilty"]:
                arrow = {"client": "→", "server": "←", "event": "·"}[line["from"]]
                yield f"    {arrow} {placeless(line['text'])[:SHOWN]}\n"
        yield f"{catalogue[clause].decision or '(not settled)'}\n"


def placeless(text: str) -> str:
    """Replace the path of the throw-away folder."""
    return re.sub(r"(?<!:)(?<!:/)/[^\s\"]*?/mcp-touc(?:hstone-\w+)?", "{world}", text)


def code(text: str) -> str:
    """Quote text of a server for Markdown."""
    shown = placeless(text)[:SHOWN]
    clean = "".join(c if c.isprintable() else "?" for c in shown).replace("`", "'")
    return f"`{clean}`"


def main(directory: str) -> int:
    """Read the reports and write the page; return 1 if a finding has no decision."""
    reports = [
        (path.with_suffix(".label").read_text("utf-8").strip(), json.loads(path.read_text("utf-8")))
        for path in sorted(Path(directory).glob("*.json"))
    ]
    text = "\n".join(page(reports, load().catalogue)) + "\n"
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return int("(not settled)" in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
