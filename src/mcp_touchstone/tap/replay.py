"""A recording as two transcripts, one for each side, and what rules need to judge them."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.connection.server_profile import LISTS, ServerProfile, Spoken
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.tap.recording import MOST_ROWS, Recording, Row
from mcp_touchstone.transport.http_exchange import is_message
from mcp_touchstone.transport.process import Ending, Step
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.exchange import Exchange, Origin
from mcp_touchstone.wire.framing import (
    Kind,
    Line,
    Reading,
    id_key,
    kind_of,
    object_in,
    read,
    split_glued,
    value_in,
)
from mcp_touchstone.wire.lifecycle import Phase
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Transcript

HURRIED: Final = 5.0
"""Seconds that a server has to exit after its input is closed, as in a check."""

UNLIMITED: Final = Pace(math.inf)
"""No limit for a first answer: no verdict on a recording rests on time."""

_EVENTS: Final = {
    Happened.SIGNALLED + "SIGTERM": Happened.TERMINATED,
}
"""Events of a recording -> those that rules on servers read."""


@dataclass(slots=True)
class Replay:
    """A conversation read from both sides; equal lines have equal numbers.

    Attributes:
        source: the recording.
        revision: the revision that was agreed, or else named; empty if none is known.
        server: the lines of the server in the context of those of the client.
        client: the lines of the client in the context of those of the server.
        lines: the rows with their numbers; those of standard error have the number 0.
        opening: the answer to initialize or server/discover.
        client_info: name and version of the client.
        alone: whether the client has no other conversation in its scenario.
        named_in: the scenario in which the client named a revision, if it named none here.
    """

    source: Recording
    revision: str
    server: Transcript
    client: Transcript
    lines: list[tuple[int, Row]] = field(default_factory=list)
    opening: Reply = field(default_factory=lambda: Reply(0))
    client_info: dict[str, Any] = field(default_factory=dict)
    alone: bool = True
    named_in: str = ""

    @property
    def transport(self) -> Transport:
        """The transport of the conversation."""
        return Transport.HTTP if self.source.url else Transport.STDIO

    @property
    def server_info(self) -> dict[str, Any]:
        """Name and version of the server."""
        return Spoken(self.opening).server_info

    def server_record(self) -> Record:
        """Return what rules on servers read."""
        stderr = b"\n".join(r.line.raw for r in self.source.rows if r.side is Side.STDERR)
        return Record(self.server, self.profile(), self._ending(), stderr)

    def client_record(self) -> Record:
        """Return what rules on clients read."""
        profile = ServerProfile(UNLIMITED)
        return Record(
            self.client,
            profile,
            judged=Side.CLIENT,
            peer=self.server,
            scenario=self.source.scenario,
            alone=self.alone,
        )

    def profile(self) -> ServerProfile:
        """Return what the conversation shows of the server."""
        lists: dict[str, list[Any]] = {}
        for feature, (method, member) in LISTS.items():
            for asked in self.server.session.asked:
                answer = self.server.answer_to(asked.line)
                if asked.method != method or answer is None:
                    continue
                items = value_in(answer[1].value, "result", member)
                if isinstance(items, list):
                    lists.setdefault(feature, []).extend(items)
        spoken = {self.revision: Spoken(self.opening, lists)} if self.revision else {}
        return ServerProfile(UNLIMITED, spoken)

    def _ending(self) -> Ending | None:
        exits = [*self.source.events(Happened.EXITED, Happened.DIED)]
        if not exits:
            return None
        last = exits[-1]
        code = last.text.removeprefix(Happened.EXITED)
        status = int(code) if re.fullmatch(r"\d{1,9}", code) else -1
        closed = next(self.source.events(Happened.CLIENT_CLOSED), None)
        signalled = next(self.source.events(Happened.SIGNALLED), None)
        step = Step.ITSELF if closed is None else Step.INPUT_CLOSED
        step = step if signalled is None else Step.TERMINATED
        first = min((r.at for r in (closed, signalled) if r is not None), default=last.at)
        return Ending(step, status, last.at - first, hurried=last.at - first < HURRIED)


def replay(source: Recording, revision: str = "") -> Replay:
    """Read a recording from both sides.

    Args:
        revision: in which; empty for that which was agreed, or else named, or offered to it.
    """
    now = [0.0]
    revision = revision or named_revision(source) or source.offered
    label = source.path.stem
    exchanges: list[Exchange] = []
    server, client = (
        Transcript(revision, lambda: now[0], label=label, exchanges=exchanges, most=MOST_ROWS)
        for _ in range(2)
    )
    found = Replay(source, revision, server, client)
    known: dict[int, Exchange] = {}
    delivered: dict[str, bytes] = {}
    barred = {row.exchange for row in source.rows if row.barred}
    for row in source.rows:
        now[0] = row.at
        if row.exchange in barred and row.headers is None and row.side is not Side.EVENT:
            # It was refused unread: a client sends the same message again with a token.
            if row.side is Side.CLIENT and row.exchange in known:
                known[row.exchange].event_line = _happened(found, row, "POST without access")
        elif row.exchange:
            _replay_http(found, row, known, delivered)
        elif row.side is Side.STDERR:
            found.lines.append((0, row))
        elif row.side is Side.EVENT:
            sentence = _EVENTS.get(row.text, row.text)
            closed = row.happened is Happened.SERVER_CLOSED
            if closed and server.session.phase is Phase.CLOSING:
                sentence = Happened.SERVER_CLOSED_LATER  # rules ask whether the server closed first
            if row.happened is Happened.CLIENT_CLOSED:
                server.input_closed()
            else:
                server.happened(sentence)
            client.happened(row.text)
            found.lines.append((len(client), row))
        else:
            for part, reading in _parts(row.line):
                _said(found, row if part is row.line else replace(row, line=part), reading)
        if server.overflow or client.overflow or len(server) != len(client):
            break
    _know(found)
    return found


@dataclass(frozen=True, slots=True)
class _Sent(Origin):
    """The request that carried a line of the client."""

    @property
    def refuses(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.exchange.request


def _replay_http(
    found: Replay, row: Row, known: dict[int, Exchange], delivered: dict[str, bytes]
) -> None:
    """Read a part of an HTTP exchange.

    Args:
        delivered: the events so far by their ids; one that is delivered again is no new message.
    """
    exchange = known.get(row.exchange)
    if row.headers is not None and row.side is Side.CLIENT:
        verb, _, target = row.text.partition(" ")
        made = Exchange(row.exchange, verb, 0, row.headers, row.at, target=target)
        if target.partition("?")[0] == (urlsplit(found.source.url).path or "/"):
            known[row.exchange] = made
            found.server.begin(made)
        if verb != "POST" or row.exchange not in known:
            made.event_line = _happened(found, row, row.text)
    elif exchange is None:
        return
    elif row.headers is not None:
        exchange.status = int(row.text.partition(" ")[0])
        exchange.headers, exchange.headed = row.headers, row.at
        if Origin(exchange).refuses:
            asked = exchange.line or exchange.event_line
            _happened(found, row, f"HTTP {row.text}{f' to line {asked}' * bool(asked)}")
    elif row.side is Side.EVENT:
        exchange.ended, exchange.left = row.at, row.happened is Happened.CLIENT_LEFT
        exchange.fault = "" if exchange.left else row.text
        if row.text:
            _happened(found, row, row.text)
    elif row.side is Side.CLIENT:
        _said(found, row, read(row.line), _Sent(exchange))
        exchange.line = exchange.line or len(found.client)
    else:
        again = row.event and row.event.id and delivered.get(row.event.id) == row.line.raw
        _replay_answer(found, row, exchange, again=bool(again))
        if row.event and row.event.id:
            delivered[row.event.id] = row.line.raw


def _replay_answer(found: Replay, row: Row, exchange: Exchange, *, again: bool) -> None:
    """Read the body of a response, or an event of it."""
    origin = Origin(exchange, row.event and replace(row.event, data=None))
    reading = read(row.line)
    if origin.event is not None:
        exchange.events.append(origin.event)
        if not row.line.raw or origin.event.name != "message" or again:
            return
    elif not is_message(reading.value, origin.refuses):
        exchange.body = row.line.raw
        return
    exchange.messages += 1
    _said(found, row, reading, origin)


def _happened(found: Replay, row: Row, sentence: str) -> int:
    """Record an event of an exchange in both transcripts; return its number."""
    found.server.happened(sentence)
    number = found.client.happened(sentence)
    found.lines.append((number, Row(row.at, Side.EVENT, Line(raw := sentence.encode(), len(raw)))))
    return number


def _parts(line: Line) -> Iterator[tuple[Line, Reading]]:
    """Yield a line, or the messages in it, each with its JSON; each is read once."""
    reading = read(line)
    if reading.readable:
        yield line, reading
    else:
        yield from ((part, read(part)) for part in split_glued(line))


def _said(found: Replay, row: Row, reading: Reading, origin: Origin | None = None) -> None:
    """Record a line in both transcripts; rules count no silence, as the recording may just end."""
    sides = (found.server, found.client)
    here, there = sides if row.side is Side.SERVER else sides[::-1]
    here.heard_as(row.line, reading, origin)
    sent = reading.value if isinstance(reading.value, list) else [reading.value]
    malformed = bool(reading.faults) or any(kind_of(one) is Kind.ODD for one in sent)
    modern = rev.is_modern(found.revision)
    there.said(row.line.raw, reading.value, malformed=malformed, required=False, modern=modern)
    found.lines.append((len(found.client), row))


def _know(found: Replay) -> None:
    """Find the opening and the names of the peers."""
    for asked in found.server.session.asked:
        params = object_in(asked.value, "params")
        info = params.get("clientInfo") or value_in(params, "_meta", rev.META + "clientInfo")
        if isinstance(info, dict):
            found.client_info = info
        answer = found.server.answer_to(asked.line)
        opens = "server/discover" if rev.is_modern(found.revision) else "initialize"
        if asked.method == opens and answer is not None:
            found.opening = Reply(asked.line, answer[0].n, answer[1].value)


def named_revision(source: Recording) -> str:
    """Return the revision of the first accepted opening, or else the first that was named.

    That may be in a header. Empty if the client named none.
    """
    named: list[Any] = []
    agreed: Any = None
    openings = set()
    for row in source.rows:
        value = read(row.line).value if row.side in {Side.CLIENT, Side.SERVER} else None
        for message in value if isinstance(value, list) else [value]:
            key = id_key(value_in(message, "id"))
            params = object_in(message, "params")
            if row.side is Side.SERVER:
                if key in openings and agreed is None:
                    agreed = value_in(message, "result", "protocolVersion")
                    if agreed in rev.ALL:
                        return str(agreed)
            elif value_in(message, "method") == "initialize":
                openings.add(key)
                named.append(params.get("protocolVersion"))
            else:
                version = value_in(params, "_meta", rev.META + "protocolVersion")
                named += [] if version is None else [rev.LATEST_MODERN, version]
    said = (agreed, *reversed(named), *source.versions)
    return next((one for one in said if one in rev.ALL), "")
