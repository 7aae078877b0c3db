"""Find revisions, capabilities and lists of a server. Judges nothing. ``probes`` continues.

One process per revision, all at once: 2026-07-28 is proven by ``server/discover`` as the first
message of a process of its own, or by lists whose results have a ``resultType`` (legacy servers
also answer other methods with a modern ``_meta``, but without that member), each legacy revision
by an initialize whose version is echoed.

The processes stay open for the scenarios.

Some servers refuse to run twice: they hold a lock or a port. If fewer than two processes answered,
or one has died, a further one shows whether that is the reason. Then the revisions are tried one
after the other.
"""

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from itertools import filterfalse
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.connection.answers import METHOD_NOT_FOUND
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.no_answer import in_words
from mcp_touchstone.connection.server_profile import (
    CAPABILITIES_WITH_LISTS,
    LISTS,
    Diagnosis,
    Discovered,
    ServerProfile,
    Spoken,
)
from mcp_touchstone.discovery.silence import Spawn, explain_silence
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import object_in, value_in
from mcp_touchstone.wire.http_headers import SESSION
from mcp_touchstone.wire.near_miss import Slip
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Source

SLICE: Final = 0.2
"""Seconds between two checks of the time limit of server/discover."""

DISCOVER_PATIENCE: Final = 3.0
"""Least time limit of server/discover in seconds, even for a fast server."""

LATER: Final = 2
"""Least messages after initialize that show whether a server wants a session id."""

WANTS_AN_ID: Final = {400, 404}
"""Statuses of a request without a session id; clients get them wherever one is wanted."""

SINGLE: Final = "only one process of the server can run at a time: it is judged one at a time"

USAGE: Final = re.compile(r"\s*usage\s*:", re.IGNORECASE)
PRINTED_USAGE: Final = "it printed its usage: are arguments missing?"

SHOWN: Final = 80
"""Characters of a line of the server that are shown in a message."""

T = TypeVar("T")


class FirstLook(NamedTuple):
    """What the first processes of a server show.

    Attributes:
        connections: those of the profile, by revision; those of refused revisions too, whose
            transcripts may contain findings.
        spoiled: further ones, which have ended; our starts caused what they contain.
    """

    profile: ServerProfile
    connections: dict[str, Connection]
    spoiled: tuple[Connection, ...] = ()


@dataclass(slots=True)
class _Draft:
    """A profile while the first processes are looked at; ``ServerProfile`` says what it has."""

    pace: Pace
    spoken: dict[str, Spoken] = field(default_factory=dict)
    offers: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, Reply] = field(default_factory=dict)
    trouble: str = ""
    stderr: str = ""
    diagnosis: Diagnosis | None = None
    is_single: bool = False
    is_excused: bool = False
    is_silent: bool = False

    def finished(self, slip: Slip | None, *remarks: str) -> ServerProfile:
        """Return the profile."""
        members = {one.name: getattr(self, one.name) for one in fields(self)}
        return ServerProfile(**members, slip=slip, discovered=Discovered(*remarks))


def explore(
    spawn: Spawn,
    pace: Pace,
    revisions: tuple[str, ...] = rev.ALL,
    meanwhile: Callable[[], object] = lambda: None,
    needs_few: Callable[[], bool] = lambda: False,
) -> FirstLook:
    """Return the profile of a server and the open connections.

    The caller ends the connections it does not use.

    Args:
        pace: the time limits; gets the measured times.
        revisions: the revisions to request, oldest first.
        meanwhile: called while the processes start; an exception in it ends them.
        needs_few: called after that; returns whether a run in one revision needs so few processes
            that they may run one after the other. Then none shows whether several can run.

    Raises:
        LaunchError: the server could not be started.
    """
    profile = _Draft(pace)
    remarks: tuple[str, ...] = ()
    connections: dict[str, Connection] = {}
    begun = {}
    for revision in revisions:
        begun[revision] = now()
        connections[revision] = spawn(revision, "recon")
    on_pipes = all(one.channel.transport is Transport.STDIO for one in connections.values())
    with ThreadPoolExecutor(max_workers=len(revisions) + 2) as threads:
        try:
            beside = threads.submit(meanwhile)
            _meet(profile, connections, begun, threads, spawn if on_pipes else None)
            _result(beside)
        except BaseException:
            for connection in connections.values():
                connection.channel.kill()  # otherwise threads and we would wait for it
            raise
    spoiled: tuple[Connection, ...] = ()
    alone = on_pipes and not pace.hurried and profile.diagnosis is None
    living = [one for one in connections.values() if not one.gone]
    if alone and profile.spoken and len(connections) == len(living) == 1 and needs_few():
        profile.is_single = True
        _measure(profile, connections)
    elif alone and _excludes_others(spawn, profile, connections):
        spoiled, remarks = tuple(connections.values()), (SINGLE,)
        profile, connections = _one_by_one(spawn, pace, revisions)
    else:
        _measure(profile, connections)
        _hear_late(profile, connections)
    slips = (connection.transcript.slip for connection in connections.values())
    if not profile.spoken:
        _explain(profile, connections)
    found = profile.finished(next(filter(None, slips), None), *remarks)
    return FirstLook(found, connections, spoiled)


def _excludes_others(spawn: Spawn, profile: _Draft, connections: Mapping[str, Connection]) -> bool:
    """Return whether a process answers only while no other one runs.

    If so, all processes have been ended.

    Raises:
        LaunchError: the server could not be started.
    """
    answered = [
        revision
        for revision, connection in connections.items()
        if not connection.gone
        and (revision not in profile.refused or profile.refused[revision].answered)
    ]
    if any(connection.transcript.limit for connection in connections.values()):
        return False
    died = any(connection.gone for connection in connections.values())
    if not died and len(answered) != 1:
        return False
    legacy = [revision for revision in connections if not rev.is_modern(revision)]
    revision = [*connections, *legacy, *answered][-1]
    started = list(connections.values())
    if answered:
        further = _opened(spawn, revision)
        started.append(further)
        all_of_them = [further, *(connections[one] for one in answered)]
        if all(map(_serves, all_of_them)):
            further.end()
            return False
    for connection in started:
        connection.channel.end(connection.pace.farewell, polite=not connection.gone)
    alone = _opened(spawn, revision)
    answers = bool(alone.opening and alone.opening.answered)
    alone.end()
    return answers


def _serves(connection: Connection) -> bool:
    """Return whether a process answers; one that is not ready may lose its first request."""
    return any(connection.ping(required=False).answered for _ in range(2))


def _opened(spawn: Spawn, revision: str) -> Connection:
    """Start a process that is not judged, and open it.

    Raises:
        LaunchError: it could not be started.
    """
    connection = spawn(revision, "recon", judged=False)
    connection.open()
    return connection


def _one_by_one(
    spawn: Spawn, pace: Pace, revisions: tuple[str, ...]
) -> tuple[_Draft, dict[str, Connection]]:
    """Return the profile of a server of which only one process runs; all have ended."""
    profile = _Draft(pace, is_single=True)
    connections: dict[str, Connection] = {}
    with ThreadPoolExecutor(max_workers=2) as threads:
        for revision in revisions:
            begun = now()
            one = connections[revision] = spawn(revision, "recon")
            try:
                _meet(profile, {revision: one}, {revision: begun}, threads, None)
                if len(profile.spoken) == 1:
                    _measure(profile, {revision: one})
            finally:
                one.end()
    return profile, connections


def _meet(
    profile: _Draft,
    connections: Mapping[str, Connection],
    begun: Mapping[str, float],
    threads: ThreadPoolExecutor,
    spawn: Spawn | None,
) -> None:
    """Open all connections and read their lists; without ``spawn``, silence is not explained."""
    settled, over = threading.Event(), threading.Event()
    if profile.spoken:
        settled.set()
    try:
        silence = spawn and threads.submit(_explain_silence, spawn, connections, over)
        _open_all(profile, connections, begun, threads, settled)
    finally:
        over.set()
    for revision in [one for one in profile.refused if rev.is_modern(one)]:
        _note_undiscovered(profile, revision, connections[revision])
    _take(profile, (_result(silence) if silence else None) or _unmatched(connections))
    lists = {
        revision: threads.submit(read_lists, spoken, connections[revision])
        for revision, spoken in profile.spoken.items()
        if revision in connections
    }
    profile.spoken |= {revision: _result(read) for revision, read in lists.items()}
    _take(profile, _missing_session_id(profile, connections))


def _take(profile: _Draft, found: Diagnosis | None) -> None:
    """Take a diagnosis: nothing else can be judged."""
    if found is not None:
        profile.diagnosis = found
        profile.spoken.clear()
        profile.offers.clear()
        profile.refused[found.revision] = Reply(found.asked, why=found.actual)


def _missing_session_id(profile: _Draft, connections: Mapping[str, Connection]) -> Diagnosis | None:
    """Find a server that refuses each request without a session id, and has given none.

    It does so in all its revisions: otherwise the clause fails in those where it does.
    """
    found = None
    if not profile.spoken.keys() <= connections.keys():
        return None  # it runs one process at a time, and has answered in an earlier revision
    for revision in profile.spoken:
        posts = [
            one
            for one in connections[revision].transcript.exchanges
            if one.verb == "POST" and one.line
        ]
        later = posts[1:]
        if (
            len(later) < LATER
            or posts[0].header(SESSION) is not None
            or any(one.status not in WANTS_AN_ID for one in later)
        ):
            return None
        found = Diagnosis(
            "sessions-id-issued",
            f"{SESSION} in the response to initialize, or service without it",
            f"it gives no session id, and refuses each later request: {later[0]}",
            revision,
            posts[0].line,
        )
    return found


def _explain_silence(
    spawn: Spawn, connections: Mapping[str, Connection], over: threading.Event
) -> Diagnosis | None:
    """Find out why a server is silent, and end the waits for it."""
    found = explain_silence(spawn, connections, over)
    if found is not None:
        for connection in connections.values():
            connection.channel.kill()
    return found


def _unmatched(connections: Mapping[str, Connection]) -> Diagnosis | None:
    """Return that no answer of a server can be matched to its request."""
    for revision in sorted(connections, key=rev.is_modern):
        connection = connections[revision]
        near = connection.near.found
        if near is not None and connection.transcript.slip is None:
            return Diagnosis(
                "jsonrpc-response-id-echo",
                "the id of the request",
                f"{near.words}: {near.cure}",
                revision,
                *connection.near.lines,
            )
    return None


def _open_all(
    profile: _Draft,
    connections: Mapping[str, Connection],
    begun: Mapping[str, float],
    threads: ThreadPoolExecutor,
    settled: threading.Event,
) -> None:
    waiting = {
        revision: threads.submit(
            _open_modern if rev.is_modern(revision) else _open, connection, begun[revision], settled
        )
        for revision, connection in connections.items()
    }
    times: list[float] = []
    for revision in sorted(waiting, key=rev.is_modern):
        missed = any(one.near.found is not None for one in connections.values())
        if rev.is_modern(revision) and (times or missed):
            profile.pace.started = max(times, default=profile.pace.started)
            settled.set()
        reply, seconds = _result(waiting[revision])
        if reply.answered:
            times.append(seconds)
        _note(profile, revision, reply)
    if times:
        profile.pace.started = min(times)


def _result(future: Future[T]) -> T:
    """Wait for a result in slices, on a queue that is implemented in C.

    If another thread receives a signal, Python calls the handler only when the main thread runs
    again, and an endless wait would never let it run. An exception of the handler inside a
    condition of ``threading`` could leave its lock locked.
    """
    done: SimpleQueue[Future[T]] = SimpleQueue()
    future.add_done_callback(done.put)
    while True:
        try:
            return done.get(timeout=SLICE).result()
        except Empty:
            continue


def _open(connection: Connection, begun: float, _: threading.Event) -> tuple[Reply, float]:
    reply = connection.open()
    return reply, now() - begun


def _open_modern(
    connection: Connection, begun: float, settled: threading.Event
) -> tuple[Reply, float]:
    """Send server/discover; some legacy servers never answer it, so limit the wait.

    Once other processes of the same server have answered (``settled``), this one may take a few
    times as long as they did.
    """
    asked = connection.say(connection.build("server/discover"))
    while True:
        reply = connection.answer_to(asked, SLICE)
        if not reply.answered and connection.near.go_on(asked):
            reply = connection.opening_answer(asked, SLICE)
            spent = now() - begun
            break
        spent = now() - begun
        limit = connection.pace.startup
        if settled.is_set():
            limit = min(limit, max(DISCOVER_PATIENCE, 4 * connection.pace.started))
        if reply.answered or connection.gone or connection.transcript.overflow or spent > limit:
            break
        if connection.channel.silence(asked):
            return reply, spent
    if not reply.answered and connection.near.found is None:
        reply = Reply(asked, why=connection.absence(spent))
    connection.opening = reply
    return reply, spent


def _note_undiscovered(profile: _Draft, revision: str, connection: Connection) -> None:
    """Find a server that serves a modern revision, but not server/discover.

    The results of its lists have a ``resultType``, which no legacy revision has.
    """
    opening = profile.refused[revision]
    served: dict[str, Any] = {}
    for feature in CAPABILITIES_WITH_LISTS if opening.is_error else ():
        reply = connection.request(
            f"{feature}/list", seconds=connection.pace.silence, required=False
        )
        if not reply.answered or (reply.result is not None and "resultType" not in reply.result):
            return
        if reply.result is not None:
            served[feature] = {}
    if served:
        profile.spoken[revision] = Spoken(opening, served=served)
        connection.substitute = profile.spoken[revision].substitute
        del profile.refused[revision]


def _note(profile: _Draft, revision: str, reply: Reply) -> None:
    named = (reply.result or {}).get("protocolVersion")
    is_modern = rev.is_modern(revision)
    if not (answers_discover(reply) if is_modern else isinstance(named, str)):
        profile.refused[revision] = reply
        return
    if not is_modern:
        profile.offers[revision] = named
    if is_modern or named == revision:
        profile.spoken[revision] = Spoken(reply)


def answers_discover(reply: Reply) -> bool:
    """Return whether an answer to server/discover proves a modern revision."""
    result = reply.result or {}
    return isinstance(result.get("supportedVersions"), list) or "resultType" in result


def read_lists(spoken: Spoken, connection: Connection) -> Spoken:
    """Return a profile with the first page of each list of a declared feature."""
    lists, cursors = dict[str, list[Any]](), dict[str, str]()
    for feature, (method, member) in LISTS.items():
        declared = "resources" if feature == "templates" else feature
        if declared not in spoken.capabilities:
            continue
        reply = connection.request(method)
        items = (reply.result or {}).get(member)
        if isinstance(items, list):
            lists[feature] = items
        cursor = (reply.result or {}).get("nextCursor")
        if isinstance(cursor, str):
            cursors[method] = cursor
    return replace(spoken, lists=lists, cursors=cursors)


def _measure(profile: _Draft, connections: Mapping[str, Connection]) -> None:
    for revision in filter(connections.__contains__, profile.spoken):
        before = now()
        reply = connections[revision].ping()
        if reply.answered:
            profile.pace.round_trip = now() - before
            if reply.code == METHOD_NOT_FOUND and not rev.is_modern(revision):
                _do_without_pings(profile, connections)
            return


def _do_without_pings(profile: _Draft, connections: Mapping[str, Connection]) -> None:
    for revision in filterfalse(rev.is_modern, tuple(profile.spoken)):
        spoken = profile.spoken[revision] = replace(profile.spoken[revision], pings=False)
        if revision in connections:
            connections[revision].substitute = spoken.substitute


def _hear_late(profile: _Draft, connections: Mapping[str, Connection]) -> None:
    """Take a modern revision whose answer to server/discover came after the wait for it."""
    for revision, reply in late_answers(profile.refused, connections):
        if profile.spoken and rev.is_modern(revision):
            connections[revision].opening = reply
            del profile.refused[revision]
            profile.spoken[revision] = read_lists(Spoken(reply), connections[revision])


def late_answers(
    refused: Mapping[str, Reply], connections: Mapping[str, Connection]
) -> list[tuple[str, Reply]]:
    """Return the revisions whose first answer came after the wait for it, with that answer."""
    found = []
    for revision in [one for one, reply in refused.items() if not reply.answered]:
        reply = connections[revision].answer_to(refused[revision].asked, 0.0)
        named = (reply.result or {}).get("protocolVersion")
        if answers_discover(reply) if rev.is_modern(revision) else named == revision:
            found.append((revision, reply))
    return found


def _explain(profile: _Draft, connections: Mapping[str, Connection]) -> None:
    replies = profile.refused
    legacy = [r for r in replies if not rev.is_modern(r)]
    legacy = legacy or ([] if profile.offers else list(replies))
    if legacy:
        newest = legacy[-1]
        method = "server/discover" if rev.is_modern(newest) else "initialize"
        connection = connections[newest]
        advice = connection.channel.advice()
        refusal = in_words(connection.transcript, replies[newest])
        profile.trouble = advice or f"{method} got no result: {refusal}"
        profile.stderr = connection.channel.stderr()
        profile.is_excused = connection.channel.bars
        profile.is_silent = replies[newest].timed_out and not advice
        if profile.diagnosis is None and all(map(_never_spoke, connections.values())):
            said = _first_lines(connection)
            if USAGE.match("".join(said[:1])):
                profile.trouble, profile.is_excused = PRINTED_USAGE, True
            elif _heard(connection):
                line = "".join(said[:1])[:SHOWN]
                profile.trouble = f"it wrote “{line}” in place of a message; {refusal}"
                profile.is_excused = True
    else:
        named = sorted({str(offer) for offer in profile.offers.values()})
        unserved = "has no Streamable HTTP" if {*named} <= {*rev.ALL} else "we do not know"
        profile.trouble = f"it answers initialize with {', '.join(named)} only, which {unserved}"
    if profile.diagnosis is not None:
        profile.is_silent = False
        profile.trouble = f"the server cannot be talked to: {profile.diagnosis.actual}"


def _never_spoke(connection: Connection) -> bool:
    """Return whether a program left without any message: it is no server, or it did not start.

    An error to nobody says why it leaves; some servers write it where others use stderr.
    """
    left = connection.gone and not connection.transcript.overflow
    said = (message.value for entry in _heard(connection) for message in entry.messages)
    return left and all("error" in object_in(one) and value_in(one, "id") is None for one in said)


def _heard(connection: Connection) -> list[Entry]:
    return [entry for entry in connection.transcript if entry.source is Source.THEM]


def _first_lines(connection: Connection) -> list[str]:
    """Return what a program wrote, on stdout first, without empty lines."""
    texts = *(one.text for one in _heard(connection)), *connection.channel.stderr().splitlines()
    return [text for text in texts if text.strip()]


__all__ = ["LISTS", "ServerProfile", "answers_discover", "explore", "late_answers", "read_lists"]
