"""What rules on gateways read: the two hops of an exchange, compared with one without a gateway.

On both hops US is the side of the client: our client before the gateway, the gateway before our
server.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.loader import CLIENTS
from mcp_touchstone.catalog.scenario import Ambient, Seen, Watch
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.server_profile import LISTS
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.judging.expected import Expected
from mcp_touchstone.parts.part import METHOD_NOT_FOUND
from mcp_touchstone.parts.upstream import OWN
from mcp_touchstone.results.verdict import WireLine, evidence
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import brief, id_key, list_in, object_in, value_in
from mcp_touchstone.wire.json_diff import ANY_ORDER, NOTHING, ORDER, Difference, differences, where
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Source, Transcript

OURS: Final = rev.META + "serverInfo"
"""The member of ``_meta`` in which each server names itself, so also a gateway."""

FACTOR: Final = 20
"""How much longer than without the gateway we wait for an answer through it, at least."""

SHOWN: Final = 3
"""Differences that a finding names."""

AS_SAID: Final = "as the server says it"

CLIENT: Final = "client"
UPSTREAM: Final = "upstream"
DIRECT: Final = "direct"
"""Where a line was: before the gateway, behind it, or without it."""

_HOPS: Final = {
    CLIENT: "between the client and the gateway",
    UPSTREAM: "between the gateway and the server",
    DIRECT: "without the gateway",
}


ENDS: Final = (
    Happened.INPUT_CLOSED,
    Happened.CLIENT_LEFT,
    Happened.KILLED,
    Happened.TERMINATED,
)
"""Events by which our server learns that a gateway left."""

SUCCESS: Final = range(200, 300)
"""HTTP statuses."""

NO_METHOD: Final = METHOD_NOT_FOUND


GARBAGE: Final = "garbage"
"""The exchange in which a server and a client send what is no message, or no text."""


class Fate(StrEnum):
    """What became of a member or a message on its way."""

    KEPT = "kept"
    CHANGED = "changed"
    LOST = "lost"
    INVENTED = "invented"
    CROSSED = "crossed"
    DELAYED = "delayed past its use"


def fate(one: Difference) -> Fate:
    """Return what became of a member that differs."""
    if one.new is NOTHING:
        return Fate.LOST
    return Fate.INVENTED if one.old is NOTHING else Fate.CHANGED


@dataclass(frozen=True, slots=True)
class ExchangeStep(Reply):
    """The reply to one request of an exchange; to a list, with the items of all pages.

    Attributes:
        client: the number of the client, from 0.
    """

    client: int = 0

    @property
    def result(self) -> dict[str, Any]:
        """Its result; empty for none."""
        return object_in(self.value, "result")


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """What was recorded while an exchange was held.

    Attributes:
        clients: what each of our clients saw.
        upstream: what our server saw: one transcript for each conversation.
        steps: the steps by their names.
        facts: what the exchange measured, by name.
        peers: the conversations with our server again, as rules on clients read them.
        trouble: the reason that it could not be held; empty if it was.
        stderr: the last words of the gateway.
        strays: processes that the gateway left behind.
        recordings: what our server recorded, with names of files.
        connections: those of our clients.
    """

    clients: Sequence[Transcript] = ()
    upstream: Sequence[Transcript] = ()
    steps: Mapping[str, ExchangeStep] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    peers: Sequence[Record] = ()
    trouble: str = ""
    stderr: str = ""
    strays: int = 0
    recordings: Sequence[tuple[str, bytes]] = ()
    connections: Sequence[Connection] = ()

    def received(self, method: str) -> Iterator[tuple[int, Entry]]:
        """Yield the messages of a method that reached our server, with the conversation."""
        for number, one in enumerate(self.upstream):
            for entry in one:
                if entry.source is Source.US and value_in(entry.value, "method") == method:
                    yield number, entry

    def is_first(self, number: int) -> bool:
        """Whether a conversation is with the first of several servers."""
        own, first = (self.upstream[n].label.rpartition("-")[0] for n in (number, 0))
        return own == first

    def heard(
        self, method: str, client: int = 0, *, until: str = ""
    ) -> list[tuple[Entry, Message]]:
        """Return the notifications and requests of a method that reached a client.

        Args:
            until: a step; what comes after its answer is left out.
        """
        end = self.steps[until].entry if until in self.steps else None
        return [
            (entry, message)
            for entry in (self.clients[client] if client < len(self.clients) else ())
            for message in entry.messages
            if message.method == method and message.role in {Role.NOTIFICATION, Role.REQUEST}
            if end is None or entry.n < end
        ]

    def params_of(self, method: str, client: int = 0, *, until: str = "") -> list[Any]:
        """Return the params of what ``heard`` returns."""
        heard = self.heard(method, client, until=until)
        return [object_in(message.value, "params") for _, message in heard]

    def question(self, name: str, method: str) -> dict[str, Any]:
        """Return what a client was asked by a step, and what the server was answered."""
        first, last = self.steps[f"{name}-0"], self.steps[name]
        asked = [
            object_in(one, "params") for one in object_in(first.result, "inputRequests").values()
        ]
        until = last.entry or len(self.clients[0])
        asked += [
            object_in(message.value, "params")
            for entry, message in self.heard(method)
            if first.asked < entry.n < until
        ]
        report = self.reported(mark_of(self.clients[last.client][last.asked].value))
        return {
            "asked": [_with_own(one) for one in asked],
            "answered": report.get("said"),
            "state": report.get("state"),
        }

    def reported(self, mark: object) -> dict[str, Any]:
        """Return the last report of our server on the calls with a mark, as it said it.

        On its own hop: what becomes of structured content on its way has its own rule. The report
        has the mark: two clients may have calls with one id open at a time.
        """
        said = (
            object_in(message.value, "result", "structuredContent")
            for one in self.upstream
            for entry in one
            for message in entry.messages
            if entry.source is Source.THEM
        )
        return next((one for one in reversed([*said]) if one.get("mark") == mark), {})

    def call(self, mark: str) -> tuple[int, Entry] | None:
        """Return the call with a mark that reached our server, and its conversation."""
        calls = self.received("tools/call")
        return next((one for one in calls if mark_of(one[1].value) == mark), None)


@dataclass(frozen=True, slots=True)
class Pair(Record):
    """One exchange, held directly and through the gateway.

    As a ``Record`` it is what the first client got through the gateway.

    Attributes:
        passing: clauses whose findings did not come again, and the number of further runs.
    """

    direct: RecordedExchange = field(default_factory=RecordedExchange)
    through: RecordedExchange = field(default_factory=RecordedExchange)
    expected: Expected = field(default_factory=Expected)
    passing: Mapping[str, int] = field(default_factory=dict)

    def observed(self, watch: Watch) -> Iterator[Seen]:
        """Yield what a rule sees here; a finding that did not come again is a note."""
        for seen in watch(self):
            again = 0 if seen.passed else self.passing.get(seen.clause, 0)
            note = f"{seen.actual}; it did not come again in {again} further runs"
            yield replace(seen, mild=Breach.NOTE, actual=note) if again else seen

    def lent(self, rule: Ambient) -> Iterator[Seen]:
        """Yield what a rule on clients sees of the gateway before our server, or one on servers.

        What our client or our server breaks without the gateway is passed on, so it is left out. A
        rule on servers reads the first client: other rules count what it gets of another one, and
        what comes of a text that is none.
        """
        hop = UPSTREAM if rule.clauses[0].group == CLIENTS else CLIENT
        if hop == CLIENT and self.scenario == GARBAGE:
            return
        alone, records = (
            side.peers if hop == UPSTREAM else [Record(t, self.profile) for t in side.clients[:1]]
            for side in (self.direct, self.through)
        )
        ours = {seen.clause for one in alone for seen in rule.watch(one) if not seen.passed}
        for number, one in enumerate(records):
            for seen in rule.watch(one):
                if seen.clause not in ours:
                    lines = (n for n in (*(n for _, n in seen.beside), seen.n) if n is not None)
                    beside = tuple((f"{hop}:{number}", n) for n in lines)
                    yield replace(seen, n=None, beside=beside)

    def comparable(self, *names: str) -> Iterator[str]:
        """Yield those of some steps, or of all, that our server answers without a gateway."""
        for name, step in self.direct.steps.items():
            if step.value is not None and name in self.through.steps and name in (names or [name]):
                yield name

    def changes(self, name: str) -> list[Difference]:
        """Return the differences between the answers of a step, apart from what is expected."""
        old, new = (side.steps[name].value for side in (self.direct, self.through))
        new = self.expected.ours(new)
        return list(differences(plain(old, self.expected.kept), plain(new, self.expected.own)))

    def judge_nothing_lost(self, clause: str, name: str, old: Any, new: Any) -> Seen:
        """Judge that nothing of a value is lost; what is added or changed does not count."""
        found = [one for one in differences(old, new) if fate(one) is Fate.LOST]
        return self.judge(clause, name, not found, f"each member of {name}", in_words(found))

    def compare(self, clause: str, name: str, old: Any, new: Any, expected: str = AS_SAID) -> Seen:
        """Judge that a step has through the gateway what it has without it."""
        found = list(differences(old, self.expected.ours(new)))
        step, why = self.through.steps[name], [in_words(found)]
        if step.value is None:
            why += [step.why, "" if self.at_server(name) else "the server did not get the request"]
        actual = "; ".join(filter(None, why))
        return self.judge(clause, name, not found, expected, actual)

    def judge_arrival(
        self, clause: str, name: str, *methods: str, until: str = ""
    ) -> Iterator[Seen]:
        """Judge that the messages of methods reach the client of a step as they were sent.

        In any order: over HTTP they may come on several streams.

        Args:
            until: a later step, whose request the client sent after it had waited for them.
        """
        for method in methods if [*self.comparable(name)] else ():
            client = self.through.steps[name].client
            sent, came, all_ = (
                {method: side.params_of(method, client, until=end)}
                for side, end in ((self.direct, until), (self.through, until), (self.through, ""))
            )
            if not sent[method]:
                continue
            sent[method].insert(0, ANY_ORDER)
            seen = self.compare(clause, name, sent, came)
            if not seen.passed and self.compare(clause, name, sent, all_).passed:
                seen = replace(
                    seen,
                    n=self.through.heard(method)[-1][0].n,
                    expected="it comes before the answer to a later request of the client",
                    actual=f"{Fate.DELAYED}: {method} comes after that answer",
                    beside=((CLIENT, self.through.steps[until].entry or 0), *seen.beside),
                )
            yield seen

    def judge_answer(self, clause: str, *names: str) -> Iterator[Seen]:
        """Judge that the content of an answer is that without the gateway."""
        for name in self.comparable(*names):
            step, alone = self.through.steps[name], self.direct.steps[name]
            passed = not [*differences(alone.result.get("content"), step.result.get("content"))]
            actual = step.why or f"{Fate.CHANGED}: {brief(step.value)}"
            yield self.judge(clause, name, passed, "its answer", actual)

    def judge_end(self, clause: str, name: str) -> Seen:
        """Judge that the wait for an answer ended: by one, or by the end of the connection."""
        step = self.through.steps[name]
        return self.judge(clause, name, not step.timed_out, "an answer, or an end", step.why)

    def judge_line(
        self, clause: str, passed: bool, where: tuple[int, int], expected: str, actual: str
    ) -> Seen:
        """Judge a line of a conversation with our server."""
        number, line = where
        return Seen(
            clause, passed, None, expected, actual, beside=((f"{UPSTREAM}:{number}", line),)
        )

    def judge(self, clause: str, name: str, passed: bool, expected: str, actual: str) -> Seen:
        """Judge a step, with its lines on both hops."""
        step = self.through.steps[name]
        alone = self.direct.steps.get(name)
        found = self.at_server(name)
        beside = [*([found] if found else [])]
        beside += [(f"{DIRECT}:{alone.client}", alone.entry or alone.asked)] if alone else []
        line = step.entry or step.asked or None
        if step.client and line:
            beside.insert(0, (f"{CLIENT}:{step.client}", line))
            line = None
        return Seen(clause, passed, line, expected, actual, beside=tuple(beside))

    def judge_request(self, clause: str, *names: str) -> Iterator[Seen]:
        """Judge that the params of requests reach our server as they were sent.

        A gateway may know by itself that a thing does not exist, and refuse a request for it.
        """
        for name in self.comparable(*names):
            sent, method = self.own_params(self.sent(name)), value_in(self.sent(name), "method")
            came = [self.own_params(entry.value) for _, entry in self.through.received(str(method))]
            same = [one for one in came if self._target(one) == self._target(sent)]
            if same or "result" in (self.through.steps[name].value or {}):
                last = sent if sent in same else [{}, *same][-1]
                usual: dict[str, Any] = {"arguments": {}} if last.get("arguments") == {} else {}
                yield self.compare(clause, name, {**usual, **sent}, last, "as it was sent")

    def is_too_slow(self, name: str, seconds: float) -> bool:
        """Whether a step took so long without the gateway that the wait through it says nothing."""
        step = self.direct.steps[name]
        if step.entry is None:
            return True
        lines = self.direct.clients[step.client]
        return (lines[step.entry].at - lines[step.asked].at) * FACTOR > seconds

    def at_server(self, name: str) -> tuple[str, int] | None:
        """Return the conversation and the line of what our server answered for a step.

        The last request of the same method and target is the one; one with equal params before all
        others.
        """
        asked = self.sent(name)
        if asked is None:
            return None
        wanted, params = {self._target(object_in(asked, "params")), None}, self.own_params(asked)
        alike = [
            (number, entry)
            for number, entry in self.through.received(str(asked.get("method")))
            if (self.expected.prefix or self._target(object_in(entry.value, "params")) in wanted)
            and mark_of(entry.value) == mark_of(asked)
            and self.through.is_first(number)
        ]
        same = [one for one in alike if self.own_params(one[1].value) == params]
        if not alike:
            return None
        number, entry = (same or alike)[-1]
        answer = self.through.upstream[number].answer_to(entry.n)
        return f"{UPSTREAM}:{number}", entry.n if answer is None else answer[0].n

    def sent(self, name: str) -> Any:
        """Return the request of a step as our client sent it; None for none."""
        step = self.through.steps[name]
        value = self.through.clients[step.client][step.asked].value if step.asked else None
        return value if isinstance(value, dict) else None

    def own_params(self, value: Any) -> dict[str, Any]:
        """Return the params of a request as our server knows them, without metadata."""
        params = copy.deepcopy(_without(object_in(value, "params"), "_meta"))
        params = dict(self.expected.ours(params))
        for inside in (params, object_in(params, "ref")):
            if isinstance(inside.get("name"), str):
                inside["name"] = inside["name"].removeprefix(self.expected.prefix)
        return params

    @staticmethod
    def _target(params: Mapping[str, Any]) -> Any:
        return params.get("name", params.get("uri"))

    def evidence(self, seen: Seen) -> tuple[WireLine, ...]:
        """Return the lines of both hops, each hop with its name."""
        lines = [*_lines(self.transcript, seen.n, CLIENT)]
        for name, n in seen.beside:
            hop, _, number = name.partition(":")
            known = {DIRECT: self.direct.clients, CLIENT: self.through.clients}
            seen_there = known.get(hop, self.through.upstream)
            lines += _lines(seen_there[int(number or 0)], n, hop) if seen_there else []
        return tuple(lines)

    def by_hand(self, n: int | None) -> str:
        """Return nothing: our server behind the gateway has ended."""
        del n
        return ""


def mark_of(request: Any) -> Any:
    """Return the mark of a call; None for none."""
    return value_in(request, "params", "arguments", "mark")


def _lines(transcript: Transcript, n: int | None, hop: str) -> Iterator[WireLine]:
    """Yield a line and the request that it answers, with the hop."""
    if n is None or not 0 < n <= len(transcript):
        return
    asked = [one.answers for one in transcript[n].messages if one.answers is not None]
    entries = [transcript[line] for line in dict.fromkeys([*asked, n])]
    for line in evidence(entries, n, asked):
        yield replace(line, http=_HOPS[hop], guilty=line.guilty and hop != DIRECT)


def plain(answer: Any, items: Callable[[list[Any]], list[Any]] = list) -> Any:
    """Return an answer without what each server says of itself, and its ids.

    Args:
        items: returns the items of a list that are compared.
    """
    if not isinstance(answer, dict):
        return answer
    found = {name: value for name, value in answer.items() if name not in {"id", "jsonrpc"}}
    result = found.get("result")
    if isinstance(result, dict):
        result = dict(result)
        meta = result.get("_meta")
        if isinstance(meta, dict):
            meta = {name: value for name, value in meta.items() if name != OURS}
            result = {**result, "_meta": meta} if meta else _without(result, "_meta")
        for member in ("tools", "prompts", "resources", "resourceTemplates"):
            if isinstance(result.get(member), list):
                result[member] = items(result[member])
        found["result"] = _without(result, "nextCursor")
    return found


def _with_own(params: dict[str, Any]) -> dict[str, Any]:
    """Return params with those members of ``_meta`` that only our server uses."""
    own = {k: v for k, v in object_in(params, "_meta").items() if k.startswith(OWN)}
    return {**_without(params, "_meta"), "_meta": own}


def _without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if key != name}


def in_words(found: Sequence[Difference]) -> str:
    """Return differences in words."""
    said = [_in_words(one) for one in found[:SHOWN]]
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(said) + more


def _in_words(one: Difference) -> str:
    what = fate(one)
    if one.path[-1:] == (ORDER,):
        return f"{Fate.CHANGED}: the order of {where(one.path[:-1])}"
    if what is Fate.LOST:
        was = f", which was {brief(one.old, 80)}" if one.old else ""
        return f"{what}: {where(one.path)}{was}"
    if what is Fate.INVENTED:
        return f"{what}: {where(one.path)}, {brief(one.new, 80)}"
    return f"{what}: {where(one.path)}, from {brief(one.old, 80)} to {brief(one.new, 80)}"


def cancelled_at(side: RecordedExchange, mark: str) -> Entry | None:
    """Return where our server learnt that nobody waits for a call: a cancellation, or an end."""
    call = side.call(mark)
    if call is None:
        return None
    number, entry = call
    own = id_key(value_in(entry.value, "id"))
    for later in side.upstream[number].since(entry.n):
        ends = later.source is Source.EVENT and (
            later.happened in ENDS or later.text.startswith("DELETE ")
        )
        names_it = id_key(value_in(later.value, "params", "requestId")) == own
        if ends or (names_it and value_in(later.value, "method") == "notifications/cancelled"):
            return later
    return None


def status_of(transcript: Transcript, line: int) -> int:
    """Return the status by which a message over HTTP was answered; 0 for none."""
    return next((one.status for one in transcript.exchanges if one.line == line), 0)


def is_refused(transcript: Transcript, line: int) -> bool:
    """Return whether a request over HTTP was answered with a status that is no success."""
    return status_of(transcript, line) not in {0, *SUCCESS}


def said(step: ExchangeStep) -> Any:
    """Return the text of a result; the whole answer if it has none."""
    content = list_in(step.result, "content")
    return value_in(content[0], "text") if content else step.value


def names(step: ExchangeStep) -> list[str]:
    """Return the names in a list."""
    lists = [list_in(step.result, member) for _, member in LISTS.values()]
    return [str(value_in(one, "name")) for items in lists for one in items]


def fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path begins as a pattern does; ``*`` stands for any one step."""
    pairs = zip(path, pattern, strict=False)
    return len(path) >= len(pattern) and all(want in {"*", step} for step, want in pairs)


def present(value: Any, pattern: Sequence[str]) -> bool:
    """Return whether a value has something at a pattern."""
    if not pattern:
        return True
    step, *rest = pattern
    if isinstance(value, dict):
        inner = value.values() if step == "*" else [value[step]] if step in value else []
    elif isinstance(value, list):
        inner = value if step == "*" else []
    else:
        inner = []
    return any(present(one, rest) for one in inner)
