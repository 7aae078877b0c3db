"""Servers over HTTP without one limit; and good ones. All are one process, without the bridge."""

import http.client
import json
import os
import secrets
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.server import Guard, answered, fakes, has

MIB = 1 << 20


class LimitsAll(Guard, over_http=True, families=("exhaustion",)):
    """Limits bodies, headers and sessions, and takes no batches and no compressed bodies.

    Attributes:
        longest: bytes of a body.
        most: sessions at a time.
        batches: whether it answers batches.
    """

    longest = MIB
    most = 100
    batches = False

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.sessions: dict[str, bytearray] = {}
        self.kept: list[bytearray] = []
        self.opened = True

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "description": "A tool. " * 2000}

    def serve(self) -> None:
        server = _Server(("127.0.0.1", int(self.options[0])), _Endpoint)
        server.guard = self
        server.serve_forever()

    def unpacked(self, body: bytes, coding: str | None) -> bytes | None:
        """Return the text of a body; None to refuse its coding."""
        return body if coding is None else None

    def read(self, body: bytes) -> None:
        """Take a body."""

    def opens(self) -> bytearray:
        """Return what a session keeps until its end."""
        return bytearray()

    def heads(self, headers: Any) -> None:
        """Take the headers of a request."""

    def write(self, endpoint: Any, data: bytes) -> None:
        """Write a response."""
        endpoint.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    guard: LimitsAll

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client went away."""


class _Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_words: Any) -> None:
        """Print nothing."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.close_connection = self.close_connection or status >= 400
        named = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        lines = [f"HTTP/1.1 {status} X", *(f"{n.replace('_', '-')}: {v}" for n, v in named.items())]
        self.server.guard.write(self, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def do_POST(self) -> None:
        guard = self.server.guard
        guard.heads(self.headers)
        if "Origin" in self.headers or not self.headers["Host"].startswith("127.0.0.1"):
            self.answer(403)
            return
        length = int(self.headers.get("Content-Length") or 0)
        if length > guard.longest:
            self.answer(413)
            return
        body = guard.unpacked(self.rfile.read(length), self.headers.get("Content-Encoding"))
        if body is None:
            self.answer(415)
            return
        guard.read(body)
        message = json.loads(body)
        self.close_connection = b"tools/list" not in body
        if isinstance(message, list) and guard.batches:
            results = [{"jsonrpc": "2.0", "id": m["id"], **answered(guard, m)} for m in message]
            self.answer(200, json.dumps(results).encode())
        elif isinstance(message, list):
            self.answer(400)
        elif "id" not in message:
            self.answer(202)
        else:
            self.result(message)

    def result(self, message: dict[str, Any]) -> None:
        guard, more = self.server.guard, {}
        if message["method"] == "initialize":
            if len(guard.sessions) >= guard.most:
                self.answer(503)
                return
            known = secrets.token_hex(16)
            guard.sessions[known] = guard.opens()
            more = {"Mcp_Session_Id": known}
        given = {"jsonrpc": "2.0", "id": message["id"], **answered(guard, message)}
        self.answer(200, json.dumps(given).encode(), **more)

    def do_GET(self) -> None:
        self.answer(405)

    def do_DELETE(self) -> None:
        self.server.guard.sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
        self.answer(200)


class AnswersOpeningsOnly(LimitsAll, families=("exhaustion", "amplification")):
    """Breaks off each request but initialize, as a server does that serves one client only."""

    def read(self, body: bytes) -> None:
        if b'"initialize"' not in body:
            raise ConnectionAbortedError


class KeepsBodies(LimitsAll, trips={"exhaustion-body"}, longest=16 * MIB):
    """Keeps five copies of each body."""

    def read(self, body: bytes) -> None:
        self.kept += [bytearray(body) for _ in range(5)]


class UnpacksBodies(LimitsAll, trips={"exhaustion-compressed"}):
    """Unpacks a body without a limit."""

    def unpacked(self, body: bytes, coding: str | None) -> bytes | None:
        return body if coding is None else zlib.decompress(body, 47)


class EndsAtALongBatch(LimitsAll, trips={"exhaustion-batch"}):
    """Ends at a batch of more than a thousand messages."""

    def read(self, body: bytes) -> None:
        if body.startswith(b"[") and body.count(b"jsonrpc") > 1000:
            os._exit(1)


class EndsAtManyHeaders(LimitsAll, trips={"exhaustion-headers"}):
    """Ends at a thousand headers."""

    def serve(self) -> None:
        http.client._MAXHEADERS = 1 << 20  # type: ignore[attr-defined]
        super().serve()

    def heads(self, headers: Any) -> None:
        if len(headers) > 1000:
            os._exit(1)


class WritesOneAtATime(LimitsAll, trips={"exhaustion-unread"}):
    """Holds a lock while it writes a response."""

    writing = threading.Lock()

    def write(self, endpoint: Any, data: bytes) -> None:
        with self.writing:
            endpoint.wfile.write(data)


class KeepsEndedSessions(LimitsAll, trips={"exhaustion-ended"}):
    """Keeps what a session took after its end."""

    def opens(self) -> bytearray:
        self.kept.append(bytearray(b"x" * 65_536))
        return bytearray()


class CollectsLate(LimitsAll):
    """Frees what a session took, and some memory of each opening only after very many."""

    def opens(self) -> bytearray:
        self.kept.append(bytearray(b"x" * 40_000))
        if len(self.kept) > 1500:
            self.kept.clear()
        return bytearray(b"x" * 60_000)


class OpensAnySession(LimitsAll, trips={"exhaustion-sessions"}, most=MIB):
    """Opens sessions without a limit, and forgets those that end."""

    def opens(self) -> bytearray:
        return bytearray(b"x" * 65_536)


fakes(__name__)(
    LimitsNothingShort=has(
        LimitsAll,
        "Answers bodies of 8 MiB and batches of thousands, and goes on.",
        families=("exhaustion",),
        longest=16 * MIB,
        batches=True,
    ),
)
