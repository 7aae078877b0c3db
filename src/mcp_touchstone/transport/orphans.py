"""Find and end processes that servers leave behind. Knows no MCP."""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import psutil

from mcp_touchstone.transport.family import alive, children, everybody
from mcp_touchstone.transport.process import MARK, launched

PARENT: Final = "MCP_TOUCHSTONE_PARENT"
"""Variable with the process id of the program of ours that started this one, see ``fleet``."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h
_adopting: Final = threading.Event()


def adopt() -> None:
    """Become the parent of processes that servers leave behind, if the system can (Linux).

    So ``sweep`` also finds processes with another session and another environment. Only for a
    program that starts no other children: from now on every other child counts as left behind.
    """
    with contextlib.suppress(OSError, AttributeError):
        if sys.platform == "linux":
            libc = ctypes.CDLL(None, use_errno=True)
            if not libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
                _adopting.set()


def end_with_parent() -> None:
    """Get SIGTERM when the program of ours that started this one ends (Linux)."""
    parent = os.environ.pop(PARENT, "")  # it is not for programs that this one starts
    if sys.platform == "linux" and parent.isdecimal():
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != int(parent):  # it ended before
            os.kill(os.getpid(), signal.SIGTERM)


def return_memory() -> None:
    """Let the C library return freed memory to the system; by default each thread keeps a heap.

    A run has a hundred threads that read lines of megabytes. In measurements their heaps took
    three times the memory in use.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # not in every C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_M_ARENA_MAX, 1)
            mallopt(_M_MMAP_THRESHOLD, 256 * 1024)


def _end_adopted() -> int:
    """End the children we did not start, and their descendants; return their number."""
    found = 0
    for _ in range(100):  # each round is a generation
        strange = [child for child in children(os.getpid()) if child.pid not in launched]
        for child in strange:
            found += alive(child)
            with contextlib.suppress(psutil.Error):
                child.kill()
            with contextlib.suppress(OSError):
                os.waitpid(child.pid, 0)
        if not strange:
            break
    return found


def end_abandoned(worlds: Iterable[Path]) -> int:
    """End the servers of runs that were killed: those whose home is in an abandoned world."""
    places = tuple(f"{world}{os.sep}" for world in worlds)
    found = 0
    for process in everybody() if places else ():
        with contextlib.suppress(psutil.Error, OSError):
            env = process.environ()
            if MARK in env and env.get("HOME", "").startswith(places):
                process.kill()
                found += 1
    return found


def sweep(mark: str) -> int:
    """End every process with the mark of this run; return their number.

    Finds processes that left their group and their parent. Reads each process of the user once.
    """
    found = _end_adopted() if _adopting.is_set() else 0
    own = os.getpid()
    for pid in _with_environment(f"{MARK}={mark}"):
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if pid != own and process.environ().get(MARK) == mark:
                process.kill()
                found += 1
    return found


def _with_environment(entry: str) -> Iterable[int]:
    """Yield the processes that may have an entry in their environment.

    On Linux the bytes of an environment are searched first: to read all of them as texts takes as
    long as a tenth of a short run.
    """
    try:
        pids = psutil.pids()
    except (psutil.Error, OSError, IndexError):  # the last two if there is no /proc
        return
    for pid in pids:
        if sys.platform == "linux":
            try:
                if os.fsencode(entry) not in Path(f"/proc/{pid}/environ").read_bytes():
                    continue
            except OSError:
                continue
        yield pid
