"""Our server over HTTP behind a gateway: it refuses calls, and starts again after its end."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from mcp_touchstone.bridge.child import Hear
from mcp_touchstone.bridge.sessions import Sessions
from mcp_touchstone.bridge.stateless import Stateless
from mcp_touchstone.parts.part import listening
from mcp_touchstone.parts.upstream import REFUSALS, refusal_of
from mcp_touchstone.tap.http_stage import SESSIONS, PartConnection, PartServer, PlayedPart
from mcp_touchstone.transport.process import left

DOWN: Final = 0.5
"""Seconds between the end of our server and its next start."""


class UpstreamConnection(PartConnection):
    """One connection of the gateway."""

    def _post(self, line: bytes, messages: list[dict[str, Any]]) -> None:
        if status := refusal_of(messages[0]):
            self.answer(status, extra=REFUSALS[status])
        else:
            super()._post(line, messages)


class UpstreamServer(PartServer):
    """Our server; when its part ends by itself, it breaks all connections and starts again."""

    handler = UpstreamConnection
    lost_port = False
    """Whether another program took the port meanwhile, so that it did not start again."""

    def __init__(self, *about: Any) -> None:
        self._connections: set[socket.socket] = set()
        self._over, self._starting = False, threading.Lock()
        super().__init__(*about)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take note of a connection, and serve it."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection, and end it."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def begin(self, hear: Hear, gone: Callable[[str], object]) -> PlayedPart:
        """Begin to play."""

        def ended(why: str) -> None:
            if why != left(0):
                self._restart()
            gone(why)

        return super().begin(hear, ended)

    def _restart(self) -> None:
        """End all connections and sessions, and listen on the port again."""
        with self._starting:
            if self._over:
                return
            self.shutdown()
            self.server_close()
            for one in [*self._connections]:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            threading.Event().wait(DOWN)
            for before in (self.sessions, self.stateless):  # it waits for this thread too
                threading.Thread(target=before.close, daemon=True).start()
            self.sessions = Sessions(self, SESSIONS)
            self.stateless = Stateless(self, self.startup)
            try:
                self.socket = listening(self.server_address[1])
            except OSError:
                self.lost_port = True
                return
            self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Accept no more requests."""
        with self._starting:
            self._over = True
        super().stop()
