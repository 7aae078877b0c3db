"""Processes of one run: who may reuse which, who starts a new one, who ends them. Judges nothing.

Start-up dominates the cost of judging, so conversations of one revision share a live process.
One that died or went deaf is replaced; a scenario that needs a virgin process gets its own.
"""

import os
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from mcp_touchstone.ambient import Record
from mcp_touchstone.client import willing as willing_client
from mcp_touchstone.connection import Connection, Pace
from mcp_touchstone.doorway import Doorway, Turn
from mcp_touchstone.process import MARK, Ending, LaunchError, ServerProcess, now
from mcp_touchstone.recon import Dossier
from mcp_touchstone.scenario import Share
from mcp_touchstone.strays import sweep
from mcp_touchstone.target import Target
from mcp_touchstone.transcript import Transcript
from mcp_touchstone.world import World

DEATHS: Final = 12
"""Shared processes of one revision that may die before we stop asking."""

SILENCES: Final = 3
"""Shared processes of one revision that may stop answering; each costs a full deadline."""


_Key = tuple[str, Share]
"""A revision, and who shares the process."""


class Exhausted(Exception):  # noqa: N818  (an outcome of the server's, not a fault of ours)
    """The server died too often to go on."""


class Pool:
    """Starts, shares and ends the processes of a run.

    Attributes:
        has_repositories: whether the roots of fields to come are git repositories; the world of the
            run stays what it is while somebody talks in it.
        on_end: called with the record of each process that ended and is judged, on a thread of its
            own while others still talk.
    """

    def __init__(self, target: Target, world: World, pace: Pace) -> None:
        self.target = target
        self.world = world
        self.pace = pace
        self.started = 0
        self._mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._env = self._env_in(world, target)
        self._worlds: list[World] = []
        self._shared: dict[_Key, Connection] = {}
        self._replaced: dict[_Key, int] = {}
        self._silent: dict[_Key, int] = {}
        self._all: list[Connection] = []
        self._endings: dict[int, Future[Ending]] = {}
        self._records: dict[int, Record] = {}
        self._reserved: dict[tuple[str, str], Future[Connection]] = {}
        self._undertakers = ThreadPoolExecutor(max_workers=64, thread_name_prefix="undertaker")
        self._lock = threading.Lock()
        self._closed = False
        self.has_repositories = world.is_repository
        self._doorway = Doorway(lambda: pace.started)
        self._dossier = Dossier(pace)
        self.on_end: Callable[[Record], None] = lambda _record: None

    def _env_in(self, world: World, target: Target) -> dict[str, str]:
        return {**world.env(os.environ), **target.env_in(world.root), MARK: self._mark}

    def apart(self, revision: str, label: str, *, turn: Turn = Turn.OTHER) -> Connection:
        """Give a process nobody has spoken to, in a world of its own; else like ``spawn``.

        Raises:
            LaunchError: it could not be started, or the run is over.
        """
        with self._lock:
            ahead = self._reserved.pop((revision, label), None)
        if ahead is not None and not ahead.cancel():
            connection = ahead.result()
            if not connection.gone:
                connection.started_ahead = connection.transcript.judged = True
                return connection
        return self._start_apart(revision, label, turn)

    def reserve(self, revision: str, label: str) -> None:
        """Begin to start what ``apart`` will give; it is ended unjudged if nobody asks for it."""

        def start() -> Connection:
            connection = self._start_apart(revision, label, Turn.LONG)
            connection.transcript.judged = False
            return connection

        with self._lock:
            self._reserved[revision, label] = self._undertakers.submit(start)

    def _start_apart(self, revision: str, label: str, turn: Turn) -> Connection:
        world = World(seed=self.target.seed, is_repository=self.world.is_repository)
        self.keep(world)
        return self.spawn(revision, label, world, turn=turn)

    def keep(self, world: World) -> None:
        """Take a world over: it is removed when the run is over.

        Raises:
            LaunchError: the run is over.
        """
        with self._lock:
            self._worlds.append(world)
            if self._closed:
                raise LaunchError("the run is over")

    def spawn(
        self,
        revision: str,
        label: str,
        world: World | None = None,
        target: Target | None = None,
        *,
        turn: Turn = Turn.OTHER,
    ) -> Connection:
        """Start a process nobody has spoken to, in the world of the run or in another.

        Waits while others are starting.

        Args:
            revision: which it is asked to speak.
            label: what people call it.
            world: where; by default the world of the run.
            target: the target as it is started there, where that differs.
            turn: whether others have to wait longer.

        Raises:
            LaunchError: it could not be started, or the run is over.
        """
        newcomer = self._doorway.enter(turn)
        try:
            connection = self._start(revision, label, world, target)
        except BaseException:
            newcomer.gave_up()
            raise
        newcomer.settled = lambda: connection.transcript.spoke or connection.gone
        return connection

    def spawn_at_once(self, revision: str, label: str) -> Connection:
        """Start a process in the world of the run, whoever else starts; else like ``spawn``."""
        return self._start(revision, label, None, None)

    def _start(
        self, revision: str, label: str, world: World | None, target: Target | None
    ) -> Connection:
        born = now()
        root = (world or self.world).root
        target = target or self.target
        transcript = Transcript(revision, clock=lambda: now() - born, label=label)
        with self._lock:
            if self._closed:
                raise LaunchError("the run is over")
        process = ServerProcess(
            target.command_in(root),
            transcript,
            env=self._env if world is None else self._env_in(world, target),
            cwd=target.cwd_in(root),
            born=born,
        )
        connection = Connection(process, transcript, self.pace, root=root)
        with self._lock:
            self.started += 1
            self._all.append(connection)
            late = self._closed
        if late:
            process.end(0.0, polite=False)
            raise LaunchError("the run is over")
        return connection

    def become_repository(self) -> bool:
        """Make the root of the run, and those of worlds to come, a git repository.

        Gives whether that is new: some servers start nowhere else.
        """
        if self.world.is_repository:
            return False
        self.world.become_repository()
        self.has_repositories = True
        return True

    def adopt(self, connections: Mapping[str, Connection], dossier: Dossier) -> None:
        """Take over the connections of recon; those of revisions nobody speaks are ended."""
        for revision, connection in connections.items():
            if revision in dossier.spoken:
                self._shared[revision, Share.ORDINARY] = connection
            else:
                connection.transcript.judged = not dossier.spoken
                self.retire(connection)

    def shared(self, revision: str, share: Share = Share.ORDINARY) -> Connection:
        """Give the live process of a revision, opened in the ordinary way.

        Args:
            revision: which.
            share: for whom; a willing one is opened by a client that declares everything, and
                ambient rules do not look at what is drawn: most of it is said while searching.

        Raises:
            LaunchError: a new one could not be started.
            Exhausted: too many died.
        """
        key = revision, share
        connection = self._shared.get(key)
        if connection is not None and not connection.gone:
            return connection
        if connection is not None:
            self.retire(connection)
            self._replaced[key] = self._replaced.get(key, 0) + 1
        if self._replaced.get(key, 0) > DEATHS:
            raise Exhausted(f"the server ended {DEATHS} times; we stopped starting it")
        if self._silent.get(key, 0) >= SILENCES:
            raise Exhausted(f"the server stopped answering {SILENCES} times; we stopped asking")
        label = f"{share} {self._replaced.get(key, 0) + 1}"
        connection = self.spawn(revision, label, turn=Turn.MANY)
        connection.transcript.judged = share is not Share.DRAWN
        if share is Share.WILLING:
            connection.use(willing_client(revision))
        connection.open()
        self._shared[key] = connection
        return connection

    def release(self, revision: str, share: Share = Share.ORDINARY) -> None:
        """Begin to end a shared process: nobody needs it any more."""
        connection = self._shared.pop((revision, share), None)
        if connection is not None:
            self.retire(connection)

    def replace(self, revision: str, share: Share = Share.ORDINARY) -> None:
        """Give up on a shared process that no longer answers."""
        key = revision, share
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

    def _end(self, connection: Connection, polite: bool) -> Ending:
        ending = connection.end(polite=polite and not self._closed)
        if connection.transcript.judged and not self._closed:
            self.on_end(self._record(connection))
        return ending

    def records(self, revision: str) -> list[Record]:
        """Give the transcripts of a revision that ambient rules look at."""
        with self._lock:
            return [
                self._record(connection)
                for connection in self._all
                if connection.revision == revision and connection.transcript.judged
            ]

    def _record(self, connection: Connection) -> Record:
        """Give what rules look at; of a process that has ended always the same."""
        process = connection.process
        known = self._records.get(id(connection))
        if known is None:
            known = Record(
                connection.transcript, self._dossier, process.ending, process.stderr_tail
            )
            if process.ending is not None:
                self._records[id(connection)] = known
        return known

    def knows(self, dossier: Dossier) -> None:
        """Take the dossier that records carry."""
        self._dossier = dossier

    @property
    def connections(self) -> list[Connection]:
        """Every connection of the run, in the order they were started."""
        with self._lock:
            return list(self._all)

    def settle(self) -> None:
        """End every process politely and wait until all have ended."""
        with self._lock:
            reserved = [*self._reserved.values()]
            self._reserved.clear()
        for ahead in reserved:
            if not ahead.cancel():
                ahead.exception()  # until it has started: then it is among the others
        for connection in self.connections:
            self.retire(connection)
        for future in list(self._endings.values()):
            future.result()

    def close(self) -> int:
        """End what still runs, by force; give how many strays had to be found by their mark."""
        with self._lock:
            self._closed = True
        for connection in self.connections:
            if connection.process.ending is None:
                connection.process.kill()
        self.settle()
        self._undertakers.shutdown()
        strays = sweep(self._mark)
        for connection in self.connections:
            connection.process.join(1.0)
        for world in self._worlds:
            world.remove()
        return strays
