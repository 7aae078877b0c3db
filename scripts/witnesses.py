"""Write docs/witnesses.md from JSON reports: ``python scripts/witnesses.py REPORTS_DIR``.

A report is a ``NAME.json`` of ``mcp-touchstone check --json``, with a ``NAME.label`` beside it: one
line with the server and its version. ``NAME-http.json`` and ``NAME-http-MODE.json`` are of the same
server over HTTP; they list only what ``NAME.json`` does not have. The reason for a finding is the
``decision`` of its clause.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.clause import Catalogue
from mcp_touchstone.catalog.loader import load

PAGE = Path(__file__).resolve().parent.parent / "docs" / "witnesses.md"
SHOWN = 240
HTTP = "-http"

UNLISTED_CHAPTERS = {"http/origin", "http/authorization"}
UNLISTED = {"streams-replay-own", "sessions-id-unique"}
"""Rules whose findings could be used against a released server."""

ORDER = ("fail", "broken", "warn", "note", "pass", "unseen")

INTRO = """\
# Witnesses

These servers were written by other people, except for minimal ones on the official SDKs. Each was
judged with `mcp-touchstone check --json NAME.json -- COMMAND`. `python scripts/witnesses.py DIR`
writes this page from the reports. For each server it lists the revisions, the number of judged
clauses, and each failure and warning with the line that proves it and the decision. On
server-everything four tools that are not annotated read-only were named too:
`--call trigger-elicitation-request`, `--call trigger-url-elicitation`,
`--call trigger-sampling-request` and `--call simulate-research-query`.

The runs over HTTP have the option `--http 'http://127.0.0.1:{port}/mcp'`, and the command contains
`{port}`. The minimal servers are in `tests/witnesses`; *stateless* and *json* are their modes. A
section about a run over HTTP lists only what the run over stdio did not find. Findings about
`Origin`, the address, authorization and what belongs to other callers (the chapters `http/origin`
and `http/authorization`, `streams-replay-own` and `sessions-id-unique`) and those of attacks are
not listed and not counted here, for any server.
"""


Verdicts = list[dict[str, Any]]
Findings = dict[tuple[str, str], Verdicts]


def page(reports: dict[str, tuple[str, dict[str, Any]]], catalogue: Catalogue) -> Iterator[str]:
    """Write the page."""
    yield INTRO
    yield "| server | revisions | judged | fail | warn | note |"
    yield "|---|---|---|---|---|---|"
    for label, report in reports.values():
        counts = counted(report, catalogue)
        judged = sum(counts.values()) - counts["unseen"]
        spoken = ", ".join(report["revisions"]["spoken"])
        row = [label, spoken, judged, counts["fail"], counts["warn"], counts["note"]]
        yield "| " + " | ".join(map(str, row)) + " |"
    for name, (label, report) in reports.items():
        yield f"\n## {label}\n"
        twin = reports.get(name.partition(HTTP)[0]) if HTTP in name else None
        known = grouped(twin[1], catalogue) if twin is not None else {}
        groups = grouped(report, catalogue)
        yield from [*findings(groups, known, catalogue)] or ["Nothing to report.\n"]
        if again := [f"`{clause}`" for _, clause in sorted(groups.keys() & known.keys())]:
            yield f"As over stdio: {', '.join(again)}.\n"


def listed(report: dict[str, Any], catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    """Yield the verdicts that may be published."""
    for verdict in report["verdicts"]:
        clause = catalogue[verdict["clause"]]
        if (
            f"{clause.group}/{clause.chapter}" not in UNLISTED_CHAPTERS
            and clause.id not in UNLISTED
        ):
            yield verdict


def counted(report: dict[str, Any], catalogue: Catalogue) -> Counter[str]:
    """Return how many clauses have each outcome; a clause has the most severe of its revisions."""
    worst: dict[str, str] = {}
    for verdict in listed(report, catalogue):
        both = verdict["outcome"], worst.get(verdict["clause"], ORDER[-1])
        worst[verdict["clause"]] = min(both, key=ORDER.index)
    return Counter(worst.values())


def grouped(report: dict[str, Any], catalogue: Catalogue) -> Findings:
    """Return each failure and warning with the verdicts of its revisions."""
    groups: Findings = {}
    for verdict in listed(report, catalogue):
        if verdict["outcome"] in {"fail", "warn"}:
            groups.setdefault((verdict["outcome"], verdict["clause"]), []).append(verdict)
    return groups


def findings(groups: Findings, known: Findings, catalogue: Catalogue) -> Iterator[str]:
    """Write each failure and warning that is not known once, with all its revisions."""
    for (outcome, clause), verdicts in sorted(groups.items()):
        if (outcome, clause) in known:
            continue
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
    reports = {
        path.stem: (
            path.with_suffix(".label").read_text("utf-8").strip(),
            json.loads(path.read_text("utf-8")),
        )
        for path in sorted(Path(directory).glob("*.json"))
    }
    text = "\n".join(page(reports, load().catalogue)) + "\n"
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return int("(not settled)" in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
