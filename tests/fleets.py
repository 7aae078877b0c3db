"""Servers, lists and rows for the tests of fleets."""

import json
import sys
from pathlib import Path
from typing import Any

import psutil

from mcp_touchstone.fleet import drive
from mcp_touchstone.fleet.child import Running
from mcp_touchstone.fleet.drive import Rows
from mcp_touchstone.fleet.entry import Entry, Registry
from mcp_touchstone.fleet.judge import Plan, judge
from mcp_touchstone.fleet.servers import read

QUICK = ("--select", "ping-empty-response", "--revision", "2025-11-25")
PLAN = Plan(words=QUICK, deadline=60, startup=20, memory=0)

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
                  "serverInfo": {"name": "small", "version": "1"}}
    elif message["method"] == "ping":
        result = {}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"],
                          "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def command(name: str, code: str, folder: Path) -> Entry:
    script = folder / f"{name}.py"
    script.write_text(code)
    return Entry(name=name, registry=Registry.COMMAND, command=(sys.executable, str(script)))


def judge_all(entries: list[Entry], rows: Rows, plan: Plan = PLAN) -> None:
    running = Running()
    with drive.threads(2, running) as pool:
        drive.drive(entries, plan, rows, pool=pool, running=running, on_row=lambda _row: None)


def small(name: str, folder: Path) -> Entry:
    return command(name, SERVER, folder)


def read_text(text: str, name: str, folder: Path, **environment: str) -> list[Entry]:
    path = folder / name
    path.write_text(text)
    return list(read(path, environment))


def record(**package: Any) -> dict[str, Any]:
    base = {"registryType": "npm", "identifier": "@x/y", "version": "1.0.0"}
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.x/y",
        "version": "1.0.0",
        "packages": [{**base, "transport": {"type": "stdio"}, **package}],
    }


def from_record(folder: Path, **package: Any) -> Entry:
    (found,) = read_text(json.dumps(record(**package)), "server.json", folder)
    return found


def remote(url: str, name: str = "r") -> Entry:
    return Entry(name=name, registry=Registry.REMOTE, url=url)


def row_of(name: str, **more: Any) -> dict[str, Any]:
    entry = Entry(name=name, registry=Registry.OCI, package=name)
    return {**judge(entry, PLAN), "attempts": 1, **more}


def fleet(folder: Path, *words: str) -> list[str]:
    options = ["--inside", "none", "--no-files", "--out", str(folder / "rows.jsonl"), *QUICK]
    listed = str(folder / "list.jsonl")
    return [sys.executable, "-m", "mcp_touchstone", "fleet", listed, *options, *words]


def write_list(folder: Path, entries: list[Entry]) -> None:
    lines = [json.dumps({"name": one.name, "command": list(one.command)}) for one in entries]
    (folder / "list.jsonl").write_text("\n".join(lines) + "\n")


def checks_below(pid: int) -> list[psutil.Process]:
    try:
        children = psutil.Process(pid).children(recursive=True)
        return [one for one in children if "check" in one.cmdline()]
    except psutil.Error:
        return []


def write_waiting_list(folder: Path) -> Path:
    """Write a list of three servers; the second one makes a file, and waits for the file `go`."""
    mark, go = folder / "is-under-way", folder / "go"
    waits = f"""import pathlib, time
pathlib.Path({str(mark)!r}).touch()
while not pathlib.Path({str(go)!r}).exists():
    time.sleep(0.1)
{SERVER}"""
    entries = [small("first", folder), command("waits", waits, folder), small("last", folder)]
    write_list(folder, entries)
    return mark
