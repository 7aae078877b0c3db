"""What docs/how-it-judges/performance.md says about `tap show`: a long recording on a screen.

    python benchmarks/tap_show.py [--lines N] [--runs N]

Prints the processor time of the program, and the time to its first line as a share of the whole
time. Both are the least of the runs, as other programs only lengthen them. The recording is a
conversation over stdio: a client calls one tool again and again, with other numbers each time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

TOOL = {
    "name": "add",
    "description": "Add",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}
WAYS: tuple[list[str], ...] = ([], ["--unjudged"], ["--tail", "50"], ["--unjudged", "--tail", "50"])


def said() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the messages of a conversation without end, each with its sender."""
    version = {"protocolVersion": "2025-11-25"}
    client = {**version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    server = {**version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    yield "client", {"id": 0, "method": "initialize", "params": client}
    yield "server", {"id": 0, "result": server}
    yield "client", {"method": "notifications/initialized"}
    yield "client", {"id": 1, "method": "tools/list"}
    yield "server", {"id": 1, "result": {"tools": [TOOL]}}
    number = 1
    while number := number + 1:
        params = {"name": "add", "arguments": {"a": number, "b": 3}}
        asked = {"method": "tools/call", "params": {**params, "_meta": {"progressToken": number}}}
        text = f"The sum is {number + 3}; {'x' * 60}"
        yield "client", {"id": number, **asked}
        yield "server", {"id": number, "result": {"content": [{"type": "text", "text": text}]}}


def record(file: Path, lines: int) -> None:
    """Write a recording."""
    with file.open("w", encoding="utf-8") as out:
        out.write(json.dumps({"recording": 1, "command": ["s"]}) + "\n")
        for number, (sender, message) in zip(range(lines), said(), strict=False):
            text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
            row = {"at": round(number / 1000, 3), "from": sender, "text": text}
            out.write(json.dumps(row) + "\n")


def run(words: list[str]) -> tuple[float, float]:
    """Return the processor time in seconds, and the time to the first line as a share."""
    before, began = os.times(), time.monotonic()
    command = [sys.executable, "-m", "mcp_touchstone", "tap", "show", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        out = cast("IO[bytes]", process.stdout)
        out.read(1)
        first = time.monotonic() - began
        out.read()
    spent, after = time.monotonic() - began, os.times()
    both = after.children_user - before.children_user
    return both + after.children_system - before.children_system, first / spent


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder, "long.jsonl"), asked.lines)
        for words in WAYS:
            found = [run([folder, *words]) for _ in range(asked.runs)]
            seconds, share = map(min, zip(*found, strict=True))
            print(f"{' '.join(words) or 'all':24} {seconds:6.2f} s, first line at {share:.0%}")


if __name__ == "__main__":
    main()
