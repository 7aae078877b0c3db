"""Write the sections of a report: counts, findings, clauses that were not judged, advice."""

import io
import re
import textwrap
from collections.abc import Iterator
from typing import Final

from rich.console import Console

from mcp_touchstone.report import clients, install, standing
from mcp_touchstone.report.digest import (
    ChapterCount,
    by_clause,
    chapters,
    counts_text,
    findings,
    hint,
    noun,
    starts,
    tally,
)
from mcp_touchstone.report.finding import BRIEF, Finding
from mcp_touchstone.report.sheet import LABEL, STYLES, WORDS, Sheet
from mcp_touchstone.report.text import cut, plural
from mcp_touchstone.results.run import CaseResult, Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.timing import Cost

LISTED = 10
"""New files of the user's working folder that are listed."""


def report(sheet: Sheet, run: Run) -> None:
    """Print the whole report."""
    _install(sheet, run)
    if not sheet.quiet:
        _chapters(sheet, run)
    for finding in findings(run, Outcome.FAIL):
        sheet.show(run, finding)
    _broken(sheet, run)
    if not sheet.quiet:
        _lightly(sheet, run)
        standing.of_sdk(run, sheet.say, sheet.width, verbose=sheet.verbose)
        standing.known(run, sheet.say, sheet.width)
        standing.since(run, sheet.say)
    standing.stale(run, sheet.say)
    _locked(sheet, run)
    if not sheet.quiet:
        _lost(sheet, run)
        _tool_use(sheet, run)
    _clients(sheet, run)
    _costs(sheet, run)
    _advisories(sheet, run)
    _dropped(sheet, run)
    for note in (*standing.troubles(run), *run.execution.notes):
        sheet.say("")
        sheet.row("note", note, STYLES[Outcome.WARN])
    if not sheet.quiet:
        _abilities(sheet, run)
    _decision(sheet, run)
    _close(sheet, run)


def _install(sheet: Sheet, run: Run) -> None:
    """Print the answer to "may I install this?"."""
    said = install.sentence(run)
    if said is not None:
        sheet.say("")
        sheet.say((said[0], "bold"), sheet.shown(said[1]), wrap=True)


def _locked(sheet: Sheet, run: Run) -> None:
    """Print what changed since the lock."""
    if run.locked is None:
        return
    state, _, rest = standing.since_lock(run).partition(" ")
    style = STYLES[Outcome.FAIL if run.locked.changes else Outcome.PASS]
    sheet.say("")
    sheet.say((state.upper(), style), "  ", (rest, "bold"))
    for kind, text in standing.locked(run):
        sheet.row(kind, text)


def _abilities(sheet: Sheet, run: Run) -> None:
    """Print what a server can do by design; with ``-v`` what was not tried, too."""
    if not run.abilities:
        return
    sheet.say("")
    sheet.say((install.TITLE, "bold"))
    wide = max(len(row[0]) for row in install.rows(run)) + 2
    for power, known, text in install.rows(run):
        head = power
        shown = sheet.shown(f"{known}{': ' if text else ''}{text}")
        for line in textwrap.wrap(shown, max(20, sheet.width - wide - 2)):
            sheet.say("  ", (f"{head:<{wide}}", "dim"), line)
            head = ""
    found = list(install.untried(run))
    if sheet.verbose:
        for number, (text, way) in enumerate(found):
            sheet.row("" if number else "not tried", f"{text}{f' ({way})' if way else ''}")
    elif found:
        ways = dict.fromkeys(way for _text, way in found if way)
        more = f"; these options try more: {', '.join(ways)}" if ways else ""
        sheet.row("not tried", f"{plural(len(found), 'point')}, which -v lists{more}")


def _chapters(sheet: Sheet, run: Run) -> None:
    """Print the counts of the chapters with a failure or a warning; of all with ``-v``."""
    rows = chapters(run)
    plain = [] if sheet.verbose else [row for row in rows if not row.troubled]
    plain = plain if len(plain) > 1 else []
    shown = [row for row in rows if row not in plain]
    if plain:
        name = f"{plural(len(plain), 'other chapter' if shown else 'chapter')}"
        totals = {key: sum(row.counts[key] for row in plain) for key in _COLUMNS}
        shown.append(ChapterCount(name, totals))
    for number, row in enumerate(shown):
        sheet.say("") if not number else None
        sheet.say(
            f"  {row.name:<22}",
            *(
                (f"{count:>4} {word}", style)
                for key, (word, style) in _COLUMNS.items()
                if (count := row.counts[key])
            ),
        )


_COLUMNS: Final = {
    **{
        str(one): (WORDS[one], STYLES[one])
        for one in (
            Outcome.PASS,
            Outcome.WARN,
            Outcome.NOTE,
            Outcome.FAIL,
            Outcome.BROKEN,
            Outcome.UNSEEN,
        )
    },
    "known": ("known", "dim"),
    "sdk": ("in the SDK", "dim"),
}
"""Key of a tally -> its word and style, in the order of the columns."""


def _broken(sheet: Sheet, run: Run) -> None:
    groups: dict[str, list[Finding]] = {}
    for finding in findings(run, Outcome.BROKEN):
        groups.setdefault(finding.judgement.actual, []).append(finding)
    for why, group in groups.items():
        sheet.say("")
        sheet.say(
            ("BROKEN", STYLES[Outcome.BROKEN]),
            "  ",
            (f"{plural(len(group), noun(run))} could not be checked", "bold"),
        )
        sheet.row("reason", why)
        names = [finding.clause.id for finding in group]
        shown = names if sheet.verbose else names[:6]
        more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
        sheet.row(f"{noun(run)}s", ", ".join(shown) + more)
        sheet.wire(group[0].judgement.wire)
    if run.trouble:
        sheet.say("")
        sheet.say(
            ("BROKEN", STYLES[Outcome.BROKEN]),
            "  ",
            (f"the {run.subject.kind} {standing.incomplete(run)}", "bold"),
        )
        sheet.row("reason", run.trouble)
        sheet.words(run.subject.stderr)
        for line in hint(run):
            sheet.say("  ", line)


def _lightly(sheet: Sheet, run: Run) -> None:
    kinds = [Outcome.WARN, *([Outcome.NOTE] if sheet.verbose else [])]
    for finding in findings(run, *kinds):
        if sheet.verbose or run.floor.counts(finding.clause, finding.outcome):
            sheet.show(run, finding)
            continue
        sheet.say("")
        head = WORDS[finding.outcome]
        sheet.say((head, STYLES[finding.outcome]), "  ", (finding.clause.id, "bold"))
        sheet.rows(finding, BRIEF)
        for line in finding.judgement.wire:
            if line.guilty:
                text = cut(safe(line.text), sheet.width - LABEL - 4)
                sheet.say(
                    "  ", (f"{'line ' + str(line.n):<{LABEL}}", "dim"), f"{line.arrow} {text}"
                )
                if line.http:
                    sheet.row("", line.http, "dim")
        sheet.script(finding)


def _lost(sheet: Sheet, run: Run) -> None:
    """List the scenarios that ended the server, except where a finding says so."""
    lost: dict[str, list[CaseResult]] = {}
    for one in run.lost:
        found = (j for j in one.judgements if j.outcome in {Outcome.FAIL, Outcome.WARN})
        if not any(one.left in judgement.actual for judgement in found):
            lost.setdefault(one.planned.case.id, []).append(one)
    for case, results in lost.items():
        sheet.say("")
        sheet.say(("server lost", STYLES[Outcome.WARN]), "  ", (case, "bold"))
        sheet.row("ended by", results[-1].left)
        sheet.row("revision", ", ".join(one.planned.revision for one in results))


def _tool_use(sheet: Sheet, run: Run, option: str = "--call") -> None:
    """List the tools that were called, and those that were not judged."""
    for number, (label, text) in enumerate(run.tools.rows(option)):
        if not number:
            sheet.say("")
        sheet.row("" if number else "tools", f"{label}: {text}")


def _clients(sheet: Sheet, run: Run) -> None:
    """Print what the chosen clients do with the server."""
    if run.clients.clients:
        sheet.say("")
        sheet.say((clients.title(run), "bold"))
    found = list(clients.lines(run, 1000 if sheet.verbose else clients.SHOWN))
    wide = max((2 * level + len(label) for level, label, _text in found), default=0) + 2
    for level, label, text in found:
        head = f"{'  ' * level}{label}"
        shown = sheet.shown(text)
        for line in textwrap.wrap(shown, max(20, sheet.width - wide - 2)):
            sheet.say("  ", (f"{head:<{wide}}", "dim"), (line, "" if level else "bold"))
            head = ""


def _costs(sheet: Sheet, run: Run) -> None:
    """Print what the lists and results cost a model, if somebody asked for it."""
    for number, line in enumerate(standing.costs(run) if run.budgets.name else ()):
        if not number:
            sheet.say("")
        sheet.row("" if number else "tokens", line)


def _advisories(sheet: Sheet, run: Run) -> None:
    """Print the advisories on the packages of the server, if somebody asked for them."""
    for number, (state, text) in enumerate(standing.advisories(run)):
        if not number:
            sheet.say("")
            sheet.say(("advisories", "bold"))
        sheet.row(state, text)


def _decision(sheet: Sheet, run: Run) -> None:
    """Print the threats by severity, and what they mean for a decision."""
    said = "" if sheet.quiet else standing.decision(run)
    if said:
        sheet.say("")
        for grade, ids in standing.severities(run).items():
            sheet.row(grade, ", ".join(ids))
        sheet.row("in short", said)


def _dropped(sheet: Sheet, run: Run) -> None:
    """List the files that are new in the user's working folder."""
    if run.execution.dropped:
        sheet.say("")
        sheet.say(
            ("new files", STYLES[Outcome.WARN]),
            "  in your working folder, of the server or of another program",
        )
        for name in run.execution.dropped[:LISTED]:
            sheet.say(f"  {name}")
        if len(run.execution.dropped) > LISTED:
            sheet.say(f"  and {len(run.execution.dropped) - LISTED} more")


def _close(sheet: Sheet, run: Run, options: str = "--") -> None:
    """Print what was counted and the next step.

    Args:
        options: how an option begins where the reader gives it.
    """
    outcomes = list(by_clause(run.verdicts).values())
    judged = [outcome for outcome in outcomes if outcome is not Outcome.UNSEEN]
    revisions = {verdict.revision for verdict in run.verdicts}
    sheet.say("")
    if not judged:
        sheet.say(*_next(run, options), wrap=True)
        return
    parts: list[str | tuple[str, str]] = []
    counts = tally(run)
    for outcome in (Outcome.FAIL, Outcome.BROKEN, Outcome.WARN, Outcome.NOTE, Outcome.PASS):
        count = counts[outcome]
        if count or outcome is Outcome.PASS:
            parts += [", " if parts else "", (f"{count} {WORDS[outcome]}", STYLES[outcome])]
    excused = {key: counts[key] for key in ("known", "sdk") if counts[key]}
    parts += [f", {counts_text(excused, WORDS)}"] if excused else []
    seen = {v.clause.id for v in run.verdicts}
    absent = len({row.clause for row in run.absent if not row.by_choice} - seen)
    left = len({row.clause for row in run.absent if row.by_choice} - seen)
    unseen = outcomes.count(Outcome.UNSEEN)
    sheet.say(
        f"{plural(len(judged), noun(run))} checked in {plural(len(revisions), 'revision')}: ",
        *parts,
        f"   ({starts(run)}, {run.execution.seconds:.1f} s)",
        wrap=True,
    )
    notes = {f.clause.id for f in findings(run, Outcome.NOTE)} if not sheet.verbose else ()
    if notes and not sheet.quiet:
        head = f"{plural(len(notes), 'note')}, which -v shows in full"
        sheet.say((f"{head}: {', '.join(sorted(notes))}", STYLES[Outcome.NOTE]), wrap=True)
    if sheet.verbose and run.execution.cost is not None:
        sheet.say((_spent(run.execution.cost), "dim"), wrap=True)
    why = {"need a feature the server lacks": absent, "were never triggered": unseen}
    reasons = ", ".join(_agree(count, reason) for reason, count in why.items() if count)
    apart = {
        f"{plural(absent + unseen, noun(run))} not applicable": absent + unseen,
        f"{plural(left, noun(run))} not selected": left,
    }
    line = ", ".join(text for text, count in apart.items() if count)
    if line and not sheet.quiet:
        more = f" ({reasons})" if reasons and sheet.verbose else ""
        sheet.say((line + more, "dim"), wrap=True)
    if short := [v for v in run.verdicts if any(j.left for j in v.judgements)]:
        reason = "because a tool took too long or ended the server"
        sentence = _agree(len(short), f"were not attacked in full, {reason}")
        sheet.say((f"{sentence}; -v lists the requests not sent", STYLES[Outcome.NOTE]), wrap=True)
    sheet.say(*_next(run, options), wrap=True)


def _next(run: Run, options: str) -> Iterator[str | tuple[str, str]]:
    word, style, rest = standing.closing(run)
    yield (word, style)
    yield _OPTION.sub(options, rest)


def _spent(cost: Cost) -> str:
    """Return the time spent on each kind of work."""
    return (
        f"{cost.wall:.1f} s: server start-up {cost.startup:.1f}, replies {cost.answers:.1f}, "
        f"time-outs {cost.silence:.1f}, mcp-touchstone {cost.ours:.1f}"
    )


PYTEST: Final = "--mcp-"
"""How an option begins for pytest."""

_OPTION: Final = re.compile(r"(?<=[ (])--(?=[a-z])")

_SINGULAR = {"need": "needs", "were": "was"}


def _agree(count: int, predicate: str) -> str:
    """Return a count before a predicate, with its verb in the singular for one."""
    verb, _, rest = predicate.partition(" ")
    return f"{count} {_SINGULAR[verb] if count == 1 else verb} {rest}"


def in_full(run: Run, finding: Finding, width: int = 100) -> str:
    """Render one finding as plain text, as the terminal shows it."""
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False)
    sheet = Sheet(console)
    with console.capture() as capture:
        sheet.show(run, finding)
    return capture.get().strip("\n")


def in_short(run: Run, width: int = 100) -> str:
    """Render known failures, stale entries, tools, counts and the next step for pytest."""
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False)
    sheet = Sheet(console)
    with console.capture() as capture:
        how = "-rx lists each, --mcp-strict counts each"
        standing.of_sdk(run, sheet.say, sheet.width, verbose=sheet.verbose, how=how)
        standing.known(run, sheet.say, sheet.width)
        standing.stale(run, sheet.say)
        _tool_use(sheet, run, f"{PYTEST}call")
        _clients(sheet, run)
        _close(sheet, run, PYTEST)
    return capture.get().strip("\n")
