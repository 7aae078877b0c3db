"""Where a run stands against its baseline, for a person at a terminal."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mcp_touchstone import revision as rev
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.text import cut, plural
from mcp_touchstone.results import Run
from mcp_touchstone.verdict import Outcome

if TYPE_CHECKING:
    from mcp_touchstone.baseline import Renewal

Line = Callable[..., None]
GREY: Final = "dim"
AMBER: Final = "yellow"
RED: Final = "bold red"


def known(run: Run, say: Line, width: int) -> None:
    """Print what the baseline excuses, with its reasons."""
    if run.settled is None:
        return
    excused = findings(run, *Outcome, known=True)
    if excused:
        count = plural(len({finding.clause.id for finding in excused}), "known failure")
        say("")
        say(("known", AMBER), "  ", (f"{count}, excused by {run.settled.file}", "bold"))
        for finding in excused:
            say("  ", finding.clause.id, ("  " + where(finding.revisions), GREY))
            say("      ", cut(finding.known, width - 6))


def stale(run: Run, say: Line) -> None:
    """Print the entries of the baseline that are no longer true."""
    for entry in run.stale:
        say("")
        say(("STALE", RED), "  ", (entry.rule, "bold"), ("  " + where(entry.revisions), GREY))
        say("      ", f"{entry.why}: take it out of {file(run)}")


def file(run: Run) -> str:
    """Name the baseline of a run."""
    return "" if run.settled is None else run.settled.file


def where(revisions: tuple[str, ...]) -> str:
    """Name revisions, all of them by one word."""
    return "all revisions" if revisions in {(), rev.ALL} else ", ".join(revisions)


def renewed(renewal: "Renewal") -> list[str]:
    """Say what became of a baseline that was written."""
    new = renewal.baseline
    lines = [f"  + {entry}" for entry in renewal.added]
    lines += [f"  - {entry}" for entry in renewal.removed]
    kept = plural(len(new.entries), "known failure")
    told = f"wrote {new.name}: {kept}"
    if renewal.added:
        told += f", {len(renewal.added)} new; say in each reason why it is accepted"
    return [told, *lines]
