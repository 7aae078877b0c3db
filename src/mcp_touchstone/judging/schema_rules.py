"""The required type of each message of the server, and its violations. Sends nothing.

A clause on the shape of a message alone is judged in one line of its chapter, if a schema names it
in ``counted-by``: ``yield from shapes(record, "ping-shape")``.
"""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.loader import home
from mcp_touchstone.catalog.scenario import Seen
from mcp_touchstone.connection.connection import META
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.wire.framing import Fault, Kind, id_key, object_in, value_in
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.schema import Flaw, Look, Schemas
from mcp_touchstone.wire.transcript import Entry

SCHEMAS: Final = Schemas(home() / "conformance" / "schemas")
LONGEST: Final = 4 * 1024 * 1024
"""Greatest bytes of a judged line: a validator takes seconds for a list of millions."""
SHOWN: Final = 3
"""Reported flaws of one message; further ones usually repeat them."""

_KINDS: Final = {"notifications": "a", "requests": "a", "errors": "an error"}
_SENT: Final = {Role.NOTIFICATION: "notifications", Role.REQUEST: "requests"}


@dataclass(frozen=True)
class Typed:
    """A message of the server with a known type.

    Attributes:
        entry: its line.
        revision: the revision in force.
        part: the table of the schemas that contains its type.
        method: its key in that table.
        value: the validated value: the result, the error, or the whole message.
    """

    entry: Entry
    revision: str
    part: str
    method: str
    value: Any

    @functools.cached_property
    def look(self) -> Look:
        """Return the result of validating it."""
        own = self.revision, self.part, self.method, self.value
        return SCHEMAS.look(*own, length=self.entry.length)

    def seen(self, clause: str, flaws: Iterable[Flaw], *, expected: str = "") -> Seen:
        """Return the observation of a clause: kept here, or broken by these flaws."""
        kind = _KINDS.get(self.part, "a result of")
        expected = expected or f"{kind} {self.method} as {self.revision} defines it"
        if not (found := tuple(flaws)):  # as nearly always
            return Seen(clause, True, self.entry.n, expected, mild=Breach.WARN)
        grave: list[str] = []
        mild: list[str] = []
        for flaw in found:
            (mild if flaw.mild else grave).append(flaw.text)
        texts = list(dict.fromkeys(grave or mild))
        more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
        return Seen(
            clause,
            False,
            self.entry.n,
            expected,
            "; ".join(texts[:SHOWN]) + more,
            mild=None if grave else Breach.WARN,
        )


def shapes(record: Record, *clauses: str) -> Iterator[Seen]:
    """Return observations of clauses that a schema names in ``counted-by``; by default of all.

    Of all, a rule counts those of the clauses that it declares. About twenty rules ask, so all are
    made at once for all of them.
    """
    found = record.transcript.once(shapes, lambda: _shapes(record))
    return chain.from_iterable(found.get(clause, ()) for clause in clauses or found)


def _shapes(record: Record) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = {}
    for message in typed(record):
        look = message.look
        for clause in look.clauses:
            flaws = [flaw for flaw in look.flaws if flaw.clause == clause]
            found.setdefault(clause, []).append(message.seen(clause, flaws))
    return found


def each(record: Record, *names: str) -> Iterator[tuple[Typed, str, dict[str, Any]]]:
    """Yield all objects sent where the schemas require a definition (``Tool``, ``Icon``).

    About twenty rules ask, and most messages have nothing for them: those that have are found once.
    """
    having = record.transcript.once(each, lambda: _having(record))
    places = {place: None for name in names for place in having.get(name, ())}
    known = typed(record)
    for place in sorted(places) if len(names) > 1 else places:
        message = known[place]
        for name in names:
            for at, value in message.look.named(name):
                if isinstance(value, dict):
                    yield message, at, value


def _having(record: Record) -> dict[str, list[int]]:
    """Return which of the typed messages have a part of each definition."""
    found: dict[str, list[int]] = {}
    for position, message in enumerate(typed(record)):
        for name in message.look.parts:
            found.setdefault(name, []).append(position)
    return found


def typed(record: Record) -> list[Typed]:
    """Return the messages with a known type.

    A message belongs to the revision in force at its arrival. On a modern connection each request
    names the revision; on a legacy one the handshake sets it, and if it is set twice to different
    revisions, later messages are skipped.
    """
    return record.transcript.once(typed, lambda: list(_typed(record)))


def _typed(record: Record) -> Iterator[Typed]:
    revision = record.revision
    modern = rev.is_modern(revision)
    reused = _reused(record)
    agreed = {revision} if modern else set()
    for entry, message in record.messages(Role.ANSWER, *_SENT):
        result = _result(message)
        if message.method == "initialize" and result is not None:
            agreed.add(str(result.get("protocolVersion")))
        if agreed != {revision} or entry.length > LONGEST or _unread(entry):
            continue
        part = _SENT.get(message.role, "")
        method, value = message.method or "", message.value
        if not part and id_key(value.get("id")) not in reused:
            params = object_in(_request(record, message), "params")
            if _named(params) != (revision if modern else None):
                continue
            if result is not None:
                part, value = _part(revision, method, result, params), result
            elif message.kind is Kind.ERROR and isinstance(value["error"], dict):
                part, method, value = "errors", str(message.code), value["error"]
        if method in SCHEMAS.methods(revision, part):
            yield Typed(entry, revision, part, method, value)


def _unread(entry: Entry) -> bool:
    """Return whether a line differs from our reading of it: NaN is read as null."""
    return entry.reading is not None and Fault.CONSTANT in entry.reading.faults


def _result(message: Message) -> dict[str, Any] | None:
    if message.kind is not Kind.RESULT or "error" in message.value:
        return None
    result = message.value["result"]
    return result if isinstance(result, dict) else None


def _reused(record: Record) -> set[Any]:
    """Return the ids used for requests of two methods; their answers are ambiguous."""
    methods: dict[Any, set[str | None]] = {}
    for asked in record.transcript.session.asked:
        methods.setdefault(id_key(asked.value.get("id")), set()).add(asked.method)
    return {key for key, names in methods.items() if len(names) > 1}


def _request(record: Record, message: Message) -> Any:
    """Return the request that a message answers, taken out of its batch if necessary."""
    asked = record.asked_on(message.answers)
    sent: Iterable[Any] = ()
    if asked is not None:
        sent = asked.value if isinstance(asked.value, list) else (asked.value,)
    own = id_key(message.value.get("id"))
    for one in sent:
        if isinstance(one, dict) and id_key(one.get("id")) == own:
            return one
    return None


def _named(params: dict[str, Any]) -> Any:
    """Return the version named in a request; None if it names none."""
    return value_in(params, "_meta", META + "protocolVersion")


def _part(revision: str, method: str, result: dict[str, Any], params: dict[str, Any]) -> str:
    """Return the table of a result's type; empty for a type defined by an extension."""
    if method in SCHEMAS.methods(revision, "tasks") and "task" in params:
        return "tasks" if "task" in result and "content" not in result else "results"
    if not rev.is_modern(revision):
        return "results"
    kind = result.get("resultType")
    interim = kind == "input_required" or (kind is None and "inputRequests" in result)
    if interim and method in SCHEMAS.methods(revision, "input_required"):
        return "input_required"
    if kind == "input_required":
        return ""  # mrtr-allowed-methods judges it
    foreign = isinstance(kind, str) and kind not in {"complete", "input_required"}
    return "" if foreign else "results"
