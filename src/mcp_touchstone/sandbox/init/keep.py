"""The parent of a command that ends with all that it started. Behaves unlike the command itself.

It reads the command from its input, as one line with a JSON array of its words and an object of
further variables, so that it can be there before the command is known. On its output it reports
``ready``, and later ``ended STATUS`` (negative for a signal) or ``refused REASON``. The command has
neither of the two: its input is empty, and its output is dropped. At the end of the input, and on a
signal, everything below this process is killed: processes with a session or a parent of their own
too, on Linux. So nothing runs on if the caller was killed.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

from .common import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

LINUX = sys.platform == "linux"
POSIX = os.name == "posix"
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

REAPING = 5.0
"""Greatest seconds until killed processes are gone."""

STARTED: list[int] = []
"""The command, where its group is all that can be found of it."""


def keep() -> "NoReturn":
    """Run the command of the first line until our input ends."""
    if LINUX:
        from .libc import check, libc

        check("subreaper", libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: end_all())
    report("ready")
    words, more = json.loads(sys.stdin.buffer.readline() or b"[[], {}]")
    if not words:  # the caller has ended
        os._exit(0)
    try:
        command = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=with_more(more),
            start_new_session=POSIX,
        )
    except (OSError, ValueError) as error:
        report(f"refused {getattr(error, 'strerror', None) or error}")
        os._exit(1)
    if not LINUX:
        STARTED.append(command.pid)
    threading.Thread(target=await_caller, daemon=True).start()
    if not POSIX:
        report(f"ended {command.wait()}")
    while POSIX:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        if pid == command.pid:
            report(f"ended {os.waitstatus_to_exitcode(status)}")
    while True:
        time.sleep(60)  # until the caller lets go: it may still read what the command left


def with_more(more: dict[str, str]) -> "Mapping[bytes, bytes] | Mapping[str, str]":
    """Return the environment of the command."""
    if not LINUX:
        return {**os.environ, **more}
    known = environment()  # Python adds to its own
    return known | {os.fsencode(name): os.fsencode(value) for name, value in more.items()}


def report(sentence: str) -> None:
    """Write a line for the caller, who may have gone."""
    try:
        os.write(1, f"{sentence}\n".encode("utf-8", "replace"))
    except OSError:
        end_all()


def await_caller() -> "NoReturn":
    """End everything when our input ends."""
    while sys.stdin.buffer.read(1):
        pass
    end_all()


def end_all() -> "NoReturn":
    """Kill everything below this process, and exit.

    All are stopped before one is killed: a process that runs could start another one meanwhile. A
    process counts until it was reaped, since one whose first thread has ended looks like a zombie.
    """
    stopped: set[int] = set()
    while new := below() - stopped:
        for pid in new:
            send(pid, "SIGSTOP")
        stopped |= new
    until = time.monotonic() + REAPING
    while (left := below()) and time.monotonic() < until:
        for pid in left:
            send(pid, "SIGKILL")
        reap()
        time.sleep(0.002)
    for pid in STARTED:
        send(-pid if POSIX else pid, "SIGKILL" if POSIX else "SIGTERM")
    os._exit(0)


def reap() -> None:
    """Take the exit statuses of processes that have ended."""
    with contextlib.suppress(ChildProcessError, AttributeError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def send(pid: int, name: str) -> None:
    """Send a signal to a process that may have ended."""
    with contextlib.suppress(OSError):
        os.kill(pid, getattr(signal, name))


def below() -> set[int]:
    """Return the processes below this one; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, LookupError):
                continue
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    near = [os.getpid()]
    while near:
        more = [pid for pid in children.get(near.pop(), ()) if pid not in found]
        found.update(more)
        near += more
    return found
