"""Lend the processes of the server to conversations, and take them back. Judges nothing.

A start costs more than a conversation, so a process has several users. They follow one another on
the process of a share, or on that of an attack which left everything as it was; or each has a
session of one process over HTTP. A scenario whose place is an unused process may get a used one:
then a finding does not count, and the scenario is held again on an unused process (``worker``).
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.scenario import Place, Scenario, Share
from mcp_touchstone.connection.profile import willing as willing_client
from mcp_touchstone.engine.start_limiter import StartPriority
from mcp_touchstone.results.verdict import Judgement, Outcome
from mcp_touchstone.transport.process import LaunchError

if TYPE_CHECKING:
    from mcp_touchstone.connection.connection import Connection
    from mcp_touchstone.judging.used_server import UsedServer
    from mcp_touchstone.results.run import PlannedCase
    from mcp_touchstone.security.fixture_tree import FixtureTree, TreeState
    from mcp_touchstone.target.target import Target

ATTACKS: Final = 2 * (os.cpu_count() or 1)
"""Default number of simultaneous attacks: they hardly wait."""

DEATHS: Final = 12
"""Processes of one share and revision that may exit before the run gives up."""

SILENCES: Final = 3
"""Processes of one share and revision that may stop answering; each costs a full deadline."""

LABEL: Final = "sessions"
"""The name of the process that serves the sessions of scenarios, for people."""

_CLEAN: Final = frozenset({Outcome.PASS, Outcome.UNSEEN})

_Key = tuple[str, Share]
"""A revision, and the users of a process."""


class Pool(Protocol):
    """Starts and ends the processes; ``ProcessPool`` describes its members."""

    target: "Target"
    is_branch: bool

    @property
    def is_single(self) -> bool:
        """Whether only one process can run at a time."""

    @property
    def handshakes(self) -> Sequence[str]:
        """The revisions with a handshake that the server speaks, oldest first."""

    def spawn(self, *place: Any, **how: Any) -> "Connection":
        """Start an unused process."""

    def apart(self, *place: Any, **how: Any) -> "Connection":
        """Start an unused process in a folder of its own."""

    def beside(self, *place: Any, **how: Any) -> "Connection":
        """Open a session of a process."""

    def retire(self, connection: "Connection", *, polite: bool | None = None) -> None:
        """End a connection in the background."""

    def discard(self, connection: "Connection") -> None:
        """End a connection in the background; nothing on it is judged."""


class Exhausted(LaunchError):  # noqa: N818  (an outcome of the server's, not a fault of ours)
    """The server exited too often to continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A process of attacks and the trees around it.

    Attributes:
        fixtures: ids of the trees.
        target: the target as it was started.
        ground: the trees.
        state: the state of the trees before the process started.
    """

    fixtures: tuple[str, ...]
    target: "Target"
    revision: str
    ground: "FixtureTree"
    state: "TreeState"
    connection: "Connection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The processes that one conversation has.

    Attributes:
        server: its processes.
        is_lent: whether others use the first of them, too.
        is_used: whether a finding does not count, since others have used the first before.
        site: the first and the trees around it, if the next attack may get them.
    """

    planned: "PlannedCase"
    server: "UsedServer"
    is_lent: bool = False
    is_used: bool = False
    site: Site | None = None

    def is_doubtful(self, judgements: Collection[Judgement]) -> bool:
        """Return whether another user of its processes may be the cause of a finding."""
        guests = [used for used in self.server.connections if used.channel.is_guest]
        is_used = self.is_used or bool(guests)
        return is_used and (not is_clean(judgements) or any(used.gone for used in guests))


def is_clean(judgements: Collection[Judgement]) -> bool:
    """Return whether a conversation judged something and found nothing."""
    found = {judgement.outcome for judgement in judgements}
    return bool(found) and found <= _CLEAN


class Lender:
    """The processes of a pool that have several users.

    Args:
        pool: starts and ends them.
        isolated: whether each scenario has a process and a folder of its own instead.
        attacks: greatest number of processes of attacks, if no more attacks run at a time.
    """

    def __init__(self, pool: Pool, *, isolated: bool = False, attacks: int = ATTACKS) -> None:
        self._pool = pool
        self._isolated = isolated
        self._attacks = attacks
        self._live: dict[_Key, Connection] = {}
        self._replaced: Counter[_Key] = Counter()
        self._silent: Counter[_Key] = Counter()
        self._refusals: dict[_Key, str] = {}
        self._sites: list[Site] = []
        self._attacked = 0
        self._lock = threading.Lock()
        self._hosts: list[Connection] = []
        self._is_host: bool | None = None  # not tried yet
        self._trying = threading.Lock()

    # --- leases

    def take(self, planned: "PlannedCase", revision: str, *, unused: bool = False) -> Lease:
        """Lend a process to a scenario.

        Args:
            revision: that of the connection.
            unused: whether no session of a used process will do.

        Raises:
            LaunchError: no process could be started.
        """
        from mcp_touchstone.judging.used_server import UsedServer  # noqa: PLC0415  (after the start)

        scenario, share, is_used = planned.case, planned.share, False
        assert isinstance(scenario, Scenario)  # noqa: S101  (rules have no process)
        spawn = self._spawner(scenario, revision, unused=unused)
        is_lent = not (self._isolated or scenario.place.is_unused)
        if is_lent:
            is_used = scenario.place is Place.LAST and self.has(planned.revision, share)
            first = self.get(planned.revision, share)
        elif scenario.place.is_unused:
            first = spawn()
        else:
            first = _opened(spawn(judged=_is_judged(share)), share)
        server = UsedServer(first, spawn)
        return Lease(planned=planned, server=server, is_lent=is_lent, is_used=is_used)

    def _spawner(
        self, scenario: Scenario, revision: str, *, unused: bool
    ) -> "Callable[..., Connection]":
        """Return the function that starts a process for a scenario, or opens a session for it."""
        pool, name = self._pool, scenario.name
        turn = StartPriority.MANY  # others wait for the shared process meanwhile
        if scenario.place.is_unused:
            turn = StartPriority.LONG if scenario.lasts else StartPriority.OTHER
        watched = _is_judged(scenario.share) and not scenario.unwatched

        def spawn(
            port: int = 0, env: Mapping[str, str] | None = None, *, judged: bool = watched
        ) -> "Connection":
            if port or env:
                place = pool.target.on_port(port) if port else pool.target
                place = replace(place, env={**place.env, **(env or {})})
                return pool.spawn(revision, name, target=place, turn=turn, judged=judged)
            if scenario.place.has_folder or self._isolated:
                return pool.apart(revision, name, turn=turn, judged=judged)
            shares = scenario.uses_sessions and not unused
            session = self.session(revision, name, judged=judged) if shares else None
            return session or pool.spawn(revision, name, turn=turn, judged=judged)

        return spawn

    def drop(self, lease: Lease) -> None:
        """End the processes of a conversation whose findings do not count.

        Rules on all traffic read a process that others have used, and nothing else.
        """
        first, *others = lease.server.connections
        for used in others if lease.is_lent else (first, *others):
            self._pool.discard(used)
        if lease.is_used:
            self._end(lease)

    def give_back(self, lease: Lease, judgements: Collection[Judgement]) -> str:
        """Take the processes of a conversation back; end those that have no further user.

        Returns:
            how it left the process of its share, as a sentence; empty if that answers as before.
        """
        place, left, is_kept = lease.planned.case.place, "", False
        if place in {Place.FIRST, Place.REUSED}:
            is_kept = is_clean(judgements) and self._hands_over(lease)
        elif lease.is_lent and place is not Place.LAST:
            left, is_kept = self._left(lease, judgements), True
        if not is_kept:
            self._end(lease)
        for used in lease.server.connections[1:]:
            self._pool.retire(used)
        return left

    def _end(self, lease: Lease) -> None:
        """End the first process of a conversation."""
        if lease.site is not None:
            with self._lock:
                self._attacked -= 1
        elif lease.is_lent:
            self.release(lease.planned.revision, lease.planned.share)
        self._pool.retire(lease.server.connections[0])

    def _hands_over(self, lease: Lease) -> bool:
        """Keep the process of a conversation for others, if it is as good as unused."""
        first, *others = lease.server.connections
        is_open = first.opening is not None and first.opening.result is not None
        if self._isolated or others or not is_open or first.gone or first.channel.is_guest:
            return False
        if lease.planned.case.place is Place.FIRST:
            return self.put(lease.planned.revision, first, lease.planned.share)
        if lease.site is None or not (
            first.ping().answered and lease.site.ground.restored(lease.site.state)
        ):
            return False
        with self._lock:
            self._attacked -= 1
            self._sites.append(lease.site)
        return True

    def _left(self, lease: Lease, judgements: Iterable[Judgement]) -> str:
        """Send one more request, and return how a scenario left the server if there is no answer.

        Silence is a finding only if the scenario has no other, and never after the process has
        exited: a separate rule judges the exit.
        """
        first = lease.server.connections[0]
        found = {Outcome.FAIL, Outcome.WARN, Outcome.BROKEN}
        blamed = first.gone or any(judgement.outcome in found for judgement in judgements)
        reply = first.ping(required=not blamed)
        first.transcript.enter("")
        if reply.answered:
            return ""
        if not first.gone:
            refusal = first.channel.silence(reply.asked)
            self.replace(lease.planned.revision, lease.planned.share, refusal=refusal)
        return str(reply)

    # --- one user after the other

    def put(self, revision: str, connection: "Connection", share: Share = Share.ORDINARY) -> bool:
        """Share a process that is open already, unless there is one; return whether."""
        _serve(connection, share)
        return self._live.setdefault((revision, share), connection) is connection

    def has(self, revision: str, share: Share) -> bool:
        """Return whether something has used the process that its next user gets."""
        connection = self._live.get((revision, share))
        return connection is not None and not connection.gone

    def keep(self, needed: Collection[_Key]) -> None:
        """Begin to end the processes that nothing needs any more."""
        for key in [key for key in self._live if key not in needed]:
            self.release(*key)

    def get(
        self,
        revision: str,
        share: Share = Share.ORDINARY,
        turn: StartPriority = StartPriority.MANY,
    ) -> "Connection":
        """Return the live process of a share, after its opening.

        Args:
            share: its users. A willing one is opened by a client that declares everything. Ambient
                rules skip the process of properties: most of its messages belong to a search.
            turn: its priority among waiting starts.

        Raises:
            LaunchError: a new one could not be started.
            Exhausted: too many processes exited.
        """
        key = revision, share
        connection = self._live.get(key)
        if connection is not None and not connection.gone:
            return connection
        if connection is not None:
            self._replaced[key] += connection.channel.ending is None  # otherwise we ended it
            self._pool.retire(connection)
        if self._replaced[key] > DEATHS:
            what = "session" if connection and connection.channel.session_ended else "server"
            raise Exhausted(f"the {what} ended {DEATHS} times; we stopped starting it")
        if self._silent[key] >= SILENCES:
            refusal = self._refusals.get(key)
            what = f"answered everything by {refusal}" if refusal else "stopped answering"
            raise Exhausted(f"the server {what} {SILENCES} times; we stopped asking")
        label = f"{share} {self._replaced[key] + 1}"
        turn = StartPriority.FIRST if share is Share.DRAWN else turn
        judged = _is_judged(share)
        started = _opened(self._pool.spawn(revision, label, turn=turn, judged=judged), share)
        if self.has(revision, share):  # a scenario left its process meanwhile
            self._pool.retire(started)
        else:
            self._live[key] = started
        return self._live[key]

    def release(self, revision: str, share: Share = Share.ORDINARY) -> None:
        """Begin to end a process that is no longer needed."""
        connection = self._live.pop((revision, share), None)
        if connection is not None:
            self._pool.retire(connection, polite=True)

    def replace(self, revision: str, share: Share = Share.ORDINARY, *, refusal: str = "") -> None:
        """Abandon a process that no longer answers, or only by an HTTP status."""
        key = revision, share
        self._refusals[key] = refusal
        connection = self._live.pop(key, None)
        if connection is not None:
            self._replaced[key] += 1
            self._silent[key] += 1
            self._pool.retire(connection, polite=False)

    # --- attacks, one after the other

    def site(self, fixtures: tuple[str, ...], target: "Target", revision: str) -> Site | None:
        """Return a site that an attack left as it was, and reserve it; None if there is none."""
        with self._lock:
            self._sites = [site for site in self._sites if not site.connection.gone]
            for site in self._sites:
                if (site.fixtures, site.target, site.revision) == (fixtures, target, revision):
                    self._sites.remove(site)
                    return site
        return None

    def make_room(self) -> None:
        """End free processes before another is started for an attack, if there are too many."""
        with self._lock:
            many = max(0, len(self._sites) + self._attacked + 1 - self._attacks)
            ended, self._sites = self._sites[:many], self._sites[many:]
        for site in ended:
            self._pool.retire(site.connection)

    def lend(
        self, planned: "PlannedCase", server: "UsedServer", site: Site | None, *, is_used: bool
    ) -> Lease:
        """Return the lease of an attack.

        Args:
            site: its process and the trees, if the next attack may get them.
            is_used: whether it got them from another attack.
        """
        site = None if self._isolated else site
        with self._lock:
            self._attacked += site is not None
        return Lease(planned=planned, server=server, is_lent=is_used, is_used=is_used, site=site)

    # --- sessions of one process, at a time

    def session(self, revision: str, label: str, *, judged: bool = True) -> "Connection | None":
        """Return an unused session of a process with other sessions; None if there is none.

        There is one if we started the server, it speaks HTTP, and one process serves several
        sessions.

        Args:
            label: its name, for people.
            judged: whether rules on all traffic read it.
        """
        pool = self._pool
        if rev.is_modern(revision) or pool.target.transport is not Transport.HTTP:
            return None
        several = pool.target.started and not (pool.target.gentle or pool.is_single)
        if not several or pool.is_branch or not pool.handshakes:
            return None
        with self._trying:
            if self._is_host is None:
                self._is_host = self._try(revision)
        if not self._is_host or self._hosts[0].gone:
            return None
        return pool.beside(self._hosts[0], revision, label, judged=judged)

    def _try(self, revision: str) -> bool:
        """Open two sessions on one process; return whether it serves both."""
        pool = self._pool
        try:
            newest = pool.handshakes[-1]
            first = pool.spawn(newest, LABEL, turn=StartPriority.MANY, judged=False)
        except LaunchError:
            return False
        self._hosts.append(first)
        if first.open().result is None:
            return False
        second = pool.beside(first, revision, LABEL, judged=False)
        self._hosts.append(second)
        if second.open().result is None or not _are_apart(first, second):
            return False
        return all(one.ping(required=False).result is not None for one in (first, second))

    # --- ends

    def in_order(
        self, connections: "Collection[Connection]"
    ) -> "Iterator[list[tuple[Connection, bool]]]":
        """Yield groups of connections that end together: a session ends before its process.

        Each comes with whether it is the live process of a share.
        """
        shared, hosts = list(self._live.values()), list(self._hosts)
        yield [(one, one in shared) for one in connections if one not in hosts]
        yield from ([(one, False)] for one in reversed(hosts))

    def clear(self) -> None:
        """Forget the processes of all shares: they have ended."""
        self._live.clear()


def _is_judged(share: Share | None) -> bool:
    """Return whether rules on all traffic read the process of some users."""
    return share is not Share.DRAWN


def _opened(connection: "Connection", share: Share) -> "Connection":
    """Open an unused process for some users; return it."""
    _serve(connection, share)
    connection.open()
    return connection


def _serve(connection: "Connection", share: Share) -> None:
    if share is Share.WILLING:
        connection.answers.use(willing_client(connection.transcript.revision))


def _are_apart(first: "Connection", second: "Connection") -> bool:
    """Return whether two sessions have different ids, or none: then no request needs one."""
    from mcp_touchstone.transport.http_channel import HttpChannel  # noqa: PLC0415  (as in the pool)

    channels = (first.channel, second.channel)
    ids = [one.session.id for one in channels if isinstance(one, HttpChannel)]
    return ids == [None, None] or len({*ids}) == len(ids)
