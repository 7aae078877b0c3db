"""A reference server that writes files, and readers of the log that it wrote."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.reference_client import Message, Spawned, modern

fcntl = pytest.importorskip("fcntl", reason="needs POSIX descriptors")


WRITER = """
import sys
from reference_server.__main__ import main
from reference_server.bundle import ALL_FEATURES
from reference_server.protocol.toolbox import Tool

def feature(surface):
    def write(call, arguments):
        path = arguments["path"]
        edit = surface.workspace.edit(call.who, call.request_id)
        before = surface.workspace.find(path)
        if "file_text" in arguments:
            edit.put(path, arguments["file_text"].encode(), before=before)
        else:
            edit.remove(before)
        edit.commit()
        return {}

    text = {"type": "string"}
    word = {"type": "string", "enum": ["plain", "quick"]}
    pair = {"type": "array", "items": {"type": "integer"}}
    properties = {"path": text, "file_text": text, "mode": word, "view_range": pair,
                  "dry_run": {"type": "boolean"}, "scale": {"type": "number"}}
    schema = {"type": "object", "properties": properties}
    surface.toolbox.add(Tool("write", title="W", description="W", input_schema=schema,
                             output_schema={"type": "object"}, annotations={}, work=write))

sys.exit(main(sys.argv[1:], [*ALL_FEATURES, feature]))
"""


def writer(root: Path, *arguments: str) -> Spawned:
    command = (sys.executable, "-c", WRITER)
    return Spawned("--root", str(root), *arguments, command=command)


def call(request_id: Any, tool: str, **arguments: Any) -> Message:
    return modern(request_id, "tools/call", name=tool, arguments=arguments)


def logged(client: Spawned) -> str:
    """Let the server end and give what it wrote to standard error."""
    client.end_input()
    client.rest()
    assert client.exit_code() == 0
    return client.stderr()


def records(client: Spawned) -> list[Message]:
    """Return the lines of standard error as JSON objects."""
    entries = [json.loads(line) for line in logged(client).splitlines()]
    assert all(isinstance(entry, dict) for entry in entries)
    return entries


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
