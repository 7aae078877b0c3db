"""Requests with two ends or none, streams without a reader, and line breaks in names."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from mcp_touchstone.security.suite import (
    SESSION,
    AttackSession,
    Exchange,
    HttpCaller,
    ResourceUsage,
    attack,
    now,
    sleep,
)

UNFINISHED: Final = 48
"""Connections in the middle of a request; more than the threads of common pools."""

ENDLESS: Final = 32
"""Pieces of a mebibyte of a body in chunks."""

SERVER_ERROR: Final = 500
"""The first status that blames the server."""

SLOW: Final = 3
DRIP: Final = 0.005
"""Further bytes of each unfinished request, and seconds between two bytes."""

ANSWER: Final = 3.0
"""Seconds for the answers to two requests; both are short."""

WAITING: Final = 20.0
"""Greatest seconds for the server to close what its clients closed."""

FEW: Final = 15
"""Streams of the first round; there are twice as many in the second."""


@attack(
    "requests-smuggled",
    "requests-injected",
    "requests-endless",
    "requests-abandoned",
    fixtures=("base",),
    unwatched=True,
    lasts=True,
)
def reads_requests_to_their_end(session: AttackSession) -> None:
    """Requests with two ends or none do no harm, and closed streams cost nothing."""
    session.open()
    caller = HttpCaller(session)
    _smuggle(session, caller)
    _inject(session, caller)
    _abandon(session, caller)
    _never_end(session, caller)


def _smuggle(session: AttackSession, caller: HttpCaller) -> None:
    session.server.mark()
    found, tried = "", 0
    at: int | None = None
    for what, lines, before in _ends():
        inner = caller.marker("inner")
        message = caller.request("ping", None, inner)
        ping = session.http.body(message)
        head = caller.head(("Content-Length", str(len(ping))), drop=("content-length",))
        second = b"POST " + session.http.path.encode() + b" HTTP/1.1\r\n"
        second += "".join(f"{name}: {value}\r\n" for name, value in head).encode() + b"\r\n" + ping
        outer = session.http.body(caller.request("ping"))
        shorter, longer = len(before(outer)), len(before(outer)) + len(second)
        filled = [(name, value.format(short=shorter, long=longer)) for name, value in lines]
        headers = caller.head(*filled, drop=("content-length", "connection"))
        with contextlib.suppress(OSError):
            note = f"we sent a POST with {what}, and a second one after its shorter end"
            answer = caller.raw(headers, before(outer) + second, message, note, ANSWER)
            tried += 1
            if inner in answer.results:
                found, at = f"the second request after {what} was carried out", answer.line
                found += f", by the HTTP library {answer.library}" if answer.library else ""
                break
    session.judge.conclude(
        "requests-smuggled",
        found,
        expected="no request out of the body of another",
        if_passed=f"{tried} requests with two ends were not split",
        at=at,
    )


def _whole(body: bytes) -> bytes:
    return body


def _chunked(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


def _ends() -> Iterator[tuple[str, list[tuple[str, str]], Callable[[bytes], bytes]]]:
    """Yield requests with two ends: in words, their headers, and the form of the first body."""
    length = "Content-Length"
    yield "a short and a long length", [(length, "{short}"), (length, "{long}")], _whole
    yield "a long and a short length", [(length, "{long}"), (length, "{short}")], _whole
    yield "a length and chunks", [(length, "{long}"), ("Transfer-Encoding", "chunked")], _chunked
    yield (
        "a length with a blank before the colon",
        [(length, "{short}"), (length + " ", "{long}")],
        _whole,
    )
    yield (
        "a length after a bare carriage return",
        [(length, "{short}"), ("X-Note", "a\rContent-Length: {long}")],
        _whole,
    )


def _inject(session: AttackSession, caller: HttpCaller) -> None:
    session.server.mark()
    name = caller.marker("x-touchstone")
    text = f"touchstone\r\n{name}: 1"
    coded = text.replace("\r", "%0d").replace("\n", "%0a").replace(" ", "%20")
    sent = [
        caller.request("tools/call", {"name": text, "arguments": {}}),
        caller.request(text),
        caller.request("resources/read", {"uri": f"file:///{text}"}),
        caller.request("prompts/get", {"name": text}),
        caller.request("ping", None, f"{caller.marker('id')}{text}"),
    ]
    opening = caller.opening()
    opening["params"]["protocolVersion"] = text
    found = ""
    at: int | None = None
    answers = [session.http.post(one) for one in sent]
    answers.append(session.http.post(opening, {SESSION: None}))
    caller.leave(answers[-1].header(SESSION))
    answers.append(session.http.post(caller.request("ping"), path=f"{session.http.path}?a={coded}"))
    for answer in answers:
        if answer.header(name) is not None:
            found, at = "a name with a line break set a header of the response", answer.line
            break
    session.judge.conclude(
        "requests-injected",
        found,
        expected="no header that a message chose",
        if_passed=f"{len(answers)} requests set no header",
        at=at,
    )


def _abandon(session: AttackSession, caller: HttpCaller) -> None:
    threat = "requests-abandoned"
    session.server.mark()
    if not session.scene.target.started:
        session.judge.unseen(threat, "we did not start the server")
        return
    usage = ResourceUsage(session.wire.process.pid)
    before = usage.descriptors()
    if before is None:
        session.judge.unseen(threat, "this system does not show the descriptors of a process")
        return
    other = caller.another()  # the connection listens on the stream of its own session
    left = []
    for count in (FEW, 2 * FEW):
        for _ in range(count):
            stream = session.http.get({SESSION: other})
            stream.close()
            asked = session.http.post(caller.request("ping"), wait=False)
            asked.close()
        kept = descriptors_left(session, usage, before, count)
        if kept is None:
            session.judge.unseen(threat, "the server answered nobody after the streams were closed")
            return
        left.append(kept)
    caller.leave(other)
    grown = left[0] >= FEW and left[1] - left[0] >= 2 * FEW
    line = session.wire.transcript.happened(
        f"descriptors more than before: {left[0]} after {FEW} streams, {left[1]} after {3 * FEW}"
    )
    session.judge.conclude(
        threat,
        f"{left[1]} descriptors stayed open after {3 * FEW} closed streams" if grown else "",
        expected="closed connections are closed by the server too",
        if_passed=f"{3 * FEW} closed streams left {max(0, left[1])} descriptors",
        at=line if grown else None,
    )


def descriptors_left(
    session: AttackSession, usage: ResourceUsage, before: int, count: int
) -> int | None:
    """Return the descriptors that stay open after some streams were closed.

    Requests after the closed streams show that the server runs. None: it answered none of them
    at the end of the wait, so it may still close what its clients closed.

    Args:
        session: the attack, whose connection asks.
        usage: measures the server.
        before: descriptors before the streams were opened.
        count: number of streams; as long as half of them stay, it waits.
    """
    until = now() + WAITING
    while True:
        answered = session.wire.ping(required=False).answered
        left = (usage.descriptors() or before) - before
        if left < count // 2:
            return left
        if now() >= until:
            return left if answered else None
        sleep(0.2)


def refusal(exchanges: Sequence[Exchange]) -> str:
    """Return since when the server answers everything by the same HTTP error; empty if not.

    Args:
        exchanges: the requests of a connection, in order.
    """
    ended = [one for one in exchanges if one.status]
    status = ended[-1].status if ended else 0
    refused = list(takewhile(lambda one: one.status == status, reversed(ended)))
    if status < SERVER_ERROR:
        return ""
    at = len(ended) - len(refused)
    is_end = any(one.verb == "DELETE" for one in ended[max(0, at - 1) : at + 1])
    cause = "DELETE of another session" if is_end else ended[at].verb
    return f"HTTP {status} to everything since our {cause}"


def _never_end(session: AttackSession, caller: HttpCaller) -> None:
    session.server.mark()
    found, at = "", None
    control = session.wire.ping(required=False)
    if not control.answered:
        found, at = refusal(session.wire.transcript.exchanges), control
    with contextlib.ExitStack() as opened:
        held = []
        for data in _beginnings(session, caller):
            with contextlib.suppress(OSError):
                held.append(opened.enter_context(caller.connect(ANSWER)))
                held[-1].settimeout(ANSWER)
                held[-1].sendall(data)
        for connection in held * SLOW:  # a byte now and then, so that no time-out ends it
            with contextlib.suppress(OSError):
                connection.sendall(b" ")
            sleep(DRIP)
        session.wire.transcript.happened(f"we hold {UNFINISHED} unfinished requests open")
        reply = session.wire.ping(seconds=max(20.0, session.pace.reply), required=False)
        if not reply.answered and not found:
            found, at = f"with {UNFINISHED} unfinished requests a ping got no answer", reply
    if not found:
        with contextlib.suppress(OSError):
            _pour(session, caller)
        reply = session.wire.ping(seconds=max(20.0, session.pace.reply), required=False)
        if not reply.answered:
            found, at = "after a body without an end a ping got no answer", reply
    session.judge.conclude(
        "requests-endless",
        found,
        expected="other callers are answered",
        if_passed=f"{UNFINISHED} unfinished requests and {ENDLESS} MiB of a body were borne",
        at=at,
    )


def _beginnings(session: AttackSession, caller: HttpCaller) -> Iterator[bytes]:
    line = f"POST {session.http.path} HTTP/1.1\r\n".encode()
    headers = caller.head(("Content-Length", "100000"), drop=("content-length",))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers).encode()
    for number in range(UNFINISHED):
        yield line + head if number % 2 else line + head + b"\r\n{"


def _pour(session: AttackSession, caller: HttpCaller) -> None:
    headers = caller.head(("Transfer-Encoding", "chunked"), drop=("content-length",))
    line = f"POST {session.http.path} HTTP/1.1\r\n".encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in headers).encode()
    session.wire.transcript.happened(f"we sent {ENDLESS} MiB of a body in chunks, without an end")
    with caller.connect(ANSWER) as connection:
        connection.settimeout(ANSWER)
        connection.sendall(line + head + b"\r\n")
        for _ in range(ENDLESS):
            connection.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
