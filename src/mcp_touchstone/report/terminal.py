"""A run on the terminal: counts for each chapter, each failure in full, and the next step."""

import contextlib
import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rich.console import Console
from rich.text import Text

from mcp_touchstone import __version__
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.report import clients, standing
from mcp_touchstone.report.digest import (
    again,
    by_clause,
    chapters,
    counts_text,
    findings,
    hint,
    noun,
    starts,
    tally,
)
from mcp_touchstone.report.finding import BRIEF, DETAILS, FULL, Finding
from mcp_touchstone.report.progress import Heartbeat, Progress
from mcp_touchstone.report.text import NAMELESS, cut, last_lines, masked, middle, plural
from mcp_touchstone.results.events import Event, Learnt, Met
from mcp_touchstone.results.run import PlannedCase, Run
from mcp_touchstone.results.verdict import Outcome, WireLine
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.timing import Cost

STYLES = {
    Outcome.FAIL: "bold red",
    Outcome.BROKEN: "bold magenta",
    Outcome.WARN: "yellow",
    Outcome.NOTE: "cyan",
    Outcome.PASS: "green",
    Outcome.UNSEEN: "dim",
}
WORDS = {
    Outcome.FAIL: "FAIL",
    Outcome.BROKEN: "BROKEN",
    Outcome.WARN: "warn",
    Outcome.NOTE: "note",
    Outcome.PASS: "pass",
    Outcome.UNSEEN: "not seen",
}
DECLARE = "--sdk 'NAME VERSION' names it"
LABEL = 11
WIDEST = 120
LONGEST = 1200
"""Characters of a value that are printed; the middle of a longer one is left out."""


LISTED = 10
"""New files of the user's working folder that are listed."""


class Terminal:
    """Prints the progress of a run, and its report.

    Args:
        console: where to print.
        verbose: print conversations and all findings.
        quiet: print failures and the last lines only.
        environment: variables whose secrets are hidden.
    """

    def __init__(
        self,
        console: Console,
        *,
        verbose: bool = False,
        quiet: bool = False,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.console = console
        self._environment = environment
        self.verbose = verbose
        self.quiet = quiet
        self._status = console.status("starting the server") if console.is_terminal else None
        self._progress = Progress(console.get_time)
        self._state = "starting the server"
        self._heartbeat = Heartbeat(console.get_time, _to_stderr, lambda: self._state)

    @property
    def width(self) -> int:
        """Number of columns used: those of the terminal, at most ``WIDEST``."""
        return min(self.console.width, WIDEST)

    def say(self, *parts: str | tuple[str, str], wrap: bool = False) -> None:
        """Print one line. A pair is text and its style; ``wrap`` breaks it at the width."""
        line = Text()
        for part in parts:
            text, style = (part, "") if isinstance(part, str) else part
            line.append(masked(safe(text), self._environment), style)
        if wrap:
            self.console.print(line, width=self.width, highlight=False)
        else:
            self.console.print(line, soft_wrap=True, highlight=False)

    # --- during the run

    def start(self, command: str, shelter: str = "") -> None:
        """Print the version, the command under test and its sandbox."""
        if not self.quiet:
            self.say(("mcp-touchstone ", "bold"), (__version__, "bold"), "  checks  ", command)
            if shelter:
                self._row("sandbox", shelter)
        if self._status:
            self._status.start()
        elif not self.quiet:
            self._heartbeat.start()

    def stop(self) -> None:
        """Remove the progress line."""
        self._heartbeat.stop()
        if self._status:
            self._status.stop()

    def on_event(self, event: Event) -> None:
        """Show an event of the runner."""
        if isinstance(event, Met):
            if not self.quiet:
                self.introduce(event.profile)
            self._show_progress("calling its tools, resources and prompts")
        elif isinstance(event, Learnt):
            for remark in event.profile.remarks:
                self._row("remark", remark, STYLES[Outcome.WARN])
        else:
            self._progress.on_event(event)
            self._show_progress(self._progress.text())

    def _show_progress(self, text: str) -> None:
        self._state = text
        if self._status:
            self._status.update(Text(safe(text), no_wrap=True, overflow="ellipsis"))

    def name(self, side: str, profile: ServerProfile) -> None:
        """Print the name of the judged side of recorded conversations, and its revisions."""
        if profile.spoken:
            self._row(side, profile.name)
            self._row("speaks", ", ".join(profile.spoken))

    def introduce(self, profile: ServerProfile) -> None:
        """Print the name of the server and the revisions it supports."""
        if not profile.spoken:
            return
        self._row("server", profile.name or NAMELESS)
        if not profile.sdk.needless:
            unknown = "" if profile.sdk.sdks else f": its faults count as yours; {DECLARE}"
            self._row("sdk", f"{profile.sdk}{unknown}")
        more = "" if profile.asked == rev.ALL else " (others not tried)"
        self._row("supports", ", ".join(profile.spoken) + more)
        silent = [revision for revision in profile.asked if revision not in profile.spoken]
        if silent:
            self._row("lacks", ", ".join(silent))

    # --- after the run

    def finish(self, run: Run) -> None:
        """Print the whole report."""
        self.stop()
        if not self.quiet:
            self._chapters(run)
        for finding in findings(run, Outcome.FAIL):
            self.show(run, finding)
        self._broken(run)
        if not self.quiet:
            self._lightly(run)
            standing.of_sdk(run, self.say, self.width)
            standing.known(run, self.say, self.width)
            standing.since(run, self.say)
        standing.stale(run, self.say)
        if not self.quiet:
            self._lost(run)
            self._tool_use(run)
        self._clients(run)
        self._costs(run)
        self._dropped(run)
        self._decision(run)
        self._close(run)

    def _row(self, label: str, text: str, style: str = "") -> None:
        text = masked(middle(safe(text), LONGEST), self._environment)
        gap = " " * max(0, len(label) + 1 - LABEL)
        lines = textwrap.wrap(text, max(30, self.width - LABEL - 2), initial_indent=gap) or [""]
        for number, line in enumerate(lines):
            self.say("  ", (f"{label if not number else '':<{LABEL}}", "dim"), (line, style))

    def _chapters(self, run: Run) -> None:
        if run.verdicts:
            self.say("")
        for chapter in chapters(run):
            parts: list[str | tuple[str, str]] = [f"  {chapter.name:<22}"]
            for outcome in (
                Outcome.PASS, Outcome.WARN, Outcome.NOTE, Outcome.FAIL, Outcome.BROKEN,
                Outcome.UNSEEN,
            ):  # fmt: skip
                count = chapter.counts.get(outcome)
                if count:
                    parts.append((f"{count:>4} {WORDS[outcome]}", STYLES[outcome]))
            self.say(*parts)

    def show(self, run: Run, finding: Finding) -> None:
        """Print one finding in full."""
        style = STYLES[finding.outcome]
        self.say("")
        self.say((WORDS[finding.outcome], style), "  ", (finding.clause.id, "bold"))
        self.say("")
        self._row(finding.clause.grade, finding.clause.statement)
        self._rows(finding, FULL)
        self._wire(finding.judgement.wire)
        if self.verbose:
            self._details(finding)
        self.say("  ", (f"{'again':<{LABEL}}", "dim"), again(run, finding))

    def _details(self, finding: Finding) -> None:
        for line in finding.judgement.reproduction.splitlines():
            self.say("    ", line)
        self._rows(finding, DETAILS)

    def _rows(self, finding: Finding, layout: Sequence[str]) -> None:
        for label, lines in finding.rows(layout, WORDS):
            for number, line in enumerate(lines):
                if label == "spec":  # an address is not wrapped
                    self.say("  ", (f"{label:<{LABEL}}", "dim"), line)
                else:
                    style = "bold" if label == "actual" and layout is FULL else ""
                    self._row("" if number else label, line, style)

    def _wire(self, lines: tuple[WireLine, ...]) -> None:
        if not lines:
            return
        self.say("")
        number = len(str(lines[-1].n))
        for line in lines:
            mark = "▸" if line.guilty else " "
            head = f"  {mark} {line.n:>{number}} {line.arrow} "
            style = "bold" if line.guilty else ("dim" if line.arrow == "·" else "")
            room = self.width - len(head)
            text = masked(middle(safe(line.text), LONGEST), self._environment)
            if self.verbose or line.guilty:
                pieces = textwrap.wrap(text, max(20, room), break_on_hyphens=False) or [""]
                pieces = pieces if self.verbose else pieces[:6]
            else:
                pieces = [cut(text, room)]
            for position, piece in enumerate(pieces):
                self.say((head if not position else " " * len(head), "dim"), (piece, style))
            if line.http:
                http = masked(middle(safe(line.http), LONGEST), self._environment)
                self.say(" " * len(head), (http if self.verbose else cut(http, room), "dim"))
        self.say("")

    def _broken(self, run: Run) -> None:
        groups: dict[str, list[Finding]] = {}
        for finding in findings(run, Outcome.BROKEN):
            groups.setdefault(finding.judgement.actual, []).append(finding)
        for why, group in groups.items():
            self.say("")
            self.say(
                ("BROKEN", STYLES[Outcome.BROKEN]),
                "  ",
                (f"{plural(len(group), noun(run))} could not be checked", "bold"),
            )
            self._row("reason", why)
            names = [finding.clause.id for finding in group]
            shown = names if self.verbose else names[:6]
            more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
            self._row(f"{noun(run)}s", ", ".join(shown) + more)
            self._wire(group[0].judgement.wire)
        if run.trouble:
            self.say("")
            self.say(
                ("BROKEN", STYLES[Outcome.BROKEN]),
                "  ",
                (f"the {run.judged} {standing.incomplete(run)}", "bold"),
            )
            self._row("reason", run.trouble)
            self._words(run.profile.stderr)
            for line in hint(run):
                self.say("  ", line)

    def _words(self, stderr: str) -> None:
        for number, line in enumerate(last_lines(stderr)):
            label = "stderr" if not number else ""
            self.say("  ", (f"{label:<{LABEL}}", "dim"), cut(safe(line), self.width - LABEL - 2))

    def _lightly(self, run: Run) -> None:
        kinds = [Outcome.WARN, *([Outcome.NOTE] if self.verbose else [])]
        for finding in findings(run, *kinds):
            if self.verbose or run.floor.counts(finding.clause, finding.outcome):
                self.show(run, finding)
                continue
            self.say("")
            head = WORDS[finding.outcome]
            self.say((head, STYLES[finding.outcome]), "  ", (finding.clause.id, "bold"))
            self._rows(finding, BRIEF)
            for line in finding.judgement.wire:
                if line.guilty:
                    text = cut(safe(line.text), self.width - LABEL - 4)
                    self.say(
                        "  ", (f"{'line ' + str(line.n):<{LABEL}}", "dim"), f"{line.arrow} {text}"
                    )

    def _lost(self, run: Run) -> None:
        """List the scenarios that ended the server, except where a finding says so."""
        lost: dict[str, list[PlannedCase]] = {}
        for slot in run.lost:
            found = (j for j in slot.judgements if j.outcome in {Outcome.FAIL, Outcome.WARN})
            if not any(slot.left in judgement.actual for judgement in found):
                lost.setdefault(slot.case.id, []).append(slot)
        for case, slots in lost.items():
            self.say("")
            self.say(("server lost", STYLES[Outcome.WARN]), "  ", (case, "bold"))
            self._row("ended by", slots[-1].left)
            self._row("revision", ", ".join(slot.revision for slot in slots))

    def _tool_use(self, run: Run, option: str = "--call") -> None:
        """List the tools that were called, and those that were not judged."""
        for number, (label, text) in enumerate(run.tools.rows(option)):
            if not number:
                self.say("")
            self._row("" if number else "tools", f"{label}: {text}")

    def _clients(self, run: Run) -> None:
        """Print what the chosen clients do with the server."""
        if run.clients.clients:
            self.say("")
            self.say((clients.title(run), "bold"))
        found = list(clients.lines(run, 1000 if self.verbose else clients.SHOWN))
        wide = max((2 * level + len(label) for level, label, _text in found), default=0) + 2
        for level, label, text in found:
            head = f"{'  ' * level}{label}"
            shown = masked(middle(safe(text), LONGEST), self._environment)
            for line in textwrap.wrap(shown, max(30, self.width - wide - 2)):
                self.say("  ", (f"{head:<{wide}}", "dim"), (line, "" if level else "bold"))
                head = ""

    def _costs(self, run: Run) -> None:
        """Print what the lists and results cost a model, if somebody asked for it."""
        for number, line in enumerate(standing.costs(run) if run.budgets.name else ()):
            if not number:
                self.say("")
            self._row("" if number else "tokens", line)

    def _decision(self, run: Run) -> None:
        """Print the threats by severity, and what they mean for a decision."""
        said = "" if self.quiet else standing.decision(run)
        if said:
            self.say("")
            for grade, ids in standing.severities(run).items():
                self._row(grade, ", ".join(ids))
            self._row("in short", said)

    def _dropped(self, run: Run) -> None:
        """List the files that are new in the user's working folder."""
        if run.dropped:
            self.say("")
            self.say(
                ("new files", STYLES[Outcome.WARN]),
                "  in your working folder, of the server or of another program",
            )
            for name in run.dropped[:LISTED]:
                self.say(f"  {name}")
            if len(run.dropped) > LISTED:
                self.say(f"  and {len(run.dropped) - LISTED} more")

    def _close(self, run: Run) -> None:
        outcomes = list(by_clause(run.verdicts).values())
        judged = [outcome for outcome in outcomes if outcome is not Outcome.UNSEEN]
        revisions = {verdict.revision for verdict in run.verdicts}
        self.say("")
        if not judged:
            self.say(*self._next(run), wrap=True)
            return
        parts: list[str | tuple[str, str]] = []
        counts = tally(run)
        for outcome in (Outcome.FAIL, Outcome.BROKEN, Outcome.WARN, Outcome.NOTE, Outcome.PASS):
            count = counts[outcome]
            if count or outcome is Outcome.PASS:
                parts += [", " if parts else "", (f"{count} {WORDS[outcome]}", STYLES[outcome])]
        excused = {key: counts[key] for key in ("known", "sdk") if counts[key]}
        parts += [f", {counts_text(excused, WORDS)}"] if excused else []
        self.say(
            f"{plural(len(judged), noun(run))} checked in {plural(len(revisions), 'revision')}: ",
            *parts,
            f"   ({starts(run)}, {run.seconds:.1f} s)",
            wrap=True,
        )
        notes = {f.clause.id for f in findings(run, Outcome.NOTE)} if not self.verbose else ()
        if notes and not self.quiet:
            head = f"{plural(len(notes), 'note')}, which -v shows in full"
            self.say((f"{head}: {', '.join(sorted(notes))}", STYLES[Outcome.NOTE]), wrap=True)
        seen = {v.clause.id for v in run.verdicts}
        if self.verbose and run.cost is not None:
            self.say((_spent(run.cost), "dim"), wrap=True)
        absent = len({row.clause for row in run.absent if not row.by_choice} - seen)
        left = len({row.clause for row in run.absent if row.by_choice} - seen)
        unseen = outcomes.count(Outcome.UNSEEN)
        why = {
            _agree(absent, "need a feature the server lacks"): absent,
            _agree(unseen, "were never triggered"): unseen,
        }
        if any(why.values()) and not self.quiet:
            reasons = ", ".join(text for text, count in why.items() if count)
            head = f"{plural(absent + unseen, noun(run))} not applicable"
            self.say((f"{head}: {reasons}", "dim"), wrap=True)
        if left and not self.quiet:
            self.say((f"{plural(left, noun(run))} not selected", "dim"), wrap=True)
        if short := [v for v in run.verdicts if any(j.left for j in v.judgements)]:
            sentence = _agree(len(short), "were not attacked in full, because a tool took too long")
            self.say(
                (f"{sentence}; -v lists the requests not sent", STYLES[Outcome.NOTE]), wrap=True
            )
        self.say(*self._next(run), wrap=True)

    def _next(self, run: Run) -> Iterator[str | tuple[str, str]]:
        word, style, rest = standing.closing(run)
        yield (word, style)
        yield rest


def _to_stderr(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        say(f"mcp-touchstone: {line}", error=True, flush=True)


def _spent(cost: Cost) -> str:
    """Return the time spent on each kind of work."""
    return (
        f"{cost.wall:.1f} s: server start-up {cost.startup:.1f}, replies {cost.answers:.1f}, "
        f"time-outs {cost.silence:.1f}, mcp-touchstone {cost.ours:.1f}"
    )


_SINGULAR = {"need": "needs", "were": "was"}


def _agree(count: int, predicate: str) -> str:
    """Return a count before a predicate, with its verb in the singular for one."""
    verb, _, rest = predicate.partition(" ")
    return f"{count} {_SINGULAR[verb] if count == 1 else verb} {rest}"


def in_full(run: Run, finding: Finding, width: int = 100) -> str:
    """Render one finding as plain text, as the terminal shows it."""
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False)
    terminal = Terminal(console)
    with console.capture() as capture:
        terminal.show(run, finding)
    return capture.get().strip("\n")


def in_short(run: Run, width: int = 100) -> str:
    """Render known failures, stale entries, tools, counts and the next step for pytest."""
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False)
    terminal = Terminal(console)
    with console.capture() as capture:
        standing.of_sdk(run, terminal.say, terminal.width)
        standing.known(run, terminal.say, terminal.width)
        standing.stale(run, terminal.say)
        terminal._tool_use(run, "--mcp-call")  # noqa: SLF001  (its own module)
        terminal._clients(run)  # noqa: SLF001  (its own module)
        terminal._close(run)  # noqa: SLF001  (its own module)
    return capture.get().strip("\n")
