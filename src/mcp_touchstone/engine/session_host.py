"""One process that serves the sessions of several scenarios over HTTP. Judges nothing.

Over HTTP, a scenario that needs an unused process usually needs an unused session only, and a
session costs much less than a process. A server of which a process serves two sessions at a time
gets the sessions of all such scenarios on one process. A scenario that finds something there is
held again on an unused process, and only that counts: ``worker``. Findings on a shared process are
repeated there too: ``repeat``.
"""

import threading
from typing import TYPE_CHECKING, Final

from mcp_touchstone.transport.http_channel import HttpChannel
from mcp_touchstone.transport.process import LaunchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_touchstone.client.connection import Connection


LABEL: Final = "sessions"
"""The name of the process, for people."""


class SessionHost:
    """The process; it is tried on first use. Discovery leaves one, or it is started then.

    Args:
        start: starts an unused process, in any handshake revision that the server speaks.
        beside: (connection, revision, label) -> a connection to the same process.
    """

    def __init__(
        self,
        start: "Callable[[], Connection]",
        beside: "Callable[[Connection, str, str], Connection]",
    ) -> None:
        self._start = start
        self._beside = beside
        self._host: Connection | None = None
        self._left: Connection | None = None
        self._serves = False
        self._tried = False
        self._lock = threading.Lock()

    def take(self, connection: "Connection") -> bool:
        """Take a process of discovery, which refused its revision; return False if not needed."""
        if self._left is not None or connection.gone:
            return False
        self._left = connection
        return True

    def is_host(self, connection: "Connection") -> bool:
        """Return whether a connection ends the process of the sessions."""
        return connection is self._host or connection is self._left

    def open(
        self,
        revision: str,
        label: str,
        beside: "Callable[[Connection, str, str], Connection] | None" = None,
    ) -> "Connection | None":
        """Return an unused session; None if the server serves one at a time, or has exited.

        Args:
            revision: the revision to request.
            label: its name, for people.
            beside: as for the class, for a pool that is a branch.
        """
        if not self.serves(revision) or self._host is None or self._host.gone:
            return None
        return (beside or self._beside)(self._host, revision, label)

    def serves(self, revision: str) -> bool:
        """Return whether a process of the server serves several sessions at a time."""
        with self._lock:
            if not self._tried:
                self._tried = True
                self._serves = self._try(revision)
            return self._serves

    def _try(self, revision: str) -> bool:
        """Open two sessions on one process; return whether it serves both."""
        if self._left is not None and not self._left.gone:
            self._host = self._left
            first = self._beside(self._left, revision, LABEL)
        else:
            try:
                self._host = first = self._start()
            except LaunchError:
                return False
        first.transcript.judged = False
        if first.open().result is None:
            return False
        second = self._beside(first, revision, LABEL)
        second.transcript.judged = False
        if second.open().result is None or not _are_apart(first, second):
            return False
        return all(one.probe(required=False).result is not None for one in (first, second))


def _are_apart(first: "Connection", second: "Connection") -> bool:
    """Return whether two sessions have different ids, or none: then no request needs one."""
    channels = (first.channel, second.channel)
    ids = [one.session.id for one in channels if isinstance(one, HttpChannel)]
    return ids == [None, None] or len({*ids}) == len(ids)
