"""The result of a run: planned cases with judgements, verdicts, the exit code. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mcp_touchstone.advisories.known import KnownAdvisory
from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.sdk import Package
from mcp_touchstone.profiles.notes import ProfileNotes
from mcp_touchstone.results.budgets import Budgets
from mcp_touchstone.results.lock import Locked
from mcp_touchstone.results.played import PlayedScenario
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.threshold import Floor
from mcp_touchstone.results.tool_use import ToolUse
from mcp_touchstone.results.verdict import Judgement, Outcome

if TYPE_CHECKING:
    from mcp_touchstone.catalog.scenario import Case, Share
    from mcp_touchstone.connection.connection import Connection
    from mcp_touchstone.results.abilities import Ability
    from mcp_touchstone.results.comparison import Comparison
    from mcp_touchstone.runtime.timing import Cost


@dataclass(frozen=True, slots=True)
class Absent:
    """A clause that does not apply, decided before the run.

    Attributes:
        clause: its id.
        by_choice: whether the user excluded it, whatever the server offers.
    """

    clause: str
    revision: str
    why: str
    by_choice: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PlannedCase:
    """A planned case in one revision; equal to itself only.

    Attributes:
        case: the scenario or rule.
        clauses: the clauses it must judge.
        also: further revisions that its judgements apply to.
        support: whether it only makes traffic for rules on all traffic; its own findings are
            not selected and not reported.
    """

    case: "Case"
    revision: str
    clauses: tuple[Clause, ...]
    also: tuple[str, ...] = ()
    support: bool = False

    @property
    def share(self) -> "Share":
        """The users of its shared process."""
        return self.case.share_in(self.revision)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of a planned case.

    Attributes:
        seconds: its duration, in seconds.
        left: the state it left the server in, if that state changed.
        fired: ids of the payloads that were sent.
        before: the clauses with a finding on a used process, from which nothing else is kept; the
            judgements are of an unused process.
        done: whether it ended before the run did.
    """

    planned: PlannedCase
    judgements: tuple[Judgement, ...] = ()
    seconds: float = 0.0
    left: str = ""
    fired: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    done: bool = True


@dataclass(frozen=True, slots=True)
class SdkFault:
    """The part of an SDK in a finding: a minimal program on the SDK has the finding too.

    Attributes:
        like: the judged release that has the fault, if this version was not judged; else empty.
        fixed: the first judged release from which on the fault is gone; empty if there is none.
        last: the newest revision with the fault, if the server speaks newer ones; else empty.
    """

    sdk: Package
    like: str = ""
    fixed: str = ""
    last: str = ""

    @property
    def proof(self) -> str:
        """The reason it is the SDK's, as a sentence."""
        return f"{self.sdk}: a minimal program on {self.like or 'it'} does this too"

    @property
    def remedy(self) -> str:
        """The remedy for the user."""
        ways = [f"use {self.fixed}, where it is fixed"] if self.fixed else []
        ways += [f"offer only revisions newer than {self.last}"] if self.last else []
        return ", or ".join(ways) or f"nothing on your side; {self.sdk.name} has to fix it"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one clause in one revision: the worst of all judgements of it.

    Attributes:
        known: the reason given in the baseline; empty if the baseline does not accept it.
        sdk: the fault of the SDK, if the finding is one; None if it is the server's own.
        alike: the SDKs on which a minimal server has it too, if the SDK is unknown.
    """

    clause: Clause
    revision: str
    outcome: Outcome
    gravest: Judgement
    judgements: list[Judgement]
    known: str = ""
    sdk: SdkFault | None = None
    alike: tuple[str, ...] = ()

    @property
    def sometimes(self) -> bool:
        """Whether the finding may be absent in another run on the same server."""
        return self.gravest.sometimes

    @property
    def tools(self) -> dict[str, frozenset[str]]:
        """The tools and methods in which the finding appeared, each with its known arguments."""
        found: dict[str, frozenset[str]] = {}
        for judgement in self.judgements:
            for tool in judgement.tools if judgement.outcome is self.outcome else ():
                names = frozenset(name for name, _count in tool.arguments)
                found[tool.name] = found.get(tool.name, frozenset()) | names
        return found


@dataclass(frozen=True, slots=True)
class Stale:
    """An entry of the baseline that no longer applies, and why; no revisions means all."""

    rule: str
    revisions: tuple[str, ...]
    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """The baseline of a run: its file, its number of entries, its stale entries."""

    file: str
    entries: int
    stale: list[Stale]


@dataclass(frozen=True, slots=True)
class Execution:
    """How a run went.

    Attributes:
        interrupted: whether the user stopped it.
        quick: what a quick run left out, in words; empty for any other.
        processes: number of server processes started.
        strays: processes the server left behind.
        dropped: files that are new in the user's working folder, relative to that.
        notes: sentences on the run itself, such as a limit that the server reached; each once.
        seconds: wall time, in seconds.
        started: date and time of the start, ISO 8601 in UTC; empty if unknown.
        cost: the parts of that time; None while unknown.
    """

    interrupted: bool = False
    quick: str = ""
    processes: int = 0
    strays: int = 0
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    started: str = ""
    cost: "Cost | None" = None


class Conclusion(StrEnum):
    """What a run came to. Every report, gate and list of servers says this word."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"
    INTERRUPTED = "interrupted"

    @property
    def exit_code(self) -> int:
        """The exit status of the command."""
        return _EXIT[self]


_EXIT = {
    Conclusion.PASSED: 0,
    Conclusion.FAILED: 1,
    Conclusion.NOT_CHECKED: 2,
    Conclusion.INTERRUPTED: 130,
}


class Gap(StrEnum):
    """What was not checked and keeps a run from passing, in a few words."""

    NONE = ""
    NOT_STARTED = "the server did not start"
    NOT_ENDED = "the run did not end"
    NOT_JUDGED = "a rule could not be judged"
    NO_RULE = "no rule applied"
    NO_ATTACK = "no file tool was attacked"


@dataclass(frozen=True, slots=True)
class Run:
    """The complete result of a run.

    Attributes:
        results: what came of the planned cases, in the order of the suite.
        absent: clauses that do not apply, with their reasons.
        verdicts: the verdicts, in the order of the catalogue.
        trouble: the reason some or all rules could not be judged; empty if all could.
        execution: how it went.
        connections: every connection, with its transcript, for ``--save``.
        floor: the least severity of a finding that counts.
        settled: the baseline it was compared with; None if there is none.
        since: the changes since an older report; only findings that are new since then count.
        unbound: the reason no tool that handles files was attacked; empty if one was.
        clients: what the chosen clients and directories do with the server.
        budgets: what its lists and results cost a model.
        tools: the tools that were called, those that answered errors, and the others.
        advisories: the advisories on its packages, if somebody asked for them.
        unattacked: whether no file tool was attacked although the user wanted that.
        scenarios: what came of each scenario that a client was run in.
        abilities: what the server can do by design; empty if nothing was attacked.
        selected: whether threats of a usual run were left out by choice.
        scenarios_count: whether one in trouble that the baseline does not know fails the gate.
        offer: what the server offers in its newest revision, for a lock.
        locked: the comparison with a lock; None if there is none.
    """

    subject: Subject
    results: list[CaseResult] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    trouble: str = ""
    execution: Execution = Execution()
    connections: "list[Connection]" = field(default_factory=list)
    floor: Floor = field(default_factory=Floor)
    settled: Settlement | None = None
    since: "Comparison | None" = None
    unbound: str = ""
    clients: ProfileNotes = field(default_factory=ProfileNotes)
    budgets: Budgets = field(default_factory=Budgets)
    tools: ToolUse = field(default_factory=ToolUse)
    advisories: tuple[KnownAdvisory, ...] = ()
    unattacked: bool = False
    scenarios: tuple[PlayedScenario, ...] = ()
    abilities: tuple["Ability", ...] = ()
    selected: bool = False
    scenarios_count: bool = False
    offer: Mapping[str, Any] = field(default_factory=dict)
    locked: Locked | None = None

    @property
    def attacks(self) -> bool:
        """Whether it was to attack a server, so that its reports answer whether to install it."""
        return bool(self.abilities)

    @property
    def partial(self) -> bool:
        """Whether another run may show more: not all was judged to its end."""
        return bool(self.trouble) or self.execution.interrupted or bool(self.troubled)

    @property
    def troubled(self) -> list[PlayedScenario]:
        """Scenarios that were not judged to their end, and that the baseline does not know."""
        return [one for one in self.scenarios if not (one.outcome.is_whole or one.known)]

    @property
    def fired(self) -> frozenset[str]:
        """Ids of the payloads that were sent."""
        return frozenset[str]().union(*(one.fired for one in self.results))

    def of(self, *outcomes: Outcome) -> list[Verdict]:
        """Return the verdicts with one of these outcomes."""
        return [verdict for verdict in self.verdicts if verdict.outcome in outcomes]

    @property
    def lost(self) -> list[CaseResult]:
        """Scenarios after which a shared process had exited or no longer answered."""
        return [one for one in self.results if one.left]

    def counts(self, verdict: Verdict) -> bool:
        """Return whether a verdict fails the gate: severe enough, new if compared, not excused."""
        if verdict.known or self.is_of_sdk(verdict):
            return False
        if not self.floor.counts(verdict.clause, verdict.outcome):
            return False
        return self._is_new(verdict)

    def is_of_sdk(self, verdict: Verdict) -> bool:
        """Return whether a finding is the SDK's and does not count for that reason."""
        return verdict.sdk is not None and not verdict.known and not self.floor.sdk

    def _is_new(self, verdict: Verdict) -> bool:
        return self.since is None or self.since.makes_worse(verdict.clause.id, verdict.revision)

    @property
    def unjudged(self) -> list[Verdict]:
        """Verdicts that should have been judged and could not be."""
        broken = self.of(Outcome.BROKEN)
        return [verdict for verdict in broken if not verdict.known and self._is_new(verdict)]

    @property
    def stale(self) -> list[Stale]:
        """Entries of the baseline that no longer apply."""
        return [] if self.settled is None else self.settled.stale

    @property
    def losing(self) -> bool:
        """Whether something is lost in a chosen client, and that fails the gate."""
        return self.floor.profile and not self.floor.never and bool(self.clients.losing)

    @property
    def empty(self) -> bool:
        """Whether nothing was checked: no rule was selected, or none was triggered."""
        return all(verdict.outcome is Outcome.UNSEEN for verdict in self.verdicts)

    @property
    def conclusion(self) -> Conclusion:
        """What it came to."""
        if self.execution.interrupted:
            return Conclusion.INTERRUPTED
        if (
            self.stale
            or self.losing
            or self.budgets.over
            or (self.scenarios_count and self.troubled)
            or (self.locked is not None and self.locked.changes)
            or any(self.counts(verdict) for verdict in self.verdicts)
        ):
            return Conclusion.FAILED
        return Conclusion.NOT_CHECKED if self.gap else Conclusion.PASSED

    @property
    def gap(self) -> Gap:
        """What was not checked and keeps the run from passing. Every text on it is made of this."""
        if self.trouble:
            return Gap.NOT_ENDED if self.subject.revisions else Gap.NOT_STARTED
        if self.unjudged:
            return Gap.NOT_JUDGED
        if self.empty:
            return Gap.NO_RULE
        return Gap.NO_ATTACK if self.unattacked else Gap.NONE

    @property
    def exit_code(self) -> int:
        """The exit status of its conclusion."""
        return self.conclusion.exit_code


def unasked(planned: PlannedCase, clause: Clause, why: str) -> Judgement:
    """Return a judgement: this planned clause could not be judged, for this reason."""
    return Judgement(
        clause=clause.id,
        revision=planned.revision,
        outcome=Outcome.BROKEN,
        scenario=planned.case.id,
        expected=clause.statement,
        actual=why,
    )
