"""Write docs/attacked.md from JSON reports: ``python docs/attacked.py REPORTS_DIR``.

For each server ``NAME.json`` (``check --suite security --json``), ``NAME.recon.json`` (``recon
--json``) and ``NAME.label``: one line with name and release, one with the SDK, and one with what
its own documentation says of its limits, where that decides a finding. In ``advisories/`` a
``PACKAGE-RELEASE.json`` for each release below.

What was found in a release that nothing newer mends is not written here.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

INTRO = """\
# Servers under attack

The [security suite](security.md) run on released servers with file tools that nobody here wrote,
each in the newest release of the day, with nothing configured but how it is told of its folder:
`mcp-touchstone check --suite security -- COMMAND {root}`, or with `--cwd {root}` or `--env
NAME={root}`. This page was written from the reports by `python docs/attacked.py DIR`.
Payloads are those live ones that had no effect; seconds were taken on two cores that did other
work as well.
"""

PRIVATE = """\
Every finding, warning and note was read in the wire of these reports, and most of those that have
a script were run again; for four servers the source was read as well. **Findings in released
packages that no newer release mends are not listed here**, nor can it be told from this page which
servers have some. What is listed is what a server says of itself, and what was mended.
"""

LATER = """\
Two threats came later and were fired alone at these, but for PyPI mcp-filesystem and
mcp-text-editor, with `--select traversal-opened --select resources-fetched`: nothing was fetched,
and where nothing from outside came back, nothing there had been opened either.
"""

ADVISED = """\
## Releases with published advisories

Each was installed as its users installed it then, started with nothing configured, and judged:

```
npm install @modelcontextprotocol/server-filesystem@RELEASE
mcp-touchstone check --suite security --select traversal --select links -- \\
    node node_modules/@modelcontextprotocol/server-filesystem/dist/index.js {root}

pip install mcp-server-git==RELEASE 'mcp<2'     # 2025.12.18: and GitPython==3.1.46
mcp-touchstone check --suite security --select traversal --select links --select injection -- \\
    mcp-server-git --repository {root}
```

*Flagged* means that the threats named failed by the cause of the advisory, *cleared* that none of
them did.

| advisory | what it was | flagged in | by | cleared in |
|---|---|---|---|---|"""

NOTES = """\
The tool schemas of the older file servers name no arguments with the libraries npm installs beside
them today: bindings were found by guessing and calling. Git tools are bound in repositories made
for the run: what names a file of one in its log, status or diff is a listing. Later releases of
GitPython refuse paths outside by themselves, so CVE-2026-27735 shows only with one of its time.
"""

NOTED_HEAD = """\
## What the notes were

A note is no finding: nobody promised what it speaks of, or no text asks for it. Each was read with
the wire beside it and is true of its server. With `--promise` most of them would count.

| threat | servers | what was seen | decision |
|---|---|---|---|"""

HEAD = """\
| server | SDK | bound without configuration | judged | do not apply | payloads | seconds |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Advisory:
    """What was published and mended, and the threats that have to tell both releases apart."""

    id: str
    package: str
    what: str
    tool: str
    threats: tuple[str, ...]
    flagged: tuple[str, ...]
    cleared: str


FILES, GIT = "server-filesystem", "mcp-server-git"
ADVISORIES = (
    Advisory(
        "CVE-2025-53110", FILES, "a folder whose name begins with that of the root", "",
        ("traversal-sibling",), ("0.6.2", "2025.3.28"), "2025.7.1",
    ),
    Advisory(
        "CVE-2025-53109", FILES, "links that lead outside", "",
        ("links-read", "links-write"), ("0.6.2", "2025.3.28"), "2025.7.1",
    ),
    Advisory(
        "CVE-2025-68143", GIT, "repositories made anywhere", "git_init",
        ("links-write", "traversal-two-readings"), ("2025.7.1",), "2025.9.25",
    ),
    Advisory(
        "CVE-2025-68144", GIT, "options in a revision", "git_checkout",
        ("injection-options",), ("2025.7.1", "2025.9.25", "2025.11.25"), "2025.12.18",
    ),
    Advisory(
        "CVE-2025-68145", GIT, "repositories beside the one that is allowed", "git_status",
        ("traversal-absolute", "links-read"),
        ("2025.7.1", "2025.9.25", "2025.11.25"), "2025.12.18",
    ),
    Advisory(
        "CVE-2026-27735", GIT, "files from outside taken into the repository", "git_add",
        ("traversal-dotdot", "traversal-expansion"), ("2025.12.18",), "2026.1.14",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Noted:
    """What the notes and warnings of one threat were when somebody read them all."""

    threat: str
    seen: str
    decision: str


NOTED = (
    Noted(
        "deny-direct",
        "files that many deny lists have (`.git/config`, `.env`, `node_modules`) are read, or made,"
        " by their plain names",
        "by design: no list was promised, and the names are ours. Some deny a few of these names:"
        " that is their list, and `deny` of the promise names it",
    ),
    Noted(
        "deny-alias",
        "what is refused by its plain name is read through a link",
        "a hole, if the list is a promise: judged by the names the server denies, it fails",
    ),
    Noted(
        "deny-write-only",
        "files in `bin` are changed, or something is made there",
        "by design: what edits files edits build output, unless it says otherwise",
    ),
    Noted(
        "crowds-whole",
        "a file that several calls write at once holds parts of several contents",
        "true, and of consequence only to clients that do not wait: nobody promised whole writes",
    ),
    Noted(
        "crowds-confirmed",
        "of eight edits at once all are confirmed and one is in the file",
        "the same; the edits that were lost are those a model believes it made",
    ),
    Noted(
        "storage-full",
        "a write without room leaves what there was room for, of the new content",
        "true: written in place, where the old bytes are lost, or only where the file is new."
        " Nobody promised whole writes; who writes beside the file and renames is not noted",
    ),
    Noted(
        "secrets-errors",
        "a refusal names the absolute place that a link leads to",
        "true and slight: the call did not name that place, but nobody promised redaction",
    ),
    Noted(
        "messages-early",
        "a file or a folder is made by a call before `initialize`",
        "by design: clients should not do it, and no revision says that servers must refuse it",
    ),
    Noted(
        "load-stderr",
        "(a warning) calls are no longer answered once nobody reads stderr and its pipe is full",
        "true: each failing call is logged, and writing waits. Clients that leave stderr unread are"
        " rare, so it is low",
    ),
)
"""One for each threat that these reports note or warn of: the page is not written without."""


def page(folder: Path) -> Iterator[str]:
    """Write the page."""
    yield INTRO
    yield HEAD
    said, judged, held, unasked, notes = [], 0, 0, 0, Counter[str]()
    paths = [path for path in sorted(folder.glob("*.json")) if ".recon" not in path.name]
    for path in paths:
        report = json.loads(path.read_text("utf-8"))
        recon = json.loads(path.with_suffix(".recon.json").read_text("utf-8"))
        name, sdk, *own = path.with_suffix(".label").read_text("utf-8").strip().split("\n")
        counts = report["summary"]["clauses"]
        all_of = sum(counts.values()) - counts["unseen"]
        judged += all_of
        held += counts["pass"]
        unasked += counts["broken"]
        notes.update(v["clause"] for v in report["verdicts"] if v["outcome"] in {"note", "warn"})
        said += [f"- **{name}**: {line}" for line in own]
        row = [
            name, sdk, bound(recon), all_of, len(report["not_applicable"]) + counts["unseen"],
            payloads(report), round(report["summary"]["seconds"]),
        ]  # fmt: skip
        yield "| " + " | ".join(map(str, row)) + " |"
    failed = f", {unasked} times it could not be judged (a call never answered, for one)"
    yield (
        f"\n{len(paths)} servers, {judged} times a threat was judged: {held} times it was "
        f"withstood{failed if unasked else ''}.\n"
    )
    yield PRIVATE
    yield LATER
    yield "## What servers say of their limits\n"
    yield "\n".join(said) + "\n"
    yield NOTED_HEAD
    yield from noted(notes)
    yield ""
    yield ADVISED
    for advisory in ADVISORIES:
        proven(advisory, folder / "advisories")
        by = ", ".join(f"`{threat}`" for threat in advisory.threats)
        where = f" through `{advisory.tool}`" if advisory.tool else ""
        flagged = f"{advisory.package} {', '.join(advisory.flagged)}"
        row = [advisory.id, advisory.what, flagged, by + where, advisory.cleared]
        yield "| " + " | ".join(row) + " |"
    yield "\n" + NOTES


def noted(notes: Counter[str]) -> Iterator[str]:
    """Say what was decided of each threat that was noted; fail where nobody has read it."""
    if unread := notes.keys() ^ {one.threat for one in NOTED}:
        raise SystemExit(
            f"read these notes, or take out what was said: {', '.join(sorted(unread))}"
        )
    for one in NOTED:
        yield f"| `{one.threat}` | {notes[one.threat]} | {one.seen} | {one.decision} |"


def bound(recon: dict[str, Any]) -> str:
    """Name the operations that were found, each with the number of tools that do it."""
    tools: dict[str, set[str]] = {}
    for binding in recon["bindings"] or ():
        tools.setdefault(binding["operation"], set()).add(binding["tool"] or binding["uri"])
    return ", ".join(f"{name} {len(found)}" for name, found in tools.items()) or "nothing"


def payloads(report: dict[str, Any]) -> int:
    """Count the live payloads that had no effect."""
    told = [v["judgements"][0]["actual"] for v in report["verdicts"] if v["outcome"] == "pass"]
    return sum(int(n) for text in told for n in re.findall(r"(\d+) live payloads", text))


def proven(advisory: Advisory, folder: Path) -> None:
    """Fail unless the reports say what the page is about to say."""
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
    text = "\n".join(page(Path(sys.argv[1]))).rstrip() + "\n"
    (HERE / "attacked.md").write_text(text, encoding="utf-8", newline="\n")
