"""A run as Markdown, for a job summary or a comment."""

import re
from collections.abc import Iterator
from typing import Final

from mcp_touchstone.report import clients, comparison, install, standing
from mcp_touchstone.report.digest import (
    again,
    by_clause,
    chapters,
    counts_text,
    excused,
    findings,
    noun,
    sdk_failures,
    starts,
    tally,
)
from mcp_touchstone.report.finding import SUMMARY, WORDS, Finding
from mcp_touchstone.report.text import cell, cut, plural, prose, window
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome, WireLine
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.version import __version__

ROOM: Final = 400_000
"""Characters given to findings in full; GitHub shows no job summary above one MiB."""

_LINE: Final = 600
"""Characters of a text of the server, or of the line that proves a finding."""

_ASIDE: Final = 160
"""Characters of another line of a conversation."""
_COLUMNS: Final = {
    **{str(outcome): word for outcome, word in WORDS.items()},
    "known": "known",
    "sdk": "in the SDK",
}


def render(run: Run) -> str:
    """Render the file."""
    return "\n".join(_lines(run)) + "\n"


def _lines(run: Run) -> Iterator[str]:
    word, _, rest = standing.closing(run)
    if answer := install.sentence(run):
        gap = " " * answer[1].startswith(" ")
        yield f"**{answer[0]}**{gap}{cell(answer[1])}\n"
    yield f"## {'MCP security' if noun(run) == 'threat' else 'MCP'}: {word}"
    yield ""
    yield f"{word}{prose(rest)}"
    yield ""
    spoken = ", ".join(run.subject.revisions) or "no revision"
    outcomes = list(by_clause(run.verdicts).values())
    judged = plural(len(outcomes) - outcomes.count(Outcome.UNSEEN), noun(run))
    yield f"Supports {spoken}. {judged} checked: {counts_text(tally(run), WORDS) or 'none'}."
    if said := standing.decision(run):
        yield f"\n{cell(said)}"
    if left := standing.unattacked(run):
        yield f"\n{cell(left)}"
    if run.trouble:
        yield f"\nNot everything could be checked: {cell(run.trouble)}"
    if excused(run):
        known = plural(sum(excused(run).values()), "failure")
        yield f"\n{cell(standing.file(run))} accepts {known}."
    if theirs := sdk_failures(run):
        yield f"\nNot counted: {cell(theirs)}, which a minimal program on the SDK has too."
    if run.since is not None:
        yield f"\n### Since {cell(run.since.old)}\n"
        yield from comparison.markdown(run.since)
    if run.locked is not None:
        yield f"\n### {cell(standing.since_lock(run))}\n"
        yield from (f"- **{kind}** {cell(text)}" for kind, text in standing.locked(run))
    yield from _abilities(run)
    yield from _chapters(run)
    yield from _tools(run)
    yield from _clients(run)
    yield from _costs(run)
    yield from _advisories(run)
    yield from _stale(run)
    yield from _findings(run)
    yield f"\nmcp-touchstone {__version__}, {starts(run)}, {run.execution.seconds:.1f} s"


def _chapters(run: Run) -> Iterator[str]:
    rows = chapters(run)
    if not rows:
        return
    columns = [key for key in _COLUMNS if any(row.counts[key] for row in rows)]
    yield ""
    yield f"| chapter | {' | '.join(_COLUMNS[key] for key in columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for row in rows:
        cells = [str(row.counts[key] or "") for key in columns]
        name = f"**{row.name}**" if row.counts[Outcome.FAIL] else row.name
        yield f"| {name} | {' | '.join(cells)} |"


def _abilities(run: Run) -> Iterator[str]:
    if not run.abilities:
        return
    yield f"\n### {install.TITLE}\n\n| ability | known | shown by |\n|---|---|---|"
    for row in install.rows(run):
        yield f"| {' | '.join(map(cell, row))} |"
    yield f"\n### {install.UNTRIED}\n"
    for text, way in install.untried(run):
        yield f"- {cell(text)}{f': `{way}`' if way else ''}"


def _tools(run: Run) -> Iterator[str]:
    rows = list(run.tools.rows())
    if rows:
        yield "\n### Tools\n"
    yield from (f"- {label}: {cell(text)}" for label, text in rows)


def _clients(run: Run) -> Iterator[str]:
    if run.clients.clients:
        yield f"\n### {clients.title(run)}\n"
    for level, label, text in clients.lines(run):
        yield f"{'  ' * level}- **{label}** {cell(text)}"


def _costs(run: Run) -> Iterator[str]:
    if run.budgets.name:
        yield "\n### Tokens\n"
        yield from (f"- {cell(line)}" for line in standing.costs(run))


def _advisories(run: Run) -> Iterator[str]:
    if run.advisories:
        yield "\n### Advisories\n"
        yield from (f"- **{state}** {cell(text)}" for state, text in standing.advisories(run))


def _stale(run: Run) -> Iterator[str]:
    if run.stale:
        yield f"\n### Entries that no longer apply in {cell(standing.file(run))}\n"
    for entry in run.stale:
        yield f"- `{entry.rule}` ({window(entry.revisions)}): {cell(entry.why)}"


def _findings(run: Run) -> Iterator[str]:
    found = findings(run, Outcome.FAIL, Outcome.BROKEN, Outcome.WARN, Outcome.NOTE)
    room = ROOM
    if found:
        yield "\n### Findings\n"
    for number, finding in enumerate(found):
        text = "\n".join(_finding(run, finding))
        room -= len(text)
        if room < 0:
            yield f"\n{len(found) - number} more findings are in the other reports."
            return
        yield text
    for finding in findings(run, Outcome.FAIL, Outcome.WARN, of_sdk=True):
        if finding.sdk is not None:
            yield (
                f"- {WORDS[finding.outcome]} of {cell(str(finding.sdk.sdk))}: "
                f"`{finding.clause.id}` ({window(finding.revisions)}); {cell(finding.sdk.remedy)}"
            )
    for finding in findings(run, *Outcome, known=True):
        yield (
            f"- known: `{finding.clause.id}` ({window(finding.revisions)}): {cell(finding.known)}"
        )


def _finding(run: Run, finding: Finding) -> Iterator[str]:
    clause, judgement = finding.clause, finding.judgement
    yield "<details>"
    yield (
        f"<summary><b>{WORDS[finding.outcome]}</b> <code>{clause.id}</code> ({clause.grade}, "
        f"{window(finding.revisions)})</summary>\n"
    )
    yield f"{cell(clause.statement)}\n"
    for label, lines in finding.rows(SUMMARY):
        if label == "specification":
            yield f"- {label}: {', '.join(f'<{link}>' for link in lines)}"
        else:
            text = ", ".join(lines)
            yield f"- {label}: {cell(cut(text, _LINE) if label == 'actual' else text)}"
    if judgement.wire:
        shown = [row for line in judgement.wire for row in _rows(line)]
        yield from _fenced("text", shown)
    if judgement.reproduction:
        yield from _fenced("sh", list(map(safe, judgement.reproduction.splitlines())))
    yield from _fenced("sh", [safe(again(run, finding))])
    yield "\n</details>\n"


def _fenced(language: str, lines: list[str]) -> Iterator[str]:
    """Yield the lines in a fence that nothing in them can close."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"\n{fence}{language}"
    yield from lines
    yield fence


def _rows(line: WireLine) -> Iterator[str]:
    """Yield a line of the conversation, and the HTTP request or response that carried it."""
    mark = ">" if line.guilty else " "
    most = _LINE if line.guilty else _ASIDE
    yield f"{mark} {line.n:>4} {line.arrow} {cut(safe(line.text), most)}"
    if line.http:
        yield f"         {cut(safe(line.http), _ASIDE)}"
