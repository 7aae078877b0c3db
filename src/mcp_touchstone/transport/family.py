"""The processes of a server: the one that was started, and its descendants. Knows no MCP."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from mcp_touchstone.sandbox.sandbox import is_helper

if TYPE_CHECKING:
    import subprocess

WINDOWS: Final = sys.platform == "win32"

_LISTED: Final = Path("/proc/thread-self/children")
"""See proc(5); it exists if the kernel was built with CONFIG_PROC_CHILDREN."""

_MOST: Final = 10_000
"""Greatest number of descendants that are listed: a server may start new ones without end."""

LISTENING: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """A process of a server.

    Attributes:
        argv: its command line.
        cwd: its working folder, absolute.
        pid: its id, if it is in a sandbox; otherwise 0.
        path: the PATH of its environment; empty if unknown.
    """

    argv: tuple[str, ...]
    cwd: Path
    pid: int = field(default=0, compare=False)
    path: str = field(default="", compare=False)


class Family:
    """The processes of one server.

    Args:
        process: the process that was started, in a group of its own.
        in_sandbox: whether it runs in a sandbox, whose helpers are no strays.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", *, in_sandbox: bool) -> None:
        self._popen = process
        self._in_sandbox = in_sandbox

    def ports(self) -> list[int]:
        """Return the TCP ports on which one of them listens; empty if unknown."""
        return sorted({port for _, port in self._sockets()})

    def addresses(self, port: int) -> list[str]:
        """Return the addresses on which one of them listens at a port; empty if unknown."""
        return sorted(address for address, number in self._sockets() if number == port)

    def _sockets(self) -> set[tuple[str, int]]:
        """Return the addresses and ports on which one of them listens."""
        found: set[tuple[str, int]] = set()
        for pid in (self._popen.pid, *(process.pid for process in self.members())):
            with contextlib.suppress(OSError):
                found |= listening(pid)
        return found

    def facts(self) -> list[ProcessFacts]:
        """Return the processes of the server that run now, the latest first."""
        found = []
        for process in self._running():
            with contextlib.suppress(psutil.Error, OSError):
                pid, words = process.pid if self._in_sandbox else 0, tuple(process.cmdline())
                found.append(ProcessFacts(words, Path(process.cwd()), pid, _path_of(process)))
        return found

    def _running(self) -> Iterator[psutil.Process]:
        """Yield the processes of the server, the latest first."""
        yield from reversed(self.members())
        with contextlib.suppress(psutil.Error, OSError):
            yield psutil.Process(self._popen.pid)

    def members(self) -> list[psutil.Process]:
        """Return the present descendants."""
        return children(self._popen.pid, recursive=True)

    @property
    def memory(self) -> int:
        """The resident memory of the server and its descendants, in bytes; 0 if unknown."""
        found = 0
        for process in self._running():
            with contextlib.suppress(psutil.Error, OSError):
                found += process.memory_info().rss
        return found

    def signal(self, members: Iterable[psutil.Process], *, force: bool) -> None:
        """Send SIGTERM to the group of the server, or SIGKILL to it and to some descendants."""
        if WINDOWS:
            everyone: list[psutil.Process | subprocess.Popen[bytes]] = [*members, self._popen]
            for process in everyone:
                with contextlib.suppress(psutil.Error, OSError):
                    process.kill() if force else process.terminate()
            return
        number = signal.SIGKILL if force else signal.SIGTERM
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)
        if force:
            for process in members:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    def stop(self) -> None:
        """Send SIGTERM to the process that was started, and to nothing that it started."""
        with contextlib.suppress(OSError):
            self._popen.terminate()

    def end_strays(self, members: list[psutil.Process], grace: float) -> int:
        """End processes that the server left in its group or below it; return their number.

        They have ``grace`` seconds to exit by themselves.
        """
        left = [process for process in members if alive(process)]
        helpers = {
            process.pid for process in members if self._in_sandbox and is_helper(process.pid)
        }
        if not WINDOWS:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, 0)  # cheap; only an existing group is searched
                left += [process for process in everybody() if self._owns(process)]
        until = time.monotonic() + grace
        while left and time.monotonic() < until:
            time.sleep(0.05)
            left = [process for process in left if alive(process)]
        if left:
            self.signal(members, force=True)
        return len({process.pid for process in left} - helpers)

    def _owns(self, process: psutil.Process) -> bool:
        """Return whether a process of the server's group is alive; zombies do not count."""
        with contextlib.suppress(OSError):
            return os.getpgid(process.pid) == self._popen.pid and alive(process)
        return False


def children(pid: int, *, recursive: bool = False) -> list[psutil.Process]:
    """Return the children of a process; empty if it has ended.

    Linux lists the children of each thread. Without these lists, which a kernel need not have, the
    parents of all processes of the machine are looked up, which takes milliseconds.

    Args:
        recursive: whether to return their children too, and so on.
    """
    found: dict[int, psutil.Process] = {}
    with contextlib.suppress(psutil.Error, OSError, IndexError):  # the last two without /proc
        if not _LISTED.exists():
            return psutil.Process(pid).children(recursive=recursive)
        waiting = [pid]
        while waiting:
            for child in _listed(waiting.pop(0)):
                if child in found or len(found) >= _MOST:
                    continue
                with contextlib.suppress(psutil.Error, OSError):  # it has ended since
                    found[child] = psutil.Process(child)
                    waiting += [child] if recursive else []
    return [*found.values()]


def _listed(pid: int) -> Iterator[int]:
    """Yield the ids of the children of a process (Linux only), some twice; none if it has ended."""
    for _ in range(2):  # a thread that ends meanwhile leaves its children to another one
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                    yield from map(int, text.split())


def _path_of(process: psutil.Process) -> str:
    """Return the PATH in the environment of a process; empty if it cannot be read."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get("PATH", "")
    return ""


def everybody() -> list[psutil.Process]:
    """Return all processes; empty if the system does not provide them (no /proc).

    ``psutil.process_iter`` would return the processes of an earlier call by their ids. An id that
    another process has by now would be one that has ended.
    """
    found = []
    with contextlib.suppress(psutil.Error, OSError, IndexError):
        for pid in psutil.pids():
            with contextlib.suppress(psutil.Error):  # it has ended since
                found.append(psutil.Process(pid))
    return found


def naming(word: str) -> list[psutil.Process]:
    """Return the running processes that have a word in their command line."""
    found = []
    for process in everybody():
        with contextlib.suppress(psutil.Error, OSError):
            if any(word in one for one in process.cmdline()) and alive(process):
                found.append(process)
    return found


def alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def listening(pid: int) -> set[tuple[str, int]]:
    """Return the addresses and ports on which a process listens, in its own network (Linux only).

    Raises:
        OSError: it has exited, or the system does not say.
    """
    home = f"/proc/{pid}"
    own = set()
    for number in os.listdir(f"{home}/fd"):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):  # closed since
            own.add(os.readlink(f"{home}/fd/{number}"))  # noqa: PTH115
    found = set()
    for table in ("tcp", "tcp6"):
        with open(f"{home}/net/{table}", encoding="ascii") as rows:  # noqa: PTH123
            for row in list(rows)[1:]:
                cells = row.split()
                if cells[3] == LISTENING and f"socket:[{cells[9]}]" in own:
                    address, _, port = cells[1].rpartition(":")
                    found.add((_address(address), int(port, 16)))
    return found


def _address(digits: str) -> str:
    """Return an address of /proc/net/tcp or tcp6: words of four bytes, the lowest byte first."""
    words = [bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8)]
    address = ip_address(b"".join(words))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
