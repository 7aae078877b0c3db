"""A server of HTTP for the tests of sessions. Options: ``single``, ``one-id``, ``replaces``,
``fails-later``.

It answers ``whoami`` with its process and the number of the session, and exits at ``die``.
"""

import http.server
import json
import os
import sys
from typing import Any

OPTIONS = frozenset(sys.argv[2:])
REVISION = "2025-11-25"
MANY = 2
"""Sessions of one process after which ``fails-later`` refuses ``whoami``."""

sessions: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self.answer(202)
            return
        id_ = self.headers.get("Mcp-Session-Id")
        if message["method"] == "die":
            os._exit(3)
        if message["method"] == "initialize":
            if message["params"]["protocolVersion"] > REVISION:
                self.answer(400, {"error": {"code": -32602, "message": "no"}}, message["id"])
            elif "single" in OPTIONS and sessions:
                error = {"code": -32600, "message": "Server already initialized"}
                self.answer(400, {"error": error}, message["id"])
            else:
                id_ = "session" if "one-id" in OPTIONS else f"session-{len(sessions)}"
                sessions.append(id_)
                if "replaces" in OPTIONS:
                    sessions[:-1] = [""] * (len(sessions) - 1)
                info = {"name": "sessions", "version": "1"}
                body = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": info}
                self.answer(200, {"result": body}, message["id"], id_)
        elif id_ not in sessions:
            self.answer(400, {"error": {"code": -32000, "message": "no session"}}, message["id"])
        else:
            self.answer(200, called(message["method"], sessions.index(id_)), message["id"])

    def do_DELETE(self) -> None:
        self.answer(200)

    def do_GET(self) -> None:
        self.answer(405)

    def answer(
        self, status: int, said: dict[str, Any] | None = None, id_: Any = None, session: str = ""
    ) -> None:
        body = b"" if said is None else json.dumps({"jsonrpc": "2.0", "id": id_, **said}).encode()
        self.send_response(status)
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def called(method: str, number: int) -> dict[str, Any]:
    if method == "ping":
        return {"result": {}}
    if method == "whoami" and not ("fails-later" in OPTIONS and number >= MANY):
        return {"result": {"process": os.getpid(), "session": number}}
    return {"error": {"code": -32601, "message": "no"}}


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
