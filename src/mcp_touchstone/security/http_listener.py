"""A listener that records which of its URLs are requested, and at which of its addresses."""

import contextlib
import re
import secrets
import socket
import threading
from dataclasses import dataclass
from socketserver import BaseRequestHandler
from typing import Final

from mcp_touchstone.http_server.server import HOST, BoundedServer
from mcp_touchstone.transport.process import now

LINE: Final = 4096
"""Maximum number of bytes read of a request."""

PATIENCE: Final = 1.0
"""Seconds a client has to send its request line."""

ANSWER: Final = b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

MAPPED: Final = "::ffff:"
"""Prefix of an IPv4 address at a socket of IPv6."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request.

    Attributes:
        address: the address that it arrived at.
        line: its first line.
    """

    address: str
    line: str


class RequestListener:
    """Listens on a free port until it is closed.

    Each URL contains a mark. A request is identified by its mark alone, at any address. Every
    request is answered with 404, unless its mark has another answer.
    """

    def __init__(self) -> None:
        self._heard: dict[str, list[Arrival]] = {}
        self._changed = threading.Condition()
        self._marks = 0
        self._secret = secrets.token_hex(8)
        self._known = re.compile(rf"{self._secret}-\d+")
        self._answers: dict[str, bytes] = {}
        self._servers: list[_Server] = []
        self.also(socket.create_server((HOST, 0)))

    @property
    def address(self) -> tuple[str, int]:
        """Address and port it listens on."""
        return HOST, int(self._servers[0].server_address[1])

    def also(self, listening: socket.socket, greeting: bytes = b"") -> None:
        """Listen also on another socket, such as one in another network; ``close`` closes it.

        Args:
            greeting: sent to each client before it sends anything, as some protocols require.
        """
        server = _Server(self, listening, greeting)
        self._servers.append(server)
        server.start()

    def mark(self, answer: bytes = ANSWER) -> str:
        """Return a new mark; a request with it gets this answer."""
        self._marks += 1
        mark = f"{self._secret}-{self._marks}"
        self._answers[mark] = answer
        return mark

    def url(self) -> str:
        """Return a new URL; each call returns another one."""
        host, port = self.address
        return f"http://{host}:{port}/{self.mark()}"

    def heard(self, text: str, seconds: float = 0.0) -> list[Arrival]:
        """Return the requests with the mark in a text; wait some seconds for the first."""
        found = self._known.search(text)
        mark = found[0] if found else ""
        with self._changed:
            self._changed.wait_for(lambda: mark in self._heard, seconds)
            return list(self._heard.get(mark, ()))

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.stop()

    def answer(self, data: bytes, address: str) -> bytes:
        """Record a request with a mark, and return its answer.

        A mark may also be in the name of the host. The answer of the mark is returned only if the
        mark is in the request line.
        """
        text = data.decode("latin-1")
        line = text.partition("\n")[0].strip()
        found = self._known.search(line) or self._known.search(text)
        if found is None:
            return ANSWER
        with self._changed:
            arrivals = self._heard.setdefault(found[0], [])
            arrivals.append(Arrival(address.removeprefix(MAPPED), line))
            self._changed.notify_all()
        return self._answers.get(found[0], ANSWER) if found[0] in line else ANSWER


class _Server(BoundedServer):
    def __init__(self, heard: RequestListener, listening: socket.socket, greeting: bytes) -> None:
        super().__init__(_Caller, listening=listening)
        self.heard, self.greeting = heard, greeting


class _Caller(BaseRequestHandler):
    """One connection, of any protocol."""

    server: _Server

    def handle(self) -> None:
        """Greet the client, and answer its request."""
        with contextlib.suppress(OSError):
            self.request.settimeout(PATIENCE)
            self.request.sendall(self.server.greeting)
            address = self.request.getsockname()[0]
            self.request.sendall(self.server.heard.answer(_request(self.request), address))


def _request(caller: socket.socket) -> bytes:
    """Return a request without its body, or the part of it that arrives in time.

    The fields of an HTTP request are read too: unread bytes would reset the connection, and the
    client would lose the answer.
    """
    data = b""
    end = now() + PATIENCE
    while len(data) < LINE and now() < end:
        line, found, _ = data.partition(b"\n")
        if found and (b" HTTP/1" not in line or b"\r\n\r\n" in data):
            break
        more = caller.recv(LINE)
        if not more:
            break
        data += more
    return data
