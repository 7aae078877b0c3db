"""Limits of HTTP: what one request, or many sessions, take from the server.

A ping that is answered afterwards shows that it goes on. Its memory is looked at where we start it,
and a growth counts if a second process has it too. All sizes are safe beside other work.
"""

import contextlib
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from mcp_touchstone.security.suite import (
    SESSION,
    VERSION,
    AttackSession,
    Breach,
    Change,
    HttpAnswer,
    HttpCaller,
    Reply,
    ResourceUsage,
    attack,
    now,
    served,
    sleep,
)

MIB: Final = 1 << 20
BODY: Final = 8 * MIB
UNPACKED: Final = 64 * MIB
BATCH: Final = 2000
HEADERS: Final = 5000

PATIENCE: Final = 20.0
"""Seconds for the answer to a request or a ping, in which the server has a core."""

READERS: Final = 4
"""Connections whose responses nobody reads, and as many streams."""

WRITTEN: Final = MIB // 2
"""Bytes of requests on such a connection."""

FULL: Final = 1.0
"""Seconds after which a connection that takes nothing is full."""

PINGS: Final = 8
BETWEEN: Final = 0.25
"""Pings beside unread responses, and seconds between two of them."""

OLD: Final = "2025-03-26"
"""The only revision with batches over HTTP."""

GOES_ON: Final = "the server goes on, and takes little memory"

Sent = tuple[str, Reply | int | None, str]
"""What was sent in words, what shows it, and an effect that was seen or nothing."""

Send = Callable[[AttackSession, HttpCaller], Sent]


@attack(
    "exhaustion-body",
    "exhaustion-compressed",
    "exhaustion-batch",
    "exhaustion-headers",
    "exhaustion-unread",
    fixtures=("base",),
    unwatched=True,
    lasts=True,
)
def bears_long_requests(session: AttackSession) -> None:
    """The server goes on after long bodies, batches and headers, and beside unread responses."""
    session.open()
    _borne(session, "exhaustion-headers", _headers, 64 * MIB)
    _borne(session, "exhaustion-compressed", _compressed, 48 * MIB)
    _borne(session, "exhaustion-body", _body, 4 * BODY, "it has no limit below 8 MiB")
    _borne(session, "exhaustion-batch", _batch, 128 * MIB, "it has no limit below 2,000")
    _borne(session, "exhaustion-unread", _unread, 128 * MIB)


def _borne(session: AttackSession, threat: str, send: Send, most: int, unlimited: str = "") -> None:
    """Send something, and judge whether the server goes on and how much memory it took.

    Args:
        send: sends it.
        most: bytes by which the resident memory may grow; more counts if it comes again.
        unlimited: why what ``send`` saw is only a note; empty if it is a finding.
    """
    if not session.judge.covers(threat):
        return
    for again in (False, True):
        if session.wire.gone or again or not _ping(session).answered:
            session.renew()
        control = _ping(session)
        if not control.answered:
            session.judge.unseen(threat, f"a ping before it got no answer: {control.why}")
            return
        session.server.mark()
        before = _resident(session)
        what, at, seen = send(session, HttpCaller(session))
        reply = _ping(session)
        grown = _resident(session) - before
        if not reply.answered or grown <= most:
            break
    found = "" if reply.answered else f"a ping got no answer after {what}: {reply.why}"
    if not found and grown > most:
        found = f"{grown // MIB} MiB more resident memory after {what}, in two processes"
    session.judge.conclude(
        threat,
        found or seen,
        expected=GOES_ON,
        if_passed=f"{what}: {grown / MIB:.1f} MiB more" if session.scene.target.started else what,
        at=at if reply.answered else reply,
        mild=Breach.NOTE if unlimited and not found else None,
        because=unlimited,
    )


def _resident(session: AttackSession) -> int:
    """Return the resident memory of the server; 0 if we did not start it, or if it is unknown."""
    if not session.scene.target.started:
        return 0
    return ResourceUsage(session.wire.process.pid).resident() or 0


def _ping(session: AttackSession) -> Reply:
    limit = max(PATIENCE, session.pace.reply)
    return session.wire.ping(seconds=limit, required=False)


def _body(session: AttackSession, _caller: HttpCaller) -> Sent:
    message = _ping_message(session)
    meta = message.get("params", {}).get("_meta", {})
    padded = {**message, "params": {"_meta": {**meta, "touchstone/padding": "x" * BODY}}}
    answer = session.http.post(message, body=session.http.body(padded), seconds=PATIENCE)
    seen = f"a request of {BODY // MIB} MiB got a result" if served(answer) else ""
    return f"a body of {BODY // MIB} MiB", answer.line, seen


def _compressed(session: AttackSession, _caller: HttpCaller) -> Sent:
    seen, line = "", 0
    for coding, bits in (("gzip", 31), ("deflate", 15)):
        message = _ping_message(session)
        packer = zlib.compressobj(9, wbits=bits)
        packed = packer.compress(session.http.body(message))
        packed += b"".join(packer.compress(b" " * MIB) for _ in range(UNPACKED // MIB))
        packed += packer.flush()
        change = {"Content-Encoding": coding}
        answer = session.http.post(message, change, body=packed, seconds=PATIENCE)
        if served(answer) or not line:
            line = answer.line
        if served(answer):
            seen = f"{len(packed):,} bytes of {coding}, unpacked 64 MiB, got a result"
    return "bodies of 64 KiB that are 64 MiB when unpacked", line, seen


def _batch(session: AttackSession, caller: HttpCaller) -> Sent:
    pings = [caller.request("ping") for _ in range(BATCH)]
    change: dict[str, Change] = {VERSION: OLD} if OLD in session.profile.spoken else {}
    answer = session.http.post(pings, change, wait=False)
    answer.wait_closed(PATIENCE)
    answers = [one for entry in answer.entries for one in entry.messages]
    results = sum(isinstance(one.value, dict) and "result" in one.value for one in answers)
    seen = f"a batch got {results:,} results" if results == BATCH else ""
    return f"a batch of {BATCH:,} pings", answer.line, seen


def _headers(session: AttackSession, caller: HttpCaller) -> Sent:
    message = _ping_message(session)
    body = session.http.body(message)
    many = [(f"X-Touchstone-{number}", "x" * 80) for number in range(HEADERS)]
    headers = caller.head(("Content-Length", str(len(body))), *many, drop=("content-length",))
    line = None
    with contextlib.suppress(OSError):
        line = caller.raw(headers, body, message, f"with {HEADERS:,} headers", 3 * FULL).line
    return f"{HEADERS:,} headers", line, ""


def _unread(session: AttackSession, caller: HttpCaller) -> Sent:
    """Ask on connections that are not read until each is full, and ping beside them."""
    listing = next(iter(session.spoken.list_methods), session.wire.ping_method)
    wire = session.wire
    streams = [session.http.get() for _ in range(READERS)] if not session.modern else []
    line = wire.transcript.happened(f"we ask for {listing} on {READERS} connections unread")
    with contextlib.ExitStack() as opened:
        for _ in range(READERS):
            with contextlib.suppress(OSError):
                connection = opened.enter_context(caller.connect(FULL, narrow=True))
                connection.settimeout(FULL)
                request = caller.whole(wire.build(listing))
                for _ in range(WRITTEN // len(request)):
                    connection.sendall(request)
        for _ in range(PINGS):  # the server may still be at the first requests
            sleep(BETWEEN)
            reply = _ping(session)
            if not reply.answered:
                break
    for stream in streams:
        stream.close()
    what = f"responses to {listing} that nobody read"
    if reply.answered:
        return what, line, ""
    return what, reply, f"a ping beside unread responses got no answer: {reply.why}"


def _ping_message(session: AttackSession) -> dict[str, Any]:
    return session.wire.build(session.wire.ping_method)


SESSIONS: Final = 200
"""Sessions of each part; what the first part takes does not count, as memory is kept for reuse."""

HALVES: Final = 2
"""Parts that must grow for a note."""

PARTS: Final = 5
"""Parts that must grow for a finding: some collectors of garbage come late."""

EACH: Final = 30_000
"""Bytes by which a session may let the memory of the server grow; in SDKs one takes 40 to 70 kB."""

MOST: Final = 192 * MIB
"""Growth at which no more sessions are opened."""

LONGEST: Final = 60.0
"""Seconds after which no more sessions are opened."""

FEW: Final = 16
"""Sessions after which the memory is looked at; a server may start a process for each."""

ALIKE: Final = 0.7
"""Least ratio of what sessions take that were ended and that were not, in either order."""

ROOM: Final = 64 * MIB
"""Growth at which no more of those sessions are opened."""

BUSY: Final = {429, 503}

NOT_STARTED: Final = "we did not start the server"
NO_IDS: Final = "the server gives out no session id"


@attack("exhaustion-ended", fixtures=("base",), unwatched=True, lasts=True)
def frees_sessions_that_ended(session: AttackSession) -> None:
    """Sessions that clients end cost the server no memory."""
    _grow(session, "exhaustion-ended", end=True)


@attack("exhaustion-sessions", fixtures=("base",), unwatched=True, lasts=True)
def limits_sessions(session: AttackSession) -> None:
    """The number of sessions is limited."""
    _grow(session, "exhaustion-sessions", end=False)


def _grow(session: AttackSession, threat: str, *, end: bool) -> None:
    """Open many sessions, and judge a threat by the growth of the memory in two halves."""
    session.open()
    started = session.scene.target.started
    if not started or session.http.session_id is None:
        session.judge.unseen(threat, NO_IDS if started else NOT_STARTED)
        return
    session.server.mark()
    parts = PARTS if end else HALVES
    levels, answer, opened, why = _opened(session, end=end, parts=parts)
    limited = answer.status in BUSY
    if why and not limited:
        session.judge.unseen(threat, why)
        return
    each = _slopes(levels)
    whole = levels[-1] - levels[0]
    grown = whole > MOST or (len(each) == parts and min(each) > EACH)
    shown = ", ".join(f"{slope / 1000:.1f}" for slope in each)
    took = f"{opened} sessions took {whole / MIB:.1f} MiB"
    took += f": {shown} kB for each one of {SESSIONS}" if each else ""
    if grown and end and not limited:
        ended, kept = min(each or [whole // opened]), _kept(session)
        took += "" if kept is None else f"; {kept / 1000:.1f} kB for each that is not ended"
        grown = kept is None or min(ended, kept) >= ALIKE * max(ended, kept)
    session.judge.conclude(
        threat,
        took if grown and not limited else "",
        expected="memory that does not grow with each session",
        if_passed=why if limited else took,
        at=answer.line,
    )


def _kept(session: AttackSession) -> int | None:
    """Return the growth for each session that is not ended, in bytes; None if none was opened.

    It is that of an ended one only if nothing is freed. Where a collector frees memory later, what
    a session holds comes on top of the garbage, or fits into what was just freed.
    """
    caller, before, opened = HttpCaller(session), _resident(session), 0
    until = now() + LONGEST / 3
    while opened < SESSIONS and now() < until:
        if not caller.begin().header(SESSION):
            break
        opened += 1
        if opened % FEW == 0 and _resident(session) - before > ROOM:
            break
    return (_resident(session) - before) // opened if opened else None


def _slopes(levels: list[int]) -> list[int]:
    """Return the growth for each session of the parts after the first one, in bytes."""
    return [(after - before) // SESSIONS for before, after in pairwise(levels[1:])]


def _opened(
    session: AttackSession, *, end: bool, parts: int
) -> tuple[list[int], HttpAnswer, int, str]:
    """Open sessions, and end each if ``end`` is set, until a part of them takes little memory.

    Returns:
        The resident memory before them and after each part of them, the last answer, the number of
        sessions, and why no more were opened, if that proves nothing.
    """
    caller, until, opened = HttpCaller(session), now() + LONGEST, 0
    levels = [_resident(session)]
    for _ in range(1 + parts):
        for number in range(SESSIONS):
            answer = caller.begin()
            known = answer.header(SESSION)
            if answer.status in BUSY:
                return levels, answer, opened, f"HTTP {answer.status} after {opened} sessions"
            if not known:
                return levels, answer, opened, f"initialize got no session: {answer}"
            if end and session.http.delete({SESSION: known}).refused:
                return levels, answer, opened, "the server lets no client end a session"
            opened += 1
            if now() > until:
                return levels, answer, opened, f"{opened} sessions took {LONGEST:.0f} s"
            looks = number < FEW or number % FEW == 0
            if looks and _resident(session) - levels[0] > MOST:
                return [*levels, _resident(session)], answer, opened, ""
        levels.append(_resident(session))
        if _slopes(levels)[-1:] and _slopes(levels)[-1] <= EACH:
            break
    return levels, answer, opened, ""
