"""Run a program under limits of time and memory, so that it ends with us."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from mcp_touchstone.runtime.disk_limit import DiskLimit
from mcp_touchstone.transport.orphans import PARENT
from mcp_touchstone.transport.process import sacrifice

if sys.platform == "linux":
    import resource

GRACE: Final = 20.0
"""Seconds between SIGTERM and SIGKILL."""

OUTPUT: Final = 65536
"""Bytes of the end of an output that are kept."""


@dataclass(slots=True)
class Running:
    """The programs that run now; several threads use it."""

    stopping: bool = False
    pids: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """End all programs; later ones are ended at once."""
        with self.lock:
            self.stopping = True
            for pid in self.pids:
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGTERM)


def run(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    running: Running,
    memory: int = 0,
    disk: DiskLimit | None = None,
    kills: bool = False,
    inherits: Sequence[int] = (),
) -> tuple[str, int | None]:
    """Run a program to its end; return the end of its output, and its status.

    Args:
        seconds: limit of time; it then gets SIGTERM, and SIGKILL after ``GRACE``.
        running: ends it early if it is stopped.
        memory: greatest size of the data of each process, in bytes; 0 for no limit. Linux only.
        disk: the limit of what is written to its folders; None for none.
        kills: whether it gets SIGKILL at that limit, in place of SIGTERM.
        inherits: descriptors of ours that it gets.

    Returns:
        The status is None if it was ended at its limit of time; ``disk.met`` says whether that
        limit ended it.

    Raises:
        OSError: it cannot be started.
    """
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            words,
            cwd=cwd,
            env={**env, PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=inherits,
        ) as process,
    ):
        if memory and sys.platform == "linux":
            with contextlib.suppress(OSError):
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (memory, memory))
        sacrifice(process.pid)
        with running.lock:
            running.pids.add(process.pid)
        if running.stopping:
            process.terminate()
        status: int | None = None
        number = signal.SIGKILL if kills else signal.SIGTERM
        over = partial(os.killpg, process.pid, number)
        try:
            with disk.ending(over) if disk else contextlib.nullcontext():
                status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        finally:
            with running.lock:
                running.pids.discard(process.pid)
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        output.seek(max(output.seek(0, os.SEEK_END) - OUTPUT, 0))
        return output.read().decode("utf-8", "replace"), status


@contextlib.contextmanager
def afterwards(words: Sequence[str], env: Mapping[str, str], seconds: float) -> Iterator[int]:
    """Run a program after the block, also if this program is killed in it.

    Yields a descriptor. The program waits until this one and all that inherited it are closed.
    """
    reading, writing = os.pipe()
    waiting = ("sh", "-c", 'cat; exec "$@"', "sh", *words)
    process = subprocess.Popen(
        waiting,
        env=dict(env),
        stdin=reading,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
