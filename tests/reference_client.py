"""A raw-bytes client for the tests of the reference server: in this process or in another one.

It imports no module of the server: bytes in, JSON lines out, every wait bounded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Self

from reference_server.server import serve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reference_server.settings import Settings
    from reference_server.surface import Feature

CHECKOUT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0
"""Seconds; a limit for hangs, never a measure of speed."""

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
ALL = (*LEGACY, MODERN)

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}

Message = dict[str, Any]


def request(request_id: Any, method: str, params: Any = ...) -> Message:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is ... else {**message, "params": params}


def notification(method: str, params: Any = ...) -> Message:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is ... else {**message, "params": params}


def modern(request_id: Any, method: str, **params: Any) -> Message:
    return request(request_id, method, {"_meta": META, **params})


def modern_as(capabilities: Message, request_id: Any, method: str, **params: Any) -> Message:
    """Build a request that declares capabilities; further members of ``_meta`` are kept."""
    meta = {
        **META,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        **params.pop("_meta", {}),
    }
    return request(request_id, method, {"_meta": meta, **params})


def initialize(
    revision: str, request_id: Any = "init", capabilities: Message | None = None
) -> Message:
    params = {
        "protocolVersion": revision,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return request(request_id, "initialize", params)


def opening(revision: str, capabilities: Message | None = None) -> list[Message]:
    """Return the messages that open a session; none where requests are independent."""
    if revision == MODERN:
        return []
    return [
        initialize(revision, capabilities=capabilities),
        notification("notifications/initialized"),
    ]


def ask(revision: str, request_id: Any, method: str, **params: Any) -> Message:
    """Build a request as the revision wants it."""
    if revision == MODERN:
        return modern(request_id, method, **params)
    return request(request_id, method, params)


def alive(revision: str, request_id: Any) -> Message:
    return ask(revision, request_id, "server/discover" if revision == MODERN else "ping")


def result(question: Message, **members: Any) -> Message:
    """Answer a request of the server."""
    return {"jsonrpc": "2.0", "id": question["id"], "result": members}


def refusal(question: Message, code: int = -32601, message: str = "no") -> Message:
    """Answer a request of the server with an error."""
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": question["id"], "error": error}


def raw(*messages: Message | list[Any] | bytes) -> bytes:
    """Encode messages as lines; bytes are taken for lines already."""
    lines = (m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages)
    return b"".join(line + b"\n" for line in lines)


def data_of(message: Message) -> Message:
    """Return the ``data`` of an error without the id that our log has."""
    data = dict(message["error"]["data"])
    assert data.pop("request_id").startswith("req_")
    return data


def code_of(message: Message) -> int:
    code = message["error"]["code"]
    assert type(code) is int
    return code


class Client:
    """Talks to a server over two descriptors; closes them at the end."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._lines: Queue[bytes | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        pending = b""
        while chunk := os.read(self._read_fd, 65536):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._lines.put(line)
        if pending:
            self._lines.put(pending)
        self._lines.put(None)

    def send(self, *messages: Message | list[Any] | bytes) -> None:
        self.write(raw(*messages))

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._write_fd, data) :]

    def hear(self, patience: float = PATIENCE) -> Any:
        """Return the next message."""
        line = self._lines.get(timeout=patience)
        assert line is not None, "the server closed its output"
        return json.loads(line)

    def hears_nothing(self, seconds: float = 0.2) -> bool:
        try:
            self._lines.get(timeout=seconds)
        except Empty:
            return True
        return False

    def rest(self) -> list[Any]:
        """Return everything up to the end of the output."""
        messages = []
        deadline = time.monotonic() + 3 * PATIENCE
        while (line := self._lines.get(timeout=max(0, deadline - time.monotonic()))) is not None:
            messages.append(json.loads(line))
        return messages

    def open(self, revision: str, capabilities: Message | None = None) -> None:
        self.send(*opening(revision, capabilities))
        if revision != MODERN:
            assert self.hear()["result"]["protocolVersion"] == revision

    def end_input(self) -> None:
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1

    def leave(self) -> None:
        """Close both directions and release all descriptors."""
        self.end_input()
        self._reader.join(PATIENCE)
        if not self._reader.is_alive():
            os.close(self._read_fd)


class InProcess(Client):
    """A client of a server that runs in a thread of this process."""

    def __init__(
        self, settings: Settings | None = None, features: Iterable[Feature] | None = None
    ) -> None:
        server_reads, we_write = os.pipe()
        we_read, server_writes = os.pipe()
        self.code: int | None = None

        def run() -> None:
            self.code = serve(server_reads, server_writes, settings, features)
            os.close(server_writes)
            os.close(server_reads)

        self._server = threading.Thread(target=run, daemon=True)
        self._server.start()
        self._calls = 0
        super().__init__(we_read, we_write)

    def ask(self, method: str, **params: Any) -> Message:
        """Send a request of 2026-07-28; return its answer."""
        self._calls += 1
        self.send(modern(self._calls, method, **params))
        while True:
            heard: Message = self.hear()
            if heard.get("id") == self._calls:
                return heard

    def found(self, tool: str, **arguments: Any) -> Message:
        """Return the structured result or error of a tool."""
        body: Message = self.ask("tools/call", name=tool, arguments=arguments)["result"][
            "structuredContent"
        ]
        return body

    def call(self, tool: str, **arguments: Any) -> Message:
        """Return the structured result of a tool that must succeed."""
        result: Message = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert not result.get("isError"), result
        body: Message = result["structuredContent"]
        return body

    def fail(self, tool: str, **arguments: Any) -> Message:
        """Return the structured error of a tool that must fail."""
        result: Message = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert result["isError"] is True, result
        body: Message = result["structuredContent"]
        return body

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.leave()
        self._server.join(PATIENCE)
        assert not self._server.is_alive()


class Spawned(Client):
    """A client of the real program."""

    def __init__(self, *arguments: str, command: Iterable[str] = (), cwd: Path = CHECKOUT) -> None:
        command = [*(command or (sys.executable, "-m", "reference_server")), *arguments]
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        super().__init__(os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno()))
        self.process.stdin.close()
        self.process.stdout.close()

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE)

    def stderr(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end_input()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
            raise
        finally:
            self.leave()
            assert self.process.stderr is not None
            self.process.stderr.close()


def converse(
    *messages: Message | list[Any] | bytes,
    settings: Settings | None = None,
    features: Iterable[Feature] | None = None,
) -> list[Any]:
    """Send everything at once, end the input, and return all answers."""
    with InProcess(settings, features) as client:
        client.send(*messages)
        client.end_input()
        heard = client.rest()
    assert client.code == 0
    return heard


def after_opening(revision: str, *messages: Message | list[Any] | bytes) -> list[Any]:
    """Converse in an open session; the answer to ``initialize`` is left out.

    A last request checks that the server is still well, and is left out too.
    """
    heard = converse(*opening(revision), *messages, alive(revision, "still there?"))
    heard = [m for m in heard if not isinstance(m, dict) or m.get("id") != "init"]
    last = [m for m in heard if isinstance(m, dict) and m.get("id") == "still there?"]
    assert len(last) == 1
    assert "result" in last[0]
    return [m for m in heard if m is not last[0]]


def only(heard: list[Any]) -> Message:
    assert len(heard) == 1, heard
    assert isinstance(heard[0], dict)
    return heard[0]
