"""What a scenario holds: say, hear, judge. Prints nothing.

A conversation is one scenario's use of a connection. What it judges is fixed beforehand: judging
anything else raises, and a clause it leaves unjudged makes the result BROKEN.
"""

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mcp_touchstone.clause import Breach, Clause
from mcp_touchstone.connection import Connection
from mcp_touchstone.dice import Dice
from mcp_touchstone.dossier import Dossier
from mcp_touchstone.reply import Reply
from mcp_touchstone.scenario import Scenario
from mcp_touchstone.talk import Broken, Talk
from mcp_touchstone.transcript import Entry, Transcript
from mcp_touchstone.verdict import Judgement, Outcome, evidence

if TYPE_CHECKING:
    from types import FrameType

_OUTCOME = {Breach.FAIL: Outcome.FAIL, Breach.WARN: Outcome.WARN, Breach.NOTE: Outcome.NOTE}


class Conversation(Talk):
    """The hands of a scenario.

    Attributes:
        fired: ids of the payloads that were sent, where it is an attack.
    """

    def __init__(
        self,
        connection: Connection,
        scenario: Scenario,
        clauses: Iterable[Clause],
        *,
        dossier: Dossier,
        revision: str,
        spawn: Callable[[], Connection],
    ) -> None:
        super().__init__(connection, dossier=dossier, revision=revision, spawn=spawn)
        self.judgements: list[Judgement] = []
        self.dice = Dice()
        self.fired: set[str] = set()
        self._scenario = scenario
        self._clauses = {clause.id: clause for clause in clauses}
        self._declared = {clause.id for clause in scenario.clauses}

    @property
    def name(self) -> str:
        """The name of the scenario."""
        return self._scenario.name

    def judges(self, *clauses: str) -> bool:
        """Whether any of these clauses is judged here (revision and needs allow it)."""
        return any(clause in self._clauses for clause in clauses)

    def judge(
        self,
        clause: str | tuple[str, ...],
        held: bool,
        *,
        expected: str,
        actual: object = "",
        at: Reply | Entry | int | None = None,
        mild: Breach | None = None,
        because: str = "",
    ) -> bool:
        """Record whether a clause held; several ids are one finding under several windows.

        Args:
            clause: id, or the ids of rows that split one rule by revision.
            held: whether it held.
            expected: what the clause asks for.
            actual: what the server did; a Reply says itself.
            at: the line that shows it.
            mild: what a breach counts as at most here, where the clause allows for it.
            because: why that is less than its own weight; needed where somebody may wonder.
        """
        for clause_id in (clause,) if isinstance(clause, str) else clause:
            if clause_id not in self._declared:
                raise LookupError(f"{self._scenario.id} does not declare {clause_id}")
            row = self._clauses.get(clause_id)
            if row is None:
                continue
            breach = row.breach if mild is None else max(mild, row.breach, key=_LIGHTNESS.index)
            outcome = Outcome.PASS if held else _OUTCOME[breach]
            said = because if not held and breach is not row.breach else ""
            self._record(row, outcome, expected, str(actual), at, because=said)
        return held

    def unseen(self, clause: str, why: str) -> None:
        """Say that the server did nothing this conditional clause speaks of."""
        row = self._clauses.get(clause)
        if row is not None:
            if not row.conditional:
                raise LookupError(f"{clause} is not conditional; it cannot go unseen")
            self._record(row, Outcome.UNSEEN, "", why, None)

    def _record(
        self,
        clause: Clause,
        outcome: Outcome,
        expected: str,
        actual: str,
        at: Reply | Entry | int | None,
        *,
        because: str = "",
    ) -> None:
        guilty, related = _place(at)
        transcript = self.wire.transcript
        shown = outcome in {Outcome.FAIL, Outcome.WARN, Outcome.NOTE}
        self.judgements.append(
            Judgement(
                clause=clause.id,
                revision=self.revision,
                outcome=outcome,
                scenario=self._scenario.id,
                expected=expected,
                actual=actual,
                wire=evidence(transcript.since(self._start), guilty, related) if shown else (),
                source=f"{self._scenario.path.rpartition('/')[2]}:{self._line()}",
                process=transcript.label,
                replay=transcript.replay,
                because=because,
            )
        )

    def _line(self) -> int:
        """Give the line of the scenario that we were called from, through whatever helps it."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  (the documented way to callers)
        while frame is not None:
            if frame.f_code.co_filename.replace("\\", "/").endswith(self._scenario.path):
                return frame.f_lineno
            frame = frame.f_back
        return self._scenario.line

    def broken(self, why: str) -> None:
        """Make every clause that has no judgement yet BROKEN, with the reason."""
        judged = {judgement.clause for judgement in self.judgements}
        for clause in self._clauses.values():
            if clause.id not in judged:
                transcript: Transcript = self.wire.transcript
                self.judgements.append(
                    Judgement(
                        clause=clause.id,
                        revision=self.revision,
                        outcome=Outcome.BROKEN,
                        scenario=self._scenario.id,
                        expected=clause.statement,
                        actual=why,
                        wire=evidence(transcript.since(self._start), None),
                        process=transcript.label,
                    )
                )


_LIGHTNESS = (Breach.FAIL, Breach.WARN, Breach.NOTE)


def _place(at: Reply | Entry | int | None) -> tuple[int | None, tuple[int, ...]]:
    if isinstance(at, Reply):
        return (at.entry or at.asked), (at.asked,)
    if isinstance(at, Entry):
        return at.n, ()
    return at, ()


__all__ = ["Broken", "Conversation"]
