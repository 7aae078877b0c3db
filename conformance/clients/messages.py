"""clients/messages: the lines, the envelope and the shape of what a client sends."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    LOOSE,
    META,
    META_KEY,
    Breach,
    Entry,
    Fault,
    Flaw,
    Kind,
    Message,
    Record,
    Role,
    Seen,
    Source,
    ambient,
    brief,
    clients,
    id_key,
    integral,
    is_modern,
    object_in,
    type_name,
)

ONLY = "one JSON-RPC message on each line, or in each POST"
OF_SERVERS = frozenset({"elicitation/create", "roots/list", "sampling/createMessage"}).union(
    f"notifications/{name}"
    for name in (
        "elicitation/complete",
        "message",
        "prompts/list_changed",
        "resources/list_changed",
        "resources/updated",
        "tools/list_changed",
    )
)
"""Methods that the protocol has for servers only."""


@ambient("client-only-messages")
def writes_one_message_a_line(record: Record) -> Iterator[Seen]:
    """Each line is one JSON-RPC message."""
    lines = list(record.lines())
    # Of a message spread over several lines, client-no-embedded-newlines judges the pieces.
    pieces = {
        piece.n
        for position, entry in enumerate(lines)
        for piece in lines[position + 1 - (entry.spread or 1) : position]
    }
    for entry in lines:
        faults = frozenset() if entry.reading is None else entry.reading.faults
        if entry.n not in pieces and not {Fault.TOO_LONG, Fault.TOO_DEEP} & faults:
            yield from _purity(entry, faults)


def _purity(entry: Entry, faults: frozenset[Fault]) -> Iterator[Seen]:
    clause = "client-only-messages"
    if Fault.BLANK in faults:
        yield Seen(clause, False, entry.n, ONLY, "a blank line", mild=Breach.WARN)
    elif Fault.NOT_JSON in faults:
        if Fault.UNTERMINATED not in faults:  # else it was cut off by the end of the client
            actual = f"text that is not JSON: {brief(entry.text.strip(), 60)}"
            yield Seen(clause, False, entry.n, ONLY, actual)
    elif odd := faults & {Fault.BYTE_ORDER_MARK, Fault.CONSTANT, Fault.DUPLICATE_KEY}:
        yield Seen(clause, False, entry.n, "strict JSON (RFC 8259)", "; ".join(sorted(odd)))
    elif entry.reading is not None:
        passed = isinstance(entry.reading.value, dict | list)
        yield Seen(clause, passed, entry.n, ONLY, f"a bare JSON {type_name(entry.reading.value)}")


@ambient("client-message-kind")
def writes_jsonrpc_messages(record: Record) -> Iterator[Seen]:
    """Each object is one kind of message."""
    for entry, message in record.messages():
        if isinstance(message.value, dict):
            wrong = _kind_fault(message.value)
            expected = "a request, a notification, a result or an error"
            yield Seen("client-message-kind", not wrong, entry.n, expected, wrong)


def _kind_fault(value: dict[str, Any]) -> str:
    members = {"method", "result", "error"} & set(value)
    if len(members) != 1:
        return " and ".join(sorted(members)) or f"members {', '.join(value) or 'none'}"
    if "method" in value:
        return "" if isinstance(value["method"], str) else "a method that is no string"
    if "result" in value:
        return "" if isinstance(value["result"], dict) else "a result that is no object"
    error = value["error"] if isinstance(value["error"], dict) else {}
    good = integral(error.get("code")) and isinstance(error.get("message"), str)
    return "" if good else "an error without an integer code and a message"


@ambient("client-request-id", "client-request-id-unique")
def gives_its_requests_unique_ids(record: Record) -> Iterator[Seen]:
    """Each request has a new string or integer id."""
    used: dict[Any, int] = {}
    for entry, message in record.messages(Role.REQUEST, Role.NOTIFICATION):
        method = message.method or ""
        if method.startswith("notifications/"):
            continue  # client-notification-no-id judges its id
        own = message.value.get("id")
        passed = isinstance(own, str) or integral(own)
        actual = f"id {brief(own)}" if "id" in message.value else f"{brief(method)} without an id"
        mild = None if "id" in message.value else Breach.WARN  # a notification of an extension
        yield Seen(
            "client-request-id", passed, entry.n, "a string or an integer", actual, mild=mild
        )
        key = id_key(own)
        if key is None:
            continue
        first = used.get(key)
        again = first is not None and (
            not is_modern(record.revision) or _is_open(record, first, entry)
        )
        actual = f"id {brief(own)} again, first in line {first}"
        expected = "an id that is not in use" if is_modern(record.revision) else "a new id"
        beside = (("", first),) if first is not None else ()
        clause = "client-request-id-unique"
        yield Seen(clause, not again, entry.n, expected, actual, beside=beside)
        used[key] = entry.n


def _is_open(record: Record, line: int, entry: Entry) -> bool:
    """Whether the request of a line had no answer when the client wrote another line.

    In 2026-07-28 no answer comes after the end of its response.
    """
    answer = clients.peer(record).answer_to(line)
    return answer[0].n > entry.n if answer else not record.ended_by(line, entry.at)


@ambient("client-response-known")
def answers_only_requests(record: Record) -> Iterator[Seen]:
    """A response has the id of a request that the server sent and that has no response yet."""
    broken = any(e.source is Source.US and e.malformed for e in record.transcript)
    for entry, message in record.messages(Role.ANSWER, *LOOSE):
        loose = message.role in LOOSE
        excused = message.role is Role.UNADDRESSED and message.kind is Kind.ERROR and broken
        actual = f"a response with id {brief(message.value.get('id'))}"
        actual += ", which was answered before" if message.role is Role.SECOND_ANSWER else ""
        expected = "one response to each request of the server"
        yield Seen("client-response-known", not loose or excused, entry.n, expected, actual)


@ambient("client-message-shape", "client-result-shape")
def writes_messages_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Requests, notifications and results have the types of the revision."""
    for entry, message in record.messages(Role.REQUEST, Role.NOTIFICATION):
        part = "requests" if message.role is Role.REQUEST else "notifications"
        if _is_foreign(record, message) or not isinstance(message.value.get("params", {}), dict):
            continue  # client-params-object judges the params
        method, clause = message.method or "", "client-message-shape"
        if method in OF_SERVERS:
            actual = f"{method}, which is for servers"
            yield Seen(clause, False, entry.n, "a method for clients", actual, mild=Breach.WARN)
        yield from _shape(record, entry, clause, part, method, message.value)
    for entry, method, _params, answer, _line in clients.questions(record):
        if isinstance(answer.get("result"), dict):
            result = answer["result"]
            yield from _shape(record, entry, "client-result-shape", "results", method, result)


@ambient("client-extension-ids")
def prefixes_the_ids_of_its_extensions(record: Record) -> Iterator[Seen]:
    """The ids of extensions have a prefix."""
    for entry, message in record.messages():
        can = object_in(message.value, "params", "_meta", META + "clientCapabilities", "extensions")
        wrong = [key for key in can if not (found := META_KEY.fullmatch(key)) or not found[1]]
        actual = f"extension {brief(wrong[0], 60)}" if wrong else ""
        if can:
            yield Seen("client-extension-ids", not wrong, entry.n, "prefix/name", actual)


def _is_foreign(record: Record, message: Message) -> bool:
    """Whether a message names the other era: a probe, or the fallback after one."""
    named = object_in(message.value, "params", "_meta").get(clients.VERSION)
    if is_modern(record.revision):
        return named is None and message.role is Role.REQUEST
    return is_modern(str(named))


def _shape(  # noqa: PLR0917  (two callers above)
    record: Record, entry: Entry, clause: str, part: str, method: str | None, value: Any
) -> Iterator[Seen]:
    if method in clients.SCHEMAS.methods(record.revision, part):
        own = record.revision, part, str(method), value
        flaws = clients.SCHEMAS.look(*own, length=entry.length).flaws
        grave: list[Flaw] = [flaw for flaw in flaws if not flaw.mild]
        texts = dict.fromkeys(flaw.text for flaw in grave or flaws)
        expected = f"{method} as {record.revision} defines it"
        mild = None if grave else Breach.WARN
        yield Seen(clause, not flaws, entry.n, expected, "; ".join(list(texts)[:3]), mild=mild)
