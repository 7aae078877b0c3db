"""What a run finds: the plan with its judgements, folded verdicts, the exit code. Pure values."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_touchstone.clause import Clause
from mcp_touchstone.verdict import Judgement, Outcome

if TYPE_CHECKING:
    from mcp_touchstone.connection import Connection
    from mcp_touchstone.recon import Dossier
    from mcp_touchstone.scenario import Case
    from mcp_touchstone.target import Target


@dataclass(frozen=True, slots=True)
class Absent:
    """A clause that does not apply, decided before the run."""

    clause: str
    revision: str
    why: str


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
    """

    case: "Case"
    revision: str
    clauses: tuple[Clause, ...]
    also: tuple[str, ...] = ()
    judgements: list[Judgement] = field(default_factory=list)
    seconds: float = 0.0
    left: str = ""
    done: bool = False


@dataclass(slots=True)
class Verdict:
    """One clause in one revision, folded over all that judged it."""

    clause: Clause
    revision: str
    outcome: Outcome
    gravest: Judgement
    judgements: list[Judgement]


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
        connections: every connection, with its transcript, for ``--save``.
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
    connections: "list[Connection]" = field(default_factory=list)

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

    @property
    def exit_code(self) -> int:
        """0 clean, 1 a clause is broken, 2 we could not judge, 130 interrupted."""
        if self.interrupted:
            return 130
        if self.count(Outcome.FAIL):
            return 1
        return 2 if self.trouble or self.count(Outcome.BROKEN) else 0


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
