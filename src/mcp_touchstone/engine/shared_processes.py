"""The process of each revision that many conversations share, one after the other.

Start-up dominates the cost of judging, so conversations of one revision share a live process.
A process that exited or no longer answers is replaced.
"""

from collections.abc import Collection
from typing import Final, Protocol

from mcp_touchstone.catalog.scenario import Share
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import willing as willing_client
from mcp_touchstone.engine.start_limiter import StartPriority
from mcp_touchstone.transport.process import LaunchError

DEATHS: Final = 12
"""Shared processes of one revision that may exit before the run gives up."""

SILENCES: Final = 3
"""Shared processes of one revision that may stop answering; each costs a full deadline."""

_Key = tuple[str, Share]
"""A revision, and the kind of sharing."""


class Exhausted(LaunchError):  # noqa: N818  (an outcome of the server's, not a fault of ours)
    """The server exited too often to continue."""


class Pool(Protocol):
    """Starts and ends the processes; see ``ProcessPool``."""

    def spawn(self, revision: str, label: str, *, turn: StartPriority, judged: bool) -> Connection:
        """Start an unused process."""

    def retire(self, connection: Connection, *, polite: bool | None = None) -> None:
        """End a connection in the background."""


class SharedProcesses:
    """The shared processes of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._live: dict[_Key, Connection] = {}
        self._replaced: dict[_Key, int] = {}
        self._silent: dict[_Key, int] = {}
        self._refusals: dict[_Key, str] = {}

    def put(self, revision: str, connection: Connection, share: Share = Share.ORDINARY) -> bool:
        """Share a process that is open already, unless there is one; return whether."""
        _serve(connection, share)
        return self._live.setdefault((revision, share), connection) is connection

    def has(self, revision: str, share: Share) -> bool:
        """Return whether something has used the process that its next user gets."""
        connection = self._live.get((revision, share))
        return connection is not None and not connection.gone

    def holds(self, connection: Connection) -> bool:
        """Return whether it is one of them."""
        return connection in list(self._live.values())

    def keep(self, needed: Collection[_Key]) -> None:
        """Begin to end the processes that nothing needs any more."""
        for key in [key for key in self._live if key not in needed]:
            self.release(*key)

    def get(
        self,
        revision: str,
        share: Share = Share.ORDINARY,
        turn: StartPriority = StartPriority.MANY,
    ) -> Connection:
        """Return the live process of a revision, after its opening.

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
            if connection.channel.ending is None:  # otherwise we ended it
                self._replaced[key] = self._replaced.get(key, 0) + 1
            self._pool.retire(connection)
        if self._replaced.get(key, 0) > DEATHS:
            what = "session" if connection and connection.channel.session_ended else "server"
            raise Exhausted(f"the {what} ended {DEATHS} times; we stopped starting it")
        if self._silent.get(key, 0) >= SILENCES:
            refusal = self._refusals.get(key)
            what = f"answered everything by {refusal}" if refusal else "stopped answering"
            raise Exhausted(f"the server {what} {SILENCES} times; we stopped asking")
        label = f"{share} {self._replaced.get(key, 0) + 1}"
        turn = StartPriority.FIRST if share is Share.DRAWN else turn
        judged = is_judged(share)
        started = opened(self._pool.spawn(revision, label, turn=turn, judged=judged), share)
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
            self._replaced[key] = self._replaced.get(key, 0) + 1
            self._silent[key] = self._silent.get(key, 0) + 1
            self._pool.retire(connection, polite=False)

    def clear(self) -> None:
        """Forget all: they have ended."""
        self._live.clear()


def is_judged(share: Share | None) -> bool:
    """Return whether rules on all traffic read the process of some users."""
    return share is not Share.DRAWN


def opened(connection: Connection, share: Share) -> Connection:
    """Open an unused process for some users; return it."""
    _serve(connection, share)
    connection.open()
    return connection


def _serve(connection: Connection, share: Share) -> None:
    if share is Share.WILLING:
        connection.answers.use(willing_client(connection.transcript.revision))
