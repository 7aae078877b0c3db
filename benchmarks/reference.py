"""How fast the reference server is, as ratios to bare loops and SDK servers, in one sitting.

    python benchmarks/reference.py [--sdk NAME=PYTHON ...] [--runs N] [--only PART ...]

Start-up is measured against a loop of ten lines in the same interpreter, requests against the
low-level ``echo`` servers of the official SDKs (``tests/witnesses``) under the interpreters given,
writes against the same system calls made in this process. Everything is driven through pipes by
the same client, and what is compared takes turns. Memory is that of Linux' VmHWM.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

CHECKOUT = Path(__file__).resolve().parent.parent
WITNESSES = CHECKOUT / "tests" / "witnesses"
MEBIBYTE = 1024 * 1024
CALLS = 500
WRITES = 50
OUR_COMMAND = (sys.executable, "-m", "reference_server", "--log-level", "off")
SMALL = b"".join(b"line %d of a small file\n" % number for number in range(20))

BARE = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
                  "serverInfo": {"name": "bare", "version": "1"}}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(json.dumps(answer) + "\\n")
        sys.stdout.flush()
"""


class Server:
    """A server in a separate process, and its client.

    Args:
        env: Environment variables, added to those of this process.

    Attributes:
        startup: Time from the start to the answer to ``initialize``, in seconds.
    """

    def __init__(
        self, *command: str, cwd: Path = CHECKOUT, env: Mapping[str, str] | None = None
    ) -> None:
        begun = time.perf_counter()
        their_in, self._out = os.pipe()
        our_in, their_out = os.pipe()
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=their_in,
            stdout=their_out,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self._in = os.fdopen(our_in, "rb")
        client = {"name": "benchmark", "version": "1"}
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self.ask(request("initialize", opening))
        self.startup = time.perf_counter() - begun
        os.write(self._out, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        os.close(self._out)
        self._process.wait()
        self._in.close()

    def ask(self, line: bytes) -> bytes:
        """Send an encoded request and return the answer, also encoded."""
        while line:
            line = line[os.write(self._out, line) :]
        return self._in.readline()

    def try_out(self, line: bytes) -> None:
        """Send a request, and exit with a message if it does not succeed."""
        answer = json.loads(self.ask(line))
        if answer.get("result", {"isError": True}).get("isError"):
            raise SystemExit(f"{line!r}\nis answered with\n{answer}")

    def peak(self) -> int:
        """Return the peak memory of the server in bytes, or 0 if the system does not report it."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return 0


def request(method: str, params: dict[str, Any]) -> bytes:
    """Encode a request.

    All requests have the same id, because only one is in flight at a time.
    """
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def call(name: str, **arguments: Any) -> bytes:
    """Encode a tool call."""
    return request("tools/call", {"name": name, "arguments": arguments})


def ours(root: Path) -> Server:
    """Start the reference server with a root directory."""
    return Server(*OUR_COMMAND, "--root", str(root))


def turns(runs: int, measures: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Run the measures in turns and return the median of each, by name.

    The first turn is a warm-up and is not counted.
    """
    found: dict[str, list[float]] = {name: [] for name in measures}
    for turn in range(runs + 1):
        for name, measure in measures.items():
            value = measure()
            if turn:
                found[name].append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def timed(work: Callable[[], object]) -> float:
    """Return the run time of a function, in seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def show(name: str, value: str, ratio: float, target: str = "") -> None:
    """Print one row of a table."""
    print(f"  {name:<46}{value:>16}{ratio:>9.2f}  {target}")


def start_up(root: Path, runs: int, sdks: Mapping[str, str]) -> None:
    """Measure the time from the start of a process to the answer to ``initialize``."""
    bare = root / "bare.py"
    bare.write_text(BARE)
    fresh = root / "fresh"  # like an installation in a read-only directory
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "reference_server", fresh / "reference_server", ignore=ignored)

    def start(*command: str, cwd: Path = CHECKOUT, **env: str) -> Callable[[], float]:
        def measure() -> float:
            with Server(*command, cwd=cwd, env=env) as server:
                return server.startup

        return measure

    command = (*OUR_COMMAND, "--root", str(root))
    script = str(Path(sys.executable).with_name("mcp-touchstone"))
    found = turns(
        runs,
        {
            "bare loop": start(sys.executable, str(bare)),
            "python -m reference_server": start(*command),
            "mcp-touchstone serve": start(script, "serve", *command[3:]),
            "python -m reference_server, bytecode not cached": start(
                *command, cwd=fresh, PYTHONDONTWRITEBYTECODE="1"
            ),
            **{f"{name}, low-level server": start(p, _witness(name)) for name, p in sdks.items()},
        },
    )
    print("start-up, to the answer of initialize                       ms    to bare")
    for name, seconds in found.items():
        target = "target: at most 2.0" if name == "mcp-touchstone serve" else ""
        show(name, f"{seconds * 1e3:.1f}", seconds / found["bare loop"], target)


def requests(root: Path, runs: int, sdks: Mapping[str, str]) -> None:
    """Measure successive calls: ``file_read`` of a small file against ``echo`` of the SDKs."""
    (root / "small.txt").write_bytes(SMALL)
    ours_is = "file_read of 20 lines"
    with contextlib.ExitStack() as stack:
        servers = {ours_is: (stack.enter_context(ours(root)), call("file_read", path="small.txt"))}
        for name, python in sdks.items():
            server = stack.enter_context(Server(python, _witness(name)))
            servers[f"{name}, echo of the same text"] = (server, call("echo", text=SMALL.decode()))

        def measure(server: Server, line: bytes) -> Callable[[], float]:
            server.try_out(line)
            return lambda: CALLS / timed(lambda: [server.ask(line) for _ in range(CALLS)])

        found = turns(runs, {name: measure(*pair) for name, pair in servers.items()})
    print("calls one after the other                                per s       ours")
    for name, rate in found.items():
        times = found[ours_is] / rate
        show(name, f"{rate:.0f}", times, "" if name == ours_is else "target: at least 5")


def sizes(root: Path, runs: int, _sdks: Mapping[str, str]) -> None:
    """Measure time and memory by the size of the file. Each size has a new process."""
    line = b"0123456789" * 7 + b"012345678\n"
    with ours(root) as server:
        empty = server.peak()
    print(f"large files (memory above the {empty / MEBIBYTE:.0f} MiB of an idle server)")
    print(f"  {'':<28}{'ms':>9}{'ms per MiB':>12}{'peak MiB':>11}")
    for tool, kibibytes in (
        *(("file_read", size) for size in (64, 128, 256, 480)),
        *(("file_read_range", size) for size in (256, 512, 1024, 2048, 5120, 10240)),
    ):
        count = kibibytes * 1024 // len(line)
        size = count * len(line)
        (root / "large.txt").write_bytes(line * count)
        lines = {} if tool == "file_read" else {"startLine": count - 9, "endLine": count}
        asked = call(tool, path="large.txt", **lines)
        with ours(root) as server:
            server.try_out(asked)
            seconds = statistics.median(timed(lambda s=server: s.ask(asked)) for _ in range(runs))  # type: ignore[misc]  # noqa: B023
            peak = server.peak() - empty
        print(
            f"  {f'{tool} of {kibibytes} KiB':<28}{seconds * 1e3:>9.2f}"
            f"{seconds * 1e3 / (size / MEBIBYTE):>12.2f}{peak / MEBIBYTE:>11.1f}"
        )


def writes(root: Path, runs: int, _sdks: Mapping[str, str]) -> None:
    """Measure edits that are synchronized with the disk before the answer."""
    (root / "edited.txt").write_bytes(SMALL + b"old\n")

    def edit(old: str, new: str) -> bytes:
        command = {"command": "str_replace", "path": "edited.txt"}
        return call("text_editor", **command, old_str=f"{old}\n", new_str=f"{new}\n")

    there, back = edit("old", "new"), edit("new", "old")
    with ours(root) as server:
        server.try_out(there)
        server.try_out(back)
        found = turns(
            runs,
            {
                "the bare system calls": lambda: 2 * WRITES / timed(lambda: _replace(root)),
                "text_editor str_replace": lambda: (
                    2
                    * WRITES
                    / timed(lambda: [server.ask(each) for each in (there, back) * WRITES])
                ),
            },
        )
    print("writes, synchronized with the disk                       per s    to bare")
    floor = found["the bare system calls"]
    for name, rate in found.items():
        show(name, f"{rate:.0f}", rate / floor)


def _replace(root: Path) -> None:
    """Replace a file several times, atomically and synchronized with the disk."""
    new = root / "bare.new"
    for _ in range(2 * WRITES):
        with new.open("wb") as file:
            file.write(SMALL)
            file.flush()
            os.fsync(file.fileno())
        new.replace(root / "bare.txt")
        directory = os.open(root, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


def _witness(name: str) -> str:
    return str(WITNESSES / f"{name}_low.py")


PARTS = {"start-up": start_up, "requests": requests, "sizes": sizes, "writes": writes}


def main() -> None:
    """Run the chosen parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument(
        *("--sdk",),
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="interpreter with an SDK; NAME is mcp1 or mcp2",
    )
    parser.add_argument("--place", type=Path, help="directory on the disk to measure writes on")
    options = parser.parse_args()
    sdks = dict(pair.split("=", 1) for pair in options.sdk)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.runs} runs")
    for name in options.only or PARTS:
        with tempfile.TemporaryDirectory(dir=options.place) as place:
            PARTS[name](Path(place).resolve(), options.runs, sdks)


if __name__ == "__main__":
    main()
