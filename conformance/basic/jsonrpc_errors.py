"""basic/jsonrpc: requests that are refused, and the codes of errors."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    META,
    Breach,
    Conversation,
    Entry,
    Kind,
    Message,
    Record,
    Reply,
    Seen,
    ambient,
    brief,
    came_instead,
    covers,
    integral,
    scenario,
    strays,
    value_in,
)

UNKNOWN = "x-touchstone/does-not-exist"
NOWHERE = "x-touchstone://nowhere/at-all"
STANDARD = frozenset({-32700, -32600, -32601, -32602, -32603})
MCP_CODES = frozenset({-32020, -32021, -32022})
RETIRED = frozenset({-32002, -32042})
NOT_RETIRED = "neither -32002 nor -32042"
LONG = 300


# --- the shape of every error


@ambient("jsonrpc-error-shape", "jsonrpc-error-code-integer", "jsonrpc-error-message-concise")
def writes_errors_in_the_right_shape(record: Record) -> Iterator[Seen]:
    """An error is an object with an integer code and a short string message."""
    for entry, message in record.messages():
        value = message.value
        if not isinstance(value, dict) or "error" not in value or "method" in value:
            continue
        error = value["error"]
        if "result" not in value or error is not None:
            yield from _shape(entry, error)
            if isinstance(error, dict):
                yield from _code_type(entry, error)
                yield from _wording(entry, error)


def _shape(entry: Entry, error: Any) -> Iterator[Seen]:
    clause, expected = "jsonrpc-error-shape", "an error object with code and message"
    shaped = isinstance(error, dict) and "code" in error and isinstance(error.get("message"), str)
    yield Seen(clause, shaped, entry.n, expected, brief(error))
    if shaped and not error["message"]:
        yield Seen(clause, False, entry.n, "a message", '""', mild=Breach.WARN)


def _code_type(entry: Entry, error: dict[str, Any]) -> Iterator[Seen]:
    if "code" in error:
        code = error["code"]
        clause, actual = "jsonrpc-error-code-integer", f"code {brief(code)}"
        yield Seen(clause, integral(code), entry.n, "an integer code", actual)
        if isinstance(code, float) and integral(code):
            yield Seen(clause, False, entry.n, "an integer code", actual, mild=Breach.WARN)


def _wording(entry: Entry, error: dict[str, Any]) -> Iterator[Seen]:
    text = error.get("message")
    if isinstance(text, str):
        passed = "\n" not in text and len(text) <= LONG
        clause = "jsonrpc-error-message-concise"
        yield Seen(clause, passed, entry.n, "one short sentence", brief(text))


# --- requests that cannot be served


def _has_code(reply: Reply) -> bool:
    """Whether there is an answer with a code that the rules above accept."""
    return reply.answered and not reply.unreadable


@scenario("jsonrpc-method-not-found")
def refuses_an_unknown_method(talk: Conversation) -> None:
    """An undefined method gets error -32601."""
    reply = talk.wire.request(UNKNOWN)
    talk.judge.expect_refusal(
        reply, "jsonrpc-method-not-found", (-32601,), f"error -32601 for {UNKNOWN}"
    )


@scenario("jsonrpc-unadvertised-method-not-found")
def refuses_methods_of_undeclared_capabilities(talk: Conversation) -> None:
    """The list method of an undeclared capability gets error -32601."""
    clause = "jsonrpc-unadvertised-method-not-found"
    absent = [f for f in ("prompts", "resources", "tools") if f not in talk.spoken.capabilities]
    for feature in absent:
        reply = talk.wire.request(f"{feature}/list")
        offered = bool((reply.result or {}).get(feature))
        if _has_code(reply) and not offered:
            talk.judge.expect(
                reply,
                clause,
                reply.code == -32601,
                f"error -32601 for {feature}/list, because {feature} is not declared",
                mild=Breach.NOTE if reply.result is not None else None,
            )
    why = "no answer with a code came" if absent else "it declares tools, resources and prompts"
    talk.judge.otherwise_unseen(clause, why)


@scenario("jsonrpc-invalid-params")
def refuses_params_without_required_members(talk: Conversation) -> None:
    """resources/read without uri and prompts/get without name get error -32602."""
    for feature, method in (("resources", "resources/read"), ("prompts", "prompts/get")):
        if feature not in talk.spoken.capabilities:
            continue
        reply = talk.wire.request(method, {})
        mismatch = (
            (-32020,) if talk.server.over_http else ()
        )  # over HTTP the member is a header too
        talk.judge.expect_refusal(
            reply,
            "jsonrpc-invalid-params",
            (-32602, *mismatch),
            f"error -32602 for {method} without its required member",
            mild=Breach.WARN if reply.is_error else None,
        )


@scenario("jsonrpc-ill-typed-params", hurts=True)
def answers_ill_typed_params(talk: Conversation) -> None:
    """Params of a wrong type are answered, as a rule by an error."""
    clause = "jsonrpc-ill-typed-params"
    for method, params, lenient in _ill_typed(talk):
        line = talk.wire.say(talk.wire.build(method, params), malformed=True)
        reply = talk.wire.answer_to(line)
        talk.judge.expect(
            reply,
            clause,
            reply.answered and (lenient or reply.result is None),
            f"an error for {method} with params {brief(params, 80)}",
            mild=Breach.WARN if reply.answered else None,
        )
        if not reply.answered:
            return
    talk.judge.otherwise_unseen(clause, "the server offers no method with params")


def _ill_typed(talk: Conversation) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield (a method, its params, whether a result is no fault)."""
    offered = talk.spoken.capabilities
    for method in talk.spoken.list_methods[:1]:
        yield method, {"cursor": 5}, True
        yield method, {"cursor": {}}, True
    odds: tuple[Any, ...] = ({}, [])
    for odd in odds:
        if "resources" in offered:
            yield "resources/read", {"uri": odd}, False
        if "prompts" in offered:
            yield "prompts/get", {"name": odd}, False
    if "prompts" in offered:
        yield "prompts/get", {"name": "touchstone-none", "arguments": 5}, False
    if "completions" in offered:
        yield "completion/complete", {"ref": "touchstone", "argument": []}, False


@scenario("jsonrpc-retired-codes")
def uses_no_retired_code_for_an_unknown_resource(talk: Conversation) -> None:
    """The error for a resource that does not exist does not use the retired code -32002.

    Earlier revisions used that code. Any other error is accepted. Servers without resources are
    tested too.
    """
    reply = talk.wire.request("resources/read", {"uri": NOWHERE})
    talk.judge.expect(reply, "jsonrpc-retired-codes", reply.code not in RETIRED, NOT_RETIRED)


# --- lines that are not requests


def _refused(message: Message) -> bool:
    return "error" in message.value


def _wrong_code(message: Message, *right: int) -> bool:
    """Whether an error has a readable code that is not one of the right ones."""
    return integral(message.code) and message.code not in right


@scenario("jsonrpc-parse-error", "jsonrpc-error-id-unreadable", hurts=True)
def survives_a_line_that_is_not_json(talk: Conversation) -> None:
    """A truncated line is answered with -32700 or dropped, and the next request is served.

    A client whose server dies from one bad byte loses all requests in flight.
    """
    line = talk.wire.say_raw(b'{"jsonrpc": "2.0", "method": \n', malformed=True)
    talk.wire.quiet()
    after = talk.wire.ping(required=False)
    talk.wire.quiet()
    came = strays(talk.wire, line)
    errors = [(entry, message) for entry, message in came if _refused(message)]
    talk.judge.expect_answer(
        after,
        "jsonrpc-parse-error",
        "an answer to the next request",
        mild=Breach.WARN if errors and talk.wire.gone else None,
    )
    for entry, message in came:
        refused = _refused(message)
        talk.judge(
            "jsonrpc-parse-error",
            refused and not _wrong_code(message, -32700),
            expected="error -32700, or silence",
            actual=f"error {brief(message.code)}" if refused else "a result",
            at=entry,
            mild=Breach.WARN if refused else None,
        )
    for entry, message in errors:
        own = message.value.get("id")
        talk.judge(
            "jsonrpc-error-id-unreadable",
            own is None,
            expected="id null or no id",
            actual=f"id {brief(own)}",
            at=entry,
        )
    if not errors:
        talk.judge.unseen("jsonrpc-error-id-unreadable", "the server sent no error for the line")


@scenario("jsonrpc-parse-error", hurts=True)
def survives_a_line_that_is_not_utf8(talk: Conversation) -> None:
    """A notification with a byte that is not UTF-8 does not disturb the next request."""
    talk.wire.say_raw(
        b'{"jsonrpc": "2.0", "method": "notifications/touchstone-\xff"}\n', malformed=True
    )
    after = talk.wire.ping(required=False)
    talk.judge.expect_answer(
        after,
        "jsonrpc-parse-error",
        "an answer to the next request, after a byte that is not UTF-8",
        mild=Breach.WARN,
        because="the pages ask clients for UTF-8, and do not say what a server does without it",
    )


@scenario("jsonrpc-invalid-request", "jsonrpc-error-id-recoverable", hurts=True)
def refuses_invalid_requests(talk: Conversation) -> None:
    """JSON that is not a request gets error -32600 with its id; the next request is served."""
    numeric: dict[str, Any] = {"jsonrpc": "2.0", "id": "probe", "method": 5}
    if talk.modern:
        numeric["params"] = {"_meta": talk.wire.meta()}
    answers = _judge_oddity(talk, "a method that is a number", numeric, lenient=False)
    _judge_recoverable(talk, answers)
    for what, odd, lenient in _oddities(talk):
        if not talk.wire.gone:
            _judge_oddity(talk, what, odd, lenient=lenient)
    if not talk.wire.gone:
        _judge_notification(talk)


def _judge_notification(talk: Conversation) -> None:
    """Judge what follows a notification with invalid params, which needs no error."""
    odd = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}
    talk.wire.say(odd, malformed=True)
    after = talk.wire.ping(required=False)
    talk.judge.expect_answer(
        after,
        "jsonrpc-invalid-request",
        "an answer to the next request, after a notification whose params are a list",
    )


def _oddities(talk: Conversation) -> Iterator[tuple[str, Any, bool]]:
    """Yield (the fault, the message, whether a lenient reader may serve it)."""
    method = talk.wire.ping_method
    params: dict[str, Any] = {"_meta": talk.wire.meta()} if talk.modern else {}
    yield "no method", {"jsonrpc": "2.0", "id": "odd-1", "params": params}, False
    yield "no jsonrpc", {"id": "odd-2", "method": method, "params": params}, True
    odd = {"jsonrpc": "1.0", "id": "odd-3", "method": method, "params": params}
    yield 'jsonrpc "1.0"', odd, True
    odd = {"jsonrpc": "2.0", "id": "odd-4", "method": method, "params": "none"}
    yield "params that is a string", odd, not talk.modern
    odd = {"jsonrpc": "2.0", "id": "odd-5", "method": method, "params": []}
    yield "params that is an array", odd, not talk.modern
    if talk.revision >= "2025-06-18":
        pair = [talk.wire.build(method), talk.wire.build(method)]
        yield "an array", pair, True


Answers = list[tuple[Entry, Message]]


def _judge_oddity(talk: Conversation, what: str, odd: Any, *, lenient: bool) -> Answers:
    clause = "jsonrpc-invalid-request"
    expected = f"error -32600 for {what}"
    # Both lines go out in one write. Two writes may be read together or apart, so a server that
    # drops the data after a bad line would be found only sometimes.
    line, asked = talk.wire.say_together(odd, talk.wire.build(talk.wire.ping_method), broken=1)
    after = talk.wire.answer_to(asked)
    if not _answers(talk, line):
        talk.wire.quiet()
    answers = _answers(talk, line)
    talk.judge.expect_answer(
        after,
        clause,
        f"an answer to the next request, after {what}",
        mild=Breach.WARN if answers and talk.wire.gone else None,
    )
    if not answers and after.answered:
        actual = came_instead(talk.wire, line)
        talk.judge(clause, False, expected=expected, actual=actual, at=line, mild=Breach.WARN)
    right = (-32600, -32602) if "params" in what else (-32600,)
    for entry, message in answers:
        refused = _refused(message)
        elsewhere = message.batched and isinstance(odd, list)
        talk.judge(
            clause,
            elsewhere or (refused and not _wrong_code(message, *right)),
            expected=expected,
            actual=f"error {brief(message.code)}" if refused else "a result",
            at=entry,
            mild=Breach.WARN if lenient or refused else None,
        )
    return answers


def _answers(talk: Conversation, line: int) -> Answers:
    """Return the responses with the id of a line, and the loose responses after it."""
    own = [
        (entry, message)
        for entry in talk.since(line)
        for message in entry.messages
        if message.answers == line and message.kind in {Kind.RESULT, Kind.ERROR}
    ]
    return own + strays(talk.wire, line)


def _judge_recoverable(talk: Conversation, answers: Answers) -> None:
    clause = "jsonrpc-error-id-recoverable"
    errors = [(entry, message) for entry, message in answers if _refused(message)]
    for entry, message in errors:
        own = message.value.get("id")
        talk.judge(
            clause,
            own == "probe",
            expected='id "probe", as in the request',
            actual=f"id {brief(own)}",
            at=entry,
            mild=Breach.WARN if own is None else None,
        )
    if not errors:
        talk.judge.unseen(clause, "the server sent no error for the request")


# --- stateless results and error codes


@ambient("jsonrpc-result-type-required", "jsonrpc-result-type-known")
def gives_results_a_result_type(record: Record) -> Iterator[Seen]:
    """Every stateless result has a resultType."""
    spoken = record.profile.spoken.get(record.revision)
    extended = bool(spoken and spoken.extensions)
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if not isinstance(result, dict) or record.asked_under(message) != record.revision:
            continue  # by the rules of another version, a result has no type
        kind = result.get("resultType")
        passed = isinstance(kind, str)
        actual = f"resultType {brief(kind)}" if "resultType" in result else "no resultType"
        yield Seen("jsonrpc-result-type-required", passed, entry.n, "a string resultType", actual)
        if passed and not extended:
            known = kind in {"complete", "input_required"}
            expected = "complete or input_required"
            yield Seen("jsonrpc-result-type-known", known, entry.n, expected, actual)


@ambient(
    "jsonrpc-reserved-mcp-codes",
    "jsonrpc-defined-codes-meaning",
    "jsonrpc-legacy-code-range",
    "jsonrpc-retired-codes",
    "jsonrpc-app-code-range",
    "jsonrpc-reserved-code-range-legacy",
)
def respects_reserved_error_codes(record: Record) -> Iterator[Seen]:
    """Error codes respect the ranges that JSON-RPC and the revision reserve."""
    for entry, message in record.answers(Kind.ERROR):
        code = message.code
        if not integral(code):  # a code of another type is counted elsewhere, and none of these
            actual = f"code {brief(code)}"
            yield Seen("jsonrpc-retired-codes", True, entry.n, NOT_RETIRED, actual)
            continue
        taken = -32768 <= code <= -32100 and code not in STANDARD
        mcp = -32099 <= code <= -32020 and code not in MCP_CODES | RETIRED
        old = -32019 <= code <= -32000 and code not in RETIRED
        only_standard = "no code from -32768 to -32100 except the five standard ones"
        for clause, passed, expected in (
            ("jsonrpc-app-code-range", not taken, only_standard),
            ("jsonrpc-reserved-code-range-legacy", not taken, only_standard),
            ("jsonrpc-reserved-mcp-codes", not mcp, "no undefined code from MCP's own range"),
            ("jsonrpc-legacy-code-range", not old, "no code from -32000 to -32019"),
            ("jsonrpc-retired-codes", code not in RETIRED, NOT_RETIRED),
            (
                "jsonrpc-defined-codes-meaning",
                code not in MCP_CODES or _meant(record, message),
                "a code used with its defined meaning",
            ),
        ):
            yield Seen(clause, passed, entry.n, expected, f"code {code}")


def _meant(record: Record, message: Message) -> bool:
    """Whether one of MCP's own codes fits the request it answers."""
    if message.code == -32020:  # It is about HTTP headers, which stdio does not have.
        return bool(record.transcript.exchanges)
    asked = record.asked_on(message.answers)
    meta = value_in(asked.value, "params", "_meta") if asked else None
    if not isinstance(meta, dict):
        return True
    if message.code == -32022:
        return bool(meta.get(META + "protocolVersion") != record.revision)
    required = value_in(message.value["error"], "data", "requiredCapabilities")
    declared = meta.get(META + "clientCapabilities")
    return not (isinstance(required, dict) and required and covers(declared, required))
