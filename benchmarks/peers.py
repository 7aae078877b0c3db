"""Judged checks a second: the official conformance suite, mcpscore and ours, one server, in turns.

    python benchmarks/peers.py --suite FOLDER --http 'COMMAND' --stdio 'COMMAND'
        [--mcpscore PROGRAM] [--runs N]

The official suite speaks HTTP and is fetched into FOLDER by npm where it is not there; COMMAND
starts the server over HTTP on ``$PORT`` (the URL is http://127.0.0.1:$PORT/mcp), the other one over
stdio. For example, with @modelcontextprotocol/server-everything:

    --http 'mcp-server-everything streamableHttp' --stdio 'mcp-server-everything stdio'

What is counted: for the official suite the checks in its results, of what it requires for the
revision; each is one assertion about one exchange. For mcpscore (PyPI) the rules it passed or
failed. For us both: the clauses judged in that revision, and their judgements, which are what a
check of the suite is; a rule that watches all traffic counts once, however much it saw. The server
of the official suite runs already when its clock starts; mcpscore and we start it ourselves, and
the start of each tool is in its time. Ours is the ``mcp-touchstone`` beside this interpreter, so
this has to be run with one that has it installed from a wheel.
"""

import argparse
import json
import os
import platform
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import Target, absolute
from tests.referee.suite import VERSION, Suite, install

REVISION = "2025-11-25"


def port() -> int:
    """Return the number of a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def serve(command: str) -> tuple["subprocess.Popen[bytes]", str]:
    """Start a server over HTTP, wait until it listens, and return its process and URL."""
    number = port()
    env = {**os.environ, "PORT": str(number)}
    server = subprocess.Popen(
        shlex.split(command), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(600):
        with socket.socket() as one:
            if not one.connect_ex(("127.0.0.1", number)):
                return server, f"http://127.0.0.1:{number}/mcp"
        time.sleep(0.05)
    server.kill()
    raise SystemExit(f"{command}: nothing listens on {number}")


def official(suite: Suite, url: str) -> tuple[int, float]:
    """Run the official suite and return the number of its checks and the time in seconds."""
    with tempfile.TemporaryDirectory() as place:
        begun = time.monotonic()
        verdict = suite.judge(url, REVISION, Path(place))
        return sum(map(len, verdict.checks.values())), time.monotonic() - begun


def counted(command: str, *, quick: bool) -> tuple[int, int]:
    """Return the number of clauses and judgements of a separate, untimed run over stdio."""
    target = Target(command=absolute(tuple(shlex.split(command))))
    choice = Choice(revisions=(REVISION,), examples=0, quick=quick)
    run = judge(target, load(), choice)
    judged = [v for v in run.verdicts if v.outcome is not Outcome.UNSEEN]
    seen = [j for v in judged for j in v.judgements if j.outcome is not Outcome.UNSEEN]
    return len(judged), len(seen)


def ours(command: str, *, quick: bool) -> float:
    """Run ``mcp-touchstone check`` over stdio and return its whole run time in seconds."""
    program = Path(sys.executable).with_name("mcp-touchstone")
    words = ["check", "-q", "--revision", REVISION, "--examples", "0"] + ["--quick"] * quick
    begun = time.monotonic()
    done = subprocess.run(
        [program, *words, "--", *shlex.split(command)], stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode not in {0, 1}:
        raise SystemExit(f"mcp-touchstone could not judge: status {done.returncode}")
    return time.monotonic() - begun


def mcpscore(program: str, command: str) -> tuple[int, float]:
    """Run mcpscore over stdio and return the number of assessed rules and the time in seconds."""
    begun = time.monotonic()
    done = subprocess.run(
        [program, "--json", "--stdio", *shlex.split(command)],
        capture_output=True,
        text=True,
        check=False,
    )
    return int(json.loads(done.stdout)["summary"]["total"]), time.monotonic() - begun


def main() -> None:
    """Measure the tools and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--http", required=True, metavar="COMMAND")
    parser.add_argument("--stdio", required=True, metavar="COMMAND")
    parser.add_argument("--mcpscore", metavar="PROGRAM")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    suite = install(options.suite)
    counts = {
        name: counted(options.stdio, quick=name.endswith("--quick"))
        for name in ("check", "check --quick")
    }
    server, url = serve(options.http)
    found: dict[str, list[tuple[int, float]]] = {}
    try:
        for _ in range(options.runs):
            found.setdefault(f"official suite {VERSION}", []).append(official(suite, url))
            if options.mcpscore:
                theirs = mcpscore(options.mcpscore, options.stdio)
                found.setdefault("mcpscore, over stdio", []).append(theirs)
            for name, (clauses, judgements) in counts.items():
                seconds = ours(options.stdio, quick=name.endswith("--quick"))
                found.setdefault(f"{name}: clauses", []).append((clauses, seconds))
                found.setdefault(f"{name}: judgements", []).append((judgements, seconds))
    finally:
        server.kill()
        server.wait()
    rates = {
        name: statistics.median(count / seconds for count, seconds in runs)
        for name, runs in found.items()
    }
    first = next(iter(rates.values()))
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, {options.runs} runs, {REVISION}")
    print(f"{'':<32}{'judged':>8}{'s':>8}{'per s':>9}{'to the suite':>14}")
    for name, runs in found.items():
        seconds = statistics.median(spent for _, spent in runs)
        ratio = rates[name] / first
        print(f"{name:<32}{runs[-1][0]:>8}{seconds:>8.2f}{rates[name]:>9.1f}{ratio:>13.1f}x")


if __name__ == "__main__":
    main()
