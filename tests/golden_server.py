"""A server for the tests of golden recordings: what it does is named in argv.

``python tests/golden_server.py ROOT [renamed] [random] ...``; it speaks 2025-11-25 alone.
"""

# ruff: noqa: S311  (what is random here keeps no secret)

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv[1])
FEATURES = set(sys.argv[2:])
READ_ONLY = {"annotations": {"readOnlyHint": True}}
WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


def tools(*, listing: bool = False) -> list[dict[str, Any]]:
    echo = {"name": "echo", "description": "Says it again.", "inputSchema": WORD, **READ_ONLY}
    if "described" in FEATURES:
        echo["description"] = "Says it once more."
    if "dangerous" in FEATURES:
        echo["annotations"] = {"readOnlyHint": False}
    look = {"name": "look", "inputSchema": {"type": "object"}, **READ_ONLY}
    write = {"name": "write", "inputSchema": {"type": "object"}}
    found = [echo, look, write]
    if "more" in FEATURES:
        found.insert(0, {"name": "more", "inputSchema": {"type": "object"}, **READ_ONLY})
    if "misshapen" in FEATURES:
        write["inputSchema"] = "anything"
    if "without-look" in FEATURES:
        found.remove(look)
    if "shuffled" in FEATURES and listing:
        turn = count() % len(found)
        found = found[turn:] + found[:turn]
    if "turned" in FEATURES:
        found.reverse()
    return found


def call(name: str, arguments: dict[str, Any]) -> Any:
    if name == "echo":
        if not isinstance(arguments.get("word"), str):
            return {"content": [{"type": "text", "text": "word is missing"}], "isError": True}
        if "crashing" in FEATURES:
            os._exit(3)
        said = arguments["word"].upper() if "loud" in FEATURES else arguments["word"]
        return {"content": [{"type": "text", "text": said}]}
    if name == "look":
        found = {
            "root": str(ROOT),
            "now": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "day": time.strftime("%A", time.gmtime()),
            "seconds": time.time(),
            "static": "2020-02-20T20:20:20Z",
            "environment": dict(os.environ),
            "secret": os.environ.get("MY_API_KEY", "none at all"),
            "lines": "first\nsecond",
        }
        if "random" in FEATURES:
            found |= {"id": random.random(), "lines": f"first\n{random.random()}"}
        if "sometimes" in FEATURES and (count() % 2):
            found["lines"] = "first\nthird"
        return {"content": [{"type": "text", "text": json.dumps(found)}]}
    if name == "more":
        return {"content": []}
    return None


def count() -> int:
    """Count what is asked of all processes of this server, in a file of the test."""
    path = Path(os.environ["COUNTER"])
    number = int(path.read_text()) if path.exists() else 0
    path.write_text(str(number + 1))
    return number


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        if params["protocolVersion"] != "2025-11-25":
            return None
        version = "2" if "released" in FEATURES else "1"
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "golden", "version": version},
        }
    if method == "ping" and "refuses-pings" not in FEATURES:
        return {}
    if method == "tools/list":
        return {"tools": tools(listing=True)}
    if method == "tools/call" and any(t["name"] == params.get("name") for t in tools()):
        return call(params["name"], params.get("arguments", {}))
    return None


for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        fault = {"code": -32700, "message": "no JSON"}
        print(json.dumps({"jsonrpc": "2.0", "id": None, "error": fault}), flush=True)
        continue
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    outcome = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
