"""gateways/headers: what a gateway over HTTP passes on in headers, and what it must not."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.gateway.suite import (
    SOON,
    Breach,
    ExchangeTalk,
    HttpExchange,
    NoSecondClientError,
    Seen,
    ambient,
    brief,
    callers,
    exchange,
    hops,
    object_in,
    parts,
    value_in,
)

STREAMED: Final = ("streamed-0", "streamed-1", "streamed-2")
RESUMED: Final = "resumed"
STAMPED: Final = re.compile(f"{callers.STAMP}[0-9a-f]{{16}}")
SESSION: Final = "Mcp-Session-Id"
FOREIGN: Final = "http://touchstone.invalid"
AGENT: Final = "mcp-touchstone/"
"""Beginning of the User-Agent of our client."""

LONG: Final = 2000
"""Characters of a body that are searched."""

MARK: Final = "ünïcode"
"""A value that a header repeats in Base64."""


@exchange("headers", callers.Stamped)
def calls_with_headers(talk: ExchangeTalk) -> None:
    """List and call, over HTTP also as clients with tokens, and as a foreign web page."""
    _use(talk, 0)
    if not talk.shares:
        return
    for token in callers.TOKENS:
        with contextlib.suppress(NoSecondClientError):
            _use(talk, talk.another(token))
    http = talk.http()
    if http.local:
        answer = http.first_request({"Origin": FOREIGN})
        talk.facts["origin"] = answer.line, answer.reply.result is not None, str(answer)
        http.end_session(answer)


def _use(talk: ExchangeTalk, client: int) -> None:
    """List, read and call as a client; in a session get a prompt too, which no client may keep."""
    talk.pages(f"tools-{client}", "tools/list", "tools", client)
    uri = {"uri": talk.expected.uri(callers.TEXT)}
    talk.ask(f"read-{client}", "resources/read", uri, client)
    if not talk.modern:
        name = {"name": f"{talk.expected.prefix}review", "arguments": {"text": "ü"}}
        talk.ask(f"prompt-{client}", "prompts/get", name, client)
    talk.call(f"echo-{client}", "echo", client, text=f"of-{client}", mark=MARK)


@exchange("redirect", callers.over_http(parts.REDIRECTS))
def calls_where_calls_are_redirected(talk: ExchangeTalk) -> None:
    """Call a tool that our server redirects to another origin, with each status there is."""
    for number in range(len(parts.STATUSES) + 1):
        line = talk.send("tools/call", talk.params("echo", text="x", mark=str(number)))
        talk.take(f"redirect-{number}", line, seconds=SOON)  # there may be none


@exchange("streams", callers.over_http(parts.COMMENTS))
def calls_in_streams_with_comments(talk: ExchangeTalk) -> None:
    """Call with progress, so that the server answers in streams."""
    for name in STREAMED:
        _report(talk, name)


@exchange("resumed", callers.over_http(parts.DROPS))
def calls_where_a_stream_ends(talk: ExchangeTalk) -> None:
    """Call with progress; the stream of the first call ends before its answer."""
    if not talk.modern:
        _report(talk, RESUMED)


def _report(talk: ExchangeTalk, name: str) -> None:
    params = talk.params("progress", mark=name, steps=3)
    talk.ask(name, "tools/call", params, token=name)
    talk.settle()


@ambient("gateway-streams-comments", of="streams")
def reads_streams_with_comments(pair: hops.Pair) -> Iterator[Seen]:
    """What the server sends in a stream with comments arrives."""
    yield from _arrives(pair, "gateway-streams-comments")


@ambient("gateway-streams-resumed", of="resumed")
def resumes_streams(pair: hops.Pair) -> Iterator[Seen]:
    """What the server sends after the end of a stream arrives."""
    yield from _arrives(pair, "gateway-streams-resumed")


def _arrives(pair: hops.Pair, clause: str) -> Iterator[Seen]:
    """Yield whether the answers to calls arrive that the server gives in streams."""
    if any(one.exchanges for one in pair.through.upstream):
        yield from pair.judge_answer(clause, *STREAMED, RESUMED)


@ambient("gateway-status-error", of="contents")
def answers_errors_with_their_status(pair: hops.Pair) -> Iterator[Seen]:
    """The error about a method that nobody has gets the HTTP status that the server gives it."""
    for name in pair.comparable("no-method"):
        (code, own), (came, status) = (
            (
                value_in(side.steps[name].value, "error", "code"),
                hops.status_of(side.clients[0], side.steps[name].asked),
            )
            for side in (pair.direct, pair.through)
        )
        if code is not None and code == came:
            actual = f"{hops.Fate.CHANGED}: {status} with the error {code}"
            yield pair.judge("gateway-status-error", name, status == own, str(own), actual)


def _posts(side: hops.RecordedExchange) -> Iterator[tuple[int, HttpExchange]]:
    """Yield the POSTs that reached our server over HTTP, each with its conversation."""
    for number, transcript in enumerate(side.upstream):
        yield from ((number, one) for one in transcript.exchanges if one.verb == "POST")


def _issued(pair: hops.Pair) -> set[str | None]:
    """Return the sessions that our server issued."""
    return {one.header(SESSION) for _, one in _posts(pair.through)} - {None}


def _is_relay(pair: hops.Pair) -> bool:
    """Whether whole requests are passed on, so that one session and one program serves both."""
    agents = [one.said("User-Agent") or "" for _, one in _posts(pair.through)]
    every = (one for transcript in pair.through.clients for one in transcript.exchanges)
    same = {one.header(SESSION) for one in every} - {None} <= _issued(pair)
    return same and all(one.startswith(AGENT) for one in agents)


@ambient("gateway-token-own", of="headers")
def keeps_the_token_of_the_client(pair: hops.Pair) -> Iterator[Seen]:
    """The token that a client has for the gateway does not reach the server."""
    served = {n for n, one in pair.through.steps.items() if n.startswith("echo-") and one.result}
    if not served - {"echo-0"}:
        return
    mild = Breach.NOTE if _is_relay(pair) else None
    for number, one in _posts(pair.through):
        sent = [*one.sent, ("the URL", one.target)]
        if one.line:
            sent.append(("the body", brief(pair.through.upstream[number][one.line].value, LONG)))
        named = [k for k, v in sent if any(token in v for token in callers.TOKENS)]
        actual = f"the token of the client in {', '.join(named)}"
        if mild:
            actual += "; as the whole request is passed on, both may be one server"
        where = number, one.line or one.event_line
        seen = pair.judge_line("gateway-token-own", not named, where, "no such token", actual)
        yield replace(seen, mild=mild)


@ambient("gateway-session-own", of="headers")
def issues_its_own_sessions(pair: hops.Pair) -> Iterator[Seen]:
    """The session of a client is not that which the gateway has with the server."""
    if not _issued(pair) or _is_relay(pair):
        return
    for one in pair.transcript.exchanges:
        if one.header(SESSION) is not None:
            passed = one.header(SESSION) not in _issued(pair)
            actual = f"{SESSION}: {one.header(SESSION)}, which our server issued to the gateway"
            line = one.line or one.event_line or None
            yield Seen("gateway-session-own", passed, line, "an id of its own", actual)


@ambient("gateway-origin", of="headers")
def refuses_foreign_pages(pair: hops.Pair) -> Iterator[Seen]:
    """A request with the Origin of a foreign web page is not served."""
    if "origin" in pair.through.facts:
        line, served, answer = pair.through.facts["origin"]
        expected = f"no service for the Origin {FOREIGN}"
        yield Seen("gateway-origin", not served, line, expected, answer)


@ambient("gateway-cache-private", "gateway-users-list", of="headers")
def serves_lists_to_their_user(pair: hops.Pair) -> Iterator[Seen]:
    """A user does not get a result that the server gave to another one."""
    owners = {
        str(object_in(entry.value, "params", "arguments").get("text")): number
        for number, entry in pair.through.received("tools/call")
    }
    known: dict[object, str] = {}
    for name, step in pair.through.steps.items():
        stamp = _stamp(step.value)
        if not stamp:
            continue
        passed = known.setdefault(stamp, name) == name
        actual = f"{hops.Fate.CROSSED}: the result {brief(stamp)} that another user got before"
        yield pair.judge("gateway-cache-private", name, passed, "a result of its own", actual)
        own = owners.get(f"of-{step.client}")
        others = [at for user, at in owners.items() if user != f"of-{step.client}" and at != own]
        if own is not None and others:
            came = [n for n, one in enumerate(pair.through.upstream) if _gave(one, stamp)]
            if passed and {*came} & {*others}:
                passed, actual = False, f"{hops.Fate.CROSSED}: a result of another session"
            yield pair.judge("gateway-users-list", name, passed, "a result of its session", actual)


def _stamp(value: Any) -> str:
    """Return what differs in each list, resource and prompt of our server; empty if it is none."""
    found = STAMPED.search(brief(object_in(value, "result"), LONG))
    return found[0] if found else ""


def _gave(transcript: Any, stamp: str) -> bool:
    """Whether our server gave a stamp in a conversation."""
    messages = (message.value for entry in transcript for message in entry.messages)
    return any(_stamp(one) == stamp for one in messages)
