"""Judges three servers on a Dask cluster and kills the worker that returned the first row."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distributed

from mcp_touchstone.fleet import drive
from mcp_touchstone.fleet.child import Running
from mcp_touchstone.fleet.drive import Rows
from tests.fleets import PLAN, SERVER, command

if TYPE_CHECKING:
    from collections.abc import Mapping


def main(folder: Path) -> None:
    slow = "import time\ntime.sleep(3)\n" + SERVER
    entries = [command(f"s{number}", slow, folder) for number in range(3)]
    rows_of: list[str] = []

    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(folder),
    ) as local:
        victims = [worker.pid for worker in local.workers.values()]

        def kill(_row: Mapping[str, Any]) -> None:
            rows_of.append(_row["name"])
            if len(rows_of) == 1:
                os.kill(victims[0], signal.SIGKILL)

        with (
            Rows(folder / "rows.jsonl", PLAN, resume=False) as rows,
            drive.cluster(local.scheduler_address, Running(), print) as pool,
        ):
            drive.drive(entries, PLAN, rows, pool=pool, running=Running(), on_row=kill)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
