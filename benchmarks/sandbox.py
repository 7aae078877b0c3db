"""Measure the time a sandbox adds to a process start: ``python benchmarks/sandbox.py [STARTS]``.

The CPU time is the sum of all processes of a start. It depends less on the load of the machine than
the real time. The least real time is close to the time on an idle machine.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mcp_touchstone.sandbox.sandbox import Method, Sandbox, probe, wrap

COMMAND = ("true",)


def measure(name: str, command: Sequence[str], env: dict[str, str], starts: int) -> None:
    """Start a command several times and print the real time and CPU time in milliseconds."""
    real, cpu = [], []
    for _ in range(starts):
        before, begun = _spent(), time.perf_counter()
        subprocess.run(command, env=env, stdin=subprocess.DEVNULL, check=True)
        real.append(1e3 * (time.perf_counter() - begun))
        cpu.append(1e3 * (_spent() - before))
    print(
        f"{name:10} real {min(real):6.1f} least {statistics.median(real):6.1f} median   "
        f"CPU {min(cpu):6.1f} least {statistics.median(cpu):6.1f} median   (ms, {starts} starts)"
    )


def _spent() -> float:
    """Return the CPU time of the ended child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(starts: int) -> None:
    """Measure a direct start, one of Python, and each sandbox method that works here."""
    env = {"PATH": os.environ["PATH"]}
    python = [os.path.realpath(sys.executable), "-I", "-S", "-c", "pass"]
    with tempfile.TemporaryDirectory() as folder:
        measure("direct", COMMAND, env, starts)
        measure("python", python, env, starts)
        for method in Method:
            if why := probe(method):
                print(f"{method:10} {why}")
                continue
            box = Sandbox(method=method, writable=(Path(folder),))
            measure(method, wrap(box, COMMAND, cwd=folder, env=env), env, starts)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
