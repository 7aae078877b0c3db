"""Rules about all traffic: run them over every transcript, fold what they saw. Sends nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.clause import Breach, Clause
from mcp_touchstone.framing import Kind
from mcp_touchstone.process import Ending
from mcp_touchstone.recon import Dossier
from mcp_touchstone.revision import META, is_modern
from mcp_touchstone.scenario import Ambient, Seen
from mcp_touchstone.session import Message, Role
from mcp_touchstone.transcript import Entry, Source, Transcript
from mcp_touchstone.verdict import Judgement, Outcome, evidence

CAPABILITIES: Final = META + "clientCapabilities"


@dataclass(frozen=True, slots=True)
class Record:
    """One transcript as an ambient rule sees it.

    Attributes:
        transcript: the numbered lines.
        dossier: what recon learnt.
        ending: how the process ended; None while it runs.
        stderr: the end of what the process wrote to stderr.
        walked: what was found by walking the transcript, for the next rule that asks: by roles,
            with the length it had.
        counted: what rules saw in it, by rule, once its process has ended; with its length.
    """

    transcript: Transcript
    dossier: Dossier
    ending: Ending | None = None
    stderr: bytes = b""
    walked: dict[tuple[Role, ...], tuple[int, list[tuple[Entry, Message]]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    counted: dict[str, "tuple[int, dict[str, _Tally]]"] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def revision(self) -> str:
        """The revision this connection speaks."""
        return self.transcript.revision

    def lines(self) -> Iterator[Entry]:
        """Walk the server's lines."""
        return (entry for entry in self.transcript if entry.source is Source.THEM)

    def messages(self, *roles: Role) -> Iterator[tuple[Entry, Message]]:
        """Walk the server's messages, optionally of some roles only."""
        length = len(self.transcript)
        known = self.walked.get(roles)
        if known is None or known[0] != length:
            pairs = (
                self.messages()
                if roles
                else ((entry, message) for entry in self.lines() for message in entry.messages)
            )
            found = [pair for pair in pairs if not roles or pair[1].role in roles]
            known = self.walked[roles] = length, found
        return iter(known[1])

    def answers(self, kind: Kind) -> Iterator[tuple[Entry, Message]]:
        """Walk results or errors that answer a request of ours."""
        return (
            (entry, message)
            for entry, message in self.messages(Role.ANSWER, Role.SECOND_ANSWER)
            if message.kind is kind
        )

    def declared(self, line: int) -> dict[str, Any]:
        """Give what the client declares on a line: with that very request, or for the session."""
        entry: Entry | None = self.transcript[line]
        if is_modern(self.revision):
            found = _member(_member(_member(entry, "params"), "_meta"), CAPABILITIES)
            return found if isinstance(found, dict) else {}
        openings = (e for e in self.transcript if _member(e, "method") == "initialize")
        entry = max((e for e in openings if e.n <= line), key=lambda e: e.n, default=None)
        found = _member(_member(entry, "params"), "capabilities")
        return found if isinstance(found, dict) else {}

    def asked_on(self, line: int | None) -> Entry | None:
        """Give our line by its number."""
        return None if line is None else self.transcript[line]


def _member(value: Any, name: str) -> Any:
    """Give a member of a JSON value, or of one of our lines; None where there is none."""
    if isinstance(value, Entry):
        value = value.value if value.source is Source.US else None
    return value.get(name) if isinstance(value, dict) else None


def judge(rule: Ambient, records: Iterable[Record], clauses: Iterable[Clause]) -> list[Judgement]:
    """Run one rule over the records of one revision; one judgement a clause, with a count."""
    wanted = {clause.id: clause for clause in clauses}
    tally: dict[str, _Tally] = {clause_id: _Tally() for clause_id in wanted}
    revision = ""
    for record in records:
        revision = record.revision
        for clause_id, seen in count(rule, record, wanted.values()).items():
            tally[clause_id].join(seen)
    return [
        counted.judgement(wanted[clause_id], rule, revision) for clause_id, counted in tally.items()
    ]


def count(rule: Ambient, record: Record, clauses: Iterable[Clause]) -> "dict[str, _Tally]":
    """Count what one rule sees in one record, for each of its clauses; once it has ended, once."""
    length = len(record.transcript)
    before, found = record.counted.get(rule.id, (-1, {}))
    if before != length:
        wanted = {clause.id: clause for clause in clauses}
        found = {clause_id: _Tally() for clause_id in wanted}
        for seen in rule.watch(record):
            if seen.clause in found:
                found[seen.clause].add(seen, record, wanted[seen.clause])
        if record.ending is not None:
            record.counted[rule.id] = length, found
    return found


def breaches(
    rule: Ambient, record: Record, clauses: Iterable[Clause]
) -> Iterator[tuple[str, int | None]]:
    """Walk what fails or warns in one record: the clause, and the number of the line."""
    wanted = {clause.id: clause for clause in clauses}
    for seen in rule.watch(record):
        clause = wanted.get(seen.clause)
        if clause is not None and not seen.held and _weight(seen, clause) is not Breach.NOTE:
            yield seen.clause, seen.n


def _weight(seen: Seen, clause: Clause) -> Breach:
    lightness = (Breach.FAIL, Breach.WARN, Breach.NOTE)
    return max(seen.mild or clause.breach, clause.breach, key=lightness.index)


@dataclass(slots=True)
class _Tally:
    looked: int = 0
    breaches: int = 0
    gravest: tuple[Outcome, Seen, Record] | None = None

    def add(self, seen: Seen, record: Record, clause: Clause) -> None:
        self.looked += 1
        if seen.held:
            return
        self.breaches += 1
        outcome = Outcome(_weight(seen, clause).value)
        if self.gravest is None or outcome.rank < self.gravest[0].rank:
            self.gravest = (outcome, seen, record)

    def join(self, later: "_Tally") -> None:
        """Take over what was seen in a later record."""
        self.looked += later.looked
        self.breaches += later.breaches
        graver = self.gravest is None or (
            later.gravest is not None and later.gravest[0].rank < self.gravest[0].rank
        )
        if graver:
            self.gravest = later.gravest

    def judgement(self, clause: Clause, rule: Ambient, revision: str) -> Judgement:
        source = f"{rule.path.rpartition('/')[2]}:{rule.line}"
        if self.gravest is None:
            nothing = "the server sent nothing this rule speaks of"
            if self.looked:
                outcome, actual = Outcome.PASS, ""
            else:
                outcome = Outcome.UNSEEN if clause.conditional else Outcome.BROKEN
                actual = nothing
            return Judgement(
                clause=clause.id,
                revision=revision,
                outcome=outcome,
                scenario=rule.id,
                expected="" if self.looked else clause.statement,
                actual=actual,
                count=self.looked,
                source=source,
            )
        outcome, seen, record = self.gravest
        entries = list(record.transcript)
        guilty = seen.n
        related: list[int] = []
        if guilty is not None:
            related = [m.answers for m in entries[guilty - 1].messages if m.answers is not None]
        return Judgement(
            clause=clause.id,
            revision=revision,
            outcome=outcome,
            scenario=rule.id,
            expected=seen.expected,
            actual=seen.actual,
            wire=evidence(entries, guilty, related),
            count=self.breaches,
            source=source,
            process=record.transcript.label,
            replay=record.transcript.replay,
        )
