"""http/headers: the version header, and the headers that repeat parts of the body."""

import base64
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from typing import Any

from mcp_touchstone.suite import (
    LATEST_LEGACY,
    Change,
    Conversation,
    Example,
    HttpAnswer,
    arguments,
    listings,
    marked_arguments,
    object_in,
    read_pages,
    scenario,
    value_in,
)

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
BAD_REQUEST = 400
NOT_ALLOWED = 405
SUCCESS = range(200, 300)

VERSION = "MCP-Protocol-Version"
SESSION = "Mcp-Session-Id"
OLD, FUTURE = "1999-01-01", "2099-01-01"
OLDEST = "2025-03-26"
NAMED = ("callable-tool", "readable-resource", "rendered-prompt")
STRANGE = "\xe9"
REJECTED = ("headers-mismatch-status", "headers-mismatch-code")


def served(answer: HttpAnswer) -> bool:
    """Whether a request got a result."""
    return answer.reply.result is not None


def encoded(text: str) -> str:
    """The Base64 form of a header."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def shouted(text: str) -> str:
    """The Base64 form with its marker in capitals, which is a plain value."""
    return encoded(text).replace("base64", "BASE64")


# --- revisions with a handshake


@scenario("headers-version-invalid", eras=True)
def refuses_an_invalid_version(talk: Conversation) -> None:
    """A version header that the server does not support is refused with 400."""
    refused = talk.profile.refused
    unspoken = [r for r in talk.profile.asked if r not in talk.profile.spoken]
    known = [r for r in unspoken if r not in refused or refused[r].error is not None]
    for version in (OLD, "not-a-version", FUTURE, *known):
        answer = talk.http.post(talk.wire.build(talk.wire.ping_method), {VERSION: version})
        judge_version(talk, answer, f"the version {version}")
    note = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    answer = talk.http.post(note, {VERSION: FUTURE})
    judge_version(talk, answer, f"a notification with the version {FUTURE}")
    opening = talk.http.first_request()
    if opening.header(SESSION) is None:
        return
    change = {SESSION: opening.header(SESSION), VERSION: FUTURE}
    stream, ended = talk.http.get(change), talk.http.delete(change)
    stream.close()
    if stream.status not in {0, NOT_ALLOWED}:  # endpoint-get-stream-or-405 judges silence
        judge_version(talk, stream, f"a GET with the version {FUTURE}")
    can_end = talk.http.end_session(opening) or ended.status in SUCCESS
    if can_end and ended.status != NOT_ALLOWED:
        judge_version(talk, ended, f"a DELETE with the version {FUTURE}")


def judge_version(talk: Conversation, answer: HttpAnswer, what: str) -> None:
    """Judge the response to a request with an invalid version."""
    talk.judge.expect(
        answer,
        "headers-version-invalid",
        answer.status == BAD_REQUEST,
        f"400 Bad Request for {what}",
    )


@scenario("headers-version-absent")
def serves_a_request_without_the_version(talk: Conversation) -> None:
    """A request of a session without the version header is served."""
    if talk.http.session_id is None and OLDEST not in talk.profile.spoken:
        why = f"without a session the version is {OLDEST}, which the server does not speak"
        talk.judge.unseen("headers-version-absent", why)
        return
    answer = talk.http.post(talk.wire.build(talk.wire.ping_method), {VERSION: None})
    talk.judge.expect(
        answer,
        "headers-version-absent",
        served(answer),
        "a result: the session or 2025-03-26 decides the version",
    )


# --- 2026-07-28


def judge_rejected(talk: Conversation, clause: str, answer: HttpAnswer, what: str) -> None:
    """Judge whether a request with a wrong header was rejected."""
    talk.judge.expect(answer, clause, not served(answer), f"a rejection of {what}")


def rejects(
    talk: Conversation, clause: str, answer: HttpAnswer, what: str, *, version: bool = False
) -> None:
    """Judge a request with a wrong header, and the form of its rejection."""
    judge_rejected(talk, clause, answer, what)
    if served(answer) or not answer.status:
        return
    if talk.judge.covers("headers-mismatch-status"):
        talk.judge.expect(
            answer,
            "headers-mismatch-status",
            answer.status == BAD_REQUEST,
            f"400 Bad Request for {what}",
        )
    allowed = {HEADER_MISMATCH, *({UNSUPPORTED_VERSION} if version else ())}
    if talk.judge.covers("headers-mismatch-code"):
        talk.judge.expect(
            answer,
            "headers-mismatch-code",
            answer.error_code in allowed,
            f"a JSON-RPC error {HEADER_MISMATCH} for {what}",
        )


@scenario(
    "headers-version-mismatch-rejected",
    "headers-method-mismatch-rejected",
    "headers-method-missing-rejected",
    "headers-value-case",
    *REJECTED,
)
def compares_the_headers_with_the_body(talk: Conversation) -> None:
    """A request whose headers differ from its body is rejected with 400 and -32020."""
    method = talk.wire.ping_method
    ignored = compares_the_method(talk, talk.wire.build(method))
    for listing in dict.fromkeys(talk.spoken.list_methods):
        if listing != method:
            compares_the_method(talk, talk.wire.build(listing))
    if not ignored:
        answer = talk.http.post(talk.wire.build(method), {"Mcp-Method": method.upper()})
        rejects(talk, "headers-value-case", answer, "an Mcp-Method in capitals")
    request = talk.wire.build(method, meta=talk.wire.meta(version="2025-11-25"))
    older = talk.http.post(request, {VERSION: talk.revision}, malformed=True)
    what = "a version header that differs from _meta"
    rejects(talk, "headers-version-mismatch-rejected", older, what, version=True)
    unseen_form(talk)


def compares_the_method(talk: Conversation, request: Mapping[str, Any]) -> bool:
    """Judge a request with another Mcp-Method, and without one; return if the former was served."""
    other = other_than(request["method"])
    answer = talk.http.post(request, {"Mcp-Method": other})
    what = f"{request['method']} with Mcp-Method {other}"
    rejects(talk, "headers-method-mismatch-rejected", answer, what)
    without = talk.http.post(request, {"Mcp-Method": None})
    what = f"{request['method']} without Mcp-Method"
    rejects(talk, "headers-method-missing-rejected", without, what)
    return served(answer)


def other_than(method: str) -> str:
    """Return another method that servers have."""
    return "tools/list" if method != "tools/list" else "server/discover"


def unseen_form(talk: Conversation) -> None:
    """Record that no rejection was seen whose form could be judged."""
    talk.judge.otherwise_unseen(
        (*REJECTED, "headers-value-case"), "no request was rejected because of a header"
    )


@scenario("headers-version-missing-rejected", eras=True)
def refuses_a_request_without_the_version(talk: Conversation) -> None:
    """A server that serves no clients before 2025-06-18 wants the version header."""
    clause = "headers-version-missing-rejected"
    is_modern_only = not talk.profile.lacks(("modern-only",), talk.revision)
    refuses = OLDEST in talk.profile.asked and OLDEST not in talk.profile.spoken
    if not (is_modern_only or refuses):
        talk.judge.unseen(
            clause, f"the server did not refuse {OLDEST}, so a client may omit the version"
        )
        return
    answer = talk.http.post(talk.wire.build(talk.wire.ping_method), {VERSION: None})
    judging = rejects if is_modern_only else judge_rejected
    judging(talk, clause, answer, "a request without the version")


@scenario("headers-version-unsupported-status", eras=True)
def answers_an_unsupported_version_with_400(talk: Conversation) -> None:
    """A version that the server does not implement is answered by 400."""
    older = [] if talk.profile.lacks(("modern-only",), talk.revision) else [LATEST_LEGACY]
    for version in (OLD, FUTURE, *older):
        meta = talk.wire.meta(version=version)
        request = talk.wire.build(talk.wire.ping_method, meta=meta)
        answer = talk.http.post(request, {VERSION: version}, malformed=True)
        talk.judge.expect(
            answer,
            "headers-version-unsupported-status",
            answer.status == BAD_REQUEST,
            f"400 Bad Request for the version {version}",
        )


@scenario("headers-name-case")
def accepts_header_names_in_any_case(talk: Conversation) -> None:
    """Names of headers may be in small or in capital letters."""
    talk.need(talk.wire.ping(), "an ordinary request")
    for spell in (str.lower, str.upper):
        request = talk.wire.build(talk.wire.ping_method)
        body = talk.http.body(request)
        ordinary = talk.http.headers("POST", request, len(body))
        spelt = tuple((spell(name), value) for name, value in ordinary)
        answer = talk.http.post(request, headers=spelt)
        talk.judge.expect(
            answer,
            "headers-name-case",
            served(answer),
            "a result, whatever the case of the header names",
        )


def named_examples(talk: Conversation) -> Iterator[Example]:
    """Yield one example of each kind of request with a name."""
    for word in NAMED:
        yield from talk.examples(word)[:1]


@scenario(
    "headers-name-mismatch-rejected",
    "headers-name-missing-rejected",
    "headers-name-decoded-mismatch",
    "headers-invalid-characters",
    "headers-value-case",
    *REJECTED,
)
def compares_the_name_with_the_body(talk: Conversation) -> None:
    """A call, a read or a prompt whose Mcp-Name differs from its body is rejected."""
    for example in named_examples(talk):
        name = str(example.params.get("name") or example.params.get("uri"))
        ignored = False
        changes: tuple[tuple[str, str, Change], ...] = (
            ("headers-name-mismatch-rejected", "another Mcp-Name", "touchstone-no-such-name"),
            ("headers-name-missing-rejected", "a request without Mcp-Name", None),
            ("headers-name-decoded-mismatch", "another encoded Mcp-Name", encoded("no-such")),
            ("headers-name-decoded-mismatch", "a broken encoding", "=?base64?%%%?="),
            ("headers-invalid-characters", "the byte 0xE9 in Mcp-Name", name + STRANGE),
            ("headers-value-case", "an Mcp-Name in other case", name.swapcase()),
            ("headers-value-case", "an encoded Mcp-Name with =?BASE64?", shouted(name)),
        )
        for clause, what, value in changes:
            counted = ignored and clause == "headers-value-case"
            if value == name or counted or not talk.judge.covers(clause):
                continue
            request = talk.wire.build(example.method, example.params)
            answer = talk.http.post(request, {"Mcp-Name": value})
            if clause == "headers-invalid-characters":
                judge_rejected(talk, clause, answer, what)
            else:
                rejects(talk, clause, answer, what)
            ignored |= served(answer) and clause == "headers-name-mismatch-rejected"
    unseen_form(talk)


@scenario("headers-method-named-rejected", *REJECTED)
def compares_the_method_of_a_call(talk: Conversation) -> None:
    """A call, a read or a prompt whose Mcp-Method differs from its body is rejected."""
    clause, ping = "headers-method-named-rejected", talk.wire.build(talk.wire.ping_method)
    for kind, what in ((other_than, "another Mcp-Method"), (lambda _: None, "no Mcp-Method")):
        if served(talk.http.post(ping, {"Mcp-Method": kind(ping["method"])})):
            continue  # the rules above have counted it
        for example in named_examples(talk):
            request = talk.wire.build(example.method, example.params)
            answer = talk.http.post(request, {"Mcp-Method": kind(example.method)})
            rejects(talk, clause, answer, f"{example.method} with {what}")
    talk.judge.otherwise_unseen(clause, "it does not look at Mcp-Method at all")
    unseen_form(talk)


@scenario("headers-name-decoded")
def decodes_the_name(talk: Conversation) -> None:
    """An Mcp-Name in the Base64 form is compared after it was decoded."""
    for example in named_examples(talk):
        name = str(example.params.get("name") or example.params.get("uri"))
        request = talk.wire.build(example.method, example.params)
        answer = talk.http.post(request, {"Mcp-Name": encoded(name)})
        talk.judge.expect(
            answer,
            "headers-name-decoded",
            served(answer),
            "a result: the encoded name is the name in the body",
        )


# --- headers that repeat arguments

PARAMS = (
    "headers-param-mismatch-rejected",
    "headers-param-missing-rejected",
    "headers-param-not-expected",
    "headers-param-decoded",
    "headers-param-invalid-characters",
    "headers-param-integer",
)


@scenario(*PARAMS, *REJECTED, "headers-value-case")
def compares_the_annotated_arguments(talk: Conversation) -> None:
    """Headers of annotated arguments are compared with the arguments of the call."""
    tools = {
        tool.get("name"): tool
        for tool in listings.items(read_pages(talk.wire, "tools/list"), "tools")
    }
    for example in talk.examples("callable-tool"):
        tool = tools.get(example.params.get("name"), {})
        for path, header in marked_arguments(tool):
            around = object_in(example.arguments, *path[:-1])
            if path[:-1] and not around:
                continue
            value = around.get(path[-1])
            if isinstance(value, str | int):
                _compares_one(talk, example, header, value)
            elif path[-1] not in around:
                _expects(talk, "headers-param-not-expected", example, {}, "without the argument")
                value = _sample(tool, path)
                longer = replace(example, params=_with(value, example, path))
                if not isinstance(value, str | int):
                    continue
                if served(_expects(talk, "headers-param-decoded", longer, {}, f"with {header}")):
                    _compares_one(talk, longer, header, value)
            null = replace(example, params=_with(None, example, path))
            _expects(talk, "headers-param-not-expected", null, {}, f"with null for {path[-1]}")
    for example in talk.examples("refused-call"):  # the header may be why each call is refused
        paths = [path for path, _ in marked_arguments(tools.get(example.name, {}))]
        if any(path[-1] not in object_in(example.arguments, *path[:-1]) for path in paths):
            _expects(talk, "headers-param-not-expected", example, {}, "without the argument")
    talk.judge.otherwise_unseen(PARAMS, "no tool that may be called has such an argument")
    unseen_form(talk)


def _sample(tool: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return a value for an argument of a tool; None without one."""
    schema = value_in(tool, "inputSchema", *chain.from_iterable(("properties", p) for p in path))
    form = {"type": "object", "properties": {path[-1]: schema}, "required": [path[-1]]}
    return next((one.get(path[-1]) for one in arguments.candidates(form)), None)


def _with(value: Any, example: Example, path: tuple[str, ...]) -> dict[str, Any]:
    """Return the params of a call with another value of one argument."""
    params = deepcopy(dict(example.params))
    around = params.setdefault("arguments", {})
    for name in path[:-1]:
        around = around[name]
    around[path[-1]] = value
    return params


def _call(talk: Conversation, example: Example, change: Mapping[str, Change]) -> HttpAnswer:
    return talk.http.post(talk.wire.build(example.method, example.params), change)


def _expects(
    talk: Conversation, clause: str, example: Example, change: Mapping[str, Change], what: str
) -> HttpAnswer:
    answer = _call(talk, example, change)
    talk.judge.expect(
        answer,
        clause,
        answer.error_code != HEADER_MISMATCH,
        f"no header mismatch for a call {what}",
    )
    return answer


def _compares_one(talk: Conversation, example: Example, header: str, value: Any) -> None:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    ignored = False
    wrong: tuple[tuple[str, str, Change], ...] = (
        ("headers-param-mismatch-rejected", f"another {header}", text + "0"),
        ("headers-param-mismatch-rejected", f"another encoded {header}", encoded(text + "0")),
        ("headers-value-case", f"{header} in other case", text.swapcase()),
        ("headers-param-missing-rejected", f"a call without {header}", None),
        ("headers-param-invalid-characters", f"the byte 0xE9 in {header}", text + STRANGE),
    )
    for clause, what, change in wrong:
        counted = ignored and clause == "headers-value-case"
        if change == text or counted or not talk.judge.covers(clause):
            continue
        answer = _call(talk, example, {header: change})
        if clause == "headers-param-invalid-characters":
            judge_rejected(talk, clause, answer, what)
        else:
            rejects(talk, clause, answer, what)
        ignored |= served(answer) and clause == "headers-param-mismatch-rejected"
    _expects(
        talk, "headers-param-decoded", example, {header: encoded(text)}, "with an encoded value"
    )
    if isinstance(value, int) and not isinstance(value, bool):
        _expects(talk, "headers-param-integer", example, {header: text + ".0"}, "with .0")
