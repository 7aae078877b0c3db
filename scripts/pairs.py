"""Let clients talk to servers through the tap, and judge both sides of each pair.

``python -m scripts.pairs COMMANDS.toml`` writes ``pairs.jsonl``; the site makes the page of pairs
from it. COMMANDS.toml says how the programs are started on this machine::

    [clients]
    "Python SDK 2.3.0" = ["python", "tests/sdks/steps_sdk2.py", "{server}"]

    [servers."minimal (Python SDK 2.3.0)"]
    stdio = ["python", "tests/witnesses/mcp2_low.py"]
    http = ["python", "tests/witnesses/mcp2_low.py", "{port}"]
    call = "echo"

``{server}`` becomes a program that is the tap before the server, or the URL of the tap. A client
lists the tools and calls one, as ``MCP_CONFORMANCE_CONTEXT`` says.
"""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.printable import printable
from mcp_touchstone.tap import recording
from mcp_touchstone.tap.breaches import CLIENT, SERVER, SIDES
from mcp_touchstone.tap.judge import judge
from mcp_touchstone.tap.proxy import Proxy, upstream
from scripts.witnesses import UNLISTED, UNLISTED_CHAPTERS

DATA = Path(__file__).with_name("pairs.jsonl")
LIMIT, STARTUP = 60.0, 30.0
"""Seconds for a client, and for the start of an HTTP server."""

TRANSPORTS = {"stdio": "Over stdio", "http": "Over HTTP"}

INTRO = """\
# Pairs of clients and servers

Each client listed the tools of each server and called one, through `mcp-touchstone tap`, and the
rules on all traffic judged both sides. A cell has the revision that the two agreed on, or why they
did not talk; two revisions if the client asked for one and fell back to the other. A number counts
the rules that the client (c) or the server (s) broke in this conversation, failures and warnings;
they are listed below the table. Only what they did is judged: a server is judged in full by
`check`, a client by `client`. `python -m scripts.pairs` makes the rows of this page.
"""

Row = dict[str, Any]


def pages() -> dict[str, str]:
    """Make the page for the site."""
    rows = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    return {"pairs.md": "\n".join(page(rows)) + "\n"}


def page(rows: list[Row]) -> Iterator[str]:
    """Write the page."""
    yield INTRO
    for transport, title in TRANSPORTS.items():
        own = {(r["client"], r["server"]): r for r in rows if r["transport"] == transport}
        servers = [*dict.fromkeys(server for _, server in own)]
        yield f"## {title}\n"
        yield f"| client | {' | '.join(servers)} |"
        yield f"|---|{'---|' * len(servers)}"
        for client in dict.fromkeys(client for client, _ in own):
            cells = (cell(own.get((client, server))) for server in servers)
            yield f"| {client} | {' | '.join(cells)} |"
        yield ""
        yield from broken(own.values())


def cell(row: Row | None) -> str:
    """Return what a table says of a pair."""
    if row is None:
        return ""
    broken_by = {side: row[f"{side} breaks"] for side in (CLIENT, SERVER)}
    counts = [f"{len(rules)}{side[0]}" for side, rules in broken_by.items() if rules]
    talk = str(row["revision"] or row["trouble"])
    late = f" ({row['trouble']})" if row["revision"] and row["trouble"] else ""
    return talk + late + (f", **{' '.join(counts)}**" if counts else "")


def broken(rows: Iterable[Row]) -> Iterator[str]:
    """List the broken rules, each with the pairs in which it broke."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        for side, other in ((CLIENT, SERVER), (SERVER, CLIENT)):
            for rule in row[f"{side} breaks"]:
                found.setdefault((side, rule), {}).setdefault(row[side], []).append(row[other])
    for (side, rule), breakers in sorted(found.items()):
        for name, others in breakers.items():
            yield f"- the {side} {name} breaks `{rule}` with {', '.join(others)}"
    yield "" if found else "No rule was broken.\n"


def talk(client: list[str], server: dict[str, Any], transport: str, folder: Path) -> str:
    """Let a client talk to a server through the tap; return why it failed, or nothing."""
    with contextlib.ExitStack() as stack:
        if transport == "stdio":
            place = folder / "server"
            words = [sys.executable, "-m", "mcp_touchstone", "tap", "--report", str(folder), "--"]
            place.write_text(f"#!/bin/sh\nexec {shlex.join([*words, *server[transport]])}\n")
            place.chmod(0o755)
            address = str(place)
        else:
            url = stack.enter_context(serving(server[transport]))
            recorder = recording.recorder(folder, {"url": url}, os.environ)
            address = stack.enter_context(Proxy(upstream(url), recorder)).start()
        steps = [{"list": "tools"}, {"call": server["call"], "a": 2, "b": 3, "fails": True}]
        context = {"name": "tools_call", "steps": steps}
        try:
            done = subprocess.run(
                [word.replace("{server}", address) for word in client],
                env={**os.environ, "MCP_CONFORMANCE_CONTEXT": json.dumps(context)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"the client did not end within {LIMIT:g} s"
    said = [line.strip(" |+-") for line in done.stderr.decode("utf-8", "replace").splitlines()]
    last = next(filter(None, reversed(said)), "")
    return f"the client failed: `{printable(last)}`" if done.returncode else ""


@contextlib.contextmanager
def serving(command: list[str]) -> Iterator[str]:
    """Start an HTTP server; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    words = [word.replace("{port}", str(port)) for word in command]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    ) as process:
        try:
            for _ in range(int(STARTUP * 10)):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)


def judged(folder: Path, names: dict[str, str], transport: str, trouble: str) -> Row:
    """Judge both sides of a pair."""
    row: Row = {**names, "transport": transport, "revision": "", "trouble": trouble}
    try:
        recordings = recording.read_all(folder)
    except InputError:
        recordings = []
    for side in SIDES:
        run = judge(recordings, side, Choice())
        row["revision"] = ", ".join(run.subject.revisions)
        row[f"{side} breaks"] = sorted(
            {
                verdict.clause.id
                for verdict in run.verdicts
                if verdict.outcome in {Outcome.FAIL, Outcome.WARN}
                and f"{verdict.clause.group}/{verdict.clause.chapter}" not in UNLISTED_CHAPTERS
                and verdict.clause.id not in UNLISTED
            }
        )
    return row


def main(commands: str) -> int:
    """Let all pairs talk, and write the rows."""
    table = tomllib.loads(Path(commands).read_text("utf-8"))
    rows = []
    for transport in TRANSPORTS:
        for client, words in table["clients"].items():
            for server, how in table["servers"].items():
                if transport not in how:
                    continue
                with TemporaryDirectory() as folder:
                    trouble = talk(words, how, transport, Path(folder))
                    names = {CLIENT: client, SERVER: server}
                    rows.append(judged(Path(folder), names, transport, trouble))
                sys.stdout.write(f"{transport} {client} / {server}: {cell(rows[-1])}\n")
    lines = [json.dumps(row) + "\n" for row in rows]
    DATA.write_text("".join(lines), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
