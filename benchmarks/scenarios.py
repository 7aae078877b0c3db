"""What one more scenario costs: the same run with more and more copies of one.

    python benchmarks/scenarios.py [--steps 0,100,200,400] [NAME=COMMAND ...]

Adds copies of a small scenario (an id is echoed, in the process all share) to the group ``basic``
and prints, for each number of copies, the wall time and the processor time of the run (ours and the
servers') and what each copy cost since the step before, in milliseconds a revision. Without
arguments measures the bundled reference server.
"""

import argparse
import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.servers import named
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.engine.runner import Choice, judge

COPIED = "echoes_the_id_as_sent"


def grown(copies: int) -> Registry:
    """Return the suite with copies of one scenario added. Each copy has its own id."""
    whole = load()
    one = next(scenario for scenario in whole.scenarios if scenario.name == COPIED)
    made = [
        replace(one, id=f"{one.id}_{number}", order=len(whole.cases()) + number)
        for number in range(copies)
    ]
    return Registry(whole.catalogue, [*whole.scenarios, *made], list(whole.ambients))


def spent() -> float:
    """Return the processor time of this process and of its ended children, in seconds."""
    return sum(os.times()[:4])


def main() -> None:
    """Measure the runs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", default="0,100,200,400")
    parser.add_argument("server", nargs="*", metavar="NAME=COMMAND")
    options = parser.parse_args()
    targets = named(options.server)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    for name, target in targets.items():
        print(f"{name:<14}{'copies':>8}{'wall s':>9}{'cpu s':>8}{'ms of cpu a copy':>18}")
        before: tuple[int, float] | None = None
        for copies in map(int, options.steps.split(",")):
            registry, cpu, wall = grown(copies), spent(), time.monotonic()
            run = judge(target, registry, Choice(select=("basic",), examples=0))
            cpu, wall = spent() - cpu, time.monotonic() - wall
            per_copy = ""
            if before is not None and run.profile.spoken:
                more = (copies - before[0]) * len(run.profile.spoken)
                per_copy = f"{1000 * (cpu - before[1]) / more:.2f}"
            print(f"{'':<14}{copies:>8}{wall:>9.2f}{cpu:>8.2f}{per_copy:>18}", flush=True)
            before = copies, cpu


if __name__ == "__main__":
    main()
