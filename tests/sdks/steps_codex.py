"""Steps with Codex, whose MCP client is in Rust: ``python steps_codex.py {server}``, also a URL.

``codex`` of ``@openai/codex`` is in the PATH. It calls tools because its model wants it:
here a model on loopback asks for each call, and for lists and reads of resources.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONTEXT: dict[str, Any] = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
LISTS = {"resources": "list_mcp_resources", "templates": "list_mcp_resource_templates"}
CONFIG = """\
model = "none"
model_provider = "ours"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
[model_providers.ours]
name = "ours"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
[mcp_servers.ours]
{server}
default_tools_approval_mode = "approve"
required = true
startup_timeout_sec = 20
"""


def wanted() -> list[tuple[str, dict[str, Any], bool]]:
    """Return the calls of its own tools and of ours that the steps need, and which may fail."""
    found: list[tuple[str, dict[str, Any], bool]] = []
    for step in CONTEXT["steps"]:
        for one in step.get("together") or (step,):
            if one.get("list") in LISTS:
                found.append((LISTS[one["list"]], {"server": "ours"}, "fails" in one))
            elif "read" in one:
                given = {"server": "ours", "uri": one["read"]}
                found.append(("read_mcp_resource", given, "fails" in one))
            elif one.get("call", "*") != "*" and not {"task", "results", "loaded"} & one.keys():
                given = one.get("arguments") or {"a": one["a"], "b": one["b"]}
                found.append((one["call"], given, "fails" in one))
    return found


class Model(BaseHTTPRequestHandler):
    """A model that asks for the next call, and then is done."""

    left = wanted()
    may_fail = True
    failed = False

    def do_POST(self) -> None:
        """Answer a turn."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said: dict[str, Any] = {"type": "message", "role": "assistant", "content": []}
        last = json.dumps(asked["input"][-1])
        if "tool call error" in last and not Model.may_fail:
            Model.failed = True
        elif self.left:
            name, arguments, Model.may_fail = self.left.pop(0)
            said = {"type": "function_call", "call_id": f"c{len(self.left)}", "name": name}
            said["arguments"] = json.dumps(arguments)
            for tool in asked["tools"]:  # of a server in a namespace, or with a prefix
                if any(one["name"] == name for one in tool.get("tools", ())):
                    said["namespace"] = tool["name"]
                if tool.get("name") == f"mcp__ours__{name}":
                    said["name"] = tool["name"]
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events = (
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "item": said},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        )
        body = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_given: Any) -> None:
        """Write nothing."""


def main() -> int:
    """Let Codex take the steps; return its exit status."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    command, *args = sys.argv[1:]
    server = f"command = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    server += f"env_vars = {json.dumps([*os.environ])}"
    if command.startswith("http"):
        server = f"url = {json.dumps(command)}"
    with tempfile.TemporaryDirectory() as home:
        config = CONFIG.format(port=model.server_address[1], server=server)
        Path(home, "config.toml").write_text(config, encoding="utf-8")
        words = ["codex", "exec", "--skip-git-repo-check"]
        words += ["--dangerously-bypass-approvals-and-sandbox", "go on"]
        env = {**os.environ, "CODEX_HOME": home}
        quiet = subprocess.DEVNULL
        status = subprocess.run(words, cwd=home, env=env, stdin=quiet, check=False).returncode
    return status or Model.failed


if __name__ == "__main__":
    sys.exit(main())
