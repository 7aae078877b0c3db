"""How long a full run takes, as a multiple of the server's own start-up, in one sitting.

    python benchmarks/floor.py [--runs N] [NAME=COMMAND ...]

Prints for each server: median start-up (spawn to the first answer, alone), wall time of a full
run, their ratio, its efficiency (the floor of ``check -v`` to the wall), the number of processes
started, and the wall time of a quick run beside what it is meant to keep below: twice the start-up
and half a second. Without arguments measures the bundled
reference server; a command may hold {root}.
"""

import argparse
import os
import platform
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.servers import named
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.client.connection import Connection, Pace
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import now


def startup(target: Target, runs: int) -> float:
    """Return the median time from the spawn to the answer to ``initialize``, in seconds.

    Only one process runs at a time.
    """
    times = []
    with World() as world:
        pool = ProcessPool(target, world, Pace(target.startup))
        try:
            for _ in range(runs):
                begun = now()
                connection: Connection = pool.spawn(rev.LATEST_LEGACY, "startup")
                reply = connection.initialize()
                times.append(now() - begun)
                if not reply.answered:
                    raise SystemExit(f"{target.shown}: {reply}")
                connection.end()
        finally:
            pool.close()
    return statistics.median(times)


def main() -> None:
    """Measure the servers and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("server", nargs="*", metavar="NAME=COMMAND")
    options = parser.parse_args()
    targets = named(options.server)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, jobs {options.jobs}")
    print(
        f"{'server':<16}{'start-up s':>12}{'run s':>9}{'ratio':>8}{'efficient':>11}"
        f"{'processes':>11}{'clauses':>9}{'quick s':>9}{'meant s':>9}"
    )
    for name, target in targets.items():
        alone = startup(target, options.runs)
        runs = [judge(target, load(), Choice(jobs=options.jobs)) for _ in range(options.runs)]
        hurried = [judge(target, load(), Choice(quick=True)) for _ in range(options.runs)]
        quick = statistics.median(run.seconds for run in hurried)
        efficiency = statistics.median(run.cost.efficiency for run in runs if run.cost)
        wall = statistics.median(run.seconds for run in runs)
        judged = len({verdict.clause.id for verdict in runs[-1].verdicts})
        print(
            f"{name:<16}{alone:>12.3f}{wall:>9.2f}{wall / alone:>8.1f}"
            f"{efficiency:>11.2f}{runs[-1].processes:>11}{judged:>9}"
            f"{quick:>9.2f}{2 * alone + 0.5:>9.2f}"
        )


if __name__ == "__main__":
    main()
