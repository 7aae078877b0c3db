"""The processes of one run: starting, sharing and ending them. Judges nothing.

Start-up dominates the cost of judging, so conversations of one revision share a live process.
A process that exited or no longer answers is replaced; a scenario may need an unused one.
"""

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.scenario import Share
from mcp_touchstone.client.connection import Connection, Pace
from mcp_touchstone.client.profile import willing as willing_client
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.engine.session_host import LABEL, Place, SessionHost
from mcp_touchstone.engine.start_limiter import StartLimiter, StartPriority
from mcp_touchstone.runtime.safe_path import Tree
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.sandbox.command_files import sandbox_for
from mcp_touchstone.sandbox.sandbox import Sandbox, variables
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.channel import Channel, StdioChannel
from mcp_touchstone.transport.http_endpoint import free_port, values_of
from mcp_touchstone.transport.orphans import sweep
from mcp_touchstone.transport.process import MARK, Ending, LaunchError, ServerProcess, now
from mcp_touchstone.wire.allowance import Allowance
from mcp_touchstone.wire.transcript import Transcript

if TYPE_CHECKING:
    from mcp_touchstone.judging.ambient import Record
    from mcp_touchstone.transport.http_channel import HttpChannel

DEATHS: Final = 12
"""Shared processes of one revision that may exit before the run gives up."""

SILENCES: Final = 3
"""Shared processes of one revision that may stop answering; each costs a full deadline."""


STARTING: Final = 3
"""Usual start times after which a process without an answer no longer delays other starts."""

GENTLE_RATE: Final = 5.0
"""Requests a second to a server that is not ours to hurt."""

_Key = tuple[str, Share]
"""A revision, and the kind of sharing."""

_Kept = TypeVar("_Kept", World, Tree)


class Exhausted(LaunchError):  # noqa: N818  (an outcome of the server's, not a fault of ours)
    """The server exited too often to continue."""


def inherited(env: Mapping[str, str], target: Target) -> Mapping[str, str]:
    """Return the user's variables that a server inherits: few in a sandbox, otherwise all."""
    return env if target.method is None else variables(env, network=target.online)


class ProcessPool:
    """The processes of a run; it starts, shares and ends them.

    Args:
        target: the server.
        world: the folder its processes run in.
        pace: the time limits.
        mark: mark of another pool, of which this one is a branch.

    Attributes:
        mark: text that identifies every process of the run.
        has_repositories: whether the roots of future fixture trees are git repositories; the world
            of the run does not change while a conversation uses it.
        is_single: whether only one process can run at a time: a start then ends all others.
    """

    def __init__(self, target: Target, world: World, pace: Pace, mark: str = "") -> None:
        self.target = target
        self.world = world
        self.pace = pace
        self._started = 0
        self.allowance = Allowance()
        self.mark = mark or f"{os.getpid()}-{uuid.uuid4().hex}"
        self._sweeps = not mark
        self._env = self._env_in(world, target)
        self._kept: list[World | Tree] = []
        self._branches: list[ProcessPool] = []
        self._shared: dict[_Key, Connection] = {}
        self._replaced: dict[_Key, int] = {}
        self._silent: dict[_Key, int] = {}
        self._refusals: dict[_Key, str] = {}
        self._all: list[Connection] = []
        self._endings: dict[int, Future[Ending]] = {}
        self._records: dict[int, Record] = {}
        self._undertakers = ThreadPoolExecutor(max_workers=64, thread_name_prefix="undertaker")
        self._lock = threading.Lock()
        self._closed = False
        self.has_repositories = world.is_repository
        self.is_single = False
        rate = target.rate or (GENTLE_RATE if target.gentle else 0)
        self._rate = None
        if rate:
            from mcp_touchstone.transport.http_requests import RequestRate  # noqa: PLC0415  (late)

            self._rate = RequestRate(rate)
        self._doorway = StartLimiter(lambda: STARTING * pace.started)
        self._profile = ServerProfile(pace)
        self._host = SessionHost(self._open_host, self._beside)

    def _env_in(self, world: World, target: Target) -> dict[str, str]:
        ours = inherited(os.environ, target)
        return {**world.env(ours), **target.env_in(world.root), MARK: self.mark}

    @staticmethod
    def _sandbox(target: Target, world: World, env: Mapping[str, str]) -> Sandbox | None:
        if target.method is None:
            return None
        return sandbox_for(
            target.method,
            target.command_in(world.root),
            world=world.path.tree.path,
            cwd=Path(target.cwd_in(world.root) or Path.cwd()),
            env=env,
            home=Path.home(),
            network=target.online,
        )

    def apart(
        self, revision: str, label: str, *, turn: StartPriority = StartPriority.OTHER
    ) -> Connection:
        """Return an unused process in a world of its own; otherwise like ``spawn``.

        Raises:
            LaunchError: it could not be started, or the run is over.
        """
        return self._admitted(turn, lambda: self._start(revision, label, self._own_world(), None))

    def _own_world(self) -> World:
        world = World(
            self.target.world,
            seed=self.target.root_from,
            is_repository=self.world.is_repository,
        )
        self.keep(world)
        return world

    def keep(self, folder: _Kept) -> _Kept:
        """Take ownership of a world or a temporary folder: it is removed when the run ends.

        Raises:
            LaunchError: the run is over.
        """
        with self._lock:
            self._kept.append(folder)
            if self._closed:
                raise LaunchError("the run is over")
        return folder

    def spawn(
        self,
        revision: str,
        label: str,
        world: World | None = None,
        target: Target | None = None,
        *,
        turn: StartPriority = StartPriority.OTHER,
    ) -> Connection:
        """Start an unused process, in the world of the run or in another.

        Waits while too many others are starting.

        Args:
            revision: the revision to request.
            label: its name, for people.
            world: the folder to run in; by default the world of the run.
            target: the target to start, if it differs from that of the pool.
            turn: its priority among waiting starts.

        Raises:
            LaunchError: it could not be started, or the run is over.
        """
        return self._admitted(turn, lambda: self._start(revision, label, world, target))

    def _admitted(self, turn: StartPriority, start: Callable[[], Connection]) -> Connection:
        newcomer = self._doorway.enter(turn)
        try:
            connection = start()
        except BaseException:
            newcomer.gave_up = True
            raise
        newcomer.process = connection
        return connection

    def spawn_at_once(self, revision: str, label: str) -> Connection:
        """Start a process in the world of the run without waiting; otherwise like ``spawn``."""
        return self._start(revision, label, None, None)

    def _start(
        self, revision: str, label: str, world: World | None, target: Target | None
    ) -> Connection:
        born = now()
        root = (world or self.world).root
        target = self._placed(target or self.target)
        env = self._env
        if world is not None or target.url or target.env != self.target.env:
            env = self._env_in(world or self.world, target)
        transcript = self._transcript(revision, label, born)
        if self.allowance.met:
            raise LaunchError(f"{self.allowance.met}; we stopped starting it")
        with self._lock:
            if self._closed:
                raise LaunchError("the run is over")
        if self.is_single:
            self._end_all()
        channel: Channel
        if target.transport is Transport.HTTP:
            channel = self._http(target, transcript, env, world or self.world)
        else:
            channel = StdioChannel(
                target.command_in(root),
                transcript,
                env=env,
                cwd=target.cwd_in(root),
                born=born,
                sandbox=self._sandbox(target, world or self.world, env),
            )
        connection = Connection(channel, transcript, self.pace, root=root)
        if rev.is_modern(revision) and revision in self._profile.spoken:
            connection.first_method = self._profile.spoken[revision].first_method
        with self._lock:
            self._started += 1
            self._all.append(connection)
            late = self._closed
        if late:
            channel.end(0.0, polite=False)
            raise LaunchError("the run is over")
        return connection

    def _transcript(self, revision: str, label: str, born: float) -> Transcript:
        return Transcript(
            revision,
            clock=lambda: now() - born,
            label=label,
            allowance=self.allowance,
            slip=self._profile.slip,
        )

    @staticmethod
    def _placed(target: Target) -> Target:
        """Return the target on a free port of its own, if we start it and it speaks HTTP.

        Raises:
            LaunchError: no port is free.
        """
        if not (target.url and target.started):
            return target
        try:
            return target.on_port(free_port())
        except OSError as error:
            raise LaunchError(str(error)) from error

    def _http(
        self, target: Target, transcript: Transcript, env: Mapping[str, str], world: World
    ) -> "HttpChannel":
        """Open a channel to an HTTP server, and start the server if it is ours.

        Raises:
            LaunchError: it could not be started.
        """
        from mcp_touchstone.transport.http_channel import HttpChannel  # noqa: PLC0415  (late, as most servers speak stdio)
        from mcp_touchstone.transport.http_server import ServerOutput  # noqa: PLC0415  (as above)

        server = None
        born = now()
        if target.started:
            root = world.root
            server = ServerProcess(
                target.command_in(root),
                ServerOutput(),
                env=env,
                cwd=target.cwd_in(root),
                born=born,
                sandbox=self._sandbox(target, world, env),
            )
        dial = None if server is None else server.dial
        return HttpChannel(
            replace(target.endpoint, open_socket=dial),
            transcript,
            server=server,
            startup=target.timeout,
            secrets=values_of(target.header, os.environ),
            born=born,
            rate=self._rate,
        )

    def branch(self) -> "ProcessPool":
        """Return a pool of the same server, whose processes this one does not judge.

        The caller closes it. It ends early with this pool, which counts its processes and searches
        for its strays.
        """
        pool = ProcessPool(self.target, self.world, self.pace, self.mark)
        pool.knows(self._profile)
        pool.allowance = self.allowance
        pool.is_single = self.is_single
        pool._doorway = self._doorway
        with self._lock:
            self._branches.append(pool)
            late = self._closed
        if late:
            pool.expire()
        return pool

    @property
    def started(self) -> int:
        """The number of processes that it and its branches started."""
        return self._started + sum(branch.started for branch in self._branches)

    def session(self, revision: str, label: str) -> Connection | None:
        """Return an unused session of a process with other sessions; None if there is none.

        There is one if we started the server, it speaks HTTP, and one process serves several
        sessions. A finding in the session counts only if an unused process shows it too.

        Args:
            revision: the revision to request.
            label: its name, for people.
        """
        if rev.is_modern(revision) or not self._has_sessions:
            return None
        return self._host.open(revision, label)

    @property
    def _has_sessions(self) -> bool:
        """Whether one process may serve several sessions of scenarios."""
        several = self.target.started and not (self.target.gentle or self.is_single)
        over_http = self.target.transport is Transport.HTTP
        return self._sweeps and several and over_http and bool(self._profile.legacy)

    def _open_host(self) -> Connection:
        return self.spawn(self._profile.legacy[-1], LABEL, turn=StartPriority.MANY)

    def _beside(self, host: Connection, revision: str, label: str) -> Connection:
        """Return a connection to the process of another one, for a further session."""
        from mcp_touchstone.transport.http_channel import HttpChannel  # noqa: PLC0415  (as above)

        assert isinstance(host.channel, HttpChannel)  # noqa: S101  (no other has sessions)
        transcript = self._transcript(revision, label, now())
        channel = host.channel.another(transcript)
        connection = Connection(channel, transcript, self.pace, root=host.root)
        with self._lock:
            self._all.append(connection)
            late = self._closed
        if late:
            channel.kill()
        return connection

    def become_repository(self) -> bool:
        """Make the root of the run, and those of future worlds, a git repository.

        Returns whether anything changed; some servers start in a repository only.
        """
        if self.world.is_repository:
            return False
        self.world.become_repository()
        self.has_repositories = True
        return True

    def adopt(self, connections: Mapping[str, Connection], profile: ServerProfile) -> None:
        """Take ownership of the connections of discovery; end those of unsupported revisions."""
        for revision, connection in connections.items():
            if revision in profile.spoken:
                self._shared[revision, Share.ORDINARY] = connection
            else:
                connection.transcript.judged = not profile.spoken
                if not (self._has_sessions and self._host.take(connection)):
                    self.retire(connection)

    def shared(self, revision: str, share: Share = Share.ORDINARY) -> Connection:
        """Return the live process of a revision, after its opening.

        Args:
            revision: the revision.
            share: its users. A willing one is opened by a client that declares everything. Ambient
                rules skip the process of properties: most of its messages belong to a search.

        Raises:
            LaunchError: a new one could not be started.
            Exhausted: too many processes exited.
        """
        key = revision, share
        connection = self._shared.get(key)
        if connection is not None and not connection.gone:
            return connection
        if connection is not None:
            if connection.channel.ending is None:  # otherwise we ended it
                self._replaced[key] = self._replaced.get(key, 0) + 1
            self.retire(connection)
        if self._replaced.get(key, 0) > DEATHS:
            what = "session" if connection and connection.channel.session_ended else "server"
            raise Exhausted(f"the {what} ended {DEATHS} times; we stopped starting it")
        if self._silent.get(key, 0) >= SILENCES:
            refusal = self._refusals.get(key)
            what = f"answered everything by {refusal}" if refusal else "stopped answering"
            raise Exhausted(f"the server {what} {SILENCES} times; we stopped asking")
        label = f"{share} {self._replaced.get(key, 0) + 1}"
        turn = StartPriority.FIRST if share is Share.DRAWN else StartPriority.MANY
        connection = self._shared[key] = self.opened(self.spawn(revision, label, turn=turn), share)
        return connection

    @staticmethod
    def opened(connection: Connection, share: Share) -> Connection:
        """Open an unused process for some users; return it."""
        connection.transcript.judged = share is not Share.DRAWN
        if share is Share.WILLING:
            connection.use(willing_client(connection.revision))
        connection.open()
        return connection

    def release(self, revision: str, share: Share = Share.ORDINARY) -> None:
        """Begin to end a shared process that is no longer needed."""
        connection = self._shared.pop((revision, share), None)
        if connection is not None:
            self.retire(connection)

    def replace(self, revision: str, share: Share = Share.ORDINARY, *, refusal: str = "") -> None:
        """Abandon a shared process that no longer answers, or only by an HTTP status."""
        key = revision, share
        self._refusals[key] = refusal
        connection = self._shared.pop(key, None)
        if connection is not None:
            self._replaced[key] = self._replaced.get(key, 0) + 1
            self._silent[key] = self._silent.get(key, 0) + 1
            self.retire(connection, polite=False)

    def retire(self, connection: Connection, *, polite: bool = True) -> None:
        """End a connection in the background."""
        with self._lock:
            if id(connection) in self._endings:
                return
            self._endings[id(connection)] = self._undertakers.submit(self._end, connection, polite)

    def discard(self, connection: Connection, *, polite: bool = True) -> None:
        """End a connection in the background; nothing on it is judged."""
        connection.transcript.judged = False
        self.retire(connection, polite=polite)

    def _end(self, connection: Connection, polite: bool) -> Ending:
        return connection.end(polite=polite and not self._closed)

    def records(self, revision: str) -> "list[Record]":
        """Return the transcripts of a revision that ambient rules check."""
        with self._lock:
            return [
                self._record(connection)
                for connection in self._all
                if connection.revision == revision and connection.transcript.judged
            ]

    def _record(self, connection: Connection) -> "Record":
        """Return the record of a connection for rules; after its end, always the same."""
        from mcp_touchstone.judging.ambient import Record  # noqa: PLC0415  (after the start)

        channel = connection.channel
        known = self._records.get(id(connection))
        if known is None:
            known = Record(
                connection.transcript, self._profile, channel.ending, channel.stderr_tail
            )
            if channel.ending is not None:
                self._records[id(connection)] = known
        return known

    def knows(self, profile: ServerProfile) -> None:
        """Set the profile that records contain."""
        self._profile = profile
        self.is_single = profile.is_single

    @property
    def connections(self) -> list[Connection]:
        """Every connection of the run, in the order of their starts."""
        with self._lock:
            return list(self._all)

    def settle(self) -> None:
        """End every process politely and wait until all have ended."""
        self._end_all()
        self._shared.clear()

    def _end_all(self) -> None:
        for place in Place:
            for connection in self.connections:
                if self._host.place(connection) is place:
                    self.retire(connection)
            for future in list(self._endings.values()):
                future.result()

    @contextmanager
    def killed_on_error(self, stop: threading.Event) -> Iterator[None]:
        """Kill every process if the block fails or is interrupted.

        Threads that wait for a server would otherwise continue to wait, and the run for them.
        """
        try:
            yield
        except BaseException:
            stop.set()
            self.kill()
            raise

    def kill(self) -> None:
        """End every process at once, those of branches too; no process starts any more."""
        with self._lock:
            self._closed = True
        for connection in self.connections:
            connection.channel.kill()
        for branch in list(self._branches):
            branch.kill()

    def expire(self) -> None:
        """End the run early: no process starts any more, and no running process is judged."""
        with self._lock:
            self._closed = True
        for connection in self.connections:
            if connection.channel.ending is None:
                connection.transcript.judged = False
                connection.channel.kill()
        for branch in list(self._branches):
            branch.expire()

    def close(self) -> int:
        """Kill the running processes; return the number of strays found by their mark."""
        with self._lock:
            self._closed = True
        for connection in self.connections:
            if connection.channel.ending is None:
                connection.channel.kill()
        self.settle()
        self._undertakers.shutdown()
        strays = sweep(self.mark) if self._sweeps else 0
        for connection in self.connections:
            connection.channel.join(1.0)
        for folder in self._kept:
            folder.remove()
        return strays
