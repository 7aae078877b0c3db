"""The table of docs/guides/gateway.md: what real gateways pass on, by our rules.

Judge a gateway with ``mcp-touchstone gateway --json REPORT.json``, distil the report to a row of
``gateways.jsonl``, and write the table again::

    python -m scripts.gateways add 'my-gateway 1.0' 'my-gateway -p {port} -- {server}' REPORT.json
    python -m scripts.gateways

Several reports make one row: what a later one judges, with ``--select``, replaces the earlier. With
``more`` in place of ``add`` they replace what the row has of their rules.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from scripts.witnesses import gravest

ROWS: Final = Path(__file__).with_suffix(".jsonl")
PAGE: Final = Path(__file__).parents[1] / "docs" / "guides" / "gateway.md"
BEGIN: Final = "<!-- begin of the table: scripts/gateways.py writes it -->"
END: Final = "<!-- end of the table -->"
MARKS: Final = {"pass": "", "unseen": "not seen", "fail": "FAIL", "broken": "?"}
"""Outcome -> its mark; the others are their own."""
LEFT_OUT: Final = frozenset(
    f"gateway-{name}"
    for name in (
        "answers-own",
        "cache-private",
        "cancel-own",
        "lists-own",
        "messages-own",
        "origin",
        "questions-own",
        "redirect-credentials",
        "session-own",
        "sessions-ended",
        "streams-own",
        "token-own",
        "users-list",
    )
)
"""Clauses whose breach lets an attacker in. They are not in the table: authors are warned first."""


def distilled(name: str, command: str, report: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a report: the gravest outcome of each clause, in all revisions judged."""
    shown = [one for one in report["verdicts"] if one["clause"] not in LEFT_OUT]
    revisions = ", ".join(sorted({str(one["revision"]) for one in shown}))
    return {"name": name, "command": command, "revision": revisions, "verdicts": gravest(shown)}


def rows() -> list[dict[str, Any]]:
    """Return the rows, in the order of their names."""
    found = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    return sorted(found, key=lambda row: str(row["name"]))


def table() -> Iterator[str]:
    """Yield the lines of the tables: the gateways, and each clause that one of them breaks."""
    known = rows()
    yield "| | gateway | command | revision |"
    yield "|---|---|---|---|"
    for number, row in enumerate(known, 1):
        yield f"| {number} | {row['name']} | `{row['command']}` | {row['revision']} |"
    yield ""
    yield f"| clause | {' | '.join(str(number) for number in range(1, len(known) + 1))} |"
    yield "|---|" + "---|" * len(known)
    clauses = sorted({clause for row in known for clause in row["verdicts"]})
    kept = 0
    for clause in clauses:
        outcomes = [row["verdicts"].get(clause, "unseen") for row in known]
        if {*outcomes} <= {"pass", "unseen"}:
            kept += 1
            continue
        yield f"| {clause} | {' | '.join(MARKS.get(one, one) for one in outcomes)} |"
    yield ""
    yield f"None of them breaks one of the other {kept} clauses. An empty cell is a pass."


def page(text: str) -> str:
    """Return the text of the page with the present table."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([f"{before}{BEGIN}", "", *table(), "", f"{END}{after}"])


def main(words: list[str]) -> None:
    """Add a row, or write the table."""
    if words[:1] in (["add"], ["more"]):
        name, command, *paths = words[1:]
        reports = [json.loads(Path(path).read_text("utf-8"))["verdicts"] for path in paths]
        found = {(one["clause"], one["revision"]): one for report in reports for one in report}
        new = distilled(name, command, {"verdicts": [*found.values()]})
        known = rows() if ROWS.exists() else []
        before: dict[str, Any] = next((row["verdicts"] for row in known if row["name"] == name), {})
        new["verdicts"] = {**(before if words[0] == "more" else {}), **new["verdicts"]}
        kept = [row for row in known if row["name"] != name]
        lines = [json.dumps(row, sort_keys=True) for row in (*kept, new)]
        ROWS.write_text("\n".join(lines) + "\n", "utf-8")
    else:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
