"""A revision whose first answer comes late is judged, and not taken for one that is lacking."""

import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.discovery import recon
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.target.target import Target

SERVER = """
import json, os, sys, time
mark = {mark!r}

def wait(name):
    until = time.monotonic() + 60
    while not os.path.exists(mark + name) and time.monotonic() < until:
        time.sleep(0.01)

for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params", {{}})
    if "id" not in asked:
        continue
    modern = "_meta" in params
    info = {{"name": "late", "version": "1"}}
    offers = {{"capabilities": {{"tools": {{}}}}}}
    more = {{}}
    if modern:
        more = {{"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
        more["_meta"] = {{"io.modelcontextprotocol/serverInfo": info}}
    if method == "server/discover":
        wait("listed")
        more = {{**offers, **more, "supportedVersions": ["2026-07-28"]}}
    elif method == "initialize":
        version = params["protocolVersion"]
        more = {{**offers, "protocolVersion": version, "serverInfo": info}}
    elif method == "tools/list":
        more["tools"] = []
        if not modern and not os.path.exists(mark + "answered"):
            open(mark + "listed", "w").close()
            wait("answered")
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": more}}), flush=True)
    if method == "server/discover":
        open(mark + "answered", "w").close()
"""


def test_a_late_answer_to_discover_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server answers it once the lists of another revision are read: the wait is over then."""
    monkeypatch.setattr(recon, "DISCOVER_PATIENCE", 0.5)
    server = tmp_path / "server.py"
    server.write_text(SERVER.format(mark=f"{tmp_path}/"), "utf-8")
    revisions = ("2025-11-25", "2026-07-28")
    choice = Choice(select=("tools-list-must-answer",), revisions=revisions)

    run = judge(Target(command=(sys.executable, str(server))), load(), choice)

    assert tuple(run.subject.revisions) == revisions
