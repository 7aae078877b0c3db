"""The state of threads, and the time they waited for a core, if the system provides it.

Linux does: the first two fields of ``/proc/PID/task/TID/schedstat``, in nanoseconds, which exclude
a wait that has not ended, and the state in ``stat``.
"""

import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mcp_touchstone.transport.deadline import ThreadTimes, Turns

PROCESSES: Final = Path("/proc")
READY: Final = b"R"


def turns(pid: int, ours: Iterable[threading.Thread] = ()) -> Turns:
    """Return the times of threads; empty if the system does not provide them.

    Args:
        pid: a process; its threads, and those of all processes below it.
        ours: further threads of this process, besides the calling one.
    """
    found = below(pid)
    for thread in (threading.current_thread(), *ours):  # always ready, since it runs this code
        task = PROCESSES / "self" / "task" / str(thread.native_id)
        found.update(_turn(task, ready=False))
    return found


def below(pid: int) -> dict[int, ThreadTimes]:
    """Return the times of the threads of a process and of all below it."""
    found: dict[int, ThreadTimes] = {}
    processes = [pid]
    while processes:
        for task in _tasks(processes.pop()):
            with contextlib.suppress(OSError):
                processes += map(int, (task / "children").read_bytes().split())
            found.update(_turn(task, ready=_ready(task)))
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return list((PROCESSES / str(pid) / "task").iterdir())
    except OSError:
        return []


def _turn(task: Path, *, ready: bool) -> Turns:
    try:
        ran, waited, *_ = map(int, (task / "schedstat").read_bytes().split())
    except (OSError, ValueError):  # it has exited, or the system does not provide it
        return {}
    return {int(task.name): ThreadTimes(waited / 1e9, ran / 1e9, ready)}


def _ready(task: Path) -> bool:
    """Return whether it runs or waits for a core; the name before the state may be any text."""
    try:
        return (task / "stat").read_bytes().rpartition(b")")[2].split()[:1] == [READY]
    except OSError:
        return False
