"""One process that serves the sessions of several scenarios over HTTP. Judges nothing.

Over HTTP, a scenario that needs an unused process usually needs an unused session only, and a
session costs much less than a process. A server of which a process serves two sessions at a time
gets the sessions of all such scenarios on one process. A scenario that finds something there is
held again on an unused process, and only that counts: ``worker``.
"""

import threading
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from mcp_touchstone.transport.process import LaunchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_touchstone.connection.connection import Connection


LABEL: Final = "sessions"
"""The name of the process, for people."""


class Place(IntEnum):
    """The order in which connections end: a session ends before its process."""

    OTHER = 0
    TRIED = 1
    """One of the two sessions with which the process is tried."""
    HOST = 2
    """That of the process itself."""


class SessionHost:
    """The process; it is started and tried on first use.

    Args:
        start: starts an unused process, in any handshake revision that the server speaks; rules
            on all traffic do not read it.
        beside: (connection, revision, label, judged) -> a connection to the same process.
    """

    def __init__(
        self,
        start: "Callable[[], Connection]",
        beside: "Callable[[Connection, str, str, bool], Connection]",
    ) -> None:
        self._start = start
        self._beside = beside
        self._host: Connection | None = None
        self._tried_with: list[Connection] = []
        self._serves = False
        self._tried = False
        self._lock = threading.Lock()

    def place(self, connection: "Connection") -> Place:
        """Return the place of a connection in the order of ends."""
        if connection is self._host:
            return Place.HOST
        return Place.TRIED if connection in self._tried_with else Place.OTHER

    def open(self, revision: str, label: str, *, judged: bool) -> "Connection | None":
        """Return an unused session; None if the server serves one at a time, or has exited.

        Args:
            label: its name, for people.
        """
        with self._lock:
            if not self._tried:
                self._tried = True
                self._serves = self._try(revision)
        host = self._host
        if host is None or host.gone or not self._serves:
            return None
        return self._beside(host, revision, label, judged)

    def _try(self, revision: str) -> bool:
        """Open two sessions on one process; return whether it serves both."""
        try:
            self._host = first = self._start()
        except LaunchError:
            return False
        self._tried_with.append(first)
        if first.open().result is None:
            return False
        second = self._beside(first, revision, LABEL, False)
        self._tried_with.append(second)
        if second.open().result is None or not _are_apart(first, second):
            return False
        return all(one.probe(required=False).result is not None for one in (first, second))


def _are_apart(first: "Connection", second: "Connection") -> bool:
    """Return whether two sessions have different ids, or none: then no request needs one."""
    from mcp_touchstone.transport.http_channel import HttpChannel  # noqa: PLC0415  (as in the pool)

    channels = (first.channel, second.channel)
    ids = [one.session.id for one in channels if isinstance(one, HttpChannel)]
    return ids == [None, None] or len({*ids}) == len(ids)
