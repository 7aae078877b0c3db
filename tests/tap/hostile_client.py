"""A hostile client: ``python hostile_client.py MODE MARK FILE SERVER ...``.

It says in FILE that it has started, with its HOME. Each process that it starts has MARK in its
command line. SERVER is the command of our server, or its URL.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

MODE, MARK, FILE = (sys.argv + [""] * 3)[1:4]
SERVER = sys.argv[4:]
SLEEP = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(120)", MARK)
NOTE = b'{"jsonrpc":"2.0","method":"notifications/x"}\n'


def daemonize(*, leaves: bool = False) -> None:
    """Start a process with a session, a parent and an environment of its own.

    Args:
        leaves: whether its first thread ends, so that it looks like a zombie.
    """
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    code = "import time; time.sleep(120)"
    if leaves:
        code = (
            "import ctypes, os, sys, threading, time\n"
            "open(sys.argv[2], 'w').write(str(os.getpid()))\n"
            "threading.Thread(target=time.sleep, args=(120,)).start()\n"
            "ctypes.CDLL(None).pthread_exit(None)"
        )
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code, MARK, f"{FILE}.pid"], {})  # noqa: S606  (no shell is meant)


def breed() -> None:
    """Start processes of every kind."""
    daemonize()
    daemonize(leaves=True)
    subprocess.Popen(SLEEP)
    subprocess.Popen(SLEEP, start_new_session=True, env={})


def started() -> None:
    """Say that it has started, unless it can write no file in its sandbox."""
    beside = Path(f"{FILE}.new")
    with contextlib.suppress(OSError):
        beside.write_text(os.environ["HOME"], encoding="utf-8")
        beside.rename(FILE)


def talk() -> "subprocess.Popen[bytes]":
    """Start our server."""
    return subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def leaves() -> None:
    """End, and leave processes of every kind."""
    breed()
    started()


def stays() -> None:
    """Never end, whatever signal comes."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    breed()
    started()
    time.sleep(120)


def kills_its_parent() -> None:
    """Kill the process that started it."""
    parent = os.getppid()
    breed()
    started()
    if os.getppid() == parent != 1:  # an orphan is a child of the init process
        os.kill(parent, signal.SIGKILL)
    time.sleep(120)


def fills() -> None:
    """Write to its HOME until it is ended, 64 MiB at most."""
    breed()
    started()
    for number in range(64):
        Path(os.environ["HOME"], str(number)).write_bytes(b"x" * (1 << 20))
    time.sleep(120)


def floods() -> None:
    """Say more than anybody records."""
    started()
    server = talk()
    assert server.stdin is not None
    with server.stdin as pipe:
        while True:
            pipe.write(NOTE * 1000)


def says_one_line() -> None:
    """Say a line without an end."""
    started()
    server = talk()
    assert server.stdin is not None
    with server.stdin as pipe:
        while True:
            pipe.write(b"x" * 65_536)


def connects() -> None:
    """Start our server again and again."""
    started()
    for _ in range(100):
        server = talk()
        assert server.stdin is not None
        server.stdin.close()
    server.wait()


def posts() -> None:
    """Send large bodies."""
    import urllib.request  # noqa: PLC0415  (of one mode)

    started()
    body = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"' + b"x" * 65_536 + b'"}}'

    def post() -> None:
        request = urllib.request.Request(SERVER[-1], body)  # noqa: S310  (it is ours)
        try:
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310  (as above)
        except OSError:
            return

    for _ in range(20):
        several = [threading.Thread(target=post) for _ in range(8)]
        for thread in several:
            thread.start()
        for thread in several:
            thread.join()


def speaks_for_a_stand_in() -> None:
    """Talk to the socket itself: without a secret, and with frames that nobody writes."""
    import socket  # noqa: PLC0415  (of one mode)

    started()
    address, secret = SERVER[-2:]
    for said in (
        b"",
        b"x" * 64,
        secret.encode() + b"D\xff\xff\xff\xff",
        secret.encode() + b"Z" * 9,
    ):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            line.sendall(said)
            line.shutdown(socket.SHUT_WR)
            while line.recv(4096):
                pass


def plants() -> None:
    """Put what is no recording of ours where recordings are saved; see ``planted``."""
    victim = subprocess.Popen(SLEEP, start_new_session=True)
    folder, kind = Path(os.environ["PLANT_IN"]), os.environ["PLANT"]
    place = folder / "zz.jsonl"
    head = json.dumps({"recording": 1, "scenario": "plain", "pid": victim.pid})
    if kind == "sparse":
        with place.open("wb") as file:
            file.truncate(3 << 30)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(os.environ["VICTIM"])
    elif kind == "ours":
        (folder / "tools_call-1.jsonl").symlink_to(os.environ["VICTIM"])
    elif kind == "folder":
        folder.rename(f"{folder}-moved")
        folder.symlink_to(Path(os.environ["VICTIM"]).parent)
    else:
        odd = '{"at": 1, "from": "client", "text": 5, "length": 1e400}\n'
        place.write_text(f"{head}\n{odd}" if kind == "odd" else f"{head}\n", encoding="utf-8")
    server = talk()
    assert server.stdin is not None
    server.stdin.write(NOTE)
    server.stdin.close()
    server.wait()
    started()


MODES: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (
        leaves,
        stays,
        kills_its_parent,
        fills,
        floods,
        says_one_line,
        connects,
        posts,
        speaks_for_a_stand_in,
        plants,
    )
}

if __name__ == "__main__":
    MODES[MODE]()
