"""Keep what JSON reports say of servers: ``python scripts/witnesses.py REPORTS_DIR``.

The rows are in ``witnesses.jsonl``; the site makes the page of witnesses from them.

A report is a ``NAME.json`` of ``mcp-touchstone check --json``, with a ``NAME.label`` beside it: one
line with the server and its version. ``NAME-http.json`` and ``NAME-http-MODE.json`` are of the same
server over HTTP; they list only what ``NAME.json`` does not have. The reason for a finding is the
``decision`` of its clause.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.clause import Catalogue
from mcp_touchstone.catalog.loader import load

DATA = Path(__file__).with_name("witnesses.jsonl")
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
keeps what this page shows of the reports: for each server the revisions, the number of judged
clauses, and each failure and warning with the line that proves it and the decision. On
server-everything four tools that are not annotated read-only were named too:
`--call trigger-elicitation-request`, `--call trigger-url-elicitation`,
`--call trigger-sampling-request` and `--call simulate-research-query`.

The runs over HTTP have the option `--http 'http://127.0.0.1:{port}/mcp'`, and the command contains
`{port}`. The minimal servers are in `tests/witnesses`; *stateless* and *json* are their modes.
Those that want tokens were judged with `--issuer mock --scope read`. A section about a run over
HTTP lists only what the run over stdio did not find. Findings about `Origin`, the address,
authorization and what belongs to other callers (the chapters `http/origin` and
`http/authorization`, `streams-replay-own` and `sessions-id-unique`) and those of attacks are not
listed and not counted here, for any server.
"""


Row = dict[str, Any]
Verdicts = list[Row]
Findings = dict[tuple[str, str], Verdicts]


def pages() -> dict[str, str]:
    """Make the page for the site."""
    rows = map(json.loads, DATA.read_text("utf-8").splitlines())
    return {"witnesses.md": "\n".join(page(rows, load().catalogue)) + "\n"}


def page(rows: Iterable[Row], catalogue: Catalogue) -> Iterator[str]:
    """Write the page."""
    yield INTRO
    yield "| server | revisions | judged | fail | warn | note |"
    yield "|---|---|---|---|---|---|"
    servers: list[tuple[Row, list[Row]]] = []
    for row in rows:
        if "server" in row:
            servers.append((row, []))
            words = ("server", "revisions", "judged", "fail", "warn", "note")
            yield "| " + " | ".join(str(row[word]) for word in words) + " |"
        else:
            servers[-1][1].append(row)
    for server, found in servers:
        yield f"\n## {server['server']}\n"
        for row in found:
            word = "FAIL" if row["outcome"] == "fail" else row["outcome"]
            yield f"**{word} `{row['clause']}`** in {row['revisions']}\n"
            yield f"Expected: {row['expected']}. Actual: {code(row['actual'])}\n"
            yield from (f"    {line}\n" for line in row["wire"])
            yield f"{catalogue[row['clause']].decision}\n"
        if not found:
            yield "Nothing to report.\n"
        if again := [f"`{clause}`" for clause in server["stdio"]]:
            yield f"As over stdio: {', '.join(again)}.\n"


def distilled(reports: dict[str, tuple[str, Row]], catalogue: Catalogue) -> Iterator[Row]:
    """Yield a row for each server, and behind it one for each failure and warning."""
    for name, (label, report) in reports.items():
        counts = counted(report, catalogue)
        twin = reports.get(name.partition(HTTP)[0]) if HTTP in name else None
        known = grouped(twin[1], catalogue) if twin is not None else {}
        groups = grouped(report, catalogue)
        yield {
            "server": label,
            "revisions": ", ".join(report["revisions"]["spoken"]),
            "judged": sum(counts.values()) - counts["unseen"],
            **{word: counts[word] for word in ("fail", "warn", "note")},
            "stdio": [clause for _, clause in sorted(groups.keys() & known.keys())],
        }
        yield from findings(groups, known)


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
    """Return how many clauses have each outcome."""
    return Counter(gravest(listed(report, catalogue)).values())


def gravest(verdicts: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the most severe outcome of each clause in its revisions."""
    gravest_last = sorted(verdicts, key=lambda one: -ORDER.index(one["outcome"]))
    return {one["clause"]: one["outcome"] for one in gravest_last}


def grouped(report: dict[str, Any], catalogue: Catalogue) -> Findings:
    """Return each failure and warning with the verdicts of its revisions."""
    groups: Findings = {}
    for verdict in listed(report, catalogue):
        if verdict["outcome"] in {"fail", "warn"}:
            groups.setdefault((verdict["outcome"], verdict["clause"]), []).append(verdict)
    return groups


def findings(groups: Findings, known: Findings) -> Iterator[Row]:
    """Yield each failure and warning that is not known once, with all its revisions."""
    for (outcome, clause), verdicts in sorted(groups.items()):
        if (outcome, clause) in known:
            continue
        judgement = next(j for j in verdicts[-1]["judgements"] if j["outcome"] == outcome)
        arrows = {"client": "→", "server": "←", "event": "·"}
        yield {
            "outcome": outcome,
            "clause": clause,
            "revisions": ", ".join(verdict["revision"] for verdict in verdicts),
            "expected": placeless(judgement["expected"]),
            "actual": placeless(judgement["actual"])[:SHOWN],
            "wire": [
                f"{arrows[line['from']]} {placeless(line['text'])[:SHOWN]}"
                for line in judgement["wire"]
                if line["guilty"]
            ],
        }


def placeless(text: str) -> str:
    """Replace the path of the throw-away folder."""
    return re.sub(r"(?<!:)(?<!:/)/[^\s\"]*?/mcp-touc(?:hstone-\w+)?", "{world}", text)


def code(text: str) -> str:
    """Quote text of a server for Markdown."""
    clean = "".join(c if c.isprintable() else "?" for c in text).replace("`", "'")
    return f"`{clean}`"


def main(directory: str) -> int:
    """Read the reports and write the rows; return 1 if a finding has no decision."""
    reports = {
        path.stem: (
            path.with_suffix(".label").read_text("utf-8").strip(),
            json.loads(path.read_text("utf-8")),
        )
        for path in sorted(Path(directory).glob("*.json"))
    }
    catalogue = load().catalogue
    rows = [*distilled(reports, catalogue)]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    DATA.write_text("".join(lines), encoding="utf-8", newline="\n")
    return int(any(not catalogue[row["clause"]].decision for row in rows if "clause" in row))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
