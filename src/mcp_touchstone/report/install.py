"""The answer to "may I install this?" as reports show it: abilities, and what was not tried."""

from collections.abc import Iterator

from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.report.text import plural
from mcp_touchstone.results.abilities import Known
from mcp_touchstone.results.advice import Advice, Word, advice
from mcp_touchstone.results.run import Run

TITLE = "What it can do by design"
UNTRIED = "Not tried"

LOOKS = {Word.NO_FINDING: "good", Word.DO_NOT: "bad", Word.NOT_JUDGED: "unknown"}
"""Word -> the class of its colour; the others are between good and bad."""


def sentence(run: Run) -> tuple[str, str] | None:
    """Return the word of a security report, and the rest of its sentence; None for another one."""
    found = advice(run)
    return None if found is None else (str(found.word), _rest(found))


def _rest(found: Advice) -> str:
    return str(found).removeprefix(found.word)


def rows(run: Run) -> Iterator[tuple[str, str, str]]:
    """Yield each ability, how it is known, and what shows it."""
    for one in run.abilities:
        yield str(one.power), str(one.known), one.text


def untried(run: Run) -> Iterator[tuple[str, str]]:
    """Yield what was not tried, and the option that would try it; empty if none would."""
    for one in run.abilities:
        if one.known is Known.NOT_TRIED or (one.known is Known.DECLARED and one.option):
            left = "not tried" if one.known is Known.NOT_TRIED else "only declared"
            yield f"{one.power}: {one.text or left}", one.option
    counts: dict[str, set[str]] = {}
    threats = {v.clause.id for v in run.verdicts if isinstance(v.clause, Threat)}
    for row in run.absent:
        if row.clause not in threats and ": --" in row.why:
            counts.setdefault(row.why, set()).add(row.clause)
    for why, ids in counts.items():
        what, _, way = why.rpartition(": ")
        yield f"{plural(len(ids), 'threat')}: {what}", way
    for name in run.subject.unbound:
        yield (
            f"tool {name}: it was called with paths, and no effect on files was seen",
            "--bindings",
        )
