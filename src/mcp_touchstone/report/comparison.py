"""A comparison of two reports: as lines for a person, as Markdown, as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from mcp_touchstone.report.text import cell, cut, plural, prose, window
from mcp_touchstone.results.comparison import Change, ComparedFinding, Comparison, grouped
from mcp_touchstone.runtime.printable import safe

WIDTH: Final = 100
SHOWN: Final = (
    Change.NEW,
    Change.NEWLY,
    Change.OPEN,
    Change.SOMETIMES,
    Change.FIXED,
    Change.GONE,
    Change.UNSEEN,
    Change.UNASKED,
)
_LOUD: Final = {Change.NEW, Change.FIXED}


def document(comparison: Comparison) -> dict[str, Any]:
    """Build the JSON; a report has it as ``since``."""
    return {
        "old": comparison.old,
        "exit_code": comparison.exit_code,
        "counts": {str(change): comparison.count(change) for change in SHOWN},
        "items": [{**asdict(item), "change": str(item.change)} for item in comparison.items],
    }


def text(comparison: Comparison, *, verbose: bool = False) -> Iterator[str]:
    """Render lines: new findings in full, others by name, the verdict last."""
    yield from _heading(comparison)
    for change in SHOWN:
        found = grouped(comparison.of(change))
        if found:
            yield ""
            yield f"{_word(change)}  {plural(len(found), 'finding')}"
        for item, revisions in found:
            yield f"  {item.rule}  {window(revisions)}  ({_turn(item)})"
            if item.actual and (verbose or change is Change.NEW):
                yield f"      {cut(safe(item.actual), WIDTH - 6)}"
    yield ""
    counts = [f"{comparison.count(c)} {c}" for c in SHOWN if comparison.count(c)]
    yield f"since {comparison.old}: {', '.join(counts) or 'no finding then or now'}"
    yield verdict(comparison)


def verdict(comparison: Comparison) -> str:
    """Return one line: whether the new report is worse than the old one."""
    worse = dict.fromkeys(item.rule for item in comparison.items if item.counts)
    if comparison.exit_code == 1:
        first = f"`mcp-touchstone explain {next(iter(worse))}` describes the first rule"
        return f"worse than before: {first}"
    if comparison.exit_code:
        return f"not checked: {comparison.trouble or 'a rule that was checked before'}"
    better = comparison.count(Change.FIXED)
    return "better than before" if better else "not worse than before"


def markdown(comparison: Comparison) -> Iterator[str]:
    """Render it as Markdown, for a job summary or a comment."""
    counts = [f"{comparison.count(c)} {c}" for c in SHOWN if comparison.count(c)]
    yield f"**{prose(verdict(comparison))}** ({', '.join(counts) or 'no finding'})"
    yield ""
    if comparison.items:
        yield "| | rule | revisions | was | now | |"
        yield "|---|---|---|---|---|---|"
    for change in SHOWN:
        for item, revisions in grouped(comparison.of(change)):
            word = f"**{change}**" if change in _LOUD else str(change)
            was, now = cell(item.was), cell(item.now)
            cells = (word, prose(f"`{item.rule}`"), cell(window(revisions)), was, now)
            yield f"| {' | '.join(cells)} | {cell(cut(item.actual, WIDTH))} |"


def _heading(comparison: Comparison) -> Iterator[str]:
    was, now = comparison.servers
    if was != now:
        yield f"server   {safe(was) or 'unnamed'} → {safe(now) or 'unnamed'}"
    if not comparison.same:
        yield "note     the command differs from that of the older report"


def _word(change: Change) -> str:
    return change.upper() if change in _LOUD else str(change)


def _turn(item: ComparedFinding) -> str:
    return item.now if item.was == item.now else f"was {item.was}, now {item.now}"
