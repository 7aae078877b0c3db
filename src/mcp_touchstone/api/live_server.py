"""Keep a server running for a user's own tests, and restart it when it has ended."""

from typing import Final, Self

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.connection import Connection, Pace
from mcp_touchstone.discovery.recon import answers_discover
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import LaunchError

WORDS: Final = 3
"""Number of lines of stderr in the message of an error at startup."""


class Live:
    """A running target with one process at a time; use it as a context manager.

    Without a given revision, the newest revision with a handshake that the server supports is used.
    If it supports none, the stateless revision is used.
    """

    def __init__(
        self, target: Target, revision: str | None = None, *, isolated: bool = True
    ) -> None:
        self._world = World(isolated=isolated)
        self._pool = ProcessPool(target, self._world, Pace(target.timeout))
        self._revision = revision
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Return an open connection; start a new process if the last one has ended.

        Raises:
            LaunchError: the server does not start, or does not answer the opening request.
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
            connection.transcript.agree(named)
            connection.notify("notifications/initialized")
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
        """Return an error message with the reason and the last lines of stderr."""
        lines = [line for line in connection.channel.stderr().splitlines() if line.strip()]
        last = f"; its stderr ends: {' | '.join(lines[-WORDS:])}" if lines else ""
        return safe(f"{self._pool.target.shown}: {why}{last}")

    def close(self) -> None:
        """Stop the server and remove its temporary folder."""
        self._pool.settle()
        self._pool.close()
        self._world.remove()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.close()
