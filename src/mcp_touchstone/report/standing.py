"""Where a run stands against its baseline, for a person at a terminal."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mcp_touchstone.report import comparison
from mcp_touchstone.report.digest import excused, findings, noun
from mcp_touchstone.report.text import cut, plural, window
from mcp_touchstone.results import Run
from mcp_touchstone.verdict import Outcome

if TYPE_CHECKING:
    from mcp_touchstone.baseline import Renewal

Line = Callable[..., None]
GREY: Final = "dim"
AMBER: Final = "yellow"
RED: Final = "bold red"
MAGENTA: Final = "bold magenta"
GREEN: Final = "green"


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
            say("  ", finding.clause.id, ("  " + window(finding.revisions), GREY))
            say("      ", cut(finding.known, width - 6))


def stale(run: Run, say: Line) -> None:
    """Print the entries of the baseline that are no longer true."""
    for entry in run.stale:
        say("")
        say(("STALE", RED), "  ", (entry.rule, "bold"), ("  " + window(entry.revisions), GREY))
        say("      ", f"{entry.why}: take it out of {file(run)}")


def file(run: Run) -> str:
    """Name the baseline of a run."""
    return "" if run.settled is None else run.settled.file


def passed(run: Run) -> tuple[str, str]:
    """Say why the gate is open: in two words, and in a sentence."""
    failures = findings(run, Outcome.FAIL)
    if run.since is not None:
        return comparison.verdict(run.since), f": nothing new since {run.since.old}"
    if excused(run):
        return "nothing new", f": what fails is known, for the reasons in {file(run)}"
    if failures:
        floor = " ".join(run.floor.words)
        return "passed", f": {plural(len(failures), 'failure')} below --fail-on {floor}"
    if noun(run) == "threat":
        return "withstood", ": no attack had an effect"
    return "conforming", f": no {noun(run)} is broken"


def closing(run: Run) -> tuple[str, str, str]:
    """Say where the server stands: a word or two, their style, and what to do next."""
    failed = sorted(filter(run.counts, run.verdicts), key=lambda verdict: verdict.outcome.rank)
    if run.interrupted:
        done = "; what was judged until then is shown" if run.verdicts else " before it was judged"
        return "interrupted", "bold", done
    if failed:
        told = "not safe" if noun(run) == "threat" else "not conforming"
        word = told if run.since is None else "worse than before"
        return word, RED, f": read a rule with `mcp-touchstone explain {failed[0].clause.id}`"
    if run.stale:
        mend = ": --update-baseline takes out what is mended"
        return "the baseline is no longer true", RED, mend
    if run.trouble or run.unjudged:
        if "no answer within" in run.trouble:
            rest = ": does the command wait for something? --timeout gives it longer"
        elif run.trouble:
            rest = ": start the command by hand and see what it says"
        else:
            rest = " everything: -v shows the conversations"
        return "could not judge", MAGENTA, rest
    good, rest = passed(run)
    warned = "; --strict counts the warnings" if run.count(Outcome.WARN) else ""
    return good, GREEN, rest + warned


def since(run: Run, say: Line) -> None:
    """Print what changed since an older report."""
    if run.since is not None:
        say("")
        for line in list(comparison.text(run.since))[:-1]:
            say(line)


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
