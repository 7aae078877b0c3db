"""An HTTP server that answers each connection with prepared bytes; it may also misbehave."""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcp_touchstone.wire.framing import encode

Answer = Callable[[socket.socket, bytes], object]
"""(connection, request) -> writes the answer; the connection is closed after it."""


TLS_HELLO = b"\x16\x03"


def response(
    status: str = "200 OK", kind: str = "application/json", body: bytes = b"", *more: str
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def fixed(data: bytes) -> Answer:
    return lambda connection, _request: connection.sendall(data)


def trickle(data: bytes, pause: float) -> Answer:
    def write(connection: socket.socket, _request: bytes) -> None:
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
            time.sleep(pause)

    return write


def endless(head: bytes, piece: bytes) -> Answer:
    def write(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return write


def silent(connection: socket.socket, _request: bytes) -> None:
    with contextlib.suppress(OSError):
        connection.recv(1)


def message_of(request: bytes) -> dict[str, object]:
    body = request.partition(b"\r\n\r\n")[2]
    found: object = {}
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(body)
    return found if isinstance(found, dict) else {}


def mcp(
    version: str = "2025-11-25",
    session: str = "",
    written: Callable[[bytes], bytes] | None = None,
) -> Answer:
    """Serve a session: initialize, ping, and 202 for notifications.

    Args:
        written: returns the response with a message; by default a body.
    """

    def write(connection: socket.socket, request: bytes) -> None:
        asked = message_of(request)
        if "id" not in asked:
            accepted = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
            verb = request.split(b" ", 1)[0]
            connection.sendall(accepted if verb == b"POST" else response("405 Method Not Allowed"))
            return
        result: dict[str, object] = {}
        if asked.get("method") == "initialize":
            info = {"name": "canned", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
        body = encode({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        more = (f"Mcp-Session-Id: {session}",) if session else ()
        as_body = response("200 OK", "application/json", body, *more)
        connection.sendall(written(body) if written else as_body)

    return write


class Canned:
    """The server; ``requests`` has what it read."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if context else "http"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}/mcp"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            connection.settimeout(20.0)
            self._answer_one(connection)
        connection.close()

    def _answer_one(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            data = connection.recv(65536)
            if not data:
                return
            request += data
            if data.startswith(TLS_HELLO):
                connection.sendall(response("400 Bad Request", "text/plain"))
                return
        head, _, body = request.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
                while len(body) < length:
                    body += connection.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        self.answer(connection, self.requests[-1])

    def close(self) -> None:
        with contextlib.suppress(OSError):  # wakes the thread; it would accept for the next socket
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


@contextmanager
def serving(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[Canned]:
    server = Canned(answer, context)
    try:
        yield server
    finally:
        server.close()
