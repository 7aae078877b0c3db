"""A small server for the tests of ``load``: ``python tests/load_server.py MODE``.

Modes: right, mixes (answers read together are swapped), leaks, locks (one call after the other,
slowly), loses (one of the answers that are read together).
"""

import json
import os
import sys
import time
from typing import Any

MODE = sys.argv[1]
HELD: list[bytes] = []
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    for name in ("one", "two")
]


def result(request: dict[str, Any]) -> dict[str, Any] | None:
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        info = {"name": "load", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["name"]}]}
    return {} if method == "ping" else None


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if MODE == "leaks":
        HELD.append(b"x" * 200_000)
    if MODE == "locks":
        time.sleep(0.003)
    found = result(request)
    error = {"code": -32601, "message": "Method not found"}
    own = {"result": found} if found is not None else {"error": error}
    return {"jsonrpc": "2.0", "id": request["id"], **own}


rest = b""
while chunk := os.read(0, 1 << 16):
    *whole, rest = (rest + chunk).split(b"\n")
    requests = [message for message in map(json.loads, whole) if "id" in message]
    answers = [answer(request) for request in requests]
    if MODE == "mixes" and len(answers) > 1:
        answers[0]["id"], answers[1]["id"] = answers[1]["id"], answers[0]["id"]
    if MODE == "loses" and len(answers) > 1:
        del answers[0]
    for one in answers:
        os.write(1, json.dumps(one).encode() + b"\n")
