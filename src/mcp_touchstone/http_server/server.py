"""The HTTP server: its socket, its threads, the limit of its connections, and its end."""

import socket
import socketserver
import sys
import threading
from typing import Any, Final

from mcp_touchstone.http_server.reading import Waiting
from mcp_touchstone.runtime.console import say

HOST: Final = "127.0.0.1"

CONNECTIONS: Final = 256
"""Connections at a time; each holds a thread."""

YIELDING: Final = 5.0
"""Seconds until a connection that was closed for a new one has ended its thread."""


class BoundedServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """HTTP server with a thread for each connection; use it as a context manager.

    Args:
        listening: the socket to use in place of a new one.

    Attributes:
        path: the path of its URL.
        waiting: the connections that wait for their clients.

    Raises:
        OSError: the address or the port cannot be used.
    """

    path = ""
    allow_reuse_address = sys.platform != "win32"  # on Windows it would share a port that is in use
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        handler: type[socketserver.BaseRequestHandler],
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
        self.socket.setblocking(False)
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

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; never wait for one that was announced and has gone."""
        request, address = super().get_request()
        request.setblocking(True)
        return request, address

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
            say(f"mcp-touchstone: a defect of our HTTP server: {error!r}", error=True, flush=True)
