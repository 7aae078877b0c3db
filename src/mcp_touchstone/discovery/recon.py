"""Find revisions, capabilities and lists of a server. Judges nothing. ``probes`` continues.

One process per revision, all at once: 2026-07-28 is proven by ``server/discover`` as the first
message of a process of its own (nothing else proves it: legacy servers also answer other methods
with a modern ``_meta``), each legacy revision by an initialize whose version is echoed.
The processes stay open for the scenarios.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.client.connection import Connection
from mcp_touchstone.client.server_profile import LISTS, ServerProfile, Spoken
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.transport.process import LaunchError, now
from mcp_touchstone.wire.reply import Reply

SLICE: Final = 0.2
"""Seconds between two checks of the time limit of server/discover."""

DISCOVER_PATIENCE: Final = 3.0
"""Least time limit of server/discover in seconds, even for a fast server."""

T = TypeVar("T")

Spawn = Callable[[str, str], Connection]
"""(revision, label) -> an unused connection."""


def explore(
    spawn: Spawn,
    pace: Pace,
    revisions: tuple[str, ...] = rev.ALL,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[ServerProfile, dict[str, Connection]]:
    """Return the profile of a server and the open connections.

    Connections of unsupported revisions are included (their transcripts may contain findings); the
    caller ends the connections it does not use.

    Args:
        spawn: starts a process.
        pace: the time limits; gets the measured times.
        revisions: the revisions to request, oldest first.
        meanwhile: called while the processes start; an exception in it ends them.

    Raises:
        LaunchError: the server could not be started.
    """
    profile = ServerProfile(pace)
    connections: dict[str, Connection] = {}
    begun = {}
    for revision in revisions:
        begun[revision] = now()
        connections[revision] = spawn(revision, "recon")
    with ThreadPoolExecutor(max_workers=len(revisions) + 1) as threads:
        try:
            beside = threads.submit(meanwhile)
            _meet(profile, connections, begun, threads)
            _result(beside)
        except BaseException:
            for connection in connections.values():
                connection.channel.kill()  # otherwise threads and we would wait for it
            raise
    _measure(profile, connections)
    if not profile.spoken:
        _explain(profile, connections)
    return profile, connections


def _meet(
    profile: ServerProfile,
    connections: Mapping[str, Connection],
    begun: Mapping[str, float],
    threads: ThreadPoolExecutor,
) -> None:
    settled = threading.Event()
    waiting = {
        revision: threads.submit(
            _open_modern if rev.is_modern(revision) else _open, connection, begun[revision], settled
        )
        for revision, connection in connections.items()
    }
    times: list[float] = []
    for revision in sorted(waiting, key=rev.is_modern):
        if rev.is_modern(revision) and times:
            profile.pace.started = max(times)
            settled.set()
        reply, seconds = _result(waiting[revision])
        if reply.answered:
            times.append(seconds)
        _note(profile, revision, reply)
    if times:
        profile.pace.started = min(times)
    lists = [
        threads.submit(read_lists, spoken, connections[revision])
        for revision, spoken in profile.spoken.items()
    ]
    for each in lists:
        _result(each)


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
        spent = now() - begun
        limit = connection.pace.startup
        if settled.is_set():
            limit = min(limit, max(DISCOVER_PATIENCE, 4 * connection.pace.started))
        if reply.answered or connection.gone or connection.transcript.overflow or spent > limit:
            break
        if connection.channel.silence(asked):
            return reply, spent
    if not reply.answered:
        reply = Reply(asked, why=connection.absence(spent))
    connection.opening = reply
    return reply, spent


def _note(profile: ServerProfile, revision: str, reply: Reply) -> None:
    result = reply.result
    if result is None:
        profile.refused[revision] = reply
        return
    if rev.is_modern(revision):
        if answers_discover(reply):
            profile.spoken[revision] = Spoken(reply)
        else:
            profile.refused[revision] = reply
        return
    named = result.get("protocolVersion")
    if not isinstance(named, str):
        profile.refused[revision] = reply
        return
    profile.offers[revision] = named
    if named == revision:
        profile.spoken[revision] = Spoken(reply)


def answers_discover(reply: Reply) -> bool:
    """Return whether an answer to server/discover proves a modern revision."""
    result = reply.result or {}
    return isinstance(result.get("supportedVersions"), list) or "resultType" in result


def read_lists(spoken: Spoken, connection: Connection) -> None:
    """Read the first page of each list of a declared feature."""
    for feature, (method, member) in LISTS.items():
        declared = "resources" if feature == "templates" else feature
        if declared not in spoken.capabilities:
            continue
        reply = connection.request(method)
        items = (reply.result or {}).get(member)
        if isinstance(items, list):
            spoken.lists[feature] = items
        cursor = (reply.result or {}).get("nextCursor")
        if isinstance(cursor, str):
            spoken.cursors[method] = cursor


def _measure(profile: ServerProfile, connections: Mapping[str, Connection]) -> None:
    for revision in profile.spoken:
        before = now()
        if connections[revision].probe().answered:
            profile.pace.round_trip = now() - before
            return


def _explain(profile: ServerProfile, connections: Mapping[str, Connection]) -> None:
    replies = profile.refused
    legacy = [r for r in replies if not rev.is_modern(r)] or list(replies)
    if legacy:
        newest = legacy[-1]
        method = "server/discover" if rev.is_modern(newest) else "initialize"
        advice = connections[newest].channel.advice()
        profile.trouble = advice or f"{method} got no result: {replies[newest]}"
        profile.stderr = connections[newest].channel.stderr()
    else:
        named = sorted({str(offer) for offer in profile.offers.values()})
        profile.trouble = f"it speaks only {', '.join(named)}, which no revision we know has"


__all__ = [
    "LISTS",
    "LaunchError",
    "ServerProfile",
    "Spoken",
    "answers_discover",
    "explore",
    "read_lists",
]
