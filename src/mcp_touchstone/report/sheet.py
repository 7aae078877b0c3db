"""Lines of a report on the terminal: styled, escaped, with secrets masked, in columns."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from rich.console import Console
from rich.text import Text

from mcp_touchstone.report.digest import again
from mcp_touchstone.report.finding import DETAILS, FULL, Finding
from mcp_touchstone.report.text import cut, last_lines, masked, middle
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome, WireLine
from mcp_touchstone.runtime.printable import safe

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
LABEL = 11
WIDEST = 120
LONGEST = 1200
"""Characters of a value that are printed; the middle of a longer one is left out."""

_CODE: Final = re.compile(r"`[^`]*`")


@dataclass(eq=False)
class Sheet:
    """Prints lines in the columns of a report.

    Attributes:
        console: where to print.
        verbose: print conversations and all findings.
        quiet: print failures and the last lines only.
        environment: variables whose secrets are hidden.
    """

    console: Console
    _: KW_ONLY
    verbose: bool = False
    quiet: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    _scripts: set[str] = field(default_factory=set)

    @property
    def width(self) -> int:
        """Number of columns used: those of the terminal, at most ``WIDEST``."""
        return min(self.console.width, WIDEST)

    def say(self, *parts: str | tuple[str, str], wrap: bool = False) -> None:
        """Print one line. A pair is text and its style; ``wrap`` breaks it at the width."""
        line = Text()
        for part in parts:
            text, style = (part, "") if isinstance(part, str) else part
            line.append(masked(safe(text), self.environment), style)
        for piece in self._pieces(line) if wrap else (line,):
            self.console.print(piece, soft_wrap=True, highlight=False)

    def _pieces(self, line: Text) -> Iterator[Text]:
        """Yield the pieces of a line that fit; what is in backticks stays in one, to be copied."""
        kept = _CODE.sub(lambda code: code[0].replace(" ", "\xa0"), line.plain)
        end = 0
        wrapper = textwrap.TextWrapper(
            self.width,
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for piece in wrapper.wrap(kept) or [""]:
            start = kept.index(piece, end)
            end = start + len(piece)
            yield line[start:end]

    def shown(self, text: str) -> str:
        """Return a value escaped and without secrets; the middle of a long one is left out."""
        return masked(middle(safe(text), LONGEST), self.environment)

    def row(self, label: str, text: str, style: str = "") -> None:
        """Print a text beside a label, wrapped."""
        text = self.shown(text)
        gap = " " * max(0, len(label) + 1 - LABEL)
        lines = textwrap.wrap(text, max(20, self.width - LABEL - 2), initial_indent=gap) or [""]
        for number, line in enumerate(lines):
            self.say("  ", (f"{label if not number else '':<{LABEL}}", "dim"), (line, style))

    def rows(self, finding: Finding, layout: Sequence[str]) -> None:
        """Print the rows of a finding in a layout."""
        for label, lines in finding.rows(layout, WORDS):
            for number, line in enumerate(lines):
                if label == "spec":  # an address is not wrapped
                    self.say("  ", (f"{label:<{LABEL}}", "dim"), line)
                else:
                    style = "bold" if label == "actual" and layout is FULL else ""
                    self.row("" if number else label, line, style)

    def wire(self, lines: tuple[WireLine, ...]) -> None:
        """Print lines of a conversation; those that prove a finding are marked."""
        if not lines:
            return
        self.say("")
        number = len(str(lines[-1].n))
        for line in lines:
            mark = "▸" if line.guilty else " "
            head = f"  {mark} {line.n:>{number}} {line.arrow} "
            style = "bold" if line.guilty else ("dim" if line.arrow == "·" else "")
            room = self.width - len(head)
            text = self.shown(line.text)
            if self.verbose or line.guilty:
                pieces = textwrap.wrap(text, max(20, room), break_on_hyphens=False) or [""]
                pieces = pieces if self.verbose else pieces[:6]
            else:
                pieces = [cut(text, room)]
            for position, piece in enumerate(pieces):
                self.say((head if not position else " " * len(head), "dim"), (piece, style))
            if line.http:
                http = self.shown(line.http)
                self.say(" " * len(head), (http if self.verbose else cut(http, room), "dim"))
        self.say("")

    def show(self, run: Run, finding: Finding) -> None:
        """Print one finding in full."""
        style = STYLES[finding.outcome]
        self.say("")
        self.say((WORDS[finding.outcome], style), "  ", (finding.clause.id, "bold"))
        self.say("")
        self.row(finding.clause.grade, finding.clause.statement)
        self.rows(finding, FULL)
        self.wire(finding.judgement.wire)
        self.script(finding)
        if self.verbose:
            self.rows(finding, DETAILS)
        if command := again(run, finding):
            self.say("  ", (f"{'again':<{LABEL}}", "dim"), command)

    def script(self, finding: Finding) -> None:
        """Print what shows a finding without this program; the script of an attack with ``-v``.

        The commands that open a session are printed once.
        """
        lines = finding.judgement.reproduction.splitlines()
        of_attack = bool(lines) and lines[0].startswith("#!")
        if of_attack and not self.verbose:
            return
        fresh = [line for line in lines if line not in self._scripts or self.verbose]
        self._scripts.update(lines[:-1])
        for number, line in enumerate(fresh or lines[-1:]):
            label = "by hand" if not (of_attack or number) else ""
            self.say("  ", (f"{label:<{LABEL}}", "dim"), line)

    def words(self, stderr: str) -> None:
        """Print the last words of the server on its standard error."""
        for number, line in enumerate(last_lines(stderr)):
            label = "stderr" if not number else ""
            self.say("  ", (f"{label:<{LABEL}}", "dim"), cut(safe(line), self.width - LABEL - 2))
