"""The numbered record of one connection: lines sent, lines received, events.

It may be read while another thread appends, see ``transport.live_transcript``. Bounded: the output
of a server is cut off at a limit, and the record says so.
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from mcp_touchstone.wire.allowance import Allowance
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.exchange import Exchange, Origin
from mcp_touchstone.wire.framing import Fault, Kind, Line, Reading, kind_of, read, split_glued
from mcp_touchstone.wire.lifecycle import Event, Message, Phase, Role, SessionState
from mcp_touchstone.wire.near_miss import Slip, corrected
from mcp_touchstone.wire.spread import SpreadReader

BYTES_LIMIT: Final = 96 * 1024 * 1024
"""Bytes of server output kept for one process."""

ENTRIES_LIMIT: Final = 20_000
"""Lines of server output kept for one process; ten lines of one message count as one."""

SILENT_LIMIT: Final = 5_000
"""The same, before it has answered a request: discovery tries several such processes."""

PACKED: Final = 8 * 1024
"""Bytes of a line from which it is kept compressed. Most of such lines are attacks, and repeat one
character."""

UNJUDGED: Final = f"not judged: a message is {Fault.TOO_DEEP}"
"""The reason a clause was not judged at a line of ``unjudged``."""


T = TypeVar("T")


class Source(StrEnum):
    """Cause of an entry."""

    US = "us"
    THEM = "them"
    EVENT = "event"


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen, it is made five times as slowly
class Entry:
    """One numbered line of the record.

    Attributes:
        n: line number, from 1.
        at: seconds since the start of the process.
        source: its cause.
        kept: ``raw``, compressed if ``packed``.
        length: real length of the line in bytes.
        reading: the JSON of a line of the server.
        messages: the server's messages in it, in context.
        scenario: the scenario that was running at that time.
        payload: the payload of an attack in it.
        malformed: whether we broke the line on purpose.
        value: the value we sent, if it was JSON.
        spread: number of lines of the message that ends here; 0 for one line.
        slip: the fault of the line, if ``messages`` are the intended ones and not those of ``raw``.
        origin: the HTTP exchange that it came in; None on stdio.
        packed: whether the line is long, see ``PACKED``.
    """

    n: int
    at: float
    source: Source
    kept: bytes
    length: int
    reading: Reading | None = None
    messages: tuple[Message, ...] = ()
    scenario: str = ""
    payload: str = ""
    malformed: bool = False
    value: Any = None
    spread: int = 0
    slip: Slip | None = None
    origin: Origin | None = None
    packed: bool = False

    @property
    def raw(self) -> bytes:
        """The bytes without line feed (for an event: its sentence)."""
        return zlib.decompress(self.kept) if self.packed else self.kept

    @property
    def text(self) -> str:
        """The line as text, with replacement characters for invalid UTF-8."""
        return self.raw.decode("utf-8", "replace")

    @property
    def happened(self) -> Happened | None:
        """The event that it is; None for a line, and for an event that no rule reads."""
        return Happened.of(self.text) if self.source is Source.EVENT else None

    def follows(self, other: "Entry") -> bool:
        """Whether it was sent after another line; two HTTP streams have no common order."""
        streams = {id(one.origin.exchange) for one in (self, other) if one.origin is not None}
        return self.n > other.n and len(streams) <= 1


@dataclass(slots=True)
class Transcript:
    """All lines of one connection, in the order we observed them.

    Attributes:
        capabilities: the client capabilities we declared.
        label: name of the process, for people.
        scenario: the running scenario; copied to each entry.
        payload: the payload of an attack in our next line.
        overflow: the reason we stopped listening; empty while we listen.
        limit: the limit of the run that was reached, if that is the reason; later entries are then
            no evidence about the server.
        ended: whether the server's output reached end of file.
        spoke: whether the server ever wrote a line.
        unjudged: numbers of the lines that are no evidence, because they are nested too deep.
        memo: results that rules computed from it, for later rules.
        replay: command line options that generate the same messages again; mostly empty.
        allowance: the memory limit of all transcripts of the run together.
        slip: the fault of each message of the server, in spite of which they are read.
        exchanges: the HTTP exchanges, in the order of their beginnings; empty on stdio.
        most: greatest number of lines of a recording; 0 for the limits of a live connection.
    """

    revision: str
    clock: Callable[[], float]
    capabilities: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    scenario: str = ""
    payload: str = ""
    overflow: str = ""
    limit: str = ""
    ended: bool = False
    spoke: bool = False
    unjudged: set[int] = field(default_factory=set)
    session: SessionState = field(default_factory=SessionState)
    memo: dict[Any, Any] = field(default_factory=dict)
    replay: tuple[str, ...] = ()
    allowance: Allowance = field(default_factory=Allowance)
    slip: Slip | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    most: int = 0
    _entries: list[Entry] = field(default_factory=list)
    _repaired: dict[int, Entry] = field(default_factory=dict)
    """Number of a line -> the line as it was meant; it was recorded before its fault was known."""
    _answers: dict[int, tuple[Entry, Message]] = field(default_factory=dict)
    _spread: SpreadReader = field(default_factory=SpreadReader)
    _bytes: int = 0
    _spared: int = 0

    def changing(self) -> AbstractContextManager[None]:
        """Return a context in which a change is made; one that threads share locks in it."""
        return nullcontext()

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over a copy of the present entries."""
        return iter(self.since(0))

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def since(self, n: int) -> list[Entry]:
        """Return the entries after line ``n``."""
        entries = self._entries[n:]
        return [self._repaired.get(one.n, one) for one in entries] if self._repaired else entries

    def __getitem__(self, n: int) -> Entry:
        """Return line ``n``, counted from 1."""
        return self._repaired.get(n) or self._entries[n - 1]

    def once(self, rule: Any, compute: Callable[[], T]) -> T:
        """Return what ``compute`` returns for the present entries; call it only if they grew.

        Args:
            rule: the key of the result.
            compute: returns it.
        """
        length = len(self._entries)
        known = self.memo.get(rule)
        if known is None or known[0] != length:
            known = self.memo[rule] = length, compute()
        found: T = known[1]
        return found

    def events(self, *kinds: Happened) -> list[Entry]:
        """Return the events of some kinds, by default all: most rules look for very few lines."""
        found = self.once(Source.EVENT, lambda: [e for e in self if e.source is Source.EVENT])
        return [one for one in found if one.happened in kinds] if kinds else found

    def enter(self, scenario: str) -> None:
        """Begin a scenario: later entries belong to it; to none if it is empty."""
        self.scenario = scenario

    def agree(self, revision: str) -> None:
        """Say which revision the two sides agreed on."""
        self.revision = revision

    def declare(self, capabilities: dict[str, Any]) -> None:
        """Say which capabilities of the client we declare from now on."""
        self.capabilities = capabilities

    def begin(self, exchange: Exchange) -> None:
        """Add an HTTP exchange."""
        self.exchanges.append(exchange)

    def carry(self, payload: str) -> None:
        """Say that the next line of ours carries a payload of an attack."""
        self.payload = payload

    def repeat_by(self, options: tuple[str, ...]) -> None:
        """Say which options of the command line generate the same messages again."""
        self.replay = options

    def keep(self, key: Any, value: Any) -> None:
        """Keep a fact for later rules and scenarios, whatever is added."""
        self.memo[key] = value

    def said(
        self,
        raw: bytes,
        value: Any,
        *,
        malformed: bool = False,
        required: bool = True,
        modern: bool = False,
    ) -> int:
        """Record a line of ours; return its number."""
        with self.changing():
            entry = self._append(
                Source.US,
                raw.removesuffix(b"\n"),
                len(raw),
                malformed=malformed,
                value=value,
                payload=self.payload,
            )
            self.payload = ""
            if isinstance(value, dict) and "method" in value and "id" in value:
                self.allowance.ask()
            elif kind_of(value) in {Kind.RESULT, Kind.ERROR}:  # it may send thousands of requests
                self._stop_at(self.allowance.take(raw))
            self.session.sent(value, entry.n, required=required and not malformed, modern=modern)
            return entry.n

    def heard(self, line: Line, origin: Origin | None = None) -> None:
        """Record a line of the server, or the message in an HTTP response."""
        self.heard_as(line, read(line), origin)

    def heard_as(self, line: Line, reading: Reading, origin: Origin | None = None) -> None:
        """Do the same for a line that was read before."""
        if origin is not None or Fault.NOT_JSON not in reading.faults:
            self._take(line, reading, origin)
            return
        for part in split_glued(line):
            self._take(part, reading if part is line else read(part))
            if self.overflow:
                return

    def _take(self, line: Line, reading: Reading, origin: Origin | None = None) -> None:
        with self.changing():
            if self.overflow:
                return
            self.spoke = True
            spread = 0
            if origin is None:
                reading, spread = self._spread.read(line, reading)
            self._spared += spread * 9 // 10
            event = None if origin is None else origin.event
            more = 0 if event is None else len(event.name) + len(event.id or "")
            full = self.allowance.take(line.raw, reading.value, more)
            messages: tuple[Message, ...] = ()
            meant = self._meant(line.raw, reading)
            if meant is not None:
                messages = tuple(self.session.heard(meant))
                reading = _as_meant(reading, meant)
            elif reading.readable and not self._spread.unfinished:
                messages = tuple(self.session.heard(reading.value, self._refused(origin)))
            entry = self._append(
                Source.THEM,
                line.raw,
                line.length,
                reading=reading,
                messages=messages,
                spread=spread,
                slip=None if meant is None else self.slip,
                origin=origin,
            )
            self._note_answers(entry)
            if Fault.TOO_DEEP in reading.faults:
                self.unjudged.add(entry.n)
            self._bytes += len(line.raw)
            if Fault.TOO_LONG in reading.faults:
                self.overflow = f"it wrote a line of {line.length:,} bytes and more"
            elif Fault.TOO_MANY in reading.faults:
                self.overflow = f"it wrote a line of {Fault.TOO_MANY}"
            elif self._bytes > BYTES_LIMIT:
                self.overflow = f"it wrote more than {BYTES_LIMIT // 2**20} MiB"
            elif len(self._entries) - self._spared > self._most_entries:
                self.overflow = f"it wrote more than {self._most_entries:,} lines"
            else:
                self._stop_at(full)

    @property
    def _most_entries(self) -> int:
        live = ENTRIES_LIMIT if self._answers else min(SILENT_LIMIT, ENTRIES_LIMIT)
        return self.most or live

    def took(self, exchange: Exchange) -> None:
        """Count what is kept of an exchange beside its messages, after its end."""
        kept = sum(len(name) + len(value) for name, value in exchange.headers)
        kept += sum(len(event.name) + len(event.id or "") for event in exchange.events)
        with self.changing():
            self._stop_at(self.allowance.take(exchange.body, more=kept))

    def _stop_at(self, limit: str) -> None:
        """Stop listening if the limit of the run was reached."""
        if limit and not self.overflow:
            self.overflow = self.limit = limit

    def read_on(self, slip: Slip) -> None:
        """Read all messages, earlier ones too, in spite of a fault that each of them has."""
        with self.changing():
            self.slip = slip
            self.memo.clear()
            for entry in self._entries:
                meant = entry.reading and self._meant(entry.raw, entry.reading)
                if entry.reading is not None and meant is not None:
                    messages = tuple(self.session.heard(meant))
                    reading = _as_meant(entry.reading, meant)
                    repaired = replace(entry, messages=messages, slip=slip, reading=reading)
                    self._repaired[entry.n] = repaired
                    self._note_answers(repaired)

    def _meant(self, raw: bytes, reading: Reading) -> Any:
        if self.slip is None:
            return None
        waiting = [asked.value["id"] for asked in self.session.asked if not asked.answers]
        return corrected(self.slip, raw, reading.value, waiting)

    def _note_answers(self, entry: Entry) -> None:
        for message in entry.messages:
            answer = message.role in {Role.ANSWER, Role.REFUSAL}
            if answer and message.answers is not None:
                self._answers[message.answers] = entry, message

    def _refused(self, origin: Origin | None) -> int | None:
        """Return our line that an HTTP error answers; 0 for a request without a message.

        A DELETE has no message, so the body of its response is that of an error, whatever its
        status. None: it is no HTTP error, or the answer to a line that was malformed on purpose.
        """
        if origin is None or not (origin.refuses or origin.exchange.verb == "DELETE"):
            return None
        if not origin.exchange.line or origin.exchange.verb != "POST":
            return 0  # the error of a GET that continues a stream is no answer to its request
        said = self._entries[origin.exchange.line - 1]
        return said.n if not said.malformed or _is_notification(said.value) else None

    def happened(self, sentence: str) -> int:
        """Record an event that is not a line: an exit, a signal, end of file."""
        with self.changing():
            entry = self._append(Source.EVENT, sentence.encode(), 0)
            return entry.n

    def finished(self) -> None:
        """Record the end of the server's output."""
        with self.changing():
            self.ended = True

    def input_closed(self, event: str = Happened.INPUT_CLOSED) -> None:
        """Record, once, the event after which the server reads no more messages."""
        with self.changing():
            if self.session.phase is Phase.CLOSING:
                return
            self.session.move(Event.INPUT_CLOSED)
            self._append(Source.EVENT, event.encode(), 0)

    def session_ended(self, line: int, event: str) -> None:
        """Record that the server ended the session in place of an answer to a line of ours."""
        with self.changing():
            self.session.expired(line)
            self.input_closed(event)

    def answer_to(self, asked: int) -> tuple[Entry, Message] | None:
        """Return the answer to the request on line ``asked``, and its line."""
        return self._answers.get(asked)

    def _append(self, source: Source, raw: bytes, length: int, **more: Any) -> Entry:
        n, at = len(self._entries) + 1, self.clock()
        packed = len(raw) >= PACKED
        kept = zlib.compress(raw, zlib.Z_BEST_SPEED) if packed else raw
        entry = Entry(n, at, source, kept, length, scenario=self.scenario, packed=packed, **more)
        self._entries.append(entry)
        return entry


def _as_meant(reading: Reading, meant: Any) -> Reading:
    """Return the reading of a line with a message inside other text; others do not change."""
    if isinstance(reading.value, dict):
        return reading
    return Reading(meant, reading.faults - {Fault.NOT_JSON})


def _is_notification(value: Any) -> bool:
    """Return whether a value is a notification, or a batch of nothing else."""
    several = value if isinstance(value, list) else [value]
    return bool(several) and all(kind_of(one) is Kind.NOTIFICATION for one in several)
