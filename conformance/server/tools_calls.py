"""server/tools: refused calls, and the form of the refusal."""

import re
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Example,
    Kind,
    Pending,
    Record,
    Reply,
    Role,
    Seen,
    allows,
    ambient,
    arguments,
    brief,
    came_instead,
    integral,
    is_read_only,
    object_in,
    scenario,
)

CALL = "tools/call"
NOBODY = "x-touchstone-no-such-tool"
NOTHING = "x-touchstone-no-such-thing"
INVALID = -32602
HEADER_MISMATCH = -32020
NOT_OF_THE_TOOL = frozenset({-32042, -32021, HEADER_MISMATCH})
"""Error codes for something that the client lacks, and for a header that differs from the body."""

PROTOCOL_UNTIL = "2025-06-18"
"""The last revision that lists invalid arguments as protocol errors."""

FEW = 3
"""Number of tools that one scenario calls."""

PROBES = 2
"""Number of requests sent while a call has no answer."""

CALLS = 4
"""Equal calls, one after the other; some servers lose one of them."""

SOON = 1.0
"""Seconds of a call after which it is not repeated."""

INVALID_TEXT = re.compile(
    r"invalid (tool )?(arguments?|param(eter)?s?)\b|input validation error"
    r"|(missing|required) (required )?(argument|param(eter)?|field|property)\b|field required",
    re.IGNORECASE,
)
"""Says that the arguments of a call are invalid or missing."""

STACK = "a stack trace"
TRACE = re.compile(
    r"Traceback \(most recent call last\)|^\s+at \S.*:\d+:\d+\)?$|^\s+File \"[^\"]+\", line \d+"
    r"|^goroutine \d+ \[|^\s+at [\w.$]+\([\w.]+\.java:\d+\)|stack backtrace:",
    re.MULTILINE,
)


# --- the answer


@scenario("tools-call-answered")
def answers_each_call(talk: Conversation) -> None:
    """If the server answers later requests, it answers the call too, also when it is repeated."""
    clause = "tools-call-answered"
    quiet = talk.examples("unanswered-call")[:2]
    for example in quiet or talk.examples("callable-tool")[:1]:
        for _ in range(CALLS):
            call = Pending(talk.wire, example, token=f"touchstone-answer-{example.name}")
            _judge_answer(talk, clause, example, call)
            if not call.answers() or call.age > SOON:
                break
    talk.judge.otherwise_unseen(
        clause, "each call without an answer reports progress, or asks the client"
    )


def _judge_answer(talk: Conversation, clause: str, example: Example, call: Pending) -> None:
    """Judge that a call is answered, if requests after it are and nothing else comes instead."""
    alive = 0
    for _ in range(PROBES):
        if not call.reply(talk.pace.reply).answered:
            alive += talk.wire.ping(required=False).answered
    busy = call.progress() or any(
        message.role is Role.REQUEST
        for entry in talk.since(call.line)
        for message in entry.messages
    )
    if not call.answers() and (busy or alive < PROBES):
        return
    instead = came_instead(talk.wire, call.line)
    waited = f"no answer within {call.age:.0f} s" if instead == "silence" else instead
    talk.judge(
        clause,
        bool(call.answers()),
        expected=f"an answer to {example}",
        actual=f"{waited}; {alive} later requests were answered",
        at=call.line,
    )
    if not call.answers():
        call.cancel("it took too long")


@scenario("tools-input-schema-complete")
def accepts_a_call_that_its_schema_allows(talk: Conversation) -> None:
    """A tool does not refuse every call that its inputSchema allows as invalid."""
    clause = "tools-input-schema-complete"
    for example in talk.examples("refused-call")[:FEW]:
        whole = arguments.form(example.schema)
        if not allows(example.schema, {}) or (whole and not is_read_only(example.item)):
            continue
        said = [
            talk.wire.request(CALL, {"name": example.name, "arguments": given}, required=False)
            for given in ({}, whole)[: 1 + (whole != {} and bool(allows(example.schema, whole)))]
        ]
        if all(reply.answered for reply in said):
            refused = all(
                reply.code == INVALID or (not whole and _names_arguments(reply)) for reply in said
            )
            talk.judge(
                clause,
                not refused,
                expected=f"{example.name} takes a call that its inputSchema allows",
                actual=f"each call is refused; for {{}}: {said[0]}",
                at=said[0],
            )
    for example in talk.examples("callable-tool")[:1]:
        # Discovery got a result.
        talk.judge(clause, True, expected=f"a result of {example}")
    talk.judge.otherwise_unseen(clause, "each tool that fails requires an argument, or names one")


def _names_arguments(reply: Reply) -> bool:
    return reply.is_tool_error and any(map(INVALID_TEXT.search, _texts(reply.result)))


# --- the name


@scenario("tools-unknown-tool-error")
def refuses_an_unknown_tool(talk: Conversation) -> None:
    """A call of a tool that does not exist gets error -32602."""
    reply = talk.wire.request(CALL, {"name": NOBODY, "arguments": {}})
    talk.judge.expect_refusal(
        reply, "tools-unknown-tool-error", (INVALID,), "error -32602 for an unknown tool"
    )


@scenario("tools-name-case-sensitive")
def treats_tool_names_as_case_sensitive(talk: Conversation) -> None:
    """A tool cannot be called by its name in another case."""
    clause, listed = "tools-name-case-sensitive", {t["name"] for t in talk.spoken.named("tools")}
    for example in talk.examples("callable-tool")[:1]:
        flipped = example.name.swapcase()
        if flipped in listed | {example.name}:
            talk.judge.unseen(clause, f"{flipped} is the name of another tool")
            continue
        if talk.wire.request(CALL, {**example.params, "name": NOBODY}, required=False).ran:
            talk.judge.unseen(clause, "the server runs a tool under any name")
            continue
        reply = talk.wire.request(CALL, {**example.params, "name": flipped})
        talk.judge.expect(reply, clause, not reply.ran, f"an error for the tool {flipped}")


# --- the request


@scenario("tools-malformed-call-error", hurts=True)
def refuses_malformed_calls(talk: Conversation) -> None:
    """A call without a name, with another type as name or as arguments gets an error."""
    malformed: list[dict[str, Any]] = [{"arguments": {}}, {"name": 42, "arguments": {}}]
    malformed += [{"name": {}, "arguments": {}}, {"name": [], "arguments": {}}]
    free = talk.spoken.harmless[:1]
    careful = [t["name"] for t in talk.spoken.named("tools") if _cannot_run_without(t)][:1]
    malformed += [{"name": n, "arguments": "touchstone"} for n in free]
    for tool in (*free, *careful):
        malformed += [{"name": tool, "arguments": 5}, {"name": tool, "arguments": []}]
    for params in malformed:
        reply = talk.wire.request(CALL, params, required=False)
        named = isinstance(params.get("name"), str)
        refused = reply.is_error or reply.error is not None
        answered = refused or reply.is_tool_error or (named and reply.answered)
        lenient = params.get("arguments") == []  # some languages cannot tell it from {}
        talk.judge.expect(
            reply,
            "tools-malformed-call-error",
            (lenient and answered)
            or (
                refused
                and reply.refused(INVALID, *((HEADER_MISMATCH,) if talk.server.over_http else ()))
            ),
            f"error -32602 for a call with {brief(params, 80)}",
            mild=Breach.WARN if answered else None,
        )
        if not reply.answered:
            return


def _cannot_run_without(tool: dict[str, Any]) -> bool:
    """Whether a tool changes nothing, and requires an argument."""
    return is_read_only(tool) and bool(arguments.required(object_in(tool, "inputSchema")))


@scenario("tools-call-omitted-arguments")
def runs_without_the_arguments_member(talk: Conversation) -> None:
    """A tool without required arguments runs when arguments is left out."""
    clause = "tools-call-omitted-arguments"
    free = [one for one in talk.examples("callable-tool") if not arguments.required(one.schema)]
    for example in [one for one in free if one.item][:FEW]:
        empty = {"name": example.name, "arguments": {}}
        if not talk.wire.request(CALL, empty, required=False).ran:
            continue
        reply = talk.wire.request(CALL, {"name": example.name})
        refused = reply.is_error or reply.is_tool_error
        refused = refused and talk.wire.request(CALL, empty, required=False).ran
        expected = f"a result of {example.name}, as with {{}}"
        talk.judge.expect(reply, clause, not refused, expected)
    talk.judge.otherwise_unseen(clause, "no callable tool runs with {}")


# --- the arguments


@scenario("tools-validate-inputs", "tools-input-validation-is-error", hurts=True)
def validates_tool_arguments(talk: Conversation) -> None:
    """A call without a required argument, or with an object for a text or number, is an error.

    The error is in the result of the tool, where the model sees it and can correct the call.
    """
    valid, channel = "tools-validate-inputs", "tools-input-validation-is-error"
    for example in talk.examples("argument-tool")[:FEW]:
        for spoilt in (
            arguments.incomplete(example.schema, example.arguments),
            arguments.mistyped(example.schema, example.arguments),
        ):
            if spoilt is None:
                continue
            argument, given = spoilt
            params = {"name": example.name, "arguments": given}
            reply = talk.wire.request(CALL, params, required=False)
            passed = reply.answered and not reply.ran
            expected = f"an error for {example.name} with {brief(given, 80)}: invalid {argument}"
            talk.judge.expect(reply, valid, passed, expected)
            if talk.server.over_http and reply.code == HEADER_MISMATCH:
                continue  # an argument that is no text or number has no header
            if reply.is_error or reply.is_tool_error:
                talk.judge.expect(
                    reply,
                    channel,
                    reply.is_tool_error or reply.unreadable,
                    f"a result with isError for {example.name} with {brief(given, 80)}",
                    mild=Breach.NOTE if reply.code == INVALID else None,
                )
            if not reply.answered:
                break
    talk.judge.otherwise_unseen(channel, "no invalid argument was refused")
    talk.judge.otherwise_unseen(valid, "no callable tool has an argument that can be made invalid")


@scenario("tools-execution-error-in-result")
def reports_tool_failures_in_results(talk: Conversation) -> None:
    """A failure inside a tool is reported in a result with isError.

    A path or another text that names nothing makes the tool fail.
    """
    clause = "tools-execution-error-in-result"
    for example, given in _failing(talk):
        reply = talk.wire.request(CALL, {"name": example.name, "arguments": given}, required=False)
        code = reply.code if reply.is_error else None
        # An empty call is one that never worked: tools-input-schema-complete counts its refusal.
        invalid = code == INVALID and (talk.revision <= PROTOCOL_UNTIL or not given)
        if not (reply.is_tool_error or integral(code)) or invalid or code in NOT_OF_THE_TOOL:
            continue
        talk.judge.expect(
            reply,
            clause,
            reply.is_tool_error,
            f"a result with isError for {example.name} with {brief(given, 80)}",
            mild=Breach.NOTE if code == INVALID else None,
        )
    talk.judge.otherwise_unseen(clause, "no callable tool could be made to fail")


def _failing(talk: Conversation) -> Iterator[tuple[Example, dict[str, Any]]]:
    """Yield calls that fail: those that never worked, then others that are likely to, by paths."""
    yield from ((one, one.arguments) for one in talk.examples("refused-call")[:FEW])
    found: list[tuple[bool, Example, dict[str, Any]]] = []
    for example in talk.examples("callable-tool"):
        properties = example.schema.get("properties")
        for name, value in example.arguments.items():
            schema = properties.get(name) if isinstance(properties, dict) else None
            if not isinstance(value, str) or not isinstance(schema, dict):
                continue
            if schema.get("type") == "string" and not {"enum", "pattern", "format", "const"} & {
                *schema
            }:
                path = arguments.is_path(name)
                odd = f"{talk.root}/{NOTHING}" if path and value.startswith("/") else NOTHING
                found.append((not path, example, {**example.arguments, name: odd}))
                break
    for _, example, given in sorted(found, key=lambda one: one[0])[:FEW]:
        yield example, given


# --- the content of errors


@ambient("tools-sanitize-outputs")
def leaks_no_internals_in_tool_errors(record: Record) -> Iterator[Seen]:
    """Errors of tools have no stack traces and no secrets of the environment."""
    canary = record.profile.canary
    for kind in (Kind.RESULT, Kind.ERROR):
        for entry, message in record.answers(kind, CALL):
            said = message.value["error" if kind is Kind.ERROR else "result"]
            if kind is Kind.RESULT and not (isinstance(said, dict) and said.get("isError") is True):
                continue
            what = _leak(said, canary.secret if canary else "")
            if kind is Kind.ERROR and what == STACK:
                what = ""  # jsonrpc-error-message-concise judges it
            clause, expected = "tools-sanitize-outputs", "an error without internals of the server"
            yield Seen(clause, not what, entry.n, expected, what, regardless=True)


def _leak(said: Any, secret: str) -> str:
    texts = list(_texts(said))
    if secret and any(secret in text for text in texts):
        return "a secret out of the environment"
    return STACK if any(TRACE.search(text) for text in texts) else ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, dict | list) else ():
        yield from _texts(part)
