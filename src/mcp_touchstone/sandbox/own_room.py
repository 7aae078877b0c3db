"""Whether a file system that a sandbox has for itself is full. Linux only; knows no MCP."""

import contextlib
import os
from pathlib import Path

from mcp_touchstone.sandbox.init.common import PER_FILE
from mcp_touchstone.sandbox.sandbox import Sandbox, command_pid


class OwnRoom:
    """The file systems that a sandbox has for itself, seen from outside (Linux).

    They are opened while it starts, so the look after its end sees them as it left them.

    Args:
        outer: the process that was started for the sandbox.

    Attributes:
        starts: whether they are not open yet.
        over: whether it has ended.
    """

    def __init__(self, outer: int, sandbox: Sandbox) -> None:
        self._outer, self._places = outer, sandbox.own_places
        self._open: dict[str, int] = {}
        self.starts, self.over = True, False

    def look(self) -> str:
        """Return which of them is full; empty for none."""
        self.over = not Path(f"/proc/{self._outer}").exists()
        command = command_pid(self._outer) if self.starts else None
        if command is not None:
            self.starts = False
            for place in self._places:
                with contextlib.suppress(OSError):  # it has ended
                    self._open[place] = os.open(f"/proc/{command}/root{place}", os.O_PATH)
        return next(filter(None, (_full(place, one) for place, one in self._open.items())), "")

    def close(self) -> None:
        """Close them."""
        for one in self._open.values():
            os.close(one)
        self._open.clear()


def _full(place: str, descriptor: int) -> str:
    found = os.fstatvfs(descriptor)
    size, most = found.f_blocks * found.f_frsize, found.f_blocks * found.f_frsize // PER_FILE
    if not found.f_bfree:
        return f"it filled the {size >> 20:,} MiB of {place} in its sandbox"
    if found.f_files - found.f_ffree >= min(most, found.f_files):
        return f"it made {most:,} files in {place} of its sandbox, which has room for no more"
    return ""
