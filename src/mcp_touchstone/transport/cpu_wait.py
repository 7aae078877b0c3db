"""Which threads run, and how long they were ready to and had no core, where the system tells.

Linux does: the first two fields of ``/proc/PID/task/TID/schedstat``, in nanoseconds, where a wait
does not count before it has ended, and the state in ``stat``.
"""

import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mcp_touchstone.patience import Turn, Turns

PROCESSES: Final = Path("/proc")
READY: Final = b"R"


def turns(pid: int, ours: Iterable[threading.Thread] = ()) -> Turns:
    """Tell how threads fared; of none where the system does not say.

    Args:
        pid: a process; its threads, and those of all processes below it.
        ours: threads of this process to look at as well, besides the one that asks.
    """
    found: dict[int, Turn] = {}
    processes = [pid]
    while processes:
        for task in _tasks(processes.pop()):
            with contextlib.suppress(OSError):
                processes += map(int, (task / "children").read_bytes().split())
            found.update(_turn(task, ready=_ready(task)))
    for thread in (threading.current_thread(), *ours):  # ready by being asked: that says nothing
        task = PROCESSES / "self" / "task" / str(thread.native_id)
        found.update(_turn(task, ready=False))
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return list((PROCESSES / str(pid) / "task").iterdir())
    except OSError:
        return []


def _turn(task: Path, *, ready: bool) -> Turns:
    try:
        ran, waited, *_ = map(int, (task / "schedstat").read_bytes().split())
    except (OSError, ValueError):  # it has left, or the system does not tell
        return {}
    return {int(task.name): Turn(waited / 1e9, ran / 1e9, ready)}


def _ready(task: Path) -> bool:
    """Whether it runs or waits for a core; the name before the state may hold anything."""
    try:
        return (task / "stat").read_bytes().rpartition(b")")[2].split()[:1] == [READY]
    except OSError:
        return False
