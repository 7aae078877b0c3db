"""What a run finds: the plan with its judgements, folded verdicts, the exit code. Pure values."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_touchstone.clause import Clause
from mcp_touchstone.floor import Floor
from mcp_touchstone.verdict import Judgement, Outcome

if TYPE_CHECKING:
    from mcp_touchstone.comparison import Comparison
    from mcp_touchstone.connection import Connection
    from mcp_touchstone.cost import Cost
    from mcp_touchstone.recon import Dossier
    from mcp_touchstone.scenario import Case
    from mcp_touchstone.target import Target


@dataclass(frozen=True, slots=True)
class Absent:
    """A clause that does not apply, decided before the run.

    Attributes:
        clause: its id.
        revision: where.
        why: in words.
        by_choice: whether it was left out by a choice of the user, whatever the server offers.
    """

    clause: str
    revision: str
    why: str
    by_choice: bool = False


@dataclass(slots=True)
class Slot:
    """One case in one revision, planned.

    Attributes:
        case: the scenario or rule.
        revision: the revision judged.
        clauses: what it must judge.
        also: further revisions its judgements hold for.
        judgements: what it found.
        seconds: how long it took.
        left: how it left the server, where that was not as it found it.
        fired: ids of the payloads that were sent.
    """

    case: "Case"
    revision: str
    clauses: tuple[Clause, ...]
    also: tuple[str, ...] = ()
    judgements: list[Judgement] = field(default_factory=list)
    seconds: float = 0.0
    left: str = ""
    fired: frozenset[str] = frozenset()
    done: bool = False


@dataclass(slots=True)
class Verdict:
    """One clause in one revision, folded over all that judged it.

    Attributes:
        known: the reason the baseline gives for it; empty where it is not known.
    """

    clause: Clause
    revision: str
    outcome: Outcome
    gravest: Judgement
    judgements: list[Judgement]
    known: str = ""


@dataclass(frozen=True, slots=True)
class Stale:
    """An entry of the baseline that is no longer true, and why; no revisions means all."""

    rule: str
    revisions: tuple[str, ...]
    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """The baseline a run was held against: its file, how many entries, which are stale."""

    file: str
    entries: int
    stale: list[Stale]


@dataclass(slots=True)
class Run:
    """Everything a run found.

    Attributes:
        target: what was judged.
        dossier: what recon learnt.
        slots: the plan, in order, with what each slot found.
        absent: clauses that do not apply, with the reason.
        verdicts: folded, in the order of the catalogue.
        trouble: why nothing or not everything could be judged; empty when it could.
        interrupted: whether the user stopped the run.
        processes: how many servers were started.
        strays: processes the server left behind.
        seconds: wall time.
        cost: what that went into; None while nobody knows.
        connections: every connection, with its transcript, for ``--save``.
        floor: from which gravity on a finding counts.
        settled: the baseline it was held against; None where there is none.
        since: what changed since an older report; only what is new since then counts.
    """

    target: "Target"
    dossier: "Dossier"
    slots: list[Slot] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    trouble: str = ""
    interrupted: bool = False
    processes: int = 0
    strays: int = 0
    seconds: float = 0.0
    cost: "Cost | None" = None
    connections: "list[Connection]" = field(default_factory=list)
    floor: Floor = field(default_factory=Floor)
    settled: Settlement | None = None
    since: "Comparison | None" = None

    @property
    def fired(self) -> frozenset[str]:
        """Ids of the payloads that were sent."""
        return frozenset[str]().union(*(slot.fired for slot in self.slots))

    def count(self, outcome: Outcome) -> int:
        """Count verdicts of one outcome."""
        return sum(verdict.outcome is outcome for verdict in self.verdicts)

    def of(self, *outcomes: Outcome) -> list[Verdict]:
        """Give the verdicts of some outcomes."""
        return [verdict for verdict in self.verdicts if verdict.outcome in outcomes]

    @property
    def lost(self) -> list[Slot]:
        """Scenarios that left a shared process dead or deaf."""
        return [slot for slot in self.slots if slot.left]

    def counts(self, verdict: Verdict) -> bool:
        """Whether a verdict fails the gate: grave enough, not known, new if that was asked."""
        if verdict.known or not self.floor.counts(verdict.clause, verdict.outcome):
            return False
        return self._is_new(verdict)

    def _is_new(self, verdict: Verdict) -> bool:
        return self.since is None or self.since.makes_worse(verdict.clause.id, verdict.revision)

    @property
    def unjudged(self) -> list[Verdict]:
        """What could not be judged and should have been."""
        broken = self.of(Outcome.BROKEN)
        return [verdict for verdict in broken if not verdict.known and self._is_new(verdict)]

    @property
    def stale(self) -> list[Stale]:
        """Entries of the baseline that are no longer true."""
        return [] if self.settled is None else self.settled.stale

    @property
    def exit_code(self) -> int:
        """0 clean, 1 a clause is broken or the baseline untrue, 2 not judged, 130 interrupted."""
        if self.interrupted:
            return 130
        if self.stale or any(self.counts(verdict) for verdict in self.verdicts):
            return 1
        return 2 if self.trouble or self.unjudged else 0


def unasked(slot: Slot, clause: Clause, why: str) -> Judgement:
    """Say that a planned clause could not be judged, and why."""
    return Judgement(
        clause=clause.id,
        revision=slot.revision,
        outcome=Outcome.BROKEN,
        scenario=slot.case.id,
        expected=clause.statement,
        actual=why,
    )
