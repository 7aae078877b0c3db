"""The server accepts only connections that are there."""

import contextlib
import socket
import socketserver
import threading

from mcp_touchstone.http_server.server import BoundedServer

LONG = 20.0


class Echo(socketserver.BaseRequestHandler):
    """Waits for a byte, and sends it back."""

    def handle(self) -> None:
        self.request.sendall(self.request.recv(1))


def test_accepting_a_connection_that_has_gone_does_not_wait() -> None:
    server = BoundedServer(Echo)
    accepting = threading.Thread(target=server._handle_request_noblock, daemon=True)  # type: ignore[attr-defined]
    accepting.start()
    accepting.join(LONG)
    waits = accepting.is_alive()
    server.server_close()

    assert not waits


def test_handler_waits_for_its_client() -> None:
    with BoundedServer(Echo) as server, contextlib.closing(socket.socket()) as client:
        server.start()
        client.settimeout(LONG)
        client.connect(server.server_address)
        threading.Timer(0.2, client.sendall, [b"x"]).start()

        assert client.recv(1) == b"x"
