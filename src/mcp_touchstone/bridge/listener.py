"""The HTTP server, with its sessions and the stateless process."""

import signal
import socket
import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from mcp_touchstone.bridge.child import Backend
from mcp_touchstone.bridge.endpoint import PATH, ClientConnection
from mcp_touchstone.bridge.sessions import Sessions
from mcp_touchstone.bridge.stateless import Stateless
from mcp_touchstone.http_server.responses import Responses
from mcp_touchstone.http_server.server import HOST, BoundedServer

if TYPE_CHECKING:
    from mcp_touchstone.bridge.access import Access  # joserfc is an extra


class Listener(BoundedServer):
    """HTTP server in front of a stdio server; use it as a context manager.

    Args:
        most: greatest number of simultaneous sessions.
        startup: seconds the server may take until its first answer.
        names: host names of clients beside those of loopback, in lower case.
        token: bearer token that each request must have; empty for none.
        access: checks the access tokens of requests; None if none is needed.
        listening: the socket to use in place of a new one.

    Raises:
        OSError: the address or the port cannot be used.
    """

    handler: type[Responses] = ClientConnection
    path = PATH

    def __init__(
        self,
        launch: Backend,
        *,
        port: int = 0,
        most: int,
        startup: float,
        host: str = HOST,
        names: AbstractSet[str] = frozenset(),
        token: str = "",
        access: "Access | None" = None,
        listening: socket.socket | None = None,
    ) -> None:
        super().__init__(self.handler, port=port, host=host, listening=listening)
        self.names = frozenset(names)
        self.token = token
        self.access = access
        self.sessions = Sessions(launch, most)
        self.stateless = Stateless(launch, startup)
        self.startup = startup
        self._launch = launch

    def service_actions(self) -> None:
        """End the sessions that were idle too long; called a few times a second."""
        self.sessions.expire()

    def stop(self) -> None:
        """Accept no more requests, end every process, and wait until all have ended."""
        super().stop()
        other = threading.Thread(target=self.stateless.close)
        other.start()
        self.sessions.close()
        other.join()
        self._launch.sweep()


def until_signal(begin: Callable[[], object]) -> int:
    """Call ``begin`` and wait for SIGTERM or SIGINT; return the exit status."""
    received: list[int] = []
    over = threading.Event()

    def take(number: int, _frame: object) -> None:
        received.append(number)
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, take)
    begin()
    while not over.wait(0.2):  # on Windows a wait without an end would keep Ctrl-C waiting too
        pass
    return 0 if received[0] == signal.SIGTERM else 130
