"""What a process and those it started hold: memory and descriptors, where the system says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

PEAK: Final = "VmHWM:"
"""Line of ``/proc/PID/status`` with the most memory it ever held, in KiB."""


class Gauge:
    """Looks at one process and at all below it: a launcher is not the server."""

    def __init__(self, pid: int) -> None:
        """Take the number of the process."""
        self._pid = pid

    def peak(self) -> int | None:
        """Give the most memory they ever held, in bytes; None where nobody can tell."""
        return self._sum(_peak)

    def descriptors(self) -> int | None:
        """Give how many descriptors are open; None where nobody can tell."""
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
