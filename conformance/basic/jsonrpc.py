"""basic/jsonrpc: the envelope of every message, and the pairing of responses with requests."""

import itertools
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    CLIENT_METHODS,
    LEGACY,
    LOOSE,
    Asked,
    Breach,
    Conversation,
    Entry,
    Kind,
    Message,
    Phase,
    Record,
    Role,
    Seen,
    Slip,
    Source,
    ambient,
    brief,
    first_response,
    id_key,
    integral,
    long_texts,
    near_miss,
    scenario,
    type_name,
)

MEMBERS = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
IDS: tuple[Any, ...] = ("plain", "7", "", 0, 1, 7, -7, 1 << 31, (1 << 53) - 1, 1 - (1 << 53))
PAIRS = 8
"""Pairs of requests that are sent together."""


# --- the shape of every message


def _objects(record: Record) -> Iterator[tuple[Entry, Message]]:
    for entry, message in record.messages():
        if isinstance(message.value, dict):
            yield entry, message


@ambient("jsonrpc-version-member", "jsonrpc-message-kind")
def writes_jsonrpc_messages(record: Record) -> Iterator[Seen]:
    """Each object has jsonrpc "2.0" and is exactly one kind of message."""
    for entry, message in _objects(record):
        value = message.value
        passed = value.get("jsonrpc") == "2.0"
        actual = brief(value["jsonrpc"]) if "jsonrpc" in value else "no jsonrpc member"
        yield Seen("jsonrpc-version-member", passed, entry.n, 'jsonrpc: "2.0"', actual)
        expected = "a request, a notification, a result or an error"
        if entry.slip is Slip.MEMBERS:
            yield Seen("jsonrpc-message-kind", False, entry.n, expected, _near(record, entry))
            continue
        wrong = _kind_fault(value)
        yield Seen("jsonrpc-message-kind", not wrong, entry.n, expected, wrong)
        more = sorted(set(value) - MEMBERS)
        if more and not wrong:
            actual = f"members that JSON-RPC does not define: {', '.join(more)}"
            mild = Breach.WARN
            yield Seen("jsonrpc-message-kind", False, entry.n, expected, actual, mild=mild)


def _near(record: Record, entry: Entry) -> str:
    """Return the fault and the cure of a line that is almost an answer; empty if it is not."""
    if entry.reading is None:
        return ""
    for line in [m.answers for m in entry.messages if m.answers is not None]:
        found = near_miss(entry.raw, entry.reading.value, record.transcript[line].value)
        if found is not None:
            return f"{found.words}; {found.cure}"
    return ""


def _kind_fault(value: dict[str, Any]) -> str:
    if "method" in value:
        both = [member for member in ("result", "error") if member in value]
        if both:
            return f"method together with {both[0]}"
        return "" if isinstance(value["method"], str) else "a method that is not a string"
    if {"result", "error", "id"} & set(value):
        return ""
    return f"members {', '.join(value) or 'none'}"


@ambient(
    "jsonrpc-response-result-or-error", "jsonrpc-response-not-both", "jsonrpc-result-is-object"
)
def answers_with_a_result_or_an_error(record: Record) -> Iterator[Seen]:
    """A response has a result object or an error, never both, never neither."""
    for entry, message in _objects(record):
        value = message.value
        if "method" in value or not {"id", "result", "error"} & set(value):
            continue
        result, error = "result" in value, "error" in value
        clause, expected = "jsonrpc-response-result-or-error", "result or error"
        yield Seen(clause, result or error, entry.n, expected, "neither")
        clause = "jsonrpc-response-not-both"
        yield Seen(clause, not (result and error), entry.n, expected, "both")
        if result and value.get("error") is None:
            passed = isinstance(value["result"], dict)
            actual = "" if passed else f"result: {brief(value['result'], 40)}"
            yield Seen("jsonrpc-result-is-object", passed, entry.n, "a result object", actual)


@ambient("jsonrpc-params-object", "jsonrpc-notification-no-id")
def sends_well_formed_requests_and_notifications(record: Record) -> Iterator[Seen]:
    """The params of a request or notification are an object; a notification has no id."""
    for entry, message in record.messages(Role.REQUEST, Role.NOTIFICATION):
        value = message.value
        if "params" in value:
            passed = isinstance(value["params"], dict)
            actual = f"params of type {type_name(value['params'])}"
            yield Seen("jsonrpc-params-object", passed, entry.n, "params as an object", actual)
        if (message.method or "").startswith("notifications/"):
            passed = "id" not in value
            actual = "" if passed else f"{message.method} with id {brief(value.get('id'))}"
            yield Seen("jsonrpc-notification-no-id", passed, entry.n, "no id", actual)


@ambient("jsonrpc-server-request-id", "jsonrpc-server-request-id-unique")
def gives_its_requests_unique_ids(record: Record) -> Iterator[Seen]:
    """Each request of the server has a new string or integer id."""
    used: dict[Any, tuple[Entry, Message]] = {}
    for entry, message in record.messages(Role.REQUEST, Role.NOTIFICATION):
        nameless = message.role is Role.NOTIFICATION and message.method not in CLIENT_METHODS
        if nameless or (message.method or "").startswith("notifications/"):
            continue
        own = message.value.get("id")
        passed = isinstance(own, str) or integral(own)
        clause, expected = "jsonrpc-server-request-id", "a string or an integer"
        yield Seen(clause, passed, entry.n, expected, f"{message.method} with {_id(message)}")
        key = id_key(own)
        if key is not None:
            before, first = used.setdefault(key, (entry, message))
            if first is not message and _is_broadcast(before, entry):
                continue  # streams-no-broadcast judges it
            clause, expected = "jsonrpc-server-request-id-unique", "an id not used before"
            yield Seen(clause, first is message, entry.n, expected, f"id {brief(own)} again")


def _is_broadcast(first: Entry, second: Entry) -> bool:
    """Whether two lines are one message on two streams."""
    if first.origin is None or second.origin is None or first.raw != second.raw:
        return False
    return first.origin.exchange is not second.origin.exchange


def _id(message: Message) -> str:
    return f"id {brief(message.value['id'])}" if "id" in message.value else "no id"


# --- pairing responses with requests
#
# One response is at most one finding. A response with the id of an open request is its answer.
# A loose response has an id that was never sent, cannot be read, or was answered before. It is
# attributed to the first of these lines of ours that exists:
#
#   1. a malformed line of ours in the same       that scenario judges the response
#      scenario
#   2. a request in the same scenario that        its id came back changed: jsonrpc-response-id-echo
#      never gets an answer under its own id
#   3. a notification, while no later request     it was answered: jsonrpc-notification-no-response
#      has been answered, if no id can be read
#   4. any malformed line of ours, if the         the response is late but correct
#      response is an error without an id
#
# If no such line exists, the response is a finding of jsonrpc-no-orphan-response. A second answer
# with an id of ours repeats an earlier answer, except in case 1 (the server reuses the id of its
# last request in the error for an unreadable line) and in case 2 (7 is answered as "7", and "7" was
# answered before). If its request was cancelled, no case applies: some servers answer the request
# and then the cancellation. A wrong choice among 2, 3 and none reports a real breach under another
# clause. Only 1 and 4 excuse a response, and only after a malformed line.


def _loose(record: Record) -> Iterator[tuple[Entry, Message, Entry | None]]:
    """Yield each loose response with the line of ours it is attributed to, or None."""
    asked = record.transcript.session.asked
    broken_lines = {entry.n for entry in record.transcript if _broken(entry)}
    cancelled = {a.line for a in asked if a.cancelled}
    over = cancelled | broken_lines
    open_lines = {a.line for a in asked if not a.answers} - over
    ours: list[Entry] = []
    for entry in record.transcript:
        if entry.n in open_lines | broken_lines or _notifies(entry):
            ours.append(entry)
        for message in entry.messages:
            if message.role is Role.ANSWER:
                later = message.answers or 0
                ours = [o for o in ours if o.n > later or _broken(o) or not _notifies(o)]
            elif message.role in LOOSE and message.kind is not Kind.ODD:
                if message.answers in broken_lines:
                    continue
                repeats = message.role is Role.SECOND_ANSWER and message.answers in cancelled
                about = None if repeats else _about(entry, message, ours)
                if about is not None and about.n in open_lines:
                    ours.remove(about)
                yield entry, message, about


def _about(entry: Entry, message: Message, ours: list[Entry]) -> Entry | None:
    newest = ours[::-1]
    here = [line for line in newest if line.scenario == entry.scenario]
    second = message.role is Role.SECOND_ANSWER
    found: list[Entry] = []
    if not second or message.kind is Kind.ERROR:
        found += [line for line in here if _broken(line)]
    alike = str(message.value.get("id"))
    waiting = [line for line in here if _is_request(line)]
    found += sorted(waiting, key=lambda line: str(line.value["id"]) != alike)
    if message.role is Role.UNADDRESSED:
        found += [line for line in newest if _notifies(line)]
    if _is_error_without_id(message):
        found += [line for line in newest if _broken(line)]
    return found[0] if found else None


def _broken(line: Entry) -> bool:
    return line.source is Source.US and (line.malformed or line.value is None)


def _notifies(line: Entry) -> bool:
    value = line.value
    return line.source is Source.US and isinstance(value, dict) and "id" not in value


def _is_request(line: Entry) -> bool:
    return not _broken(line) and not _notifies(line)


def _is_error_without_id(message: Message) -> bool:
    return message.role is Role.UNADDRESSED and message.kind is Kind.ERROR


@ambient(
    "jsonrpc-request-answered",
    "jsonrpc-response-id-echo",
    "jsonrpc-no-orphan-response",
    "jsonrpc-notification-no-response",
)
def answers_each_request_once(record: Record) -> Iterator[Seen]:
    """Each request gets one response under its own id, and no other message gets a response."""
    under_another_id = set()
    for entry, message, about in _loose(record):
        yield from _finding(entry, message, about)
        if about is not None and _is_request(about):
            under_another_id.add(about.n)
    for entry in record.lines():
        if entry.slip in {Slip.ID_AS_TEXT, Slip.ID_IN_A_BOX}:
            clause, expected = "jsonrpc-response-id-echo", "the id of the request"
            yield Seen(clause, False, entry.n, expected, _near(record, entry))
    clause, longest = "jsonrpc-request-answered", _longest_waits(record)
    for asked in record.transcript.session.asked:
        if asked.answers:
            yield Seen(clause, True)
            yield Seen("jsonrpc-response-id-echo", True)
            yield Seen("jsonrpc-no-orphan-response", True)
            yield Seen("jsonrpc-notification-no-response", True)
        elif asked.line not in under_another_id and _owed(record, asked):
            cut = record.cut(asked.line)
            expected = f"a response to {asked.method}"
            silent = not cut and record.is_silence(asked.line)
            if silent and _waited(record, asked) < longest.get(asked.method, 0.0):
                continue  # the server has answered this method after a longer time
            came = record.instead(asked.line) or cut or "no response"
            yield Seen(clause, False, asked.line, expected, came, silent=silent)


def _longest_waits(record: Record) -> dict[str | None, float]:
    """Return the longest time, in seconds, after which the server answered each method."""
    longest: dict[str | None, float] = {}
    for asked in record.transcript.session.asked:
        found = record.transcript.answer_to(asked.line)
        if found is not None:
            seconds = found[0].at - record.transcript[asked.line].at
            longest[asked.method] = max(seconds, longest.get(asked.method, 0.0))
    return longest


def _waited(record: Record, asked: Asked) -> float:
    """Return the seconds for which a request waited: until an event, such as the end of input."""
    asked_at, *after = record.transcript.since(asked.line - 1)
    ends = [entry for entry in after if entry.source is Source.EVENT] or after[-1:] or [asked_at]
    return ends[0].at - asked_at.at


def _finding(entry: Entry, message: Message, about: Entry | None) -> Iterator[Seen]:
    came = f"a response with {_id(message)}"
    if about is None:
        clause, expected = "jsonrpc-no-orphan-response", "exactly one response for each request"
        if message.role is Role.SECOND_ANSWER:
            came = f"a second response to {_id(message)}"
        yield Seen(clause, False, entry.n, expected, came)
    elif _notifies(about):
        clause, expected = "jsonrpc-notification-no-response", "no answer to a notification"
        mild = Breach.WARN if about.malformed and _is_error_without_id(message) else None
        yield Seen(clause, False, entry.n, expected, came, mild=mild)
    elif _is_request(about):
        clause, expected = "jsonrpc-response-id-echo", f"id {brief(about.value['id'])}"
        yield Seen(clause, False, entry.n, expected, came)


def _owed(record: Record, asked: Asked) -> bool:
    """Whether an answer was due.

    No answer is due before the handshake, after the end of input, if the server ended the session
    instead, or if it wants a token. None is due to a request that we cancelled, unless its response
    had ended by then.
    """
    early = asked.phase in {Phase.SILENT, Phase.INITIALIZING} and record.revision in LEGACY
    if asked.expired or asked.phase is Phase.CLOSING:
        return False
    if asked.cancelled:
        entry = record.transcript[asked.cancelled]
        if not record.ended_by(asked.line, entry.at):
            return False
    if early and asked.method != "initialize":
        return False
    # the calls of discovery may last, but an ended stream is no matter of time
    discovered = not record.transcript[asked.line].scenario and asked.method == "tools/call"
    required = asked.required or (discovered and bool(record.cut(asked.line)))
    return required and not record.is_barred(asked.line)


@scenario("jsonrpc-response-id-echo")
def echoes_the_id_as_sent(talk: Conversation) -> None:
    """A response repeats the type and value of its request's id; 7 and "7" are two ids."""
    method = talk.wire.ping_method
    for own in itertools.chain(IDS, long_texts.long_ids(talk)):
        asked = talk.wire.say(talk.wire.build(method, id=own))
        reply, others = first_response(talk.wire, asked)
        if talk.wire.gone:
            return
        # jsonrpc-request-answered judges a request that gets no response at all.
        talk.judge(
            "jsonrpc-response-id-echo",
            reply.answered or not others,
            expected=f"id {brief(own)} in the response",
            actual=_id(others[0][1]) if others else "",
            at=others[0][0] if others else reply,
        )


@scenario("jsonrpc-response-id-echo")
def keeps_concurrent_ids_apart(talk: Conversation) -> None:
    """Requests that are sent together get the answers to their own methods."""
    known, unknown = talk.wire.ping_method, "x-touchstone/unknown"
    alone = talk.wire.request(known), talk.wire.request(unknown)
    if alone[0].result is None or alone[1].error is None:
        # Their answers look alike. Other clauses judge that.
        talk.judge("jsonrpc-response-id-echo", True, expected="", actual="")
        return
    methods = (known, unknown) * PAIRS
    lines = talk.wire.say_together(*(talk.wire.build(method) for method in methods))
    replies = [talk.wire.answer_to(line, talk.pace.reply) for line in lines]
    refused = next((one for one in replies[::2] if one.error is not None), None)
    served = next((one for one in replies[1::2] if one.result is not None), None)
    talk.judge(
        "jsonrpc-response-id-echo",
        refused is None or served is None,
        expected=f"results for {known} and errors for {unknown}, as alone",
        actual="" if refused is None else f"{known} got {refused}; {unknown} got {served}",
        at=replies[0] if refused is None else refused,
    )


@scenario("jsonrpc-id-reuse-after-response")
def accepts_a_reused_id(talk: Conversation) -> None:
    """An id can be used again after its request was answered."""
    method = talk.wire.ping_method
    talk.need(talk.wire.request(method, id="again"), f"an answer to {method}")
    reply = talk.wire.request(method, id="again", required=False)
    talk.judge.expect_result(
        reply, "jsonrpc-id-reuse-after-response", 'a result for the second request with id "again"'
    )


@scenario("jsonrpc-notification-no-response")
def does_not_answer_notifications(talk: Conversation) -> None:
    """Known, unknown and malformed notifications get no answer and do no harm."""
    talk.wire.notify("notifications/x-touchstone/unknown", {"n": 1})
    if not talk.modern:
        talk.wire.notify("notifications/initialized")
    talk.wire.ping()
    broken = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}
    talk.wire.say(broken, malformed=True)
    talk.wire.quiet()
    talk.wire.ping(required=False)
    # answers_each_request_once judges the answers, and the silence of a request. An end of the
    # server after bad params is no answer to a notification: jsonrpc-invalid-request names it.
    talk.judge("jsonrpc-notification-no-response", True, expected="no answer to a notification")
