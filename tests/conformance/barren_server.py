"""A server with which nothing can be compared: it opens, and then refuses or is empty.

``barren_server.py empty|refuse|fail [PORT]``: its lists are empty, or each request but the opening
gets error -32603, or over HTTP status 500 without a body. It speaks over stdio, or over HTTP on a
port, without sessions and streams.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

MODE: Final = sys.argv[1] if len(sys.argv) > 1 else "empty"
MODERN: Final = "2026-07-28"
LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META: Final = "io.modelcontextprotocol/"
INFO: Final = {"name": "barren", "version": "1"}
OFFERS: Final[dict[str, Any]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
    "completions": {},
}
LISTS: Final[dict[str, Any]] = {
    "tools/list": {"tools": []},
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
}
OPENING: Final = ("initialize", "server/discover", "notifications/initialized")
WANTING: Final = ("tools/call", "prompts/get", "completion/complete", "resources/read")
STATUS: Final = {-32700: 400, -32600: 400, -32022: 400, -32601: 404}

Json = dict[str, Any]


def error(code: int, own: Any = None, **more: Any) -> Json:
    """Return an error response."""
    return {"jsonrpc": "2.0", "id": own, "error": {"code": code, "message": "no", **more}}


def answer(text: bytes | str) -> Json | None:
    """Return the response to a message; None for a notification."""
    try:
        message = json.loads(text)
    except ValueError:
        return error(-32700)
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return error(-32600)
    if "id" not in message:
        return None
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    under = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
    if under not in {None, MODERN}:
        data = {"supported": [MODERN], "requested": under}
        return error(-32022, message["id"], data=data)
    found = served(message["method"], params, modern=under is not None)
    if isinstance(found, int):
        return error(found, message["id"])
    if under is not None:
        found = {"resultType": "complete", **found, "_meta": {META + "serverInfo": INFO}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": found}


def served(method: str, params: Json, *, modern: bool) -> Json | int:
    """Return the result of a request, or the code of its error."""
    cache = {"ttlMs": 0, "cacheScope": "private"} if modern else {}
    if method == "initialize" and not modern:
        asked = params.get("protocolVersion")
        version = asked if asked in LEGACY else LEGACY[-1]
        return {"protocolVersion": version, "capabilities": OFFERS, "serverInfo": INFO}
    if method == "server/discover" and modern:
        return {"supportedVersions": [MODERN], "capabilities": OFFERS, **cache}
    if MODE != "empty":
        return -32603
    if method in LISTS:
        return {**LISTS[method], **cache}
    if method in {"ping", "logging/setLevel"} and not modern:
        return {}
    return -32602 if method in WANTING else -32601


class Handler(BaseHTTPRequestHandler):
    """The server over HTTP."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Write nothing."""

    def reply(self, status: int, body: bytes = b"") -> None:
        """Send a response."""
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Offer no stream."""
        self.reply(405)

    do_DELETE = do_GET  # noqa: N815  (the name that the base class wants)

    def do_POST(self) -> None:
        """Answer a message."""
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if MODE == "fail" and not any(method.encode() in text for method in OPENING):
            self.reply(500)
            return
        found = answer(text)
        if found is None:
            self.reply(202)
        else:
            code = found.get("error", {}).get("code")
            self.reply(STATUS.get(code, 200), json.dumps(found).encode())


if __name__ == "__main__":
    if len(sys.argv) > 2:
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
    for line in sys.stdin:
        response = answer(line)
        if response is not None:
            print(json.dumps(response), flush=True)
