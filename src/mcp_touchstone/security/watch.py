"""Watch what a server does beside answering, while its tools are tried: hosts, programs, files.

Its sandbox has no network. A name server of ours there hears which hosts it looks for, and Linux
counts the connections that find no way out. No connection is made.
"""

import contextlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcp_touchstone.bindings.canary import NAME_MARK
from mcp_touchstone.bindings.observed import MOST, Observed
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.runtime.scratch import KEPT_FROM_HOME
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.security.name_server import NameServer
from mcp_touchstone.security.payload import CANARY
from mcp_touchstone.transport.process import ServerProcess, now, sleep

DNS: Final = 53

LOOPBACK: Final = "127."

RESOLVER: Final = Path("/etc/resolv.conf")
"""Where programs read the address of their name server; a sandbox has the file of the system."""

PATIENCE: Final = 5.0
"""Seconds to wait for the start of a process in its sandbox."""

_LAUNCHERS: Final = "|".join(map(re.escape, [*KEPT_FROM_HOME.values(), ".cache/node"]))

OWN: Final = re.compile(rf"{NAME_MARK}|{CANARY}|^({_LAUNCHERS}|\.mcp-touchstone)(/|$)")
"""Files in the home of a server that are ours, or of launchers such as npx and uvx."""


class Watch:
    """Watches one process until ``close``; call ``opened`` when the server has answered.

    Args:
        there: the names in its folder before it was started.
    """

    def __init__(self, connection: Connection, ground: FixtureTree, there: set[str]) -> None:
        self._connection = connection
        self._ground, self._there = ground, there
        self._began: tuple[str, ...] = ()
        self._server = _name_server(connection.process) if connection.process.sandbox else None
        self._before = connection.process.family.facts()

    def opened(self) -> None:
        """Remember the processes and files that a server has from the start."""
        self._began = tuple(sorted(names_in(self._ground) - self._there))[:MOST]
        self._before = self._connection.process.family.facts()

    def close(self, known: Observed) -> Observed:
        """Return what was seen, added to what is known; stop watching."""
        process = self._connection.process
        new = [facts for facts in process.family.facts() if facts not in self._before]
        names = dict.fromkeys(Path(facts.argv[0]).name for facts in new if facts.argv)
        astray = _astray(process.pid) if self._server is not None else 0
        asked = [] if self._server is None else list(self._server.asked)
        if self._server is not None:
            self._server.close()
        hosts = dict.fromkeys([*known.hosts, *filter(None, asked)])
        return replace(
            known,
            watched=known.watched or self._server is not None,
            hosts=tuple(hosts)[:MOST],
            astray=known.astray + astray,
            programs=tuple(dict.fromkeys([*known.programs, *names]))[:MOST],
            kept=_kept(self._ground),
            began=tuple(dict.fromkeys([*known.began, *self._began])),
        )


def _name_server(process: ServerProcess) -> NameServer | None:
    """Return a name server in the sandbox of a process; None if that is not possible."""
    until = now() + PATIENCE
    while process.pid == process.outer:  # it would listen in the network of this machine
        if now() > until or not process.running:
            return None
        sleep(0.005)
    address = _resolver()
    own = () if address.startswith(LOOPBACK) else (address,)
    with contextlib.suppress(OSError):
        listening = process.listen(address, DNS, kind="udp", addresses=own)
        return None if listening is None else NameServer(listening)
    return None


def _resolver() -> str:
    """Return the IPv4 address of the first name server that programs of this system ask."""
    with contextlib.suppress(OSError):
        text = RESOLVER.read_text("utf-8", "replace")
        found = re.search(r"(?m)^\s*nameserver\s+(\d+(?:\.\d+){3})\s*$", text)
        if found:
            return found[1]
    return "127.0.0.1"


def _astray(pid: int) -> int:
    """Return how many packets found no route in the network of a process (Linux: OutNoRoutes)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/net/snmp").read_text("ascii")
        names, counts = (line.split() for line in text.splitlines() if line.startswith("Ip:"))
        return int(counts[names.index("OutNoRoutes")])
    return 0


def names_in(ground: FixtureTree) -> set[str]:
    """Return the names at the top of the folder of a server."""
    with contextlib.suppress(OSError):
        return {*ground.root.opened().names()}
    return set()


def _kept(ground: FixtureTree) -> tuple[str, ...]:
    """Return the files that a server made in its home."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for path in ground.home.below():
            name = str(path.relative_to(ground.home))
            if not (OWN.search(name) or path.is_dir()):
                found.append(name)
            if len(found) >= MOST:
                break
    return tuple(sorted(found))
