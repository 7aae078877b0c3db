"""Rules on all traffic: apply them to every transcript, combine the results. Sends nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcp_touchstone.catalog.clause import Breach, Clause
from mcp_touchstone.catalog.revision import META, is_modern
from mcp_touchstone.catalog.scenario import DISCOVERY, Ambient, Seen, Watch
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.judging.invalid_requests import has_invalid_value
from mcp_touchstone.results.verdict import (
    Judgement,
    Outcome,
    WireLine,
    by_curl,
    carriers,
    evidence,
)
from mcp_touchstone.transport.process import Ending, Step, left
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.exchange import Exchange, Origin
from mcp_touchstone.wire.framing import Fault, Kind, object_in, value_in
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.near_miss import CURES, EMBEDDED
from mcp_touchstone.wire.transcript import UNJUDGED, Entry, Source, Transcript

INVALID: Final = "our request had an invalid value, which the server may have repeated"
SUCCESS: Final = range(200, 300)
CONTENT: Final = frozenset({"schema", "server", "tools", "prompts", "resources", "completion"})
"""Chapters about the content of results."""

CAPABILITIES: Final = META + "clientCapabilities"


@dataclass(frozen=True, slots=True)
class Record:
    """One transcript, with the data that ambient rules need.

    Attributes:
        transcript: the numbered lines.
        ending: the end of the process; None while it runs.
        stderr: the end of the process's stderr.
        judged: the side whose lines are judged: THEM in the transcript.
        peer: for rules on clients, the same conversation with the client in our place: lines have
            equal numbers, and its session has the requests of the client with their answers.
        scenario: the scenario that our server played for a client; empty for another server.
        alone: whether the client has no other conversation in that scenario.
        walked: cache of messages of the transcript, by roles, or by kind and methods of answers,
            with the length of the transcript at that time.
        opened: cache of our ``initialize`` requests, by the length of the transcript.
    """

    transcript: Transcript
    profile: ServerProfile
    ending: Ending | None = None
    stderr: bytes = b""
    judged: Side = Side.SERVER
    peer: Transcript | None = None
    scenario: str = ""
    alone: bool = True
    walked: dict[tuple[object, ...], tuple[int, list[tuple[Entry, Message]]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    opened: dict[int, list[Entry]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def revision(self) -> str:
        """The revision of this connection."""
        return self.transcript.revision

    def observed(self, watch: Watch) -> Iterator[Seen]:
        """Yield what a rule sees here."""
        return watch(self)

    def lent(self, rule: Ambient) -> Iterator[Seen]:
        """Yield what a rule of another suite sees here."""
        return rule.watch(self)

    def lines(self) -> Iterator[Entry]:
        """Yield the server's lines."""
        return (entry for entry in self.transcript if entry.source is Source.THEM)

    def messages(self, *roles: Role) -> Iterator[tuple[Entry, Message]]:
        """Yield the server's messages, optionally of some roles only."""
        if not roles:
            return self._once((), lambda: ((e, m) for e in self.lines() for m in e.messages))
        return self._once(roles, lambda: (one for one in self.messages() if one[1].role in roles))

    def answers(self, kind: Kind, *methods: str) -> Iterator[tuple[Entry, Message]]:
        """Yield results or errors that answer a request of ours, optionally of some methods."""
        pairs = self.messages(Role.ANSWER, Role.SECOND_ANSWER)
        return self._once(
            ("answers", kind, *methods),
            lambda: (
                pair
                for pair in pairs
                if pair[1].kind is kind and (not methods or pair[1].method in methods)
            ),
        )

    def _once(
        self, asked: tuple[object, ...], find: Callable[[], Iterable[tuple[Entry, Message]]]
    ) -> Iterator[tuple[Entry, Message]]:
        """Yield the messages from the cache, or find them first: many rules need the same ones."""
        length = len(self.transcript)
        known = self.walked.get(asked)
        if known is None or known[0] != length:
            known = self.walked[asked] = length, [*find()]
        return iter(known[1])

    def asked_under(self, message: Message) -> Any:
        """Return the version that the request of an answer names; None if it names none."""
        asked = self.asked_on(message.answers)
        return value_in(_ours(asked), "params", "_meta", META + "protocolVersion")

    def declared(self, line: int) -> dict[str, Any]:
        """Return the client's capabilities on a line: of that request, or of the session."""
        entry: Entry | None = self.transcript[line]
        if is_modern(self.revision):
            return object_in(_ours(entry), "params", "_meta", CAPABILITIES)
        entry = max((e for e in self._openings() if e.n <= line), key=lambda e: e.n, default=None)
        return object_in(_ours(entry), "params", "capabilities")

    def _openings(self) -> list[Entry]:
        """Return our ``initialize`` requests; a server may ask thousands of times for them."""
        length = len(self.transcript)
        if length not in self.opened:
            self.opened[length] = [
                entry
                for entry in self.transcript
                if value_in(_ours(entry), "method") == "initialize"
            ]
        return self.opened[length]

    def asked_on(self, line: int | None) -> Entry | None:
        """Return our line by its number."""
        return None if line is None else self.transcript[line]

    def is_silence(self, line: int) -> bool:
        """Return whether nothing explains that a line got no answer: no exit, no HTTP status."""
        return not self.instead(line)

    def instead(self, line: int) -> str:
        """Return the HTTP error or the exit that came in place of an answer; empty for none."""
        carried = carriers(self.transcript.exchanges).get(line)
        if carried is not None and Origin(carried).refuses and not carried.messages:
            return str(carried)
        if self.ending is not None and self.ending.step is Step.ITSELF:
            return left(self.ending.status)
        return ""

    def cut(self, line: int) -> str:
        """Return the response that ended without the answer to a line; empty for none.

        It is certain that no answer comes any more: each response to the request has ended, none
        can be continued after an event, and the server served a later request.
        """
        carrying = self._carrying(line)
        ended = _end(carrying)
        if ended is None or carrying[0].status not in SUCCESS:
            return ""
        others = self.transcript.exchanges
        is_over = any(other.verb == "DELETE" and other.began <= ended for other in others)
        goes_on = any(other.began >= ended and other.status in SUCCESS for other in others)
        has_ids = any(event.id for one in carrying for event in one.events)
        resumable = has_ids and not is_modern(self.revision) and carrying[-1].status in SUCCESS
        if is_over or resumable or not goes_on:
            return ""
        what = "stream" if carrying[-1].streams else "response"
        return f"the end of the {what}, {carrying[-1]}"

    def ended_by(self, line: int, seconds: float) -> bool:
        """Whether the response to the request on a line had ended by then, without an answer."""
        ended = _end(self._carrying(line)[:1])
        return ended is not None and ended <= seconds

    def _carrying(self, line: int) -> list[Exchange]:
        """Return the exchanges of a line: the request, and those that continue its stream."""
        return [one for one in self.transcript.exchanges if one.line == line]

    def evidence(self, seen: Seen) -> tuple[WireLine, ...]:
        """Return the lines that prove an observation."""
        return evidence(
            list(self.transcript),
            seen.n,
            self.related(seen.n),
            self.transcript.exchanges,
            self.judged,
        )

    def by_hand(self, n: int | None) -> str:
        """Return the shell lines that send the request of a line again; empty on stdio."""
        sent = self.transcript.exchanges
        return by_curl(list(self.transcript), n, self.related(n), sent)

    def related(self, n: int | None) -> list[int]:
        """Return the lines of ours that a line answers."""
        messages = () if n is None else self.transcript[n].messages
        return [one.answers for one in messages if one.answers is not None]

    def is_barred(self, line: int) -> bool:
        """Whether a line was refused for want of a token or a scope, or as one too many."""
        carried = carriers(self.transcript.exchanges).get(line)
        return carried is not None and bool(carried.barred)


def _end(exchanges: list[Exchange]) -> float | None:
    """Return the seconds at which the last one ended; None unless the server ended all of them."""
    if not exchanges or any(one.left or one.fault or one.ended is None for one in exchanges):
        return None
    return max(one.ended for one in exchanges if one.ended is not None)


def _ours(entry: Entry | None) -> Any:
    """Return the JSON value of one of our lines; None for other entries."""
    return None if entry is None or entry.source is not Source.US else entry.value


def _observed(rule: Ambient, record: Record) -> Iterator[Seen]:
    """Yield what a rule sees in a record; nothing in an exchange that it does not read."""
    return record.observed(rule.watch) if rule.of in {"", record.scenario} else iter(())


def judge(rule: Ambient, records: Iterable[Record], clauses: Iterable[Clause]) -> list[Judgement]:
    """Apply one rule to the records of one revision; return one counted judgement per clause."""
    wanted = {clause.id: clause for clause in clauses}
    tally: dict[str, _Tally] = {clause_id: _Tally() for clause_id in wanted}
    revision, side = "", Side.SERVER
    for record in records:
        revision, side = record.revision, record.judged
        for seen in _observed(rule, record):
            if seen.clause in tally:
                tally[seen.clause].add(seen, record, wanted[seen.clause])
    return [
        counted.judgement(wanted[clause_id], rule, revision, side)
        for clause_id, counted in tally.items()
    ]


def breaches(
    rule: Ambient, record: Record, clauses: Iterable[Clause]
) -> Iterator[tuple[str, int | None]]:
    """Yield the failures and warnings of one record: the clause, and the number of the line."""
    wanted = {clause.id: clause for clause in clauses}
    for seen in _observed(rule, record):
        clause = wanted.get(seen.clause)
        if (
            clause is not None
            and not seen.passed
            and seen.n not in record.transcript.unjudged
            and _weight(seen, record, clause) is not Breach.NOTE
        ):
            yield seen.clause, seen.n


def origins(
    rule: Ambient, records: Iterable[Record], clauses: Sequence[Clause]
) -> Iterator[tuple[str, str]]:
    """Yield the failures and warnings of records: the clause, and the scenario that led to it."""
    for record in records:
        entries = list(record.transcript)
        for clause, line in breaches(rule, record, clauses):
            yield clause, _origin(entries, line)


def _weight(seen: Seen, record: Record, clause: Clause) -> Breach:
    lightness = (Breach.FAIL, Breach.WARN, Breach.NOTE)
    mild = Breach.WARN if _answers_invalid_value(seen, record, clause) else clause.breach
    return max(seen.mild or clause.breach, clause.breach, mild, key=lightness.index)


def _answers_invalid_value(seen: Seen, record: Record, clause: Clause) -> bool:
    """Whether the content of a result is malformed, and our request had an invalid value.

    The server may have repeated that value. It should have refused it, which other clauses judge.
    """
    if clause.chapter not in CONTENT or seen.regardless or seen.n is None:
        return False
    spoken = record.profile.spoken.get(record.revision)
    tools = spoken.named("tools") if spoken is not None else []
    return any(
        message.kind is Kind.RESULT
        and message.answers is not None
        and has_invalid_value(record.transcript[message.answers].value, tools)
        for message in record.transcript[seen.n].messages
    )


@dataclass(slots=True)
class _Tally:
    looked: int = 0
    breaches: int = 0
    silent: bool = True
    gravest: tuple[Outcome, Seen, Record] | None = None

    def add(self, seen: Seen, record: Record, clause: Clause) -> None:
        self.looked += 1
        unjudged = seen.n in record.transcript.unjudged
        if seen.passed and not unjudged:
            return
        self.breaches += 1
        self.silent = self.silent and seen.silent
        if unjudged:
            outcome, seen = Outcome.BROKEN, replace(seen, actual=UNJUDGED)
        else:
            outcome = Outcome(_weight(seen, record, clause).value)
        if self.gravest is None or outcome.rank < self.gravest[0].rank:
            self.gravest = (outcome, seen, record)

    def judgement(self, clause: Clause, rule: Ambient, revision: str, side: Side) -> Judgement:
        source = f"{rule.path.rpartition('/')[2]}:{rule.line}"
        if self.gravest is None:
            nothing = f"the {side} sent nothing this rule speaks of"
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
        origin = _origin(entries, guilty)
        return Judgement(
            clause=clause.id,
            revision=revision,
            outcome=outcome,
            scenario=rule.id,
            expected=seen.expected,
            actual=seen.actual,
            wire=record.evidence(seen),
            count=self.breaches,
            source=source,
            reproduction=record.by_hand(guilty),
            process=record.transcript.label,
            because=INVALID if _answers_invalid_value(seen, record, clause) else "",
            replay=record.transcript.replay or ("--select", origin),
            origin=origin,
            silent=self.silent,
        )


def _origin(entries: Sequence[Entry], n: int | None) -> str:
    """Return the scenario that caused a line: that of its request, or the last one before it."""
    if n is not None:
        for message in entries[n - 1].messages:
            asked = message.answers
            if asked is not None and entries[asked - 1].scenario:
                return entries[asked - 1].scenario
    earlier = (entry.scenario for entry in reversed(entries[:n]) if entry.scenario)
    return next(earlier, DISCOVERY)


def beside_json(entry: Entry) -> str:
    """Return what an event or a body has besides strict JSON (RFC 8259); empty for nothing.

    We read its message in spite of that, as no client need do.
    """
    if entry.slip is not None and entry.slip in EMBEDDED:
        return f"{entry.slip}; {CURES[entry.slip]}"
    faults = frozenset[Fault]() if entry.reading is None else entry.reading.faults
    if Fault.BYTE_ORDER_MARK in faults:
        return "a byte order mark before the message; write UTF-8 without it"
    return str(Fault.CONSTANT) if Fault.CONSTANT in faults else ""
