"""Stand before a server, and exchange the names of its files for links while no request is open.

    python -S swapping_server.py inside|all HOST ROOT -- SERVER COMMAND

The server behind answers soundly. ``inside`` exchanges the names in the root, but only if the root
contains the links of an attack, so that its tools are found. ``all`` exchanges all names always,
also those beside the root and the root itself. A link leads to the folder HOST or to a file in it;
the links wait in the temporary folder of the server. No name is exchanged there, and the server
keeps its state there: a task of the server may write after its answer, and would follow a link.
HOST is written in hexadecimal digits, since a sandbox shows a server the folders that its command
names. It can only be run on Linux.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXCHANGE = 2
"""RENAME_EXCHANGE, linux/fs.h."""
NEAR = 0.0005
"""Seconds for which a name is a link."""
IDLE = 0.02
"""Seconds between two looks for names, as long as there are none."""
DEEPEST = 4
START = "start"
PATIENCE = 20.0
"""Seconds after which a request counts as answered, if the server then waits for something.

On a busy machine a request may wait for seconds between this process and the server. If names were
exchanged then, our run would find no tool, and end before most attacks.
"""
LONG = 3600.0
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

rename = ctypes.CDLL(None).renameat2


class Swapper(threading.Thread):
    """Exchanges names for links while no request is open.

    Attributes:
        paused: held while names are exchanged, and while a request comes or is answered.
        waiting: id of an open request -> when it came; the start of the server is one too.
        server: number of its process.
    """

    server: int

    def __init__(self, how: str, host: Path, root: Path) -> None:
        super().__init__(daemon=True)
        self.paused = threading.Lock()
        self.waiting: dict[str, float] = {}
        self._all = how == "all"
        self._root = root.name
        self._mark = random.getrandbits(64)
        self._world = os.open(root.parent, OPEN)
        self._links = os.open("tmp", OPEN, dir_fd=self._world)
        self._open = os.open("tmp", OPEN, dir_fd=self._world)
        self._path = root
        for kind, target in (("folder", host), ("file", host / "file")):
            name = f"link-{kind}-{self._mark}"
            os.symlink(target, name, dir_fd=self._links)

    def run(self) -> None:
        while True:
            names = self._names()
            if not names:
                time.sleep(IDLE)
            for folder, name in names or [([], "")]:
                with self.paused, contextlib.suppress(OSError):
                    if not self._is_asked():
                        fcntl.flock(self._open, fcntl.LOCK_UN)
                        with self.alone():
                            self._swap(folder, name)
                time.sleep(0.001)  # others wait for their turn

    def _is_asked(self) -> bool:
        """Return whether a request is open; one that the server just leaves is not."""
        soon = time.monotonic() - PATIENCE
        if any(came > soon for came in self.waiting.values()):
            return True
        if self.waiting and works(self.server):
            self.waiting = dict.fromkeys(self.waiting, time.monotonic())
        return bool(self.waiting) and max(self.waiting.values()) > soon

    def asked(self, number: str) -> None:
        """Exchange no names, in any process, until a request is answered.

        A server may open its root when it starts, or as late as with a request.
        """
        with self.paused:
            fcntl.flock(self._open, fcntl.LOCK_SH)
            if self._path.is_symlink():
                os._exit(3)  # another process was killed while the root was exchanged
            self.waiting[number] = time.monotonic()

    def answered(self, number: str) -> None:
        """Allow to exchange names if no request is open."""
        with self.paused:
            if self.waiting.pop(number, None) is not None and not self.waiting:
                fcntl.flock(self._open, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from exchanging names, unless they or their requests are busy.

        Raises:
            BlockingIOError: they are.
        """
        fcntl.flock(self._links, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield
        finally:
            fcntl.flock(self._links, fcntl.LOCK_UN)

    def _names(self) -> list[tuple[list[str], str]]:
        """Return some names, each with the path of its folder."""
        found: list[tuple[list[str], str]] = []
        if self._all:
            found = [([], name) for name in os.listdir(self._world) if name != "tmp"]
        waiting = [[self._root]]
        if not self._all and not os.path.lexists(f"/proc/self/fd/{self._world}/{self._root}/near"):
            return []
        if self._all:
            waiting += [[name] for _, name in found]
        while waiting:
            folder = waiting.pop()
            with contextlib.suppress(OSError), opened(self._world, folder) as here:
                for name in os.listdir(here):
                    found.append((folder, name))
                    mode = os.lstat(name, dir_fd=here).st_mode
                    if len(folder) < DEEPEST and mode & 0o170000 == 0o040000:
                        waiting.append([*folder, name])
        random.shuffle(found)
        return found[:60]

    def _swap(self, folder: list[str], name: str) -> None:
        """Exchange a name for a link and back; the time of the folder stays what it was."""
        with opened(self._world, folder) as here:
            was = os.stat(here)
            kind = random.choice(("folder", "file"))
            link = os.fsencode(f"link-{kind}-{self._mark}")
            if rename(here, os.fsencode(name), self._links, link, EXCHANGE):
                return
            try:
                time.sleep(NEAR * random.random())
            finally:
                rename(here, os.fsencode(name), self._links, link, EXCHANGE)
                os.utime(here, ns=(was.st_atime_ns, was.st_mtime_ns))


@contextlib.contextmanager
def opened(top: int, parts: list[str]) -> Iterator[int]:
    here = os.dup(top)
    try:
        for part in parts:
            below = os.open(part, OPEN, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def works(server: int) -> bool:
    """Return whether a thread of a process, or of one that it started, does not just wait."""
    found, waiting = [], [server]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*"):
            with contextlib.suppress(OSError):
                found.append((task / "stat").read_text().rpartition(")")[2].split()[0])
                waiting += map(int, (task / "children").read_text().split())
    return any(state in "RD" for state in found)


def request_id(line: bytes) -> str:
    """Return the id of a request as JSON; empty for other messages."""
    try:
        message = json.loads(line)
        return json.dumps(message["id"]) if "method" in message else ""
    except (ValueError, TypeError, KeyError):
        return ""


def begun(command: list[str]) -> Any:
    """Start the server behind this one."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def main() -> int:
    how, root = sys.argv[1], Path(sys.argv[3])
    host = Path(bytes.fromhex(sys.argv[2]).decode())
    swapper = Swapper(how, host, root)
    swapper.asked(START)
    os.environ["XDG_STATE_HOME"] = str(root.parent / "tmp" / "state")
    begin = globals().get("begin", begun)  # a fork server has its own
    server = begin(sys.argv[5:])
    swapper.server = server.pid
    assert server.stdin is not None
    swapper.start()

    def answers() -> None:
        assert server.stdout is not None
        for line in server.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            swapper.answered(START)
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                swapper.answered(json.dumps(json.loads(line).get("id")))
        os._exit(server.wait(LONG))

    threading.Thread(target=answers, daemon=True).start()
    for line in sys.stdin.buffer:
        if number := request_id(line):
            swapper.asked(number)
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()
    ended: int = server.wait(LONG)
    return ended


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
