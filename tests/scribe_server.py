"""A stdio server that reports the messages it received; some methods make it misbehave.

``python tests/scribe_server.py [modern]``: with the word it answers ``server/discover``.
"""

# ruff: noqa: PLR0911, PLR0912  (a server is a list of cases)

import json
import os
import sys
import time
from typing import Any

META = "io.modelcontextprotocol/"
heard: list[Any] = []
TOOLS = [
    {"name": "plain", "inputSchema": {"type": "object"}},
    {
        "name": "query",
        "inputSchema": {
            "type": "object",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "deep": {
                    "type": "object",
                    "properties": {"size": {"type": "integer", "x-mcp-header": "Size"}},
                },
            },
        },
    },
]


if "deep" in sys.argv:
    schema: dict[str, Any] = {}
    for _ in range(300):
        schema = {"properties": {"p": schema}}
    TOOLS.append({"name": "deep", "inputSchema": schema})


WEIRD: list[Any] = [None, True, [], {}, "", "²", "9" * 5000, 1e308, -1, 7.5]
NONSENSE: list[Any] = [
    *WEIRD,
    [[]],
    [1, {"method": []}],
    *({"id": one, "result": {}} for one in WEIRD),
    *({"id": one, "error": one} for one in WEIRD),
    *({"method": one} for one in WEIRD),
    *({"method": "x", "id": one} for one in WEIRD),
    *({"method": "notifications/message", "params": one} for one in WEIRD),
    *({"method": "notifications/progress", "params": {"progressToken": one}} for one in WEIRD),
    *({"method": "notifications/cancelled", "params": {"requestId": one}} for one in WEIRD),
    *({"method": "x", "params": {"_meta": {META + "subscriptionId": one}}} for one in WEIRD),
    *({"method": "x", "params": {"_meta": one}} for one in WEIRD),
]


def say(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        if "early-log" in sys.argv:
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "early"}})
        if "modern-only" in sys.argv:
            return {"error": {"code": -32601, "message": "only 2026-07-28"}}
        return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {}}}
    if method == "server/discover" and "modern" not in sys.argv:
        return {"error": {"code": -32601, "message": "what?"}}
    if method == "server/discover":
        return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}
    if method == "leave":
        os._exit(3)
    if method == "mumble":
        print("this is no message", flush=True)
    if method == "nonsense":
        for odd in NONSENSE:
            say(odd)
    if method == "silence":
        return None
    if method == "sleep":
        time.sleep(params["seconds"])
    if method == "tools/list":
        page = int(params.get("cursor", 0))
        more = {"nextCursor": str(page + 1)} if page + 1 < len(TOOLS) else {}
        return {"result": {"tools": TOOLS[page : page + 1], **more}}
    if method.startswith("error/"):
        return {"error": {"code": int(method.partition("/")[2]), "message": "as you wish"}}
    if method == "log":
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": params["id"]}})
    if method == "news":
        changed = "notifications/tools/list_changed"
        say({"jsonrpc": "2.0", "method": changed, "params": params})
    if method == "ask":
        say({"jsonrpc": "2.0", "id": "q", "method": "ping"})
    return {"result": {"heard": heard, "pid": os.getpid(), "env": os.environ.get("SCRIBE", "")}}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        heard.append(line.rstrip("\n"))
        for one in message if isinstance(message, list) else [message]:
            if "method" in one and "id" in one:
                body = answer(one)
                if body is not None:
                    say({"jsonrpc": "2.0", "id": one["id"], **body})
