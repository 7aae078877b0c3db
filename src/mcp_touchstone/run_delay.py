"""How long threads were ready to run and had no core, where the system tells.

Linux does: the second field of ``/proc/PID/task/TID/schedstat``, in nanoseconds.
"""

import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mcp_touchstone.patience import Delays

PROCESSES: Final = Path("/proc")


def run_delays(pid: int, ours: Iterable[threading.Thread] = ()) -> Delays:
    """Give how long each thread waited for a core in its life, in seconds, where Linux tells.

    Args:
        pid: a process; its threads, and those of all processes below it.
        ours: threads of this process to look at as well, besides the one that asks.
    """
    delays: dict[int, float] = {}
    processes = [pid]
    while processes:
        for task in _tasks(processes.pop()):
            with contextlib.suppress(OSError):
                processes += map(int, Path(task, "children").read_text().split())
            delays.update(_run_delay(task))
    for thread in (threading.current_thread(), *ours):
        delays.update(_run_delay(PROCESSES / "self" / "task" / str(thread.native_id)))
    return delays


def _tasks(pid: int) -> list[Path]:
    try:
        return list((PROCESSES / str(pid) / "task").iterdir())
    except OSError:
        return []


def _run_delay(task: Path) -> Delays:
    try:
        _ran, waited, *_ = map(int, Path(task, "schedstat").read_text().split())
    except (OSError, ValueError):  # it has left, or the system does not tell
        return {}
    return {int(task.name): waited / 1e9}
