"""A finding as reports show it. Each row is derived here, and each report has a layout here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mcp_touchstone.advisories.table import seen_in
from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.report.text import plural
from mcp_touchstone.results.run import SdkFault, Verdict
from mcp_touchstone.results.verdict import Judgement, Outcome
from mcp_touchstone.runtime.printable import safe

WORDS: Final = {
    Outcome.FAIL: "fail",
    Outcome.BROKEN: "not checked",
    Outcome.WARN: "warn",
    Outcome.NOTE: "note",
    Outcome.PASS: "pass",
    Outcome.UNSEEN: "not seen",
}
"""The words of pages; a terminal has others."""

Row = tuple[str, tuple[str, ...]]
"""A label and the lines beside it."""

FULL: Final = (
    "revision",
    "effect",
    "cause",
    "weakness",
    "seen in",
    "spec",
    "decision",
    "expected",
    "actual",
    "why",
    "cure",
    "advisory",
    "whose",
    "affected",
    "found",
    "count",
)
BRIEF: Final = ("level", "expected", "actual", "whose", "why", "advisory", "revision")
DETAILS: Final = ("scenario", "process", "not flagged")
PAGE: Final = (
    "rule",
    "effect",
    "cause",
    "weakness",
    "seen in",
    "known",
    "whose",
    "expected",
    "actual",
    "why",
    "cure",
    "advisory",
    "tools",
    "decision",
    "specification",
)
SUMMARY: Final = (
    "expected",
    "actual",
    "why",
    "cure",
    "advisory",
    "whose",
    "tools",
    "effect",
    "weakness",
    "seen in",
    "specification",
)
"""The rows on the terminal (two of them with ``-v``, or for a warning), in HTML and in Markdown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One clause broken in one way, in one revision or several.

    Attributes:
        revisions: the revisions it was found in, oldest first.
        judgement: the judgement shown (of the newest revision).
        known: the reason given in the baseline; empty if the baseline does not accept it.
        sdk: the fault of the SDK, if the finding is one; None if it is the server's own.
        alike: the SDKs on which a minimal server has it too, if the SDK is unknown.
        among: whether other scenarios or rules judged the clause, too.
        advisories: the advisories on packages of the server that it shows, with their remedies.
    """

    clause: Clause
    outcome: Outcome
    revisions: tuple[str, ...]
    judgement: Judgement
    known: str = ""
    sdk: SdkFault | None = None
    alike: tuple[str, ...] = ()
    among: bool = False
    advisories: tuple[str, ...] = ()

    @classmethod
    def of(cls, verdicts: Sequence[Verdict], advisories: tuple[str, ...] = ()) -> "Finding":
        """Make one of the verdicts of several revisions, the newest last."""
        last = verdicts[-1]
        revisions = tuple(verdict.revision for verdict in verdicts)
        about = (last.clause, last.outcome, revisions, last.gravest)
        among = len({judgement.scenario for judgement in last.judgements}) > 1
        return cls(*about, last.known, last.sdk, last.alike, among, advisories)

    @property
    def whose(self) -> str:
        """Whose it is and what the user can do; empty if there is no doubt."""
        if self.sdk is not None:
            return f"{self.sdk.proof}; {self.sdk.remedy}"
        if not self.alike:
            return ""
        others = " or ".join(self.alike)
        return f"yours, as the SDK is unknown; a minimal program on {others} does this too"

    @property
    def said(self) -> str:
        """What was expected and what the server did, in one line."""
        expected = f"expected {self.judgement.expected}; " if self.judgement.expected else ""
        return f"{expected}actual {self.judgement.actual}"

    def rows(self, layout: Sequence[str], words: Mapping[Outcome, str] = WORDS) -> Iterator[Row]:
        """Yield the rows of a layout that are not empty.

        Args:
            layout: names of rows, in their order.
            words: the word of the report for each outcome.
        """
        for name in layout:
            lines = tuple(filter(None, _LINES[name](self)))
            label = f"why a {words[self.outcome]}" if name == "why" else _LABELS.get(name, name)
            if lines:
                yield label, lines


def _of_threat(text: Callable[[Threat], str]) -> Callable[[Finding], Sequence[str]]:
    return lambda f: [text(f.clause)] if isinstance(f.clause, Threat) else []


def _tools(finding: Finding) -> list[tuple[str, str]]:
    rows = (row for tool in finding.judgement.tools for row in tool.rows())
    return [(name, plural(count, "payload")) for name, count in rows]


def _affected(finding: Finding) -> list[str]:
    tools = [(safe(name), count) for name, count in _tools(finding)]
    wide = max((len(name) for name, _ in tools), default=0)
    return [f"{name:<{wide}}  {count}" for name, count in tools]


def _found(finding: Finding) -> list[str]:
    one = finding.judgement
    chance = "by chance: the scenario races messages, so the next run may pass"
    said = f"in {one.found} of {one.tried} runs of the scenario"
    return [said, chance if one.raced else ""] if one.sometimes else []


def _cure(finding: Finding) -> list[str]:
    """Return the usual cure of a failure of the server's own."""
    own = finding.outcome is Outcome.FAIL and finding.sdk is None
    return [finding.clause.cure] if own else []


_LABELS: Final = {"affected": "tools", "cure": "usual cure"}

_LINES: Final[Mapping[str, Callable[[Finding], Sequence[str]]]] = {
    "rule": lambda f: [f.clause.statement],
    "level": lambda f: [f.clause.grade],
    "revision": lambda f: [", ".join(f.revisions)],
    "effect": _of_threat(lambda threat: threat.effect),
    "cause": _of_threat(lambda threat: threat.cause),
    "weakness": _of_threat(lambda threat: threat.weakness),
    "seen in": lambda f: [", ".join(seen_in(f.clause.id))],
    "advisory": lambda f: f.advisories,
    "spec": lambda f: [] if isinstance(f.clause, Threat) else f.clause.links(f.judgement.revision),
    "specification": lambda f: f.clause.links(f.judgement.revision),
    "decision": lambda f: [f.clause.decision],
    "known": lambda f: [f.known],
    "whose": lambda f: [f.whose],
    "expected": lambda f: [f.judgement.expected],
    "actual": lambda f: [f.judgement.actual or "(see below)"],
    "why": lambda f: [f.judgement.because],
    "cure": _cure,
    "tools": lambda f: [", ".join(f"{name}: {count}" for name, count in _tools(f))],
    "affected": _affected,
    "found": _found,
    "count": lambda f: [str(f.judgement.count)] if f.judgement.count > 1 else [],
    "scenario": lambda f: [f"{f.judgement.scenario} ({f.judgement.source})"],
    "process": lambda f: [f.judgement.process],
    "not flagged": lambda f: [f.clause.not_flagged],
}
"""Name of a row -> its lines; an empty one is left out."""
