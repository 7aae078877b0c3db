"""A server that puts one hostile text into every place where a server has words."""

import json
import sys
from typing import Any, Final

HOSTILE: Final = (
    "=1+1@evil http://evil.example www.evil.example #12 \x1b]0;evil\x07\x1b[2J\n::error::evil\r"
    "\u202e\u2066\x00\x9b\x7f\u2028|`<script>evil</script> ![i](http://evil.example/x.png) \ud83d"
)


def words(kind: str) -> str:
    return f"{HOSTILE} {kind}"


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    schema = {"type": "object", "properties": {HOSTILE: {"description": HOSTILE, "type": HOSTILE}}}
    tool = {"name": words("tool"), "title": HOSTILE, "description": HOSTILE}
    read_only = {"readOnlyHint": True, "title": HOSTILE}
    content = {"type": "text", "text": HOSTILE}
    named = {"name": HOSTILE, "title": HOSTILE, "description": HOSTILE}
    results: dict[str, dict[str, Any]] = {
        "initialize": {
            "protocolVersion": params.get("protocolVersion"),
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
            "serverInfo": {"name": HOSTILE, "version": HOSTILE, "title": HOSTILE},
            "instructions": HOSTILE,
        },
        "tools/list": {"tools": [{**tool, "inputSchema": schema, "annotations": read_only}]},
        "tools/call": {"content": [content, {"type": HOSTILE}], "isError": True},
        "resources/list": {"resources": [{**named, "uri": HOSTILE, "mimeType": HOSTILE}]},
        "resources/templates/list": {"resourceTemplates": [{**named, "uriTemplate": HOSTILE}]},
        "prompts/list": {"prompts": [{**named, "arguments": [named]}]},
        "prompts/get": {"messages": [{"role": HOSTILE, "content": content}]},
    }
    return results.get(method)


def main() -> None:
    print(HOSTILE.replace("\ud83d", ""), file=sys.stderr, flush=True)
    for line in sys.stdin:
        try:
            asked = json.loads(line)
        except ValueError:
            continue
        if not isinstance(asked, dict) or "id" not in asked:
            continue
        print(json.dumps(HOSTILE), flush=True)
        log = {"level": HOSTILE, "logger": HOSTILE, "data": HOSTILE}
        told = {"jsonrpc": "2.0", "method": "notifications/message", "params": log}
        print(json.dumps(told), flush=True)
        found = result(asked.get("method", ""), asked.get("params") or {})
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        error = {"code": -32601, "message": HOSTILE, "data": HOSTILE}
        answer |= {"error": error} if found is None else {"result": found}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    sys.stderr.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    main()
