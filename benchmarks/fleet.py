"""Measure a fleet: ``python benchmarks/fleet.py [SERVERS]``.

Servers an hour against workers, the time that a fleet adds to a check, and the memory of the driver
for 10,000 rows. The servers are copies of the reference server under different names.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mcp_touchstone.fleet import counts, drive
from mcp_touchstone.fleet.child import Running
from mcp_touchstone.fleet.entry import ListedServer, RegistryType
from mcp_touchstone.fleet.judge import FleetSettings
from mcp_touchstone.sandbox.sandbox import Method, choose

WORDS = ("--revision", "2025-11-25", "--examples", "3")
COMMAND = (sys.executable, "-m", "mcp_touchstone", "serve", "--root", "{root}")
MANY = 10_000


def loop(folder: Path, servers: int, method: Method | None) -> float:
    """Check servers one after the other with `check`; return the seconds for each."""
    begun = time.perf_counter()
    for number in range(servers):
        files = folder / f"loop{number}"
        files.mkdir()
        words = ["--quiet", "--json", str(files / "report.json"), "--save", str(files / "all")]
        words += ["--jobs", "40", "--sandbox", str(method or "off"), "--cwd", "{root}", *WORDS]
        subprocess.run(
            [sys.executable, "-m", "mcp_touchstone", "check", *words, "--", *COMMAND],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    return (time.perf_counter() - begun) / servers


def fleet(folder: Path, servers: int, workers: int, method: Method | None) -> tuple[float, float]:
    """Check servers with a fleet; return seconds for each, and the share that is not `check`."""
    plan = FleetSettings(
        words=WORDS, method=method, jobs=max(40 // workers, 2), files=folder / f"files{workers}"
    )
    entries = [
        ListedServer(name=f"s{number}", registry=RegistryType.COMMAND, command=COMMAND)
        for number in range(servers)
    ]
    path = folder / f"rows{workers}.jsonl"
    begun = time.perf_counter()
    running = Running()
    with drive.Rows(path, plan, resume=False) as rows, drive.threads(workers, running) as pool:
        drive.drive(entries, plan, rows, pool=pool, running=running, on_row=lambda _row: None)
    spent = (time.perf_counter() - begun) / servers
    seconds = [row["seconds"] for row in drive.read(path)]
    total, run = sum(one["total"] for one in seconds), sum(one["run"] for one in seconds)
    return spent, (total - run) / total


def many() -> Iterator[ListedServer]:
    """Yield servers that need no check: images, which are not judged."""
    for number in range(MANY):
        yield ListedServer(
            name=f"s{number}", registry=RegistryType.OCI, package=f"example/{number}"
        )


def memory(folder: Path) -> None:
    """Write rows without checks, and print the greatest memory of this process on the way."""
    plan = FleetSettings()
    count = 0

    def show(_row: object) -> None:
        nonlocal count
        count += 1
        if count in {1, 1000, MANY}:
            print(f"{count:6} rows: {_peak():.1f} MB at most", flush=True)

    path = folder / "many.jsonl"
    begun = time.perf_counter()
    running = Running()
    with drive.Rows(path, plan, resume=False) as rows, drive.threads(2, running) as pool:
        drive.drive(many(), plan, rows, pool=pool, running=running, on_row=show)
    print(f"{(time.perf_counter() - begun) / MANY * 1e3:.2f} ms for each row")
    begun = time.perf_counter()
    counts.gather([path])
    print(f"report: {time.perf_counter() - begun:.1f} s, {_peak():.1f} MB at most")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(servers: int) -> None:
    """Print all figures."""
    method, _ = choose("bwrap")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        memory(folder)
        plain = loop(folder, servers, method)
        print(f"check in a loop: {plain:.2f} s for each server")
        for workers in (1, 2, 4):
            spent, share = fleet(folder, servers, workers, method)
            print(
                f"{workers} workers: {spent:.2f} s for each server, {3600 / spent:.0f} an hour, "
                f"{share:.1%} outside of check"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
