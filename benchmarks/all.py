"""What docs/how-it-judges/performance.md says about runs: ratios with their spread.

    python benchmarks/all.py --peers FOLDER [--runs N] [--only PART ...] [--memory N]

FOLDER has the packages of npm (``node_modules/.bin``): @modelcontextprotocol/server-everything and
@modelcontextprotocol/server-filesystem, and an interpreter with the SDK ``mcp`` 2.x
(``py/bin/python``). The official suite is installed into ``FOLDER/official`` if it is missing.

In each round all parts are measured once, one after the other, and a ratio compares two numbers of
one round. So a busy machine lengthens both sides. Seconds depend on the machine; processor time and
numbers of processes hardly do. The program is the ``mcp-touchstone`` beside this interpreter: use
one that has it installed from a wheel, and do not set PYTHONDONTWRITEBYTECODE, since the time for
compiling would count.
"""

import argparse
import json
import os
import platform
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.reference import BARE
from benchmarks.soak import memory
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.revision import LEGACY
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.engine.launcher import Launcher
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.results.events import Event, Found
from mcp_touchstone.target.target import Target, absolute, reference
from tests.referee.suite import VERSION, Suite, install

CHECKOUT = Path(__file__).resolve().parent.parent
REVISION = "2025-11-25"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": REVISION,
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
ONE_REVISION = ("--revision", REVISION, "--examples", "0")
COPIED, COPIES = "echoes_the_id_as_sent", 200
PATIENCE = 120.0

GOALS = {
    "one revision: seconds / official suite": "<= 1.5",
    "one revision: clauses per s / checks per s": ">= 1.0",
    "one revision: judgements per s / checks per s": ">= 2.5",
    "HTTP: judgements per s / checks per s": ">= 2.0",
    "HTTP: seconds / over stdio": "<= 1.5",
    "reference: own processor s": "<= 1.5",
    "sdk: processes": "<= 20",
    "security: s": "<= 10",
    "security: efficiency": ">= 0.75",
    "reference, --suite all: MiB": "<= 150",
    "quick reference: s beyond two start-ups": "<= 0.3",
    "quick everything: s beyond two start-ups": "<= 0.3",
    "s before the start of the server": "<= 0.1",
    "one scenario: processes": "1",
    "finding on all traffic again: processes": "<= 3",
    "everything: starts up to the first certain finding": "<= 2",
    "serve: seconds / ten-line loop": "<= 2.0",
    "serve: processor / ten-line loop": "<= 2.0",
}
"""Row -> the value to reach; other rows only explain these."""

SWITCHES = {
    "shared sessions": ("lease", "Lender.session = lambda *_, **__: None"),
    "attack sites": ("lease", "Lender.site = lambda *_: None"),
    "early planning": ("plan", "Plan.ready = lambda *_: []"),
    "open sessions": ("lease", "Lender._hands_over = lambda *_: False"),
    "start priority": (
        "start_limiter",
        "enter = StartLimiter.enter; StartLimiter.enter = lambda self, turn=0: enter(self)",
    ),
}
"""Part of the engine that only saves time -> its module, and the statement that switches it off."""

Row = tuple[str, float]


@dataclass(frozen=True)
class Spent:
    """What a command took.

    Attributes:
        processor: seconds of it and of its descendants.
        own: processor seconds of its own process.
    """

    seconds: float
    processor: float
    own: float
    output: bytes = b""


def timed(*command: str, first: bytes = b"", cwd: Path | None = None) -> Spent:
    """Run a command to its end, or send it a line and close its input after the answer."""
    begun = time.monotonic()
    sends = subprocess.PIPE if first else subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=sends, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd
    ) as process:
        late = threading.Timer(PATIENCE * 5, process.kill)
        late.start()
        if first and process.stdin and process.stdout:
            process.stdin.write(first)
            process.stdin.flush()
            process.stdout.readline()
            answered = time.monotonic() - begun
            process.stdin.close()
        output = process.stdout.read() if process.stdout else b""
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        own = sum(map(int, stat.split()[11:13])) / os.sysconf("SC_CLK_TCK")
        _, process.returncode, usage = os.wait4(process.pid, 0)
        late.cancel()
        if late.finished.is_set() and process.returncode == signal.SIGKILL:
            raise SystemExit(f"{shlex.join(command)} does not end")
    seconds = answered if first else time.monotonic() - begun
    return Spent(seconds, usage.ru_utime + usage.ru_stime, own, output)


def program() -> str:
    """Return the path of the measured program."""
    return str(Path(sys.executable).with_name("mcp-touchstone"))


def check(*words: str, off: str = "") -> tuple[Spent, dict[str, Any]]:
    """Run ``mcp-touchstone check`` and return what it took and its JSON report.

    Args:
        off: a name of ``SWITCHES``; that part of the engine does not work then.
    """
    ours: tuple[str, ...] = (program(),)
    if off:
        module, change = SWITCHES[off]
        imports = f"from mcp_touchstone.engine.{module} import *; from mcp_touchstone import cli"
        ours = (sys.executable, "-c", f"{imports}; {change}; cli.program()")
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "report.json")
        spent = timed(*ours, "check", "-q", "--json", str(report), *words, cwd=CHECKOUT)
        if not report.exists():
            raise SystemExit(f"check {shlex.join(words)}: {spent.output.decode()}")
        return spent, json.loads(report.read_text(encoding="utf-8"))


PEAK: Final = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A small program that starts what is measured: Linux counts for a process what its parent had."""


def peak(*words: str) -> float:
    """Return the MiB of memory of the largest process of a run with a JSON report."""
    with tempfile.TemporaryDirectory() as place:
        report = str(Path(place, "report.json"))
        ours = (program(), "check", "-q", "--json", report, *words)
        return int(timed(sys.executable, "-c", PEAK, *ours, cwd=CHECKOUT).output) / 1024


def described(name: str, spent: Spent, report: dict[str, Any]) -> Iterator[Row]:
    """Yield the rows about one run."""
    run = report["summary"]
    yield f"{name}: s", spent.seconds
    yield f"{name}: processor s", spent.processor
    yield f"{name}: own processor s", spent.own
    yield f"{name}: processes", run["processes"]
    yield f"{name}: s listening to silence", run["cost"]["silence"]
    yield f"{name}: efficiency", run["cost"]["efficiency"]


@dataclass(frozen=True)
class Peers:
    """The servers and tools that are measured, in one folder."""

    folder: Path

    def npm(self, name: str, *words: str) -> tuple[str, ...]:
        """Return the command of an npm package."""
        return (str(self.folder / "node_modules" / ".bin" / name), *words)

    @property
    def everything(self) -> tuple[str, ...]:
        """The command of server-everything over stdio."""
        return self.npm("mcp-server-everything", "stdio")

    @property
    def sdk(self) -> tuple[str, ...]:
        """The command of a low-level server on the SDK."""
        return (str(self.folder / "py" / "bin" / "python"), "tests/witnesses/mcp2_low.py")

    def official(self) -> Suite:
        """Return the official suite, installed if it is missing."""
        return install(self.folder / "official")


@contextmanager
def listening(*command: str) -> Iterator[str]:
    """Start a server over HTTP; yield its URL as soon as it listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        number = int(one.getsockname()[1])
    quiet = subprocess.DEVNULL
    env = {**os.environ, "PORT": str(number)}
    with subprocess.Popen(command, env=env, stdout=quiet, stderr=quiet) as server:
        try:
            begun = time.monotonic()
            while time.monotonic() - begun < PATIENCE:
                with socket.socket() as one:
                    if not one.connect_ex(("127.0.0.1", number)):
                        yield f"http://127.0.0.1:{number}/mcp"
                        return
                time.sleep(0.02)
            raise SystemExit(f"{shlex.join(command)}: nothing listens on {number}")
        finally:
            server.kill()


def checks_per_second(peers: Peers) -> tuple[float, float]:
    """Judge server-everything with the official suite; return its checks a second, and the seconds.

    The start of the server counts.
    """
    suite = peers.official()
    begun = time.monotonic()
    with (
        listening(*peers.npm("mcp-server-everything", "streamableHttp")) as url,
        tempfile.TemporaryDirectory() as place,
    ):
        checks = sum(map(len, suite.judge(url, REVISION, Path(place)).checks.values()))
        seconds = time.monotonic() - begun
    return checks / seconds, seconds


def judged(report: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of clauses and of judgements of a run."""
    verdicts = [v for v in report["verdicts"] if v["outcome"] != "unseen"]
    return len(verdicts), report["summary"]["judgements"]


def one_revision(peers: Peers) -> Iterator[Row]:
    """Measure one revision of server-everything beside the official suite.

    The start of the server counts on both sides. A check of the suite is one assertion about one
    exchange, as a judgement is.
    """
    per_second, theirs = checks_per_second(peers)
    spent, report = check(*ONE_REVISION, "--", *peers.everything)
    clauses, judgements = judged(report)
    yield "one revision: seconds / official suite", spent.seconds / theirs
    yield "one revision: clauses per s / checks per s", clauses / spent.seconds / per_second
    yield "one revision: judgements per s / checks per s", judgements / spent.seconds / per_second
    yield from described("one revision", spent, report)


def http(peers: Peers) -> Iterator[Row]:
    """Measure one revision over HTTP beside the official suite, and beside the run over stdio."""
    per_second, _ = checks_per_second(peers)
    server = peers.npm("mcp-server-everything", "streamableHttp")
    url = "http://127.0.0.1:{port}/mcp"
    spent, report = check(*ONE_REVISION, "--http", url, "--", "env", "PORT={port}", *server)
    _, judgements = judged(report)
    stdio, _ = check(*ONE_REVISION, "--", *peers.everything)
    yield "HTTP: judgements per s / checks per s", judgements / spent.seconds / per_second
    yield "HTTP: seconds / over stdio", spent.seconds / stdio.seconds
    yield from described("HTTP", spent, report)


def all_revisions(peers: Peers) -> Iterator[Row]:
    """Measure all revisions of three servers."""
    yield from described("reference", *check("--self"))
    yield from described("everything", *check("--", *peers.everything))
    yield from described("sdk", *check("--", *peers.sdk))


def security(peers: Peers) -> Iterator[Row]:
    """Measure the security suite on server-filesystem."""
    filesystem = peers.npm("mcp-server-filesystem", "{root}")
    yield from described("security", *check("--suite", "security", "--", *filesystem))
    yield "reference, --suite all: MiB", peak("--suite", "all", "--self")


def switches(peers: Peers) -> Iterator[Row]:
    """Measure the run that each part of the engine is for, without it and with it."""
    url = "http://127.0.0.1:{port}/mcp"
    http = ("env", "PORT={port}", *peers.npm("mcp-server-everything", "streamableHttp"))
    over_http = (*ONE_REVISION, "--http", url, "--", *http)
    filesystem = peers.npm("mcp-server-filesystem", "{root}")
    attacks = ("--suite", "security", "--", *filesystem)
    for words, names in (
        (("--", *peers.sdk), ("start priority", "early planning", "open sessions")),
        (over_http, ("shared sessions",)),
        (attacks, ("attack sites",)),
    ):
        for name in names:
            on, with_it = check(*words)
            off, without = check(*words, off=name)
            yield f"without {name}: seconds / with it", off.seconds / on.seconds
            yield f"without {name}: processor / with it", off.processor / on.processor
            more = without["summary"]["processes"] - with_it["summary"]["processes"]
            yield f"without {name}: more processes", more


def quick(peers: Peers) -> Iterator[Row]:
    """Measure quick runs from prompt to prompt."""
    line = json.dumps(INITIALIZE).encode() + b"\n"
    ours = (sys.executable, "-m", "reference_server")
    for name, command, words in (
        ("reference", ours, ("--self",)),
        ("everything", peers.everything, ("--", *peers.everything)),
    ):
        alone = timed(*command, first=line, cwd=CHECKOUT).seconds
        spent, _ = check("--quick", *words)
        yield f"quick {name}: s beyond two start-ups", spent.seconds - 2 * alone
        yield f"quick {name}: s / start-up", spent.seconds / alone
        yield f"quick {name}: processor s", spent.processor


def first_word(peers: Peers) -> Iterator[Row]:
    """Measure what comes before the first word, and what one clause again takes."""
    with tempfile.TemporaryDirectory() as place:
        mark = Path(place, "started")
        begun = time.time()
        noted = '[ -e "$0" ] || : > "$0"; exec "$@"'
        check("--quick", "--", "sh", "-c", noted, str(mark), *peers.everything)
        yield "s before the start of the server", mark.stat().st_mtime - begun
    chosen = ("--revision", REVISION, "--select", "answers_a_ping")
    _, report = check(*chosen, "--", *peers.everything)
    yield "one scenario: processes", report["summary"]["processes"]
    _, report = check("--revision", LEGACY[0], "--", *peers.everything)
    (found,) = (one for one in report["verdicts"] if one["outcome"] == "fail" and "sdk" not in one)
    words = ("--select", found["clause"], *found["judgements"][0]["replay"])
    _, report = check("--revision", LEGACY[0], *words, "--", *peers.everything)
    yield "finding on all traffic again: processes", report["summary"]["processes"]
    starts: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, Found) and event.findings:
            starts.append(launched)

    launched = 0
    start = Launcher.start

    def counted(self: Launcher, *args: Any, **options: Any) -> Any:
        nonlocal launched
        launched += 1
        return start(self, *args, **options)

    with mock.patch.object(Launcher, "start", counted):
        judge(Target(command=peers.everything), load(), Choice(), on_event=note)
    yield "everything: starts up to the first certain finding", starts[0]


def serve(_peers: Peers) -> Iterator[Row]:
    """Measure the start of ``serve`` beside a loop of ten lines in the same interpreter."""
    line = json.dumps(INITIALIZE).encode() + b"\n"
    with tempfile.TemporaryDirectory() as place:
        loop = Path(place, "bare.py")
        loop.write_text(BARE, encoding="utf-8")
        pairs = [
            (timed(sys.executable, str(loop), first=line), timed(program(), "serve", first=line))
            for _ in range(5)
        ]
    seconds = [[one.seconds for one in side] for side in zip(*pairs, strict=True)]
    processor = [[one.processor for one in side] for side in zip(*pairs, strict=True)]
    for name, (bare, ours) in (("seconds", seconds), ("processor", processor)):
        yield f"serve: {name} / ten-line loop", statistics.median(ours) / statistics.median(bare)


def scenario(_peers: Peers) -> Iterator[Row]:
    """Measure what one more scenario costs on the reference server, in each revision."""
    spent = []
    for copies in (0, COPIES):
        before = sum(os.times()[:4])
        run = judge(reference(), _grown(copies), Choice(select=("basic",), examples=0))
        spent.append(sum(os.times()[:4]) - before)
    more = COPIES * max(1, len(run.subject.revisions))
    yield "one more scenario: processor ms", 1000 * (spent[1] - spent[0]) / more


def _grown(copies: int) -> Registry:
    """Return the suite with copies of one scenario added. Each copy has its own id."""
    whole = load()
    one = next(each for each in whole.scenarios if each.name == COPIED)
    made = [
        replace(one, id=f"{one.id}_{number}", order=len(whole.cases()) + number)
        for number in range(copies)
    ]
    return Registry(whole.catalogue, [*whole.scenarios, *made], list(whole.ambients))


PARTS: dict[str, Callable[[Peers], Iterator[Row]]] = {
    "one-revision": one_revision,
    "http": http,
    "all-revisions": all_revisions,
    "security": security,
    "switches": switches,
    "quick": quick,
    "first-word": first_word,
    "serve": serve,
    "scenario": scenario,
}


def remember(runs: int) -> None:
    """Judge the reference server with all suites several times; print the memory in MiB."""
    registry = load("all")
    target: Target = replace(reference(), command=absolute(reference().command))
    marks = {1, *(runs * part // 4 for part in range(1, 5))}
    print(f"\n{'runs of --suite all in one process':<52}{'MiB':>8}   goal: flat, below 150")
    for number in range(1, runs + 1):
        judge(target, registry, Choice())
        if number in marks:
            print(f"{number:<52}{memory():>8.0f}", flush=True)


def main() -> None:
    """Measure the parts in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--memory", type=int, default=0, metavar="N")
    options = parser.parse_args()
    peers = Peers(options.peers.resolve())
    found: dict[str, list[float]] = {}
    for _ in range(options.runs):
        for part in options.only:
            for name, value in PARTS[part](peers):
                found.setdefault(name, []).append(value)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.runs} rounds")
    print(f"official suite {VERSION}, revision {REVISION}\n")
    print(f"{'':<52}{'median':>8}{'least':>8}{'most':>8}   goal")
    for name, values in found.items():
        middle = statistics.median(values)
        goal = GOALS.get(name, "")
        print(f"{name:<52}{middle:>8.2f}{min(values):>8.2f}{max(values):>8.2f}   {goal}")
    if options.memory:
        remember(options.memory)


if __name__ == "__main__":
    main()
