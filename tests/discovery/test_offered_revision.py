"""Why a server is not judged that speaks no revision of those that we ask for."""

import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.target.target import Target

SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        info = {{"name": "old", "version": "1"}}
        result = {{"protocolVersion": {version!r}, "capabilities": {{}}, "serverInfo": info}}
        modern = asked.get("method") == "server/discover"
        error = {{"code": -32022, "message": "Unsupported protocol version"}}
        answer = {{"error": error}} if modern else {{"result": result}}
        body = json.dumps({{"jsonrpc": "2.0", "id": asked.get("id"), **answer}}).encode()
        self.send_response(400 if modern else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("2024-11-05", "2024-11-05 only, which has no Streamable HTTP"),
        ("1.0", "1.0 only"),
    ],
)
def test_the_answer_to_initialize_is_the_reason(tmp_path: Path, version: str, why: str) -> None:
    """The refusal of server/discover in 2026-07-28 is not: the server never said it had that."""
    server = tmp_path / "server.py"
    server.write_text(SERVER.format(version=version), "utf-8")
    command = (sys.executable, str(server), "{port}")

    run = judge(Target(command=command, url="http://127.0.0.1:{port}/"), load(), Choice())

    assert why in run.trouble
    assert [(v.clause.id, v.gravest.actual) for v in run.verdicts if run.counts(v)] == []
