"""Servers, lists and rows for the tests of fleets."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_touchstone.fleet import drive
from mcp_touchstone.fleet.child import Running, run
from mcp_touchstone.fleet.drive import Rows
from mcp_touchstone.fleet.entry import ListedServer, RegistryType
from mcp_touchstone.fleet.judge import FleetSettings, judge
from mcp_touchstone.fleet.servers import read
from tests.conftest import eventually

QUICK = ("--select", "ping-empty-response", "--revision", "2025-11-25")
PLAN = FleetSettings(words=QUICK, deadline=60, startup=20, memory=0)

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


def command(name: str, code: str, folder: Path) -> ListedServer:
    script = folder / f"{name}.py"
    script.write_text(code)
    return ListedServer(
        name=name, registry=RegistryType.COMMAND, command=(sys.executable, str(script))
    )


def written(path: Path, *rows: dict[str, Any], resume: bool = False) -> Path:
    """Write rows to a file, as a fleet does."""
    with Rows(path, PLAN, resume=resume) as file:
        for row in rows:
            file.append(row)
    return path


OnRow = Callable[[Mapping[str, Any]], None]


def driven(
    folder: Path,
    entries: list[ListedServer],
    pool: drive.WorkerPool,
    on_row: OnRow = lambda _row: None,
) -> list[dict[str, Any]]:
    """Judge servers on the workers of a pool; return the rows of the file."""
    with Rows(folder / "rows.jsonl", PLAN, resume=False) as rows:
        drive.drive(entries, PLAN, rows, pool=pool, running=Running(), on_row=on_row)
    return list(drive.read(folder / "rows.jsonl"))


FutureRow = Future[dict[str, Any]]


def returned(row: dict[str, Any]) -> FutureRow:
    """Return the future of a row that is there."""
    future = FutureRow()
    future.set_result(row)
    return future


def failed(error: Exception) -> FutureRow:
    """Return the future of a row that there will not be."""
    future = FutureRow()
    future.set_exception(error)
    return future


def in_image(name: str = "x") -> ListedServer:
    return ListedServer(name=name, registry=RegistryType.OCI, package=name)


def kill_driver(words: list[str], is_under_way: Callable[[], object]) -> None:
    """Start a fleet, kill its driver once it is under way, and wait for the end of its checks."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as driver:
        eventually(is_under_way)
        checks = eventually(lambda: checks_below(driver.pid))
        driver.send_signal(signal.SIGKILL)
        driver.wait(60)
    eventually(lambda: not any(one.is_running() for one in checks))


def commands_run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the commands that a judgement runs from now on."""
    commands: list[str] = []

    def noted(words: list[str], **more: Any) -> tuple[str, int | None]:
        commands.append(" ".join(words))
        return run(words, **more)

    monkeypatch.setattr("mcp_touchstone.fleet.judge.run", noted)
    return commands


def small(name: str, folder: Path) -> ListedServer:
    return command(name, SERVER, folder)


def read_text(text: str, name: str, folder: Path, **environment: str) -> list[ListedServer]:
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


def from_record(folder: Path, **package: Any) -> ListedServer:
    (found,) = read_text(json.dumps(record(**package)), "server.json", folder)
    return found


def remote(url: str, name: str = "r") -> ListedServer:
    return ListedServer(name=name, registry=RegistryType.REMOTE, url=url)


def row_of(name: str, **more: Any) -> dict[str, Any]:
    return {**judge(in_image(name), PLAN), "attempts": 1, **more}


def fleet(folder: Path, *words: str) -> list[str]:
    options = ["--inside", "none", "--no-files", "--out", str(folder / "rows.jsonl"), *QUICK]
    listed = str(folder / "list.jsonl")
    return [sys.executable, "-m", "mcp_touchstone", "fleet", listed, *options, *words]


def write_list(folder: Path, entries: list[ListedServer]) -> None:
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
