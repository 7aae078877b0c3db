"""Measure whether memory or descriptors grow: many runs, and fuzzed messages to our server.

    python benchmarks/soak.py [--runs N] [--full] [--messages N] [--seed S]

Runs of the harness in one process: memory and descriptors after each tenth of them; ``--full``
makes them full ones in place of quick ones. Messages: a session of the reference server gets
requests, half of them spoilt (cut, bytes changed, members of other types, nested deep). Every sound
one must be answered once under its own id, and no answer may have an id nobody used. On Linux the
script also prints the memory. The exit status is 1 if an answer is wrong or lost.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

from mcp_touchstone.catalog.loader import home, load
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.target.target import reference

BATCH = 20  # fits into the buffer of a pipe, because all of it is written before reading
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    10**30,
    "",
    "\u202e",
    "\ud800",
    [],
    {},
    [[]],
    {"a": {"b": []}},
)


def memory(pid: int | str = "self") -> float:
    """Return the resident memory of a process in MiB, or 0 if the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def descriptors() -> int:
    """Return the number of open descriptors of this process, or 0 if it is not known."""
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0


def soak(runs: int, *, full: bool) -> bool:
    """Judge the reference server several times and return whether it passed each time."""
    registry = load()
    choice = Choice(quick=not full)
    sound = True
    begun = time.monotonic()
    print(f"{'runs':>6}{'MiB':>9}{'descriptors':>13}{'s a run':>9}")
    for number in range(1, runs + 1):
        sound &= judge(reference(), registry, choice).exit_code == 0
        if number in {1, runs} or not number % max(1, runs // 10):
            spent = (time.monotonic() - begun) / number
            print(f"{number:>6}{memory():>9.1f}{descriptors():>13}{spent:>9.2f}", flush=True)
    return sound


def request(number: int, dice: random.Random) -> dict[str, Any]:
    """Build a valid request."""
    method, params = dice.choice(
        [
            ("ping", {}),
            ("tools/list", {}),
            ("prompts/list", {}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("tools/call", {"name": "list_capabilities", "arguments": {}}),
            ("tools/call", {"name": "file_read", "arguments": {"path": "a.txt"}}),
            ("tools/call", {"name": "no.such.tool", "arguments": {}}),
        ]
    )
    return {"jsonrpc": "2.0", "id": f"s{number}", "method": method, "params": params}


def spoilt(number: int, dice: random.Random) -> bytes:
    """Build an invalid line. It is no cancellation and does not use the id of a valid request."""
    message = request(number, dice)
    message["id"] = dice.choice([f"x{number}", -number - 1, *ODD_VALUES])
    how = dice.randrange(6)
    if how == 0:
        message[dice.choice(["jsonrpc", "method", "params", "extra"])] = dice.choice(ODD_VALUES)
    elif how == 1:
        message["params"] = {name: dice.choice(ODD_VALUES) for name in ("name", "arguments", "uri")}
    line = json.dumps(message).encode()
    if how == 2:
        line = line[: dice.randrange(len(line))]
    elif how == 3:
        spoiling = bytearray(line)
        for _ in range(dice.randrange(1, 6)):
            spoiling[dice.randrange(len(line))] = dice.choice(
                [0, 9, 34, 44, 92, 123, 125, 200, 255]
            )
        line = bytes(spoiling)
    elif how == 4:
        line = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * dice.randrange(2000)
    return line.replace(b"\n", b" ")


def fuzz(count: int, seed: int) -> bool:
    """Send messages to the reference server and return whether all answers were right.

    Each valid request must get exactly one answer. No answer may have an unknown id. The server
    must end with status 0.
    """
    dice = random.Random(seed)  # noqa: S311  (repeatable runs need a seed)
    with tempfile.TemporaryDirectory() as place:
        Path(place, "a.txt").write_text("one\ntwo\n")
        command = [sys.executable, "-m", "reference_server", "--root", place, "--log-level", "off"]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home(),
        ) as server:
            opening = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "soak", "version": "1"},
            }
            hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
            into, out = _pipes(server)
            into.write(json.dumps(hello).encode() + b"\n")
            into.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
            into.flush()
            out.readline()
            wrong: Counter[str] = Counter()
            begun = time.monotonic()
            print(f"{'messages':>9}{'server MiB':>12}{'a second':>10}")
            for first in range(0, count, BATCH):
                wrong += batch(server, range(first, first + BATCH), dice)
                done = first + BATCH
                if first == 0 or not done % max(BATCH, count // 10 // BATCH * BATCH):
                    rate = done / (time.monotonic() - begun)
                    print(f"{done:>9}{memory(server.pid):>12.1f}{rate:>10.0f}", flush=True)
            into.close()
            out.read()
    print("wrong:", dict(wrong) or "nothing", f"; exit status {server.returncode}")
    return not wrong and server.returncode == 0


def batch(server: "subprocess.Popen[bytes]", numbers: range, dice: random.Random) -> Counter[str]:
    """Send a batch of messages, read until each valid request is answered, and count errors."""
    into, out = _pipes(server)
    asked = {}
    used: set[Any] = set()
    for number in numbers:
        if dice.random() < 0.5:
            message = request(number, dice)
            asked[message["id"]] = 0
            line = json.dumps(message).encode()
        else:
            line = spoilt(number, dice)
        used |= _ids(line)
        into.write(line + b"\n")
    into.flush()
    wrong: Counter[str] = Counter()
    missing = len(asked)
    while missing:
        answer = out.readline()
        if not answer:
            wrong["lost"] += missing
            break
        answer = json.loads(answer)
        if "method" in answer:
            continue
        key = answer.get("id")
        if isinstance(key, str) and key in asked:
            wrong["answered twice"] += asked[key] > 0
            missing -= not asked[key]
            asked[key] += 1
        elif isinstance(key, str) and key.startswith("s") and key[1:].isdigit():
            wrong["answered again later"] += 1
        elif key is not None and not isinstance(key, (list, dict)) and not _known(key, used):
            wrong["an id nobody used"] += 0 if _late(key, numbers) else 1
    return +wrong


def _pipes(server: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    if server.stdin is None or server.stdout is None:
        raise SystemExit("the server has no pipes")
    return server.stdin, server.stdout


def _ids(line: bytes) -> set[Any]:
    try:
        found = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return set()
    key = found.get("id") if isinstance(found, dict) else None
    return {repr(key)}


def _known(key: Any, used: set[Any]) -> bool:
    return repr(key) in used


def _late(key: Any, numbers: range) -> bool:
    """Return whether an answer may belong to an invalid line of an earlier batch."""
    if isinstance(key, str):
        return key.startswith("x") or key in {v for v in ODD_VALUES if isinstance(v, str)}
    return key in {v for v in ODD_VALUES if isinstance(v, int | float)} or -numbers.stop <= key < 0


def main() -> None:
    """Run both parts and exit with status 1 if one has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--full", action="store_true", help="full runs, not quick ones")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sound = not options.runs or soak(options.runs, full=options.full)
    sound &= not options.messages or fuzz(options.messages, options.seed)
    sys.exit(not sound)


if __name__ == "__main__":
    main()
