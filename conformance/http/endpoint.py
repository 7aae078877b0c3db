"""http/endpoint: the methods of the endpoint, and the status and the type of its answers."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_touchstone.suite import (
    CANCELLATION,
    META,
    UNANSWERED,
    Breach,
    Conversation,
    Fault,
    HttpAnswer,
    HttpExchange,
    Kind,
    Record,
    Seen,
    Unopened,
    ambient,
    beside_json,
    brief,
    long_texts,
    scenario,
)

SESSION = "Mcp-Session-Id"
ACCEPTED = 202
BAD_REQUEST = 400
NOT_FOUND = 404
NOT_ALLOWED = 405
SUCCESS = range(200, 300)
TYPES = ("application/json", "text/event-stream")
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021

INVENTED = "touchstone/no-such-method"
REMOVED = {"ping": {}, "logging/setLevel": {"level": "info"}}
"""Methods of older revisions that 2026-07-28 does not have."""

OPTIONAL: dict[str, dict[str, dict[str, Any]]] = {
    "tools": {"tools/list": {}, "tools/call": {"name": "none", "arguments": {}}},
    "resources": {
        "resources/list": {},
        "resources/templates/list": {},
        "resources/read": {"uri": "touchstone:none"},
    },
    "prompts": {"prompts/list": {}, "prompts/get": {"name": "none"}},
    "completions": {
        "completion/complete": {
            "ref": {"type": "ref/prompt", "name": "none"},
            "argument": {"name": "none", "value": ""},
        }
    },
}
"""Capability -> the methods that a server without it need not implement."""


def judge_accepted(talk: Conversation, clause: str, answer: HttpAnswer, what: str) -> None:
    """Judge the response to a message that gets no answer."""
    if answer.refused or not answer.status:
        talk.judge.unseen(clause, f"the server does not accept {what}: {answer}")
        return
    body = _body_of(answer.exchange)
    talk.judge(
        clause,
        answer.status == ACCEPTED and not body,
        expected=f"202 Accepted without a body for {what}",
        actual=f"{answer}{body}",
        at=answer.line,
    )


def _body_of(exchange: HttpExchange) -> str:
    """Return that a response has a body, or announces one; empty if it has none."""
    if exchange.messages or exchange.body.strip():
        return " with a body"
    announced = (exchange.header("Content-Length") or "0").strip()
    if announced != "0" and not exchange.body:
        return " with a body that it only announces"
    return ""


@scenario("endpoint-notification-accepted", "endpoint-notification-refused")
def accepts_a_notification(talk: Conversation) -> None:
    """A notification is answered by 202 without a body, or by the status of an error."""
    answer = talk.http.post(CANCELLATION)
    if answer.error_code is not None and not answer.refused:
        talk.judge.unseen(
            "endpoint-notification-accepted", f"the notification is refused: {answer}"
        )
        talk.judge.expect(
            answer,
            "endpoint-notification-refused",
            False,
            "the status of an error for a notification that is not accepted",
        )
        return
    judge_accepted(talk, "endpoint-notification-accepted", answer, "a notification")
    if answer.refused:
        talk.judge("endpoint-notification-refused", True, expected="the status of an error")
    else:
        talk.judge.unseen("endpoint-notification-refused", "the notification is accepted")


@scenario("endpoint-response-accepted")
def accepts_a_response(talk: Conversation) -> None:
    """A response is answered by 202 without a body, or by the status of an error."""
    response = UNANSWERED["a response"]
    judge_accepted(talk, "endpoint-response-accepted", talk.http.post(response), "a response")


@scenario("endpoint-batch-accepted")
def accepts_a_batch_of_notifications(talk: Conversation) -> None:
    """A batch of notifications and responses is answered by 202 without a body."""
    for other in (CANCELLATION, UNANSWERED["a response"]):
        answer = talk.http.post([CANCELLATION, other])
        judge_accepted(talk, "endpoint-batch-accepted", answer, "a batch without requests")


def _needs_no_answer(value: Any) -> tuple[str, str] | None:
    """Return the clause on a body without a request, and what it is; None for another body."""
    members = value if isinstance(value, list) else [value]
    if not members or not all(isinstance(one, dict) for one in members):
        return None
    noted = all("method" in one and "id" not in one for one in members)
    if isinstance(value, list):
        return ("endpoint-batch-accepted", "a batch of notifications") if noted else None
    if noted:
        return "endpoint-notification-accepted", brief(value["method"])
    answers = "id" in value and "method" not in value and ("result" in value) != ("error" in value)
    return ("endpoint-response-accepted", "a response") if answers else None


@ambient("endpoint-notification-accepted", "endpoint-response-accepted", "endpoint-batch-accepted")
def accepts_what_needs_no_answer(record: Record) -> Iterator[Seen]:
    """Each accepted message without a request in it is answered by 202 without a body."""
    errors = {
        id(e.origin.exchange) for e, m in record.messages() if e.origin and m.kind is Kind.ERROR
    }
    for exchange in record.transcript.exchanges:
        if exchange.verb != "POST" or not exchange.line or exchange.status not in SUCCESS:
            continue
        said = record.transcript[exchange.line]
        found = None if said.malformed else _needs_no_answer(said.value)
        if found is None or id(exchange) in errors:
            continue
        clause, what = found
        body = _body_of(exchange)
        yield Seen(
            clause,
            exchange.status == ACCEPTED and not body,
            exchange.line,
            f"202 Accepted without a body for {what}",
            f"{exchange}{body}",
        )


@ambient("endpoint-utf8-output")
def writes_utf8(record: Record) -> Iterator[Seen]:
    """Each message in a response is UTF-8."""
    for entry in record.lines():
        if entry.reading is not None and entry.reading.readable:
            yield Seen(
                "endpoint-utf8-output",
                Fault.NOT_UTF8 not in entry.reading.faults,
                entry.n,
                "a message in UTF-8",
                "bytes that are not UTF-8",
            )


@scenario("endpoint-utf8-input")
def reads_utf8(talk: Conversation) -> None:
    """An id in accented letters, CJK and emoji comes back as it was sent, in a long body too."""
    for text in ("é-ü-ß", "編集-서버", "🪨-🥇"):
        # Sent as a malformed line, so that this clause alone judges the reply.
        answer = talk.http.post(talk.wire.build(talk.wire.ping_method, id=text), malformed=True)
        talk.judge.expect(
            answer,
            "endpoint-utf8-input",
            answer.reply.answered,
            f"a response with id {brief(text)}",
        )
    long_texts.judge_reading(talk, "endpoint-utf8-input")


@scenario("endpoint-utf8-output")
def writes_long_answers_in_utf8(talk: Conversation) -> None:
    """A long id in CJK comes back as it was sent."""
    long_texts.judge_writing(talk, "endpoint-utf8-output")


def _has_request(value: Any) -> bool:
    members: Sequence[Any] = value if isinstance(value, list) else [value]
    return any(isinstance(one, dict) and "method" in one and "id" in one for one in members)


@ambient("endpoint-request-content-type", unopened=Unopened.ALWAYS)
def answers_requests_with_json_or_a_stream(record: Record) -> Iterator[Seen]:
    """The answer to a request is JSON or a stream of events."""
    for entry in record.lines():
        if entry.origin is not None and entry.origin.event is None and (odd := beside_json(entry)):
            expected = "strict JSON (RFC 8259) in a body of application/json"
            yield Seen("endpoint-request-content-type", False, entry.n, expected, odd)
    for exchange in record.transcript.exchanges:
        if exchange.verb != "POST" or not exchange.line or exchange.status not in SUCCESS:
            continue
        said = record.transcript[exchange.line]
        if said.malformed or not _has_request(said.value):
            continue
        if not exchange.kind and _is_cancelled(record, exchange.line):
            continue  # there is nothing left that it could answer
        yield Seen(
            "endpoint-request-content-type",
            len(exchange.kinds) == 1 and exchange.kind in TYPES,
            exchange.line,
            "application/json or text/event-stream",
            " and ".join(exchange.kinds) or "no Content-Type",
        )


def _is_cancelled(record: Record, line: int) -> bool:
    asked = [one for one in record.transcript.session.asked if one.line == line]
    return any(one.cancelled > 0 for one in asked)


def _outlived(record: Record, get: HttpExchange) -> bool:
    """Whether the session was alive when a GET was answered: a later request in it succeeded."""
    return any(
        later.verb == "POST"
        and later.status in SUCCESS
        and later.said(SESSION) == get.said(SESSION)
        and get.headed is not None
        and later.began >= get.headed
        for later in record.transcript.exchanges
    )


@ambient("endpoint-get-stream-or-405")
def opens_a_stream_for_get_or_refuses_with_405(record: Record) -> Iterator[Seen]:
    """A GET opens a stream of events, or is answered by 405."""
    for exchange in record.transcript.exchanges:
        ordinary = exchange.verb == "GET" and not exchange.crafted and not exchange.line
        if not ordinary or not exchange.status or not exchange.said("Accept"):
            continue
        if exchange.status >= BAD_REQUEST and not _outlived(record, exchange):
            return  # the session may have ended before the GET was read
        opened = exchange.status in SUCCESS and exchange.streams
        yield Seen(
            "endpoint-get-stream-or-405",
            opened or exchange.status == NOT_ALLOWED,
            exchange.event_line or None,
            "text/event-stream, or 405 Method Not Allowed",
            f"{exchange} for GET",
        )
        return  # the server may allow one stream for each session


@scenario("endpoint-get-stream-or-405")
def answers_a_get(talk: Conversation) -> None:
    """A GET of a session gets a status while requests of the session are answered."""
    clause = "endpoint-get-stream-or-405"
    sent = [one for one in talk.wire.transcript.exchanges if one.verb == "GET" and not one.crafted]
    get = next((one for one in sent if not one.line), None)

    def is_over() -> bool:
        return get is None or get.status > 0 or get.ended is not None

    if talk.wire.wait(is_over, talk.pace.reply) or not talk.wire.ping(required=False).answered:
        talk.judge.unseen(clause, "opens_a_stream_for_get_or_refuses_with_405 judges its status")
        return
    talk.judge(
        clause,
        is_over(),
        expected="text/event-stream, or 405 Method Not Allowed",
        actual=f"no status for a GET within {talk.pace.reply:.0f} s; a later request was answered",
        mild=Breach.WARN,
        because="a server may begin the stream late",
    )


@ambient("endpoint-allow-header")
def names_the_methods_with_each_405(record: Record) -> Iterator[Seen]:
    """Each 405 names the methods that the endpoint has."""
    for exchange in record.transcript.exchanges:
        if exchange.status == NOT_ALLOWED:
            yield Seen(
                "endpoint-allow-header",
                exchange.header("Allow") is not None,
                exchange.line or exchange.event_line or None,
                "405 with the header Allow",
                f"{exchange} for {exchange.verb}, without Allow",
            )


@scenario("endpoint-removed-methods")
def refuses_get_and_delete(talk: Conversation) -> None:
    """A server without a handshake answers GET and DELETE by 405."""
    for answer in (talk.http.get(), talk.http.delete()):
        talk.judge.expect(
            answer,
            "endpoint-removed-methods",
            answer.status == NOT_ALLOWED,
            f"405 Method Not Allowed for {answer.exchange.verb}",
        )
        answer.close()


@scenario("endpoint-unknown-method-404")
def answers_an_unknown_method_with_404(talk: Conversation) -> None:
    """A method that the server does not implement is answered by 404."""
    others = {
        method: params
        for capability, methods in OPTIONAL.items()
        if capability not in talk.spoken.capabilities
        for method, params in methods.items()
    }
    for method, params in {INVENTED: {}, **REMOVED, **others}.items():
        answer = talk.http.post(talk.wire.build(method, params))
        code, is_found = answer.error_code, answer.status == NOT_FOUND
        unclear = method in others and not is_found and code != UNKNOWN_METHOD
        if method != INVENTED and (answer.reply.result is not None or unclear):
            continue
        talk.judge.expect(
            answer,
            "endpoint-unknown-method-404",
            is_found and (method == INVENTED or code == UNKNOWN_METHOD),
            f"404 Not Found with the error {UNKNOWN_METHOD} for {method}",
        )


@scenario("endpoint-missing-meta-400")
def answers_an_incomplete_meta_with_400(talk: Conversation) -> None:
    """A request without _meta, or without a required member of it, is refused with 400."""
    clause = "endpoint-missing-meta-400"
    for missing in ("clientCapabilities", "protocolVersion", "_meta", "params"):
        meta = talk.wire.meta()
        meta.pop(META + missing, None)
        message = talk.wire.build(talk.wire.ping_method, meta=meta)
        message.get("params", {}).pop(missing, None)
        message.pop(missing, None)
        answer = talk.http.post(message, malformed=True)
        if answer.error_code in {INVALID_PARAMS, HEADER_MISMATCH}:
            talk.judge.expect(
                answer,
                clause,
                answer.status == BAD_REQUEST,
                f"400 Bad Request for a request without {missing}",
            )
    talk.judge.otherwise_unseen(clause, f"no error {INVALID_PARAMS} or {HEADER_MISMATCH}: {answer}")


@ambient("endpoint-missing-capability-400")
def answers_a_missing_capability_with_400(record: Record) -> Iterator[Seen]:
    """The error about a missing capability of the client has the status 400."""
    for entry, message in record.messages():
        if message.code == MISSING_CAPABILITY and entry.origin is not None:
            exchange = entry.origin.exchange
            yield Seen(
                "endpoint-missing-capability-400",
                exchange.status == BAD_REQUEST,
                entry.n,
                f"400 Bad Request with the error {MISSING_CAPABILITY}",
                str(exchange),
            )
