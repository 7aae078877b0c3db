"""The HTTP server, with its sessions and the stateless process."""

import signal
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.bridge.child import Backend, log
from mcp_touchstone.bridge.endpoint import PATH, ClientConnection
from mcp_touchstone.bridge.reading import Waiting
from mcp_touchstone.bridge.responses import Responses
from mcp_touchstone.bridge.sessions import Sessions
from mcp_touchstone.bridge.stateless import Stateless

if TYPE_CHECKING:
    from mcp_touchstone.bridge.access import Access  # joserfc is an extra

HOST: Final = "127.0.0.1"

CONNECTIONS: Final = 256
"""Connections at a time; each holds a thread."""

YIELDING: Final = 5.0
"""Seconds until a connection that was closed for a new one has ended its thread."""


class Loopback(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """HTTP server with a thread for each connection; use it as a context manager.

    Args:
        listening: the socket to use in place of a new one.

    Attributes:
        path: the path of the MCP endpoint.
        waiting: the connections that wait for their clients.

    Raises:
        OSError: the address or the port cannot be used.
    """

    path = PATH
    allow_reuse_address = sys.platform != "win32"  # on Windows it would share a port that is in use
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        handler: type[Responses],
        *,
        port: int = 0,
        host: str = HOST,
        listening: socket.socket | None = None,
    ) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), handler, bind_and_activate=listening is None)
        if listening is not None:
            self.socket.close()
            self.socket = listening
            self.server_address = listening.getsockname()
        self.waiting = Waiting()
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)

    @property
    def url(self) -> str:
        """The URL for clients."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{self.path}"

    def start(self) -> str:
        """Serve in a new thread; return the URL."""
        self._thread.start()
        return self.url

    def stop(self) -> None:
        """Accept no more requests."""
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, in place of a slow one if there are too many."""
        free = self._free.acquire(blocking=False)
        if not free and not (self.waiting.drop() and self._free.acquire(timeout=YIELDING)):
            self.shutdown_request(request)
            return
        self.waiting.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()
            self.waiting.remove(request)  # last: until then it can be waited for

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  (base class)
        """Print the error of a connection, on one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            log(f"a defect of the bridge: {error!r}")


class Listener(Loopback):
    """HTTP server in front of a stdio server; use it as a context manager.

    Args:
        most: greatest number of simultaneous sessions.
        startup: seconds the server may take until its first answer.
        names: host names of clients beside those of loopback, in lower case.
        token: bearer token that each request must have; empty for none.
        access: checks the access tokens of requests; None if none is needed.

    Raises:
        OSError: the address or the port cannot be used.
    """

    handler: type[Responses] = ClientConnection

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
    ) -> None:
        super().__init__(self.handler, port=port, host=host)
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
