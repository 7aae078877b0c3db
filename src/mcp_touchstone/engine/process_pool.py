"""The processes of one run: how many start at a time, who judges them, and their ends.

``launcher`` starts one, ``lease`` lends those that have several users. Judges nothing.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.connection.connection import Connection, Pace
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.engine.launcher import Launcher
from mcp_touchstone.engine.lease import ATTACKS, Lender
from mcp_touchstone.engine.start_limiter import StartPriority
from mcp_touchstone.runtime.safe_path import Tree
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.orphans import sweep
from mcp_touchstone.transport.process import Ending, LaunchError

if TYPE_CHECKING:
    from mcp_touchstone.judging.ambient import Record

SPINNING: Final = 1.0
"""Seconds for which an idle process uses a whole core before the report says so."""

SPINS: Final = (
    "the server uses a whole core while idle: it did for a second after its last answer; from then "
    "on its time limits did not exclude the time without a core"
)

JUDGED: Final = 3
"""Processes of one conversation in each revision whose ends are judged. Those of shared processes
are judged too, but often a scenario ends them, or a request is open then."""

PATIENT: Final = 8
"""Greatest number of processes that end in the background, beside those of conversations."""

_Kept = TypeVar("_Kept", World, Tree)


class ProcessPool:
    """The processes of a run; it starts and ends them.

    Args:
        world: the folder its processes run in.
        launcher: that of the pool of which this one is a branch.
        stop: set when the run ends.
        isolated: whether each scenario has a process and a folder of its own.
        attacks: greatest number of processes of attacks, if no more attacks run at a time.

    Attributes:
        allowance: the limit of what all processes together may send.
        over: why the run was ended early, as a sentence; empty if it was not.
        lender: lends processes to conversations.
        is_branch: whether another pool has the launcher, too.
        judges_traffic: whether rules on all traffic are chosen: they judge how processes end.
        has_repositories: whether the roots of future fixture trees are git repositories; the world
            of the run does not change while a conversation uses it.
    """

    def __init__(
        self,
        target: Target,
        world: World,
        pace: Pace,
        launcher: Launcher | None = None,
        stop: threading.Event | None = None,
        *,
        isolated: bool = False,
        attacks: int = ATTACKS,
    ) -> None:
        self.target = target
        self.world = world
        self.pace = pace
        self.lender = Lender(self, isolated=isolated, attacks=attacks)
        self.judges_traffic = True
        self.has_repositories = world.is_repository
        self._launcher = launcher or Launcher(target, world, pace)
        self.is_branch = launcher is not None
        self._isolated = isolated
        self.allowance = self._launcher.allowance
        self._started = 0
        self._kept: list[World | Tree] = []
        self._branches: list[ProcessPool] = []
        self._all: list[Connection] = []
        self._unjudged: set[int] = set()
        self._endings: dict[int, Future[Ending]] = {}
        self._records: dict[int, Record] = {}
        self._judged: Counter[str] = Counter()
        self._undertakers = ThreadPoolExecutor(PATIENT, thread_name_prefix="undertaker")
        self._permits = threading.BoundedSemaphore(PATIENT)
        self._lock = threading.Lock()
        self._closed = False
        self.over = ""
        self.stop = stop or threading.Event()
        self._watch = ExitStack()
        if not self.is_branch:
            self._watch.enter_context(world.limit.ending(self._filled))

    def _filled(self) -> None:
        why = f"the server was ended: {self.world.limit.met} (--root-size); not all was judged"
        self.expire(why)

    @property
    def is_single(self) -> bool:
        """Whether only one process can run at a time: a start then ends all others."""
        return self._launcher.profile.is_single

    def apart(
        self,
        revision: str,
        label: str,
        *,
        turn: StartPriority = StartPriority.OTHER,
        judged: bool = True,
    ) -> Connection:
        """Return an unused process in a world of its own; otherwise like ``spawn``.

        Raises:
            LaunchError: it could not be started, or the run is over.
        """

        def start() -> Connection:
            world = World(**self.world.ground, is_repository=self.world.is_repository)
            return self._start(revision, label, self.keep(world), judged=judged)

        return self._launcher.limiter.admitted(turn, start)

    def keep(self, folder: _Kept) -> _Kept:
        """Take ownership of a world or a temporary folder: it is removed when the run ends.

        Raises:
            LaunchError: the run is over.
        """
        with self._lock:
            self._kept.append(folder)
            if self._closed:
                raise LaunchError(self.over or "the run is over")
        return folder

    def spawn(
        self,
        revision: str,
        label: str,
        world: World | None = None,
        target: Target | None = None,
        *,
        turn: StartPriority = StartPriority.OTHER,
        judged: bool = True,
    ) -> Connection:
        """Start an unused process, in the world of the run or in another.

        Waits while too many others are starting.

        Args:
            label: its name, for people.
            world: the folder to run in; by default the world of the run.
            target: the target to start, if it differs from that of the pool.
            turn: its priority among waiting starts.
            judged: whether rules on all traffic read it.

        Raises:
            LaunchError: it could not be started, or the run is over.
        """
        return self._launcher.limiter.admitted(
            turn, lambda: self._start(revision, label, world, target, judged=judged)
        )

    def spawn_at_once(self, revision: str, label: str, *, judged: bool = True) -> Connection:
        """Start a process in the world of the run without waiting; otherwise like ``spawn``."""
        return self._start(revision, label, judged=judged)

    def _start(
        self,
        revision: str,
        label: str,
        world: World | None = None,
        target: Target | None = None,
        *,
        judged: bool,
    ) -> Connection:
        with self._lock:
            if self._closed:
                raise LaunchError(self.over or "the run is over")
        if self.is_single:
            self._end_all()
        started = self._launcher.start(revision, label, world, target)
        connection = self._add(started, judged=judged)
        self._started += 1
        if self._closed:
            connection.channel.end(0.0, polite=False)
            raise LaunchError(self.over or "the run is over")
        return connection

    def beside(self, host: Connection, revision: str, label: str, *, judged: bool) -> Connection:
        """Return an unused session of the process of another connection, over HTTP."""
        return self._add(self._launcher.beside(host, revision, label), judged=judged)

    def _add(self, connection: Connection, *, judged: bool) -> Connection:
        with self._lock:
            self._all.append(connection)
            self._unjudged |= set() if judged else {id(connection)}
            late = self._closed
        if late:
            connection.channel.kill()
        return connection

    def move(self, parent: Path) -> None:
        """Make the world of the run again in another folder, while no process runs."""
        self.world.move(parent)
        self._launcher.settle()

    def branch(self) -> "ProcessPool":
        """Return a pool of the same server, whose processes this one does not judge.

        The caller closes it. It ends early with this pool, which counts its processes and searches
        for its strays.
        """
        pool = ProcessPool(
            self.target, self.world, self.pace, self._launcher, isolated=self._isolated
        )
        pool.judges_traffic = self.judges_traffic
        with self._lock:
            self._branches.append(pool)
            late = self._closed
        if late:
            pool.expire(self.over)
        return pool

    @property
    def started(self) -> int:
        """The number of processes that it and its branches started."""
        return self._started + sum(branch.started for branch in self._branches)

    def note(self, sentence: str) -> None:
        """Say something on the run in its report, once."""
        self._launcher.notes[sentence] = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the run for its report."""
        return tuple(self._launcher.notes)

    @property
    def handshakes(self) -> Sequence[str]:
        """The revisions with a handshake that the server speaks, oldest first."""
        return self._launcher.profile.legacy

    def adopt(self, connections: Mapping[str, Connection], profile: ServerProfile) -> None:
        """Take ownership of the connections of discovery; end those of unsupported revisions.

        One on a pipe that has not answered yet ends with the run: its answer may still come.
        """
        silent = {one for one, reply in profile.refused.items() if not reply.answered}
        for revision, connection in connections.items():
            on_pipe = connection.channel.transport is Transport.STDIO
            if revision in profile.spoken:
                self.lender.put(revision, connection)
            elif profile.spoken and on_pipe and revision in silent:
                self._unjudged.add(id(connection))
            elif profile.spoken:
                self.discard(connection)
            else:
                self.retire(connection)

    def retire(self, connection: Connection, *, polite: bool | None = None) -> None:
        """End a connection in the background; wait first if many are ending.

        Args:
            connection: the connection.
            polite: whether its end is judged; by default, if it owes us an answer that may come
                until its end, or is one of the first ``JUDGED``. All others end at once.
        """
        self._permits.acquire()
        with self._lock:
            if id(connection) in self._endings:
                self._permits.release()
                return
            self._endings[id(connection)] = self._undertakers.submit(
                self._end, connection, polite=polite
            )

    def _end(self, connection: Connection, *, polite: bool | None) -> Ending:
        try:
            revision, asked = connection.transcript.revision, connection.transcript.session.asked
            is_idle = all(one.answers for one in asked)  # or it was not asked anything
            owes = any(not (one.answers or one.cancelled) for one in asked)
            if asked and is_idle and not (self._closed or self.pace.spins):
                self._look(connection)
            is_judged = self.judges_traffic and self.is_judged(connection)
            if is_judged and polite is None:
                self._judged[revision] += is_idle
                polite = owes or (is_idle and self._judged[revision] <= JUDGED)
            has_session = self.target.transport is Transport.HTTP  # which is deleted, in any case
            polite = has_session or (is_judged and bool(polite))
            return connection.end(polite=polite and not self._closed)
        finally:
            self._permits.release()

    def _look(self, connection: Connection) -> None:
        """Note if an idle process uses a whole core."""
        is_ours = self.target.started and not connection.channel.is_guest
        if is_ours and connection.process.spins(SPINNING):
            self.pace.spins = True
            self._launcher.notes[SPINS] = None

    def discard(self, connection: Connection) -> None:
        """End a connection in the background; nothing on it is judged."""
        self._unjudged.add(id(connection))
        self.retire(connection)

    def is_judged(self, connection: Connection) -> bool:
        """Return whether rules on all traffic read a connection."""
        return not (id(connection) in self._unjudged or connection.transcript.limit)

    def records(self, revision: str) -> "list[Record]":
        """Return the transcripts of a revision that ambient rules check."""
        from mcp_touchstone.judging.ambient import Record  # noqa: PLC0415  (after the start)

        found = []
        profile = self._launcher.profile
        for connection in self.connections:
            ended, transcript = connection.channel.ending, connection.transcript
            if connection.transcript.revision == revision and self.is_judged(connection):
                tail = connection.channel.stderr_tail
                known = self._records.get(id(connection))
                record = known or Record(transcript, profile, ended, tail)
                if ended is not None:
                    self._records[id(connection)] = record
                found.append(record)
        return found

    def knows(self, profile: ServerProfile) -> None:
        """Set the profile that records contain."""
        self._launcher.profile = profile

    @property
    def connections(self) -> list[Connection]:
        """Every connection of the run, in the order of their starts."""
        with self._lock:
            return list(self._all)

    def settle(self) -> None:
        """End every process politely and wait until all have ended."""
        self._end_all()
        self.lender.clear()

    def _end_all(self) -> None:
        for group in self.lender.in_order(self.connections):
            for connection, is_shared in group:
                self.retire(connection, polite=is_shared or None)
            for future in list(self._endings.values()):
                future.result()

    @contextmanager
    def killed_on_error(self) -> Iterator[None]:
        """Kill every process if the block fails or is interrupted.

        Threads that wait for a server would otherwise continue to wait, and the run for them.
        """
        try:
            yield
        except BaseException:
            self.stop.set()
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

    def expire(self, why: str) -> None:
        """End the run early: no process starts any more, and no running process is judged.

        Args:
            why: the reason, as a sentence for the report; empty if the run has ended anyway.
        """
        with self._lock:
            self._closed = True
            self.over = self.over or why
        self.stop.set()
        for connection in self.connections:
            if connection.channel.ending is None:
                self._unjudged.add(id(connection))
                connection.channel.kill()
        for branch in list(self._branches):
            branch.expire(why)

    def check(self) -> None:
        """Check that the run was not ended early.

        Raises:
            LaunchError: it was; with the reason.
        """
        if self.over:
            raise LaunchError(self.over)

    def close(self) -> int:
        """Kill the running processes; return the number of strays found by their mark."""
        self._watch.close()
        with self._lock:
            self._closed = True
        for connection in self.connections:
            if connection.channel.ending is None:
                connection.channel.kill()
        self.settle()
        self._undertakers.shutdown()
        strays = 0 if self.is_branch else sweep(self._launcher.mark)
        for connection in self.connections:
            connection.channel.join(1.0)
        for folder in self._kept:
            folder.remove()
        return strays
