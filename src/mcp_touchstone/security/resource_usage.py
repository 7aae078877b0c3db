"""Measure memory, descriptors and CPU time of a process and its descendants."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from mcp_touchstone.transport.cpu_wait import turns
from mcp_touchstone.transport.process import now, sleep

PEAK: Final = "VmHWM:"
"""Line of ``/proc/PID/status`` with the peak memory of the process, in KiB."""


WINDOW: Final = 0.3
WINDOWS: Final = 3
"""Length of a measurement in seconds, and maximum number of them; the lowest value counts."""

WORKS: Final = 0.03
"""Minimum run time in seconds: on a loaded machine, each thread that wakes waits first."""

LONGEST: Final = 6.0
"""Seconds after which a measurement ends even if the process has not run for ``WORKS``."""


class ResourceUsage:
    """Measures a process and its descendants: the process may be only a launcher of the server."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def peak(self) -> int | None:
        """Return the sum of their peak memory, in bytes; None if unknown."""
        return self._sum(_peak)

    def resident(self) -> int | None:
        """Return the sum of their memory at present, in bytes; None if unknown."""
        return self._sum(lambda process: int(process.memory_info().rss))

    def descriptors(self) -> int | None:
        """Return the number of their open descriptors; None if unknown."""
        return self._sum(_descriptors)

    def _sum(self, measure: Callable[[psutil.Process], int | None]) -> int | None:
        try:
            process = psutil.Process(self._pid)
            found = [measure(one) for one in (process, *process.children(recursive=True))]
        except psutil.Error:
            return None
        known = [value for value in found if value is not None]
        return sum(known) if known else None


def _peak(process: psutil.Process) -> int | None:
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(PEAK)), None)


def _descriptors(process: psutil.Process) -> int | None:
    try:
        return int(process.num_fds())
    except (psutil.Error, AttributeError):
        return None


def cpu_share(pid: int, enough: float) -> float | None:
    """Return the lowest measured share of time in which a process wanted a core.

    Args:
        enough: a share up to this ends the measurements.

    Returns:
        0.0 to the number of its threads; None if the system does not provide it.
    """
    shares = []
    for _ in range(WINDOWS):
        before, begun = _wanted(pid), now()
        while True:
            sleep(WINDOW)
            after, spent = _wanted(pid), now() - begun
            if before is None or after is None:
                return None
            wanted, had = (b - a for a, b in zip(before, after, strict=True))
            if had > WORKS or wanted <= enough * spent or spent > LONGEST:
                break
        shares.append(wanted / spent if had > WORKS else 0.0)
        if shares[-1] <= enough:
            break
    return min(shares)


def _wanted(pid: int) -> tuple[float, float] | None:
    """Return the total seconds in which its threads wanted a core, and in which they had one."""
    known, ours = turns(pid), threading.get_native_id()
    found = [turn for thread, turn in known.items() if thread != ours]
    if not found:
        return None
    had = sum(turn.ran for turn in found)
    return had + sum(turn.waited for turn in found), had
