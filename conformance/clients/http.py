"""clients/http: headers, sessions and streams of a client over HTTP."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from mcp_touchstone.suite import (
    LEGACY,
    Breach,
    Happened,
    HttpExchange,
    Kind,
    Record,
    Seen,
    ambient,
    brief,
    clients,
    decoded,
    header_mark_fault,
    header_marks,
    is_modern,
    marked_arguments,
    object_in,
    parts,
    value_in,
)

JSON, EVENTS = "application/json", "text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
RESPONSES = frozenset({Kind.RESULT, Kind.ERROR})
LENGTH = "Content-Length"
SESSION, VERSION, LAST_EVENT = "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID"
BARRED, NOT_FOUND, ENDS = 401, 404, 500
NOT_ACCEPTED = re.compile(r"q=0(\.0*)?")
"""The weight of what a client does not accept (RFC 9110, section 12.4.2)."""

PRECISION = 0.9
"""Part of a time that a client must wait; its clock may differ from ours a little."""


def _of(record: Record, *verbs: str) -> list[HttpExchange]:
    return [one for one in record.transcript.exchanges if one.verb in verbs]


def _at(exchange: HttpExchange) -> int | None:
    return exchange.line or exchange.event_line or None


def _later(record: Record) -> Iterator[tuple[HttpExchange, HttpExchange]]:
    """Yield the exchange of the accepted initialize with each one that began after its answer.

    Without a last GET that tries the transport of 2024-11-05: it belongs to no session.
    """
    accepted = clients.acceptance(record)
    if accepted is None:
        return
    answer = accepted[0]
    posts = (one for one in _of(record, "POST") if one.line)
    opening = next((one for one in posts if _answered(record, one) == answer.n), None)
    if opening is None:
        return
    later = [e for e in _of(record, "POST", "GET", "DELETE") if e.began >= answer.at]
    last = next((e for e in reversed(later) if e.verb != "DELETE"), None)
    for exchange in later:
        named = any(map(exchange.said, (SESSION, VERSION, LAST_EVENT)))
        if named or exchange is not last or exchange.verb != "GET":
            yield opening, exchange


def _answered(record: Record, exchange: HttpExchange) -> int | None:
    """Return the line of the answer to a request."""
    found = clients.peer(record).answer_to(exchange.line)
    return None if found is None else found[0].n


@ambient("client-http-post")
def sends_messages_by_post(record: Record) -> Iterator[Seen]:
    """Each message is the body of a POST."""
    for exchange in record.transcript.exchanges:
        sent = record.transcript[exchange.line].messages if exchange.line else ()
        if any(message.kind is not Kind.ODD for message in sent):
            actual = f"a message in the body of a {exchange.verb}"
            passed = exchange.verb == "POST"
            yield Seen("client-http-post", passed, exchange.line, "a POST", actual)
        elif exchange.verb == "POST" and exchange.said(LENGTH) == "0":
            actual = "a POST without a body"
            yield Seen("client-http-post", False, _at(exchange), "a message in it", actual)


@ambient("client-batch-members")
def batches_responses_apart(record: Record) -> Iterator[Seen]:
    """A batch has requests and notifications, or responses."""
    for exchange in _of(record, "POST"):
        entry = record.transcript[exchange.line] if exchange.line else None
        batch = entry and entry.reading and entry.reading.value
        if entry is None or not isinstance(batch, list):
            continue
        kinds = {message.kind for message in entry.messages} - {Kind.ODD}
        mixed = len(kinds & RESPONSES) > 0 and not kinds <= RESPONSES
        actual = " and ".join(sorted(kinds)) if batch else "an empty array"
        if kinds or not batch:
            expected = "requests and notifications, or responses"
            passed = bool(batch) and not mixed
            yield Seen("client-batch-members", passed, exchange.line, expected, actual)


def _range(text: str) -> str:
    """Return a range of Accept without parameters; empty if it says that it is not accepted."""
    kind, *parameters = text.split(";")
    return "" if any(NOT_ACCEPTED.fullmatch(one.strip()) for one in parameters) else kind.strip()


@ambient("client-http-accept", "client-http-get-accept")
def accepts_both_kinds_of_answers(record: Record) -> Iterator[Seen]:
    """A POST accepts JSON and streams of events, a GET streams."""
    for exchange in _of(record, "POST", "GET"):
        wanted = (JSON, EVENTS) if exchange.verb == "POST" else (EVENTS,)
        clause = "client-http-accept" if exchange.verb == "POST" else "client-http-get-accept"
        said = exchange.said("Accept")
        ranges = {*map(_range, (said or "").lower().split(","))}
        missing = [kind for kind in wanted if kind not in ranges]
        wild = all(ranges & {"*/*", kind.partition("/")[0] + "/*"} for kind in missing)
        actual = f"Accept: {said}" if said is not None else "no Accept"
        mild = Breach.WARN if wild else None
        expected = f"Accept with {' and '.join(wanted)}"
        yield Seen(clause, not missing, _at(exchange), expected, actual, mild=mild)


@ambient("client-http-version")
def names_the_version(record: Record) -> Iterator[Seen]:
    """Requests name the version of the protocol in a header."""
    clause = "client-http-version"
    if not is_modern(record.revision):
        accepted = clients.acceptance(record)
        negotiated = accepted[1].get("protocolVersion") if accepted else None
        for _, exchange in _later(record) if negotiated in LEGACY else ():
            said = exchange.said(VERSION)
            mild = Breach.WARN if said is not None else None
            actual = f"{exchange.verb} with {VERSION}: {said}" if said else f"no {VERSION}"
            expected = f"{VERSION}: {brief(negotiated)}"
            yield Seen(clause, said == negotiated, _at(exchange), expected, actual, mild=mild)
        return
    for exchange, message in _requests(record):
        version = object_in(message, "params", "_meta").get(clients.VERSION)
        if version is not None:
            said = exchange.said(VERSION)
            expected, actual = f"{VERSION}: {brief(version)}", brief(said) if said else "none"
            yield Seen(clause, said == version, _at(exchange), expected, actual)


def _requests(record: Record) -> Iterator[tuple[HttpExchange, dict[str, object]]]:
    """Yield the POSTs of single requests of 2026-07-28 with their messages."""
    by_line = {asked.line: asked for asked in clients.requests(record)}
    for exchange in _of(record, "POST"):
        asked = by_line.get(exchange.line)
        if exchange.line and isinstance(record.transcript[exchange.line].value, list):
            continue  # no header fits a batch, which another clause judges
        if asked is not None and asked.method != "initialize":
            yield exchange, asked.value


@ambient("client-http-method", "client-http-name")
def repeats_the_body_in_headers(record: Record) -> Iterator[Seen]:
    """The headers Mcp-Method and Mcp-Name equal the body."""
    for exchange, message in _requests(record):
        method = str(message.get("method"))
        name = object_in(message, "params").get(NAMED.get(method, ""))
        for clause, header, value in (
            ("client-http-method", "Mcp-Method", method),
            ("client-http-name", "Mcp-Name", name),
        ):
            if isinstance(value, str):
                said = exchange.said(header)
                read = decoded(said) if said is not None and header == "Mcp-Name" else said
                actual = f"{header}: {said}" if said is not None else f"no {header}"
                yield Seen(clause, read == value, _at(exchange), f"{header}: {value}", actual)


@parts.scenario("headers", official="http-invalid-tool-headers")
class Headers(parts.Part):
    """List tools with arguments for HTTP headers in 2026-07-28, some of them invalid."""

    modern = True
    named = ("valid_tool",)
    GOOD: ClassVar = {
        "plain": "us-west 1",
        "odd": " Grüße,\n世界",
        "like": "=?base64?eA==?=",
        "none": None,
        "count": -7,
        "flag": True,
        "inner": {"deep": "x"},
    }
    steps = (
        {"list": "tools"},
        {"call": "send", "arguments": GOOD},
        {"call": "café 世界", "a": 2, "b": 3},
        {"call": "*", "a": 2, "b": 3},
    )

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return a tool with headers, and one for each way to be invalid."""
        del params

        def marked(header: Any, kind: str = "string") -> parts.Json:
            return {"type": kind, "x-mcp-header": header}

        kinds = {"count": "integer", "flag": "boolean"}
        good = {k: marked(k.title(), kinds.get(k, "string")) for k in self.GOOD if k != "inner"}
        good["inner"] = {"type": "object", "properties": {"deep": marked("Deep-Value")}}
        bad = {
            "empty": {"x": marked("")},
            "space": {"x": marked("My Region")},
            "control": {"x": marked("Re\r\ngion")},
            "twice": {"x": marked("Region"), "y": marked("REGION")},
            "number": {"x": marked("Region", "number")},
            "object": {"x": marked("Region", "object")},
            "items": {"x": {"type": "array", "items": marked("Region")}},
            "choice": {"x": {"anyOf": [marked("Region")]}},
        }
        tools = {"send": good, **{f"bad_{name}": schema for name, schema in bad.items()}}
        return {
            "tools": [
                parts.NUMBERS,
                {**parts.NUMBERS, "name": "café 世界"},
                *(
                    {"name": k, "inputSchema": {"type": "object", "properties": v}}
                    for k, v in tools.items()
                ),
            ]
        }


parts.variant(
    "headers-given",
    Headers,
    "Take a call with arguments for HTTP headers in 2026-07-28.",
    official="http-custom-headers",
    steps=Headers.steps[:2],
)


@ambient(
    "client-http-param",
    "client-http-param-value",
    "client-http-param-omitted",
    "client-http-invalid-tool",
)
def copies_marked_arguments_into_headers(record: Record) -> Iterator[Seen]:
    """The Mcp-Param headers of a call repeat its marked arguments; invalid tools are not called."""
    listed: dict[object, dict[str, object]] = {}
    lists = [a for a in clients.requests(record) if a.method == "tools/list"]
    for exchange, message in _requests(record):
        for asked in lists:
            found = clients.answer(record, asked)
            if found is not None and found[0].n < exchange.line:
                listed |= {tool.get("name"): tool for tool in clients.tools(record, asked)}
        params = object_in(message, "params")
        tool = listed.get(params.get("name"))
        if message.get("method") != "tools/call" or tool is None:
            continue
        if any(header_marks(tool.get("inputSchema"))):
            wrong = header_mark_fault(tool.get("inputSchema"))
            actual = f"a call of {brief(tool['name'])}: {wrong}"
            mild = None if record.scenario else Breach.WARN  # a host may know it by name
            expected, clause = "no such tool in the list", "client-http-invalid-tool"
            yield Seen(clause, not wrong, _at(exchange), expected, actual, mild=mild)
            if not wrong:
                yield from _parameters(exchange, params, tool)


def _parameters(
    exchange: HttpExchange, params: dict[str, object], tool: dict[str, object]
) -> Iterator[Seen]:
    for path, header in marked_arguments(tool):
        value = value_in(params, "arguments", *path)
        said = exchange.said(header)
        actual = f"{header}: {said}" if said is not None else f"no {header}"
        if value is None:
            clause = "client-http-param-omitted"
            yield Seen(clause, said is None, _at(exchange), f"no {header}", actual)
        elif isinstance(value, str | bool | int):
            text = value if isinstance(value, str) else json.dumps(value)
            expected = f"{header} for the argument {'.'.join(path)}"
            yield Seen("client-http-param", said is not None, _at(exchange), expected, actual)
            if said is not None:
                expected = f"{header} with the value {brief(text)}"
                passed = decoded(said) == text
                clause = "client-http-param-value"
                yield Seen(clause, passed, _at(exchange), expected, actual)


@ambient("client-http-session")
def sends_the_session_id_back(record: Record) -> Iterator[Seen]:
    """Each request of a session has its id."""
    for opening, exchange in _later(record):
        issued, said = opening.header(SESSION), exchange.said(SESSION)
        if issued is not None:
            actual = f"{exchange.verb} with {brief(said)}" if said else f"no {SESSION}"
            expected = f"{SESSION}: {issued}"
            yield Seen("client-http-session", said == issued, _at(exchange), expected, actual)


@parts.scenario("streams")
class Streams(parts.Part):
    """Answer calls: at once, then over HTTP in a stream, then in a stream with comments."""

    steps = (
        {"list": "tools"},
        *({"call": "add_numbers", "a": n, "b": 3, "progress": True} for n in range(3)),
        {"list": "tools"},
    )
    http_fault = parts.COMMENTS
    may_fail = True
    calls = 0

    def call(self, request: parts.Json) -> None:
        """Answer; what comes before the answer begins a stream."""
        self.calls += 1
        token = object_in(request, "params", "_meta").get("progressToken")
        answer = partial(super().call, request)
        if self.calls > 1 and not self.modern:
            self.ask("ping", lambda _response: None)
            self.later(0.3, answer)
            return
        if self.calls > 1 and token is not None:
            params = {"progressToken": token, "progress": 1}
            self.say({"method": "notifications/progress", "params": params})
        answer()


parts.variant(
    "streams-stateless",
    Streams,
    "Answer calls of 2026-07-28: over HTTP in streams too, and with comments.",
    modern=True,
)


@ambient("client-http-streams")
def reads_answers_in_streams(record: Record) -> Iterator[Seen]:
    """A client that reads an answer as JSON goes on after one in a stream, too."""
    clause, expected = "client-http-streams", "the next step"
    asked = clients.requests(record)
    read_json = False
    for exchange in _of(record, "POST") if record.scenario.startswith("streams") else ():
        found = clients.peer(record).answer_to(exchange.line)
        if found is None or found[1].kind is not Kind.RESULT:
            continue
        goes_on = any(one.line > found[0].n for one in asked)
        failed = record.alone and clients.event(record, Happened.FAILED) is not None
        if not exchange.streams:
            read_json |= goes_on
        elif read_json and (goes_on or failed):
            actual = "the client failed after an answer in a stream; it had read one in JSON"
            yield Seen(clause, goes_on, exchange.line, expected, actual)


@parts.scenario("redirect")
class Redirect(parts.Part):
    """Answer calls; over HTTP each is redirected to another origin, with each status there is."""

    steps = parts.CALLS
    http_fault = parts.REDIRECTS
    may_fail = True


@parts.scenario("session-lost")
class SessionLost(parts.Part):
    """Answer a call; over HTTP the session is over then."""

    steps = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3},
        {"call": "add_numbers", "a": 4, "b": 5, "fails": True},
        {"call": "add_numbers", "a": 6, "b": 7, "fails": True},
    )
    http_fault = parts.FORGETS
    may_fail = is_about_sessions = True


@ambient("client-http-session-lost")
def opens_a_new_session_after_a_lost_one(record: Record) -> Iterator[Seen]:
    """After a 404 comes initialize without a session id."""
    clause, expected = "client-http-session-lost", "initialize without a session id"
    lost = [e for e in _of(record, "POST") if e.status == NOT_FOUND and e.said(SESSION)]
    if not lost:
        return
    reopened = clients.event(record, Happened.REOPENED_BY_ID, Happened.REOPENED)
    if reopened is not None:
        passed, actual = reopened.happened is Happened.REOPENED, "initialize with the old id"
        yield Seen(clause, passed, reopened.n, expected, actual)
        return
    over = lost[0].headed or lost[0].began  # the end comes after the client has read it
    again = next((e for e in _of(record, "POST") if e.began > over), None)
    if again is not None:
        yield Seen(clause, False, _at(again), expected, "a further request with the old id")
    elif clients.event(record, Happened.ENDED):
        actual = "the client ended without a new session"
        yield Seen(clause, False, _at(lost[0]), expected, actual, mild=Breach.WARN)


@ambient("client-http-session-deleted")
def deletes_its_session(record: Record) -> Iterator[Seen]:
    """A client that ends sends DELETE with the session id."""
    opening = next((one for one, _ in _later(record)), None)
    issued = None if opening is None else opening.header(SESSION)
    asked = [e for e in _of(record, "POST", "GET") if e.ended is not None and not e.left]
    over = any(e.status in {0, NOT_FOUND} or e.status >= ENDS for e in asked)
    over |= any(e.status == BARRED for e in _of(record, "POST")[-1:])
    if issued is None or over:
        return
    deleted = [e for e in _of(record, "DELETE") if e.said(SESSION) == issued]
    ended = clients.event(record, Happened.ENDED)
    if deleted or ended is not None:
        at = _at(deleted[0]) if ended is None or deleted else ended.n
        actual = "the client ended without it"
        yield Seen("client-http-session-deleted", bool(deleted), at, "DELETE", actual)


@parts.scenario("resume", official="sse-retry")
class Resume(parts.Part):
    """Ask for a ping during a call, and answer later; over HTTP the stream ends in between."""

    http_fault = parts.DROPS
    may_fail = is_about_sessions = True
    named = ("test_reconnection",)

    def call(self, request: parts.Json) -> None:
        """Ask, and answer later."""
        self.ask("ping", lambda _response: None)
        self.later(1.0, partial(super().call, request))


@ambient("client-http-resumes")
def resumes_a_stream_behind_its_last_event(record: Record) -> Iterator[Seen]:
    """A GET that resumes a stream has the id of its last event; a closed stream is resumed."""
    clause = "client-http-resumes"
    last, unread = {}, {}
    for exchange in _of(record, "POST", "GET"):
        ids = [event.id for event in exchange.events if event.id]
        if ids:
            last[exchange.number] = ids[-1]
            # What was sent to a client that left may not have been read.
            unread[exchange.number] = set(ids if exchange.left else ids[-1:])
    wanted = set()
    for exchange in _of(record, "GET"):
        said = exchange.said(LAST_EVENT)
        if said is not None:
            before = [number for number in last if number < exchange.number]
            earlier = set[str]().union(*(unread[number] for number in before))
            wanted |= {last[number] for number in before if said in unread[number]}
            actual = f"{LAST_EVENT}: {brief(said)}"
            expected = f"one of {brief(sorted(earlier))}"
            yield Seen(clause, said in earlier, _at(exchange), expected, actual)
    ended = clients.event(record, Happened.ENDED, Happened.FAILED)  # else it may be slow
    if record.revision < "2025-11-25" or ended is None:
        return
    for exchange in _of(record, "POST"):
        closed = exchange.ended is not None and not exchange.left
        named = last.get(exchange.number)
        asked = any(one.line == exchange.line for one in clients.requests(record))
        if closed and asked and named is not None and not _carries_answer(record, exchange):
            actual = "the client never asked for the rest"
            expected = f"a GET with {LAST_EVENT}: {named}"
            yield Seen(clause, named in wanted, exchange.line, expected, actual)


def _carries_answer(record: Record, exchange: HttpExchange) -> bool:
    """Whether the response to a request came in the stream of its POST."""
    found = clients.peer(record).answer_to(exchange.line)
    return (
        found is not None
        and found[1].kind in RESPONSES
        and found[0].origin is not None
        and found[0].origin.exchange is exchange
    )


@ambient("client-http-retry")
def waits_before_it_asks_for_a_stream_again(record: Record) -> Iterator[Seen]:
    """A GET that resumes a stream comes no earlier than its retry field says."""
    retries: dict[int, tuple[float, int]] = {}
    for entry in clients.peer(record):
        event = None if entry.origin is None else entry.origin.event
        if event is not None and event.retry is not None and entry.origin is not None:
            retries[entry.origin.exchange.number] = entry.at, event.retry
    for exchange in _of(record, "GET"):
        for before in _of(record, "POST", "GET"):
            ids = [event.id for event in before.events if event.id]
            earlier = before.number in retries and before.number < exchange.number
            if earlier and ids[-1:] == [exchange.said(LAST_EVENT)]:
                at, retry = retries[before.number]
                waited = (exchange.began - at) * 1000
                actual = f"a GET {waited:.0f} ms after the last event"
                expected = f"{retry} ms before the client connects again"
                passed = waited >= retry * PRECISION
                yield Seen("client-http-retry", passed, _at(exchange), expected, actual)


@ambient("client-http-token-in-query")
def writes_no_token_into_the_query(record: Record) -> Iterator[Seen]:
    """No request has access_token in its query."""
    for exchange in record.transcript.exchanges:
        query = exchange.target.partition("?")[2]
        names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
        passed = "access_token" not in names
        expected = "the Authorization header"
        actual = "access_token in the query"
        yield Seen("client-http-token-in-query", passed, _at(exchange), expected, actual)
