"""Stand before a server, and exchange the names of its files for links while no request is open.

    python swapping_server.py inside|all HOST ROOT -- SERVER COMMAND

The server behind answers soundly. ``inside`` exchanges the names in the root, but only if the root
contains the links of an attack, so that its tools are found. ``all`` exchanges all names always,
also those beside the root and the root itself. A link leads to the folder HOST or to a file in it;
the links wait in the temporary folder of the server. HOST is written in hexadecimal digits, since a
sandbox shows a server the folders that its command names. It can only be run on Linux.
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

EXCHANGE = 2
"""RENAME_EXCHANGE, linux/fs.h."""
NEAR = 0.0005
"""Seconds for which a name is a link."""
DEEPEST = 4
PATIENCE = 2.0
"""Seconds after which a request counts as answered."""
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

rename = ctypes.CDLL(None).renameat2


class Swapper(threading.Thread):
    """Exchanges names for links while no request is open.

    Attributes:
        paused: held while names are exchanged, by this process or by us.
        waiting: id of an open request -> when it came.
    """

    def __init__(self, how: str, host: Path, root: Path) -> None:
        super().__init__(daemon=True)
        self.paused = threading.Lock()
        self.waiting: dict[str, float] = {}
        self._all = how == "all"
        self._root = root.name
        self._mark = random.getrandbits(64)
        self._world = os.open(root.parent, OPEN)
        self._links = os.open("tmp", OPEN, dir_fd=self._world)
        for kind, target in (("folder", host), ("file", host / "file")):
            name = f"link-{kind}-{self._mark}"
            os.symlink(target, name, dir_fd=self._links)

    def run(self) -> None:
        while True:
            for folder, name in self._names():
                with self.paused, contextlib.suppress(OSError):
                    now = time.monotonic()
                    if not any(now - came < PATIENCE for came in list(self.waiting.values())):
                        with self.alone():
                            self._swap(folder, name)
            time.sleep(0.002)  # the judge needs the processor too

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from exchanging names."""
        fcntl.flock(self._links, fcntl.LOCK_EX)
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


def request_id(line: bytes) -> str:
    """Return the id of a request as JSON; empty for other messages."""
    try:
        message = json.loads(line)
        return json.dumps(message["id"]) if "method" in message else ""
    except (ValueError, TypeError, KeyError):
        return ""


def main() -> int:
    how, root = sys.argv[1], Path(sys.argv[3])
    host = Path(bytes.fromhex(sys.argv[2]).decode())
    swapper = Swapper(how, host, root)
    with swapper.alone():  # the server must open its own root
        if root.is_symlink():
            return 3  # another process was killed while the root was exchanged
        server = subprocess.Popen(sys.argv[5:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        first = sys.stdin.buffer.readline()
        server.stdin.write(first)
        server.stdin.flush()
        sys.stdout.buffer.write(server.stdout.readline())
        sys.stdout.buffer.flush()
    swapper.start()

    def answers() -> None:
        assert server.stdout is not None
        for line in server.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                swapper.waiting.pop(json.dumps(json.loads(line).get("id")), None)
        os._exit(server.wait())

    threading.Thread(target=answers, daemon=True).start()
    for line in sys.stdin.buffer:
        with swapper.paused:
            if number := request_id(line):
                swapper.waiting[number] = time.monotonic()
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()
    return server.wait()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
