"""Keep what JSON reports say of attacked servers: ``python scripts/attacked.py REPORTS_DIR``.

The rows are in ``attacked.jsonl``; the site makes the page from them.

The folder has three files for each server: ``NAME.json`` (``check --suite security --json``),
``NAME.recon.json`` (``recon --json``) and ``NAME.label``. The label has one line with the name and
the release, one with the SDK, and further lines that quote limits from the server's documentation.
The folder ``advisories`` has a ``PACKAGE-RELEASE.json`` for each release below.

The page lists no finding in a release without a fixed release.
"""

import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_touchstone.advisories.table import by_name

DATA = Path(__file__).with_name("attacked.jsonl")
WIDTH = 110

INTRO = """\
# Servers under attack

The [security suite](guides/security.md) was run on released servers with file tools, each in the
newest release of the day. None was configured, except for its folder:
`mcp-touchstone check --suite security --sandbox bwrap -- COMMAND {root}`, or with `--cwd {root}` or
`--env NAME={root}`. `python scripts/attacked.py DIR` keeps what this page shows of the reports.
*Payloads* counts the payloads that reach their target on an unguarded server and had no effect
here. The seconds were measured on two cores that did other work too.
"""

PRIVATE = """\
The page was made anew in November 2026 with `--sandbox bwrap`. Each finding, warning and note was
read with its effect. **This page lists no finding in a released package without a fixed release**,
and does not say which servers have one. It lists what a server documents about itself, and what was
fixed.

Against the page before, outside the sandbox, more threats are judged: sizes and names of files
outside, planted repositories, URLs. One note fewer (`crowds-confirmed`) depends on the order of
concurrent calls. Two threats that could not be judged on
some servers (`annotations-read-only`, `storage-full`) were faults of mcp-touchstone and are
corrected.
"""

ADVISED = """\
## Releases with published advisories

Each release was installed as its users installed it at the time, started without configuration,
and judged:

```
npm install @modelcontextprotocol/server-filesystem@RELEASE
mcp-touchstone check --suite security --select traversal --select links -- \\
    node node_modules/@modelcontextprotocol/server-filesystem/dist/index.js {root}

pip install mcp-server-git==RELEASE 'mcp<2'     # 2025.12.18: and GitPython==3.1.46
mcp-touchstone check --suite security --select traversal --select links --select injection -- \\
    mcp-server-git --repository {root}
```

*Flagged* means that the named threats failed because of the advisory. *Cleared* means that none
of them failed.

| advisory | fault | flagged in | by | cleared in |
|---|---|---|---|---|"""

NOTES = """\
The tool schemas of the older file servers name no arguments if npm installs today's libraries
beside them; mcp-touchstone found their bindings by guessing and calling. Git tools were bound in
repositories that were made for the run: a file name in a log, status or diff is a listing. Later
releases of GitPython refuse paths outside, so CVE-2026-27735 shows only with a release of that
time.
"""

NOTED_HEAD = """\
## The notes

A note is no failure: the server never promised the behaviour, or no text requires it. Each note
was compared with the transcript and is true of its server. With `--promise` most of them would
count.

| threat | servers | observation | decision |
|---|---|---|---|"""

COLUMNS = ("server", "sdk", "bound", "judged", "not_applicable", "payloads", "seconds")
HEAD = """\
| server | SDK | bound without configuration | judged | not applicable | payloads | seconds |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Advisory:
    """A published advisory, and the threats that must fail before the fix and pass after it."""

    id: str
    package: str
    tool: str
    threats: tuple[str, ...]
    flagged: tuple[str, ...]
    cleared: str


FILES, GIT = "server-filesystem", "mcp-server-git"
ADVISORIES = (
    Advisory(
        "CVE-2025-53110",
        FILES,
        "",
        ("traversal-sibling",),
        ("0.6.2", "2025.3.28"),
        "2025.7.1",
    ),
    Advisory(
        "CVE-2025-53109",
        FILES,
        "",
        ("links-read", "links-write"),
        ("0.6.2", "2025.3.28"),
        "2025.7.1",
    ),
    Advisory(
        "CVE-2025-68143",
        GIT,
        "git_init",
        ("links-write", "traversal-two-readings"),
        ("2025.7.1",),
        "2025.9.25",
    ),
    Advisory(
        "CVE-2025-68144",
        GIT,
        "git_checkout",
        ("injection-options",),
        ("2025.7.1", "2025.9.25", "2025.11.25"),
        "2025.12.18",
    ),
    Advisory(
        "CVE-2025-68145",
        GIT,
        "git_status",
        ("traversal-absolute", "links-read"),
        ("2025.7.1", "2025.9.25", "2025.11.25"),
        "2025.12.18",
    ),
    Advisory(
        "CVE-2026-27735",
        GIT,
        "git_add",
        ("traversal-dotdot", "traversal-expansion"),
        ("2025.12.18",),
        "2026.1.14",
    ),
)


@dataclass(frozen=True, slots=True)
class Noted:
    """What the notes and warnings about one threat are, and what was decided."""

    threat: str
    seen: str
    decision: str


NOTED = (
    Noted(
        "deny-direct",
        "files of the default deny list (`.git/config`, `.env`, `node_modules`) are read or"
        " created by their plain names",
        "by design: no deny list was promised. A server that denies some of these names can list"
        " them in `deny`",
    ),
    Noted(
        "deny-alias",
        "a file that is refused by its plain name is read through a link",
        "a fault if the list is a promise: with the names of the server as `deny`, it fails",
    ),
    Noted(
        "deny-write-only",
        "files in `bin` are changed or created",
        "by design: a tool that edits files edits build output too",
    ),
    Noted(
        "crowds-whole",
        "a file that several calls write at once contains parts of several contents",
        "true; it affects only clients that do not wait, and whole writes were not promised",
    ),
    Noted(
        "crowds-confirmed",
        "all of eight concurrent edits are confirmed, and one is in the file",
        "the same; a model believes that it made the lost edits",
    ),
    Noted(
        "storage-full",
        "a write on a full disk leaves a part of the new content",
        "true: the server writes in place, or the file is new. Whole writes were not promised. A"
        " server that writes another file and renames it has no such note",
    ),
    Noted(
        "patches-edits",
        "of several edits in one call the first is applied, and a later one does not fit",
        "true: the tool applies edits one by one. Whole writes were not promised",
    ),
    Noted(
        "secrets-errors",
        "a refusal contains the absolute path to which a link leads",
        "true and minor: the call did not name that path, but redaction was not promised",
    ),
    Noted(
        "messages-early",
        "a call before `initialize` creates a file or a folder",
        "by design: clients should not do so, and no revision requires that servers refuse it",
    ),
    Noted(
        "load-stderr",
        "(a warning) calls are not answered any more when nobody reads stderr and its pipe is full",
        "true: each failing call is logged, and writing blocks. Clients that do not read stderr are"
        " rare, so the severity is low",
    ),
)
"""One entry for each threat with a note or a warning in the reports; a missing one is an error."""

WITHHELD = {"repositories-hooks", "stats-names"}
"""Threats whose warnings are findings in releases without a fixed release."""


Row = dict[str, Any]


def pages() -> dict[str, str]:
    """Make the page for the site."""
    *rows, total = map(json.loads, DATA.read_text("utf-8").splitlines())
    return {"attacked.md": "\n".join(page(rows, total)).rstrip() + "\n"}


def page(rows: list[Row], total: Row) -> Iterator[str]:
    """Write the page."""
    yield INTRO
    yield HEAD
    for row in rows:
        yield "| " + " | ".join(str(row[word]) for word in COLUMNS) + " |"
    judged, unasked = sum(row["judged"] for row in rows), total["broken"]
    failed = f", {unasked} times it could not be judged (a call without an answer, for example)"
    yield (
        f"\n{len(rows)} servers, {judged} times a threat was judged: {total['pass']} times the "
        f"attack had no effect{failed if unasked else ''}.\n"
    )
    yield PRIVATE
    yield "## Documented limits\n"
    for row in rows:
        yield from (wrapped(f"- **{row['server']}**: {line}") for line in row["limits"])
    yield ""
    yield NOTED_HEAD
    yield from noted(total["notes"])
    yield ""
    yield ADVISED
    for advisory in ADVISORIES:
        by = ", ".join(f"`{threat}`" for threat in advisory.threats)
        where = f" through `{advisory.tool}`" if advisory.tool else ""
        flagged = f"{advisory.package} {', '.join(advisory.flagged)}"
        cells = [advisory.id, by_name()[advisory.id].title, flagged, by + where, advisory.cleared]
        yield "| " + " | ".join(cells) + " |"
    yield "\n" + NOTES


def distilled(folder: Path) -> Iterator[Row]:
    """Yield a row for each server, and at the end one for all together."""
    total, notes = Counter[str](), Counter[str]()
    for path in sorted(folder.glob("*.json")):
        if ".recon" in path.name:
            continue
        report = json.loads(path.read_text("utf-8"))
        recon = json.loads(path.with_suffix(".recon.json").read_text("utf-8"))
        name, sdk, *own = path.with_suffix(".label").read_text("utf-8").strip().split("\n")
        counts = report["summary"]["clauses"]
        total.update({word: counts[word] for word in ("pass", "broken")})
        seen = [v["clause"] for v in report["verdicts"] if v["outcome"] in {"note", "warn"}]
        notes.update(clause for clause in seen if clause not in WITHHELD)
        unseen = len(report["not_applicable"]) + counts["unseen"]
        judged = sum(counts.values()) - counts["unseen"]
        seconds = round(report["summary"]["seconds"])
        cells = (name, sdk, bound(recon), judged, unseen, payloads(report), seconds)
        yield dict(zip(COLUMNS, cells, strict=True)) | {"limits": own}
    for advisory in ADVISORIES:
        proven(advisory, folder / "advisories")
    yield {**total, "notes": notes}


def wrapped(item: str) -> str:
    """Wrap one item of a list."""
    return textwrap.fill(item, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def noted(notes: dict[str, int]) -> Iterator[str]:
    """Write the decision about each noted threat; exit if one has no decision."""
    if unread := notes.keys() ^ {one.threat for one in NOTED}:
        raise SystemExit(
            f"NOTED and the reports name different threats: {', '.join(sorted(unread))}"
        )
    for one in NOTED:
        yield f"| `{one.threat}` | {notes[one.threat]} | {one.seen} | {one.decision} |"


def bound(recon: dict[str, Any]) -> str:
    """List the operations that were found, each with the number of its tools."""
    tools: dict[str, set[str]] = {}
    for binding in recon["bindings"] or ():
        tools.setdefault(binding["operation"], set()).add(binding["tool"] or binding["uri"])
    return ", ".join(f"{name} {len(found)}" for name, found in tools.items()) or "nothing"


def payloads(report: dict[str, Any]) -> int:
    """Count the live payloads without an effect."""
    texts = [v["judgements"][0]["actual"] for v in report["verdicts"] if v["outcome"] == "pass"]
    return sum(int(n) for text in texts for n in re.findall(r"(\d+) live payloads", text))


def proven(advisory: Advisory, folder: Path) -> None:
    """Exit unless the reports agree with the table of advisories."""
    for release in (*advisory.flagged, advisory.cleared):
        text = (folder / f"{advisory.package}-{release}.json").read_text("utf-8")
        verdicts = {v["clause"]: v for v in json.loads(text)["verdicts"]}
        for threat in advisory.threats:
            verdict = verdicts.get(threat, {"outcome": "left out", "judgements": []})
            fell = verdict["outcome"] == "fail"
            seen = any(advisory.tool in one["actual"] for one in verdict["judgements"])
            if fell != (release in advisory.flagged) or (fell and not seen):
                msg = f"{advisory.id}: {threat} is {verdict['outcome']} in {release}"
                raise SystemExit(msg)


if __name__ == "__main__":
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in distilled(Path(sys.argv[1]))]
    DATA.write_text("".join(lines), encoding="utf-8", newline="\n")
    pages()
