"""An HTTP listener on the loopback interface that records which of its URLs are requested."""

import contextlib
import secrets
import socket
import threading
from typing import Final

from mcp_touchstone.transport.process import now

HOST: Final = "127.0.0.1"
LINE: Final = 4096
"""Maximum number of bytes read of a request."""

PATIENCE: Final = 1.0
"""Seconds a client has to send its request line."""

ANSWER: Final = b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class RequestListener:
    """Listens on a free port until it is closed, and answers every request with 404."""

    def __init__(self) -> None:
        """Start to listen."""
        self._socket = socket.create_server((HOST, 0))
        self._heard: dict[str, None] = {}
        self._changed = threading.Condition()
        self._marks = 0
        self._secret = secrets.token_hex(8)
        self._sockets = [self._socket]
        self._threads: list[threading.Thread] = []
        self._start(self._socket)

    @property
    def address(self) -> tuple[str, int]:
        """Address and port it listens on."""
        return HOST, int(self._socket.getsockname()[1])

    def also(self, listening: socket.socket) -> None:
        """Listen also on another socket, such as one in another network; ``close`` closes it."""
        self._sockets.append(listening)
        self._start(listening)

    def _start(self, listening: socket.socket) -> None:
        thread = threading.Thread(target=self._listen, args=(listening,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def url(self) -> str:
        """Return a new URL; each call returns another one."""
        self._marks += 1
        host, port = self.address
        return f"http://{host}:{port}/{self._secret}/{self._marks}"

    def heard(self, url: str, seconds: float = 0.0) -> bool:
        """Return whether a URL was requested; wait up to some seconds for the request."""
        path = url.removeprefix("http://").partition("/")[2]
        with self._changed:
            return self._changed.wait_for(lambda: path in self._heard, seconds)

    def close(self) -> None:
        """Stop listening."""
        for listening in self._sockets:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept
            listening.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _listen(self, listening: socket.socket) -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            with caller, contextlib.suppress(OSError):
                caller.settimeout(PATIENCE)
                self._remember(_first_line(caller))
                caller.sendall(ANSWER)

    def _remember(self, line: bytes) -> None:
        """Record the requested path; a path without the secret is not one of our URLs."""
        _, _, rest = line.decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].removeprefix("/")
        if path.startswith(self._secret):
            with self._changed:
                self._heard[path] = None
                self._changed.notify_all()


def _first_line(caller: socket.socket) -> bytes:
    """Return the first line of a request, or the part of it that arrives in time."""
    data = b""
    end = now() + PATIENCE
    while b"\n" not in data and len(data) < LINE and now() < end:
        more = caller.recv(LINE)
        if not more:
            break
        data += more
    return data.partition(b"\n")[0]
