"""Which type a message of the server has to be of, and how it differs. Sends nothing.

A clause whose whole oracle is the shape of a message is judged in one line by the chapter it
stands in, once a schema names it in ``counted-by``: ``yield from shapes(record, "ping-shape")``.
"""

import contextlib
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone import revision as rev
from mcp_touchstone.ambient import Record
from mcp_touchstone.clause import Breach
from mcp_touchstone.connection import META
from mcp_touchstone.framing import Fault, Kind, id_key
from mcp_touchstone.loader import home
from mcp_touchstone.scenario import Seen
from mcp_touchstone.schema import Flaw, Look, Schemas
from mcp_touchstone.session import Message, Role
from mcp_touchstone.transcript import Entry

SCHEMAS: Final = Schemas(home() / "conformance" / "schemas")
LONGEST: Final = 4 * 1024 * 1024
"""Bytes of a line that is still judged: a validator takes seconds for a list of millions."""
SHOWN: Final = 3
"""Flaws of one message that are told; the rest repeat them as a rule."""

_KINDS: Final = {"notifications": "a", "requests": "a", "errors": "an error"}
_SENT: Final = {Role.NOTIFICATION: "notifications", Role.REQUEST: "requests"}


@dataclass(frozen=True)
class Typed:
    """A message of the server that has a type.

    Attributes:
        entry: the line it came on.
        revision: the revision in force.
        part: which table of the schemas knows it.
        method: its name there.
        value: what is held against the schema: the result, the error, or the whole message.
    """

    entry: Entry
    revision: str
    part: str
    method: str
    value: Any

    @functools.cached_property
    def look(self) -> Look:
        """What its schema says of it."""
        return SCHEMAS.look(self.revision, self.part, self.method, self.value)

    def seen(self, clause: str, flaws: Iterable[Flaw], *, expected: str = "") -> Seen:
        """Say of a clause that it held here, or what broke it."""
        grave: list[str] = []
        mild: list[str] = []
        for flaw in flaws:
            (mild if flaw.mild else grave).append(flaw.text)
        told = list(dict.fromkeys(grave or mild))
        more = f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
        kind = _KINDS.get(self.part, "a result of")
        return Seen(
            clause,
            not told,
            self.entry.n,
            expected or f"{kind} {self.method} as {self.revision} defines it",
            "; ".join(told[:SHOWN]) + more,
            mild=None if grave else Breach.WARN,
        )


def shapes(record: Record, *clauses: str) -> Iterator[Seen]:
    """Judge clauses that a schema names in ``counted-by``, wherever it has something of theirs."""
    for message in typed(record):
        for clause in clauses:
            if clause in message.look.clauses:
                yield message.seen(clause, (f for f in message.look.flaws if f.clause == clause))


def each(record: Record, *names: str) -> Iterator[tuple[Typed, str, Any]]:
    """Walk all the server sent where a definition of the schemas is asked for (``Tool``, ``Icon``).

    Whatever value stands there is given, of the right type or not.
    """
    for message in typed(record):
        for name in names:
            for place, value in message.look.named.get(name, ()):
                yield message, place, value


def read_ahead(record: Record) -> None:
    """Hold all of an ended conversation against the schemas, before anybody asks.

    Rules ask when every process has ended, one after the other; until then there is time to spare.
    A fault shows when they ask.
    """
    with contextlib.suppress(Exception):
        for message in typed(record):
            _ = message.look


def typed(record: Record) -> list[Typed]:
    """Give the messages that have a type here.

    A message belongs to the revision in force when it came. On a stateless connection a request
    names it; before that, the handshake agreed on it, and a connection on which two were agreed
    is left alone from there on.
    """
    key = (typed, len(record.transcript))
    found: list[Typed] | None = record.transcript.memo.get(key)
    if found is None:
        found = record.transcript.memo[key] = list(_typed(record))
    return found


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
            params = _params(_request(record, message))
            if _named(params) != (revision if modern else None):
                continue
            if result is not None:
                part, value = _part(revision, method, result, params), result
            elif message.kind is Kind.ERROR and isinstance(value["error"], dict):
                part, method, value = "errors", str(message.code), value["error"]
        if method in SCHEMAS.methods(revision, part):
            yield Typed(entry, revision, part, method, value)


def _unread(entry: Entry) -> bool:
    """Whether a line says other than what we read: NaN comes out as null."""
    return entry.reading is not None and Fault.CONSTANT in entry.reading.faults


def _result(message: Message) -> dict[str, Any] | None:
    if message.kind is not Kind.RESULT or "error" in message.value:
        return None
    result = message.value["result"]
    return result if isinstance(result, dict) else None


def _reused(record: Record) -> set[Any]:
    """Give the ids that stood for requests of two methods: which one an answer is to is open."""
    methods: dict[Any, set[str | None]] = {}
    for asked in record.transcript.session.asked:
        methods.setdefault(id_key(asked.value.get("id")), set()).add(asked.method)
    return {key for key, names in methods.items() if len(names) > 1}


def _request(record: Record, message: Message) -> Any:
    """Give the request that a message answers, out of its batch where it came in one."""
    asked = record.asked_on(message.answers)
    sent: Iterable[Any] = ()
    if asked is not None:
        sent = asked.value if isinstance(asked.value, list) else (asked.value,)
    own = id_key(message.value.get("id"))
    for one in sent:
        if isinstance(one, dict) and id_key(one.get("id")) == own:
            return one
    return None


def _params(request: Any) -> dict[str, Any]:
    params = request.get("params") if isinstance(request, dict) else None
    return params if isinstance(params, dict) else {}


def _named(params: dict[str, Any]) -> Any:
    """Give the version a request says it is written in; None where it names none."""
    meta = params.get("_meta")
    return meta.get(META + "protocolVersion") if isinstance(meta, dict) else None


def _part(revision: str, method: str, result: dict[str, Any], params: dict[str, Any]) -> str:
    """Say what a result is; nothing known for a kind that an extension brought along."""
    if method in SCHEMAS.methods(revision, "tasks") and "task" in params:
        return "tasks" if "task" in result and "content" not in result else "results"
    if not rev.is_modern(revision):
        return "results"
    kind = result.get("resultType")
    interim = kind == "input_required" or (kind is None and "inputRequests" in result)
    if interim and method in SCHEMAS.methods(revision, "input_required"):
        return "input_required"
    if kind == "input_required":
        return ""  # mrtr-allowed-methods counts it
    foreign = isinstance(kind, str) and kind not in {"complete", "input_required"}
    return "" if foreign else "results"
