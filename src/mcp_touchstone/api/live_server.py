"""A server kept running for somebody's own tests: started, opened, replaced when it died."""

from types import TracebackType
from typing import Final, Self

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.client.connection import Connection, Pace
from mcp_touchstone.discovery.recon import answers_discover
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import LaunchError

WORDS: Final = 3
"""Lines of stderr that are shown where a server does not open."""


class Live:
    """One target, one process at a time; use as a context manager.

    The newest handshake revision is spoken where the server has one, else the stateless one.
    """

    def __init__(
        self, target: Target, revision: str | None = None, *, isolated: bool = True
    ) -> None:
        self._world = World(isolated=isolated)
        self._pool = ProcessPool(target, self._world, Pace(target.startup))
        self._revision = revision
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Give an open connection; a new process when the last one has ended.

        Raises:
            LaunchError: the server does not start, or does not answer its opening.
        """
        if self._connection is None or self._connection.gone:
            self._connection = self._open()
        return self._connection

    def _open(self) -> Connection:
        if self._revision is not None:
            return self._opened(self._revision, self._revision)
        connection = self._pool.spawn(rev.LATEST_LEGACY, "session")
        reply = connection.initialize()
        named = (reply.result or {}).get("protocolVersion")
        if isinstance(named, str):
            connection.revision = connection.transcript.revision = named
            connection.initialized()
            return connection
        if reply.is_error:
            return self._opened(rev.LATEST_MODERN, "session")
        raise LaunchError(self._told(connection, f"initialize got no result: {reply}"))

    def _opened(self, revision: str, label: str) -> Connection:
        connection = self._pool.spawn(revision, label)
        reply = connection.open()
        if reply.result is None or (connection.modern and not answers_discover(reply)):
            raise LaunchError(
                self._told(connection, f"the server does not speak {revision}: {reply}")
            )
        return connection

    def _told(self, connection: Connection, why: str) -> str:
        """Say what the server did instead of opening, with the end of its stderr."""
        lines = [line for line in connection.process.stderr().splitlines() if line.strip()]
        last = f"; its stderr ends: {' | '.join(lines[-WORDS:])}" if lines else ""
        return f"{self._pool.target.shown}: {why}{last}"

    def close(self) -> None:
        """End the server and remove its folder."""
        self._pool.settle()
        self._pool.close()
        self._world.remove()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server."""
        self.close()
