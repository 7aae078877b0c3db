"""Write docs/witnesses.md from JSON reports: ``python docs/witnesses.py REPORTS_DIR``.

A report is ``NAME.json`` written by ``mcp-touchstone check --json`` and beside it ``NAME.label``,
one line that says what was judged and in which version. Why a finding is right is read from the
clause: its ``decision`` in the TOML.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_touchstone.clause import Catalogue
from mcp_touchstone.loader import load

HERE = Path(__file__).parent
SHOWN = 240

INTRO = """\
# Witnesses

Servers nobody here wrote (and minimal ones on the official SDKs), judged by
`mcp-touchstone check --json NAME.json -- COMMAND`; this page was written from those reports by
`python docs/witnesses.py DIR`. For each: the revisions found, the clauses judged, and each
failure and warning with the line of wire that proves it and why it is right. In server-everything
four tools that are not annotated read-only were named too: `--call trigger-elicitation-request
--call trigger-url-elicitation --call trigger-sampling-request --call simulate-research-query`.
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
    """Write each failure and warning, the same one of several revisions once."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for verdict in report["verdicts"]:
        if verdict["outcome"] in {"fail", "warn"}:
            groups.setdefault((verdict["outcome"], verdict["clause"]), []).append(verdict)
    for (outcome, clause), verdicts in sorted(groups.items()):
        judgement = next(j for j in verdicts[-1]["judgements"] if j["outcome"] == outcome)
        revisions = ", ".join(verdict["revision"] for verdict in verdicts)
        word = "FAIL" if outcome == "fail" else outcome
        yield f"**{word} `{clause}`** in {revisions}\n"
        yield f"expected {placeless(judgement['expected'])}; {code(judgement['actual'])}\n"
        for line in judgement["wire"]:
            if line["guilty"]:
                arrow = {"client": "→", "server": "←", "event": "·"}[line["from"]]
                yield f"    {arrow} {placeless(line['text'])[:SHOWN]}\n"
        yield f"{catalogue[clause].decision or '(not settled)'}\n"


def placeless(text: str) -> str:
    """Leave out where the throw-away folder of that run lay."""
    return re.sub(r"(?<!:)(?<!:/)/[^\s\"]*?/mcp-touc(?:hstone-\w+)?", "{world}", text)


def code(text: str) -> str:
    """Quote text of a server for Markdown."""
    shown = placeless(text)[:SHOWN]
    clean = "".join(c if c.isprintable() else "?" for c in shown).replace("`", "'")
    return f"`{clean}`"


def main(directory: str) -> int:
    """Read the reports and write the page; 1 when a finding has no decision."""
    reports = [
        (path.with_suffix(".label").read_text("utf-8").strip(), json.loads(path.read_text("utf-8")))
        for path in sorted(Path(directory).glob("*.json"))
    ]
    text = "\n".join(page(reports, load().catalogue)) + "\n"
    (HERE / "witnesses.md").write_text(text, encoding="utf-8", newline="\n")
    return int("(not settled)" in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
