"""basic/stdio: one JSON-RPC message per line on stdout, UTF-8, nothing else."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp_touchstone.suite import (
    CLIENT_METHODS,
    CURES,
    EMBEDDED,
    FULL_CAPABILITIES,
    LEGACY,
    META,
    REST_OF_A_LINE_FEED,
    Breach,
    Conversation,
    Entry,
    Fault,
    Happened,
    Message,
    Phase,
    Place,
    Record,
    Reply,
    Role,
    Seen,
    Share,
    Source,
    Step,
    Unopened,
    Window,
    ambient,
    brief,
    first_response,
    id_key,
    is_modern,
    long_texts,
    object_in,
    scenario,
    type_name,
    value_in,
)

MESSAGES_ONLY = "nothing but JSON-RPC messages on stdout"
GRACE = 1.0
MARKS = {b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff"}
"""Byte order marks of UTF-16 and UTF-32; alone on a line if a server ends before its first message.
"""

FOREIGN = "größe-試金石"
LOCALE = {"LC_ALL": "C", "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
"""An environment in which programs prefer another encoding than UTF-8, as on Windows."""

LISTEN = "subscriptions/listen"

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
COMPLETED = "notifications/elicitation/complete"
LOGGED = "notifications/message"
CORE = {
    CANCELLED,
    PROGRESS,
    LOGGED,
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/tasks/status",
    COMPLETED,
    "notifications/subscriptions/acknowledged",
}
SUBSCRIBED = {
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/subscriptions/acknowledged",
}


@ambient(
    "stdio-stdout-only-messages",
    "stdio-no-embedded-newlines",
    "stdio-newline-terminated",
    "stdio-utf8-output",
    unopened=Unopened.ALWAYS,
)
def writes_one_message_a_line(record: Record) -> Iterator[Seen]:
    """Every line on stdout is one JSON-RPC message in UTF-8 that ends with a line feed."""
    lines = list(record.lines())
    pieces = _pieces(lines)
    for position, entry in enumerate(lines):
        if entry.n in pieces or entry.reading is None:
            continue
        if {Fault.TOO_LONG, Fault.TOO_DEEP} & entry.reading.faults:
            continue
        yield from _purity(record, entry)
        yield from _encoding(entry)
        yield from _termination(record, entry, lines[max(0, position - 2) : position])
        if entry.reading.readable:
            actual = f"a message over {entry.spread} lines"
            expected = "each message on one line"
            passed = not entry.spread
            yield Seen("stdio-no-embedded-newlines", passed, entry.n, expected, actual)
    yield from _visibility(record, lines)


@scenario("stdio-utf8-output", place=Place.SEVERAL, once=True)
def writes_utf8_in_a_foreign_locale(talk: Conversation) -> None:
    """The answers do not depend on the encoding that the system prefers.

    A server chooses its encoding when it starts, before a revision is agreed.
    """
    asked: list[tuple[str, dict[str, Any] | None]] = [("x-touchstone/" + FOREIGN, None)]
    if "tools" in talk.spoken.capabilities:
        asked += [("tools/list", None), ("tools/call", {"name": FOREIGN, "arguments": {}})]
    usual = [talk.wire.request(method, params, required=False) for method, params in asked]
    talk.server.restart(LOCALE, judged=False)  # what it writes here is not more than a note
    opening = talk.wire.open()
    lost, at = "" if opening.answered else str(opening), opening
    for (method, params), before in zip(asked, usual, strict=True):
        if lost or not before.answered:
            continue
        at = talk.wire.request(method, params, required=False)
        missing = _foreign_letters(before) - _foreign_letters(at)
        lost = str(at) if not at.answered else "".join(sorted(missing))
        lost = f"{method}: {brief(lost, 60)}" if lost else ""
    talk.judge(
        "stdio-utf8-output",
        not lost,
        expected=f"the same answers with {' '.join(f'{k}={v}' for k, v in LOCALE.items())}",
        actual=f"missing in the answer to {lost}",
        at=at,
        mild=Breach.NOTE,
    )


def _foreign_letters(reply: Reply) -> set[str]:
    return {letter for letter in json.dumps(reply.value, ensure_ascii=False) if letter > "\x7f"}


def _pieces(lines: list[Entry]) -> set[int]:
    """Return the numbers of the lines that belong to a message that ends on a later line."""
    return {
        piece.n
        for position, entry in enumerate(lines)
        for piece in lines[position + 1 - (entry.spread or 1) : position]
    }


def _purity(record: Record, entry: Entry) -> Iterator[Seen]:
    clause = "stdio-stdout-only-messages"
    reading = entry.reading
    if reading is None:
        return
    if entry.slip is not None and entry.slip in EMBEDDED:
        yield Seen(clause, False, entry.n, MESSAGES_ONLY, f"{entry.slip}; {CURES[entry.slip]}")
    elif Fault.BLANK in reading.faults:
        actual = "a blank line"
        yield Seen(clause, False, entry.n, MESSAGES_ONLY, actual, mild=Breach.WARN)
    elif entry.raw in REST_OF_A_LINE_FEED or entry.raw in MARKS:
        return
    elif Fault.NOT_JSON in reading.faults:
        if Fault.UNTERMINATED in reading.faults and _killed(record):
            return
        yield Seen(clause, False, entry.n, MESSAGES_ONLY, _what(entry))
    elif odd := reading.faults & {Fault.BYTE_ORDER_MARK, Fault.CONSTANT}:
        actual = "; ".join(sorted(f"the line {_verb(fault)}" for fault in odd))
        if Fault.BYTE_ORDER_MARK in odd:
            actual += "; write UTF-8 without it"
        yield Seen(clause, False, entry.n, "strict JSON (RFC 8259)", actual)
    elif not isinstance(reading.value, dict | list):
        actual = f"a bare JSON {type_name(reading.value)}"
        yield Seen(clause, False, entry.n, MESSAGES_ONLY, actual)
    else:
        unknown = [
            m.method
            for m in entry.messages
            if m.role is Role.NOTIFICATION
            and m.method is not None
            and m.method not in CORE
            # jsonrpc-server-request-id judges a request without an id.
            and not (m.method in CLIENT_METHODS and record.revision in LEGACY)
            and not _extended(record)
        ]
        actual = f"an undefined notification: {brief(unknown[0])}" if unknown else ""
        yield Seen(clause, not unknown, entry.n, MESSAGES_ONLY, actual, mild=Breach.WARN)


def _extended(record: Record) -> bool:
    """Whether versioning-extension-fallback judges undefined notifications."""
    spoken = record.profile.spoken.get(record.revision)
    return is_modern(record.revision) and bool(spoken and spoken.extensions)


def _verb(fault: Fault) -> str:
    return str(fault) if fault is Fault.BYTE_ORDER_MARK else f"holds {fault}"


def _what(entry: Entry) -> str:
    text = entry.text.strip()
    if text.lower().startswith("content-length"):
        return (
            "a Content-Length header: this is the framing of another protocol (LSP); end each "
            "message with a line feed instead"
        )
    return f"a line that is not JSON: {brief(text, 60)}"


def _killed(record: Record) -> bool:
    return record.ending is not None and record.ending.step in {Step.TERMINATED, Step.KILLED}


def _encoding(entry: Entry) -> Iterator[Seen]:
    clause = "stdio-utf8-output"
    reading = entry.reading
    if reading is None or not (reading.readable or entry.raw in MARKS):
        return
    if Fault.NOT_UTF8 in reading.faults:
        wide = b"\0" in entry.raw or entry.raw in MARKS
        actual = "UTF-16 or UTF-32" if wide else "bytes that are not UTF-8"
        yield Seen(clause, False, entry.n, "a line in UTF-8", actual)
    elif Fault.LONE_SURROGATE in reading.faults:
        actual = "an escaped lone surrogate"
        yield Seen(clause, False, entry.n, "text that UTF-8 can hold", actual, mild=Breach.WARN)
    else:
        yield Seen(clause, True)


def _termination(record: Record, entry: Entry, before: list[Entry]) -> Iterator[Seen]:
    clause = "stdio-newline-terminated"
    reading = entry.reading
    if reading is None or not reading.readable:
        return
    if Fault.UNTERMINATED not in reading.faults:
        yield Seen(clause, True)
        return
    if any(b"content-length:" in e.raw.lower() for e in before):
        yield Seen(clause, True)  # _purity reports the framing of LSP, once
        return
    closed = _first_event(record) < entry.n
    yield Seen(
        clause,
        False,
        entry.n,
        "a line feed after each message, while stdin stays open",
        "a complete message without a line feed",
        mild=Breach.WARN if closed else None,
    )


def _first_event(record: Record) -> int:
    """Return the line of the first event; ``sys.maxsize`` if there is none."""
    return next((e.n for e in record.transcript.events()), sys.maxsize)


def _visibility(record: Record, lines: list[Entry]) -> Iterator[Seen]:
    """Find answers that came only after stdin was closed, long after the limit for the first."""
    limit = record.profile.pace.startup
    asked = next((e for e in record.transcript if e.source is Source.US), None)
    closing = next(iter(record.transcript.events(Happened.INPUT_CLOSED)), None)
    if asked is None or closing is None or closing.at - asked.at < limit:
        return
    late = [e for e in lines if any(m.role is Role.ANSWER for m in e.messages)]
    if late and lines[0].n > closing.n:
        yield Seen(
            "stdio-newline-terminated",
            False,
            late[0].n,
            "an answer while stdin stays open",
            "an answer only after stdin was closed; is the output buffered and not flushed?",
        )


@scenario("stdio-utf8-input")
def reads_utf8_beyond_ascii(talk: Conversation) -> None:
    """An id in accented letters, CJK and emoji comes back as it was sent."""
    for text in ("é-ü-ß", "編集-서버", "🪨-🥇"):
        # Sent as a malformed line, so that this clause alone judges the reply.
        probe = talk.wire.build(talk.wire.ping_method, id=text)
        line = talk.wire.say(probe, malformed=True)
        reply, came = first_response(talk.wire, line)
        passed = talk.judge(
            "stdio-utf8-input",
            reply.answered,
            expected=f"a response with id {brief(text)}",
            actual=f"id {brief(came[0][1].value.get('id'))}" if came else reply,
            at=came[0][0] if came else reply,
        )
        if not passed:
            return
    long_texts.judge_reading(talk, "stdio-utf8-input")


@scenario("stdio-utf8-output")
def writes_long_answers_in_utf8(talk: Conversation) -> None:
    """A long id in CJK comes back as it was sent."""
    long_texts.judge_writing(talk, "stdio-utf8-output", long_texts.SHORTER)


@scenario("stdio-carriage-return", hurts=True)
def takes_a_line_with_a_carriage_return(talk: Conversation) -> None:
    """A request whose line ends with CR LF is served: to JSON a CR is white space."""
    clause = "stdio-carriage-return"
    message = talk.wire.build(talk.wire.ping_method)
    raw = json.dumps(message).encode() + b"\r\n"
    reply = talk.wire.answer_to(talk.wire.say_raw(raw, message, malformed=True))
    served = reply.answered and not reply.is_error
    talk.judge.expect(reply, clause, served, "a result for a line that ends with CR LF")


@ambient("stdio-stderr-logging")
def logs_in_utf8(record: Record) -> Iterator[Seen]:
    """The stderr of the server is valid UTF-8."""
    if record.stderr:
        # Only the end is kept, so its first character may be incomplete.
        whole = record.stderr.lstrip(bytes(range(0x80, 0xC0)))
        passed = True
        try:
            whole.decode("utf-8")
        except UnicodeDecodeError:
            passed = False
        yield Seen(
            "stdio-stderr-logging", passed, None, "text in UTF-8", "bytes that are not UTF-8"
        )


@scenario("stdio-no-server-requests")
def sends_no_requests_to_a_capable_client(talk: Conversation) -> None:
    """A stateless server sends no requests to a client that declares every capability."""
    start = len(talk.wire.transcript)
    before = talk.wire.transcript.capabilities
    talk.wire.transcript.declare(FULL_CAPABILITIES)
    talk.examples.exercise()
    talk.wire.transcript.declare(before)
    asked = [
        (entry, message)
        for entry in talk.since(start)
        for message in entry.messages
        if message.role is Role.REQUEST and not (message.method or "").startswith("notifications/")
    ]
    talk.judge(
        "stdio-no-server-requests",
        not asked,
        expected="responses and notifications only",
        actual=f"a request: {brief(asked[0][1].method)}" if asked else "",
        at=asked[0][0] if asked else None,
    )


@ambient("stdio-no-server-requests")
def sends_no_requests(record: Record) -> Iterator[Seen]:
    """A stateless server sends no requests."""
    for entry, message in record.messages(Role.ANSWER, Role.REQUEST):
        asks = message.role is Role.REQUEST
        if asks and (message.method or "").startswith("notifications/"):
            continue
        actual = f"a request: {brief(message.method)}"
        expected = "responses and notifications only"
        yield Seen("stdio-no-server-requests", not asks, entry.n, expected, actual)


@ambient("stdio-no-unsolicited-notifications")
def notifies_only_for_open_requests(record: Record) -> Iterator[Seen]:
    """Every notification belongs to a request in flight or to an open subscription."""
    clause = "stdio-no-unsolicited-notifications"
    elsewhere = _counted_elsewhere(record)
    in_flight = _InFlight(elsewhere)
    for entry in record.transcript:
        in_flight.follow(entry)
        for message in entry.messages:
            if message.role is Role.ANSWER and message.answers is not None:
                in_flight.answered(message.answers, entry.at)
            elif message.role is Role.NOTIFICATION and message.method in CORE - {CANCELLED}:
                passed = in_flight.explains(message.method, entry.at)
                actual = f"{message.method} without a request in flight or a subscription"
                expected = "notifications only for a request in flight or a subscription"
                late_log = message.method == LOGGED and not _on_a_stream(message)
                mild = Breach.WARN if late_log else None
                yield Seen(clause, passed, entry.n, expected, actual, mild=mild)
    yield Seen(clause, True)


def _on_a_stream(message: Message) -> bool:
    """Whether a notification has the id of a subscription."""
    return META + "subscriptionId" in object_in(message.value, "params", "_meta")


@dataclass(slots=True)
class _Cancelled:
    """A request that we cancelled.

    Attributes:
        line: the line of the cancellation.
        asked: the request.
        read: the time at which the server had provably read the cancellation; None before it.
    """

    line: int
    asked: dict[str, Any]
    read: float | None = None


class _InFlight:
    """The requests a notification may belong to: open ones, and recently cancelled ones."""

    def __init__(self, elsewhere: set[str]) -> None:
        self._open: dict[int, dict[str, Any]] = {}
        self._cancelled: list[_Cancelled] = []
        self._elsewhere = elsewhere

    def follow(self, entry: Entry) -> None:
        """Record a line of ours."""
        if entry.source is not Source.US or not isinstance(entry.value, dict):
            return
        if "id" in entry.value:
            self._open[entry.n] = entry.value
        elif entry.value.get("method") == CANCELLED:
            own = value_in(entry.value, "params", "requestId")
            for line in [n for n, asked in self._open.items() if asked["id"] == own]:
                self._cancelled.append(_Cancelled(entry.n, self._open.pop(line)))

    def answered(self, line: int, at: float) -> None:
        """Record an answer; it proves that the server has read all lines before its request."""
        self._open.pop(line, None)
        for one in self._cancelled:
            if one.read is None and line > one.line:
                one.read = at

    def explains(self, notification: str | None, at: float) -> bool:
        """Whether a notification at a time belongs to an open or recent request."""
        if notification in {PROGRESS, COMPLETED} & self._elsewhere:
            return True
        late = notification in self._elsewhere
        known = [*self._open.values()]
        known += [
            c.asked for c in self._cancelled if late or c.read is None or at - c.read <= GRACE
        ]
        if notification in SUBSCRIBED:
            return any(asked.get("method") == LISTEN for asked in known)
        return bool(known)


def _counted_elsewhere(record: Record) -> set[str]:
    """Return the notifications that other chapters judge because the server has a call for them."""
    spoken = record.profile.spoken.get(record.revision)
    words = {PROGRESS: "progress-call", LOGGED: "slow-call", COMPLETED: "elicits"}
    return {method for method, word in words.items() if spoken and spoken.examples(word)}


@ambient("stdio-exit-on-eof", "lifecycle-shutdown-on-stdin-close")
def exits_when_its_input_ends(record: Record) -> Iterator[Seen]:
    """The server exits when the client closes its standard input."""
    ending = record.ending
    session = record.transcript.session
    if ending is None or ending.step is Step.ITSELF or session.phase is not Phase.CLOSING:
        return
    if _was_in_flight(record):
        return
    last = len(record.transcript)
    left = ending.strays if ending.step is Step.INPUT_CLOSED else 0
    actual = f"the server {ending}" + (
        f"; processes that it started ran on: {left}" if left else ""
    )
    if ending.step is Step.INPUT_CLOSED or not ending.hurried:
        yield Seen(
            "stdio-exit-on-eof",
            ending.step is Step.INPUT_CLOSED and not left,
            last,
            "an exit within seconds after its input ends",
            actual,
        )
    exited = ending.step is Step.INPUT_CLOSED or (ending.step is Step.TERMINATED and ending.hurried)
    yield Seen(
        "lifecycle-shutdown-on-stdin-close",
        exited and not left,
        last,
        "an exit when its input is closed, or else on SIGTERM",
        actual,
    )


@scenario("lifecycle-shutdown-on-stdin-close", place=Place.LAST, share=Share.ORDINARY, lasts=True)
def exits_although_a_request_is_in_flight(talk: Conversation) -> None:
    """The server exits at the end of its input, with a request in flight."""
    _judge_exit(talk, "with a request in flight")


@scenario("lifecycle-shutdown-on-stdin-close", place=Place.LAST, share=Share.DRAWN, lasts=True)
def exits_although_nobody_reads(talk: Conversation) -> None:
    """The server exits at the end of its input, after its output was closed."""
    talk.need(talk.server.opening, "an ordinary opening")
    talk.wire.process.pipes.hang_up()
    talk.wire.say(talk.wire.build(talk.wire.ping_method), required=False)
    Window(talk.wire, talk.pace.settle).wait()
    _judge_exit(talk, "after its output was closed")


def _judge_exit(talk: Conversation, how: str) -> None:
    talk.need(talk.server.opening, "an ordinary opening")
    talk.wire.say(talk.wire.build(talk.wire.ping_method), required=False)
    ending = talk.wire.end()
    talk.judge(
        "lifecycle-shutdown-on-stdin-close",
        ending.step in {Step.ITSELF, Step.INPUT_CLOSED},
        expected=f"an exit when its input is closed {how}",
        actual=f"the server {ending}",
    )


def _was_in_flight(record: Record) -> bool:
    """Whether a request of either side was open when we closed the input of the server.

    A server may finish the work of a cancelled call, but a cancelled subscription has no work. We
    cannot answer a request that the server writes after that.
    """
    closed = record.transcript.events(Happened.INPUT_CLOSED)
    end = closed[0].n if closed else len(record.transcript)
    answered = {message.answers for entry, message in record.messages() if entry.n < end}
    ours = any(
        asked.line not in answered and not (asked.cancelled and asked.method == LISTEN)
        for asked in record.transcript.session.asked
    )
    said = [e.value for e in record.transcript if e.source is Source.US]
    given = {id_key(v.get("id")) for v in said if isinstance(v, dict) and "method" not in v}
    theirs = {id_key(message.value.get("id")) for _, message in record.messages(Role.REQUEST)}
    return ours or bool(theirs - given)


@ambient("stdio-server-initiated-close")
def exits_cleanly_when_it_closes_first(record: Record) -> Iterator[Seen]:
    """A server that closes the connection with no request open exits cleanly."""
    ending = record.ending
    closing = next(iter(record.transcript.events(Happened.SERVER_CLOSED)), None)
    if closing is None or ending is None or _was_hit(record, closing) or _was_terminated(record):
        return
    clean = ending.step is Step.ITSELF and ending.status >= 0
    actual = f"the server closed its output, and {ending}"
    yield Seen("stdio-server-initiated-close", clean, closing.n, "an exit", actual)


def _was_terminated(record: Record) -> bool:
    """Whether we had sent SIGTERM while the input of the server was open."""
    return bool(record.transcript.events(Happened.TERMINATED))


def _was_hit(record: Record, closing: Entry) -> bool:
    """Whether a line of ours made the server exit; the rule on that line judges it."""
    ours = [e for e in record.transcript if e.source is Source.US and e.n < closing.n]
    owing = any(
        not asked.answers and not asked.cancelled and asked.line < closing.n
        for asked in record.transcript.session.asked
    )
    return owing or (bool(ours) and ours[-1].malformed)
