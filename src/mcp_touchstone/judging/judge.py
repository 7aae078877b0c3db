"""The judge of a scenario: it records judgements. It sends nothing, and waits for nothing.

The clauses are fixed beforehand: judging any other clause raises, and a clause without a judgement
makes the result BROKEN.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mcp_touchstone.catalog.clause import Breach, Clause
from mcp_touchstone.catalog.scenario import Scenario
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.raw_http import HttpAnswer
from mcp_touchstone.judging.used_server import UsedServer
from mcp_touchstone.results.verdict import (
    ARROWS,
    Judgement,
    Outcome,
    WireLine,
    by_curl,
    evidence,
)
from mcp_touchstone.wire.lifecycle import Phase
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import UNJUDGED, Entry, Source

if TYPE_CHECKING:
    from types import FrameType

_OUTCOME = {Breach.FAIL: Outcome.FAIL, Breach.WARN: Outcome.WARN, Breach.NOTE: Outcome.NOTE}

LATE = "the server had not read the request in time"
ENDED = "the server ended the session, as it may at any time"


@dataclass(frozen=True, slots=True)
class Silence:
    """A finding that rests on a request without an answer, or on HTTP 404 to our session.

    Attributes:
        index: its index in the judgements.
        asked: the line of the request.
    """

    index: int
    wire: Connection
    asked: int


class Judge:
    """The judgements of one scenario.

    Args:
        server: the server, as the scenario uses it.

    Attributes:
        judgements: the judgements so far.
        silences: the failures among them that rest on silence; the engine looks for late answers.
        lost: findings that rest on HTTP 404 to our session; the engine looks whether it has ended.
    """

    def __init__(
        self,
        server: UsedServer,
        scenario: Scenario,
        clauses: Iterable[Clause],
        *,
        revision: str,
    ) -> None:
        self.judgements: list[Judgement] = []
        self.silences: list[Silence] = []
        self.lost: list[Silence] = []
        self._server = server
        self._revision = revision
        self._scenario = scenario
        self._clauses = {clause.id: clause for clause in clauses}
        self._declared = {clause.id for clause in scenario.clauses}

    @property
    def name(self) -> str:
        """The name of the scenario."""
        return self._scenario.name

    def covers(self, *clauses: str) -> bool:
        """Return whether any of these clauses is judged here (by revision and needs)."""
        return any(clause in self._clauses for clause in clauses)

    def __call__(
        self,
        clause: str | tuple[str, ...],
        passed: bool,
        *,
        expected: str,
        actual: object = None,
        at: Reply | HttpAnswer | Entry | int | None = None,
        mild: Breach | None = None,
        because: str = "",
        also: Iterable[int] = (),
    ) -> bool:
        """Record whether a clause was kept; several ids are one rule, split by revision.

        Args:
            clause: id, or the ids of rows that split one rule by revision.
            passed: whether it was kept.
            expected: the requirement of the clause.
            actual: the behaviour of the server; by default the reply that ``at`` names.
            at: the line that proves it.
            mild: the most severe way a breach may count here, if the clause permits that.
            because: the reason it counts for less than the weight of the clause, if not obvious.
            also: further lines that prove it.
        """
        if actual is None:
            actual = at if isinstance(at, Reply | HttpAnswer) else ""
        may_be_lost = isinstance(at, HttpAnswer) and at.may_end_session
        if isinstance(at, HttpAnswer):
            at = at.line
        for clause_id in (clause,) if isinstance(clause, str) else clause:
            if clause_id not in self._declared:
                raise LookupError(f"{self._scenario.id} does not declare {clause_id}")
            row = self._clauses.get(clause_id)
            if row is None:
                continue
            if barred := self._barred(row, at):
                self._record(row, Outcome.UNSEEN, "", barred, None)
                continue
            if not passed and self._is_after_the_session(at):
                self._record(row, Outcome.UNSEEN, "", f"{ENDED}: {actual}", None)
                continue
            breach = row.breach if mild is None else max(mild, row.breach, key=_LIGHTNESS.index)
            outcome = Outcome.PASS if passed else _OUTCOME[breach]
            said = because if not passed and breach is not row.breach else ""
            self._record(row, outcome, expected, str(actual), at, because=said, also=also)
            if not passed and may_be_lost:
                self.lost.append(Silence(len(self.judgements) - 1, self._server.wire, 0))
            if not passed and isinstance(at, Reply) and self._is_unanswered(at):
                wire = self._server.wire
                if not wire.channel.silence(at.asked):
                    self.amend(silent=True)
                if outcome is Outcome.FAIL and mild is None:
                    self.silences.append(Silence(len(self.judgements) - 1, wire, at.asked))
        return passed

    def expect(
        self,
        reply: Reply | HttpAnswer,
        clause: str | tuple[str, ...],
        passed: bool,
        expected: str,
        **how: Any,
    ) -> bool:
        """Record whether a reply keeps a clause; ``how`` is as in a call."""
        return self(clause, passed, expected=expected, at=reply, **how)

    def expect_answer(self, reply: Reply, clause: str, expected: str, **how: Any) -> bool:
        """Judge that a request got an answer, a result or an error."""
        return self.expect(reply, clause, reply.answered, expected, **how)

    def expect_result(self, reply: Reply, clause: str, expected: str, **how: Any) -> bool:
        """Judge that a request got a result."""
        return self.expect(reply, clause, reply.result is not None, expected, **how)

    def expect_error(self, reply: Reply, clause: str, code: int, expected: str, **how: Any) -> bool:
        """Judge that a request got an error with a code."""
        return self.expect(reply, clause, reply.code == code, expected, **how)

    def expect_refusal(
        self, reply: Reply, clause: str, codes: tuple[int, ...], expected: str, **how: Any
    ) -> None:
        """Judge that a request got an error with one of these codes.

        Silence, and an error without a readable code, show nothing: rules on the envelope judge
        them.
        """
        if reply.answered and not reply.unreadable:
            self.expect(reply, clause, reply.code in codes, expected, **how)
        else:
            self.unseen(clause, f"no answer with an error code came: {reply}")

    def _barred(self, row: Clause, at: Reply | Entry | int | None) -> str:
        """Return why a request was refused, if the rule is not about that; empty if it was not."""
        if not self._server.over_http:
            return ""
        if isinstance(at, Entry):
            sent = [at.origin.exchange] if at.origin is not None else []
        else:
            line = at.asked if isinstance(at, Reply) else at
            sent = [one for one in [*self._server.wire.transcript.exchanges] if one.line == line]
        own = row.place == "http/authorization"
        return next((one.barred for one in sent if one.is_limited or not own), "")

    def _is_unanswered(self, at: Reply) -> bool:
        """Return whether a finding is that nothing came, and not a place on the wire."""
        return not (at.answered or at.entry or self._server.wire.gone)

    def excuse(self, silence: Silence) -> None:
        """Turn a failure into a warning: the server answered, but late."""
        last = self.judgements[silence.index]
        if last.outcome is Outcome.FAIL:
            late = replace(last, outcome=Outcome.WARN, because=LATE)
            self.judgements[silence.index] = late

    def forget(self, lost: Silence) -> None:
        """Turn a finding into unseen: it came after the end of the session."""
        last = self.judgements[lost.index]
        why = f"{ENDED}: {last.actual}"
        self.judgements[lost.index] = replace(
            last, outcome=Outcome.UNSEEN, expected="", actual=why, wire=()
        )

    def amend(self, **changes: Any) -> None:
        """Change members of the last judgement."""
        self.judgements[-1] = replace(self.judgements[-1], **changes)

    def _is_after_the_session(self, at: Reply | Entry | int | None) -> bool:
        """Whether the server ended the session in place of an answer to a request, or before it."""
        if not isinstance(at, Reply) or not self._server.wire.channel.session_ended:
            return False
        asked = [one for one in self._server.wire.transcript.session.asked if one.line == at.asked]
        return any(one.expired or one.phase is Phase.CLOSING for one in asked)

    def add_evidence(self, sentence: str) -> None:
        """Add an event to the evidence of the last finding; it is marked if no other line is."""
        last = self.judgements[-1]
        if last.outcome not in {*_OUTCOME.values()}:
            return
        sentence = sentence.encode("utf-8", "backslashreplace").decode()
        number = self._server.wire.transcript.happened(sentence)
        guilty = not any(line.guilty for line in last.wire)
        line = WireLine(number, ARROWS[Source.EVENT], sentence, guilty)
        self.amend(wire=(*last.wire, line))

    def unseen(self, clause: str | tuple[str, ...], why: str) -> None:
        """Record that the server did nothing that these conditional clauses cover."""
        for clause_id in (clause,) if isinstance(clause, str) else clause:
            row = self._clauses.get(clause_id)
            if row is not None:
                if not row.conditional:
                    raise LookupError(f"{clause_id} is not conditional; it cannot go unseen")
                self._record(row, Outcome.UNSEEN, "", why, None)

    def otherwise_unseen(self, clause: str | tuple[str, ...], why: str) -> None:
        """Record as unseen those of these clauses that have no judgement yet."""
        judged = {judgement.clause for judgement in self.judgements}
        named = (clause,) if isinstance(clause, str) else clause
        self.unseen(tuple(one for one in named if one not in judged), why)

    def take_back(self, clause: str, why: str) -> None:
        """Turn each pass of a conditional clause into unseen: what it compares was not there."""
        if self.covers(clause) and not self._clauses[clause].conditional:
            raise LookupError(f"{clause} is not conditional; it cannot go unseen")
        self.judgements = [
            replace(one, outcome=Outcome.UNSEEN, expected="", actual=why)
            if one.clause == clause and one.outcome is Outcome.PASS
            else one
            for one in self.judgements
        ]

    def _record(
        self,
        clause: Clause,
        outcome: Outcome,
        expected: str,
        actual: str,
        at: Reply | Entry | int | None,
        *,
        because: str = "",
        also: Iterable[int] = (),
    ) -> None:
        guilty, related = _place(at)
        related = (*related, *also)
        transcript = self._server.wire.transcript
        if transcript.limit and outcome in {Outcome.FAIL, Outcome.WARN}:
            outcome, actual = Outcome.BROKEN, f"not judged: {transcript.limit}"
        if guilty in transcript.unjudged and outcome is not Outcome.UNSEEN:
            outcome, actual = Outcome.BROKEN, UNJUDGED
        shown = outcome in {Outcome.FAIL, Outcome.WARN, Outcome.NOTE}
        self.judgements.append(
            Judgement(
                clause=clause.id,
                revision=self._revision,
                outcome=outcome,
                scenario=self._scenario.id,
                expected=expected,
                actual=actual,
                wire=self._evidence(guilty, related) if shown else (),
                source=f"{self._scenario.path.rpartition('/')[2]}:{self._line()}",
                process=transcript.label,
                replay=transcript.replay,
                because=because,
                reproduction=self._by_curl(guilty, related) if shown else "",
            )
        )

    def _by_curl(self, guilty: int | None, related: Iterable[int]) -> str:
        """Return the shell lines that send the request of a finding again; empty on stdio."""
        transcript = self._server.wire.transcript
        return by_curl(list(transcript), guilty, related, transcript.exchanges)

    def _evidence(self, guilty: int | None, related: Iterable[int]) -> tuple[WireLine, ...]:
        transcript = self._server.wire.transcript
        lines = transcript.since(self._server.start)
        return evidence(lines, guilty, related, transcript.exchanges)

    def _line(self) -> int:
        """Return the line of the scenario that called us, directly or through helpers."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  (the documented way to callers)
        while frame is not None:
            if frame.f_code.co_filename.replace("\\", "/").endswith(self._scenario.path):
                return frame.f_lineno
            frame = frame.f_back
        return self._scenario.line

    def broken(self, why: str) -> None:
        """Make every clause without a judgement BROKEN, with the reason."""
        judged = {judgement.clause for judgement in self.judgements}
        for clause in self._clauses.values():
            if clause.id not in judged:
                self.judgements.append(
                    Judgement(
                        clause=clause.id,
                        revision=self._revision,
                        outcome=Outcome.BROKEN,
                        scenario=self._scenario.id,
                        expected=clause.statement,
                        actual=why,
                        wire=self._evidence(None, ()),
                        process=self._server.wire.transcript.label,
                    )
                )


_LIGHTNESS = (Breach.FAIL, Breach.WARN, Breach.NOTE)


def _place(at: Reply | Entry | int | None) -> tuple[int | None, tuple[int, ...]]:
    if isinstance(at, Reply):
        return (at.entry or at.asked), (at.asked,)
    if isinstance(at, Entry):
        return at.n, ()
    return at, ()
