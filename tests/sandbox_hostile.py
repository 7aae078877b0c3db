"""A hostile command that tries the attack in its first word and prints the outcome."""

import ctypes
import os
import signal
import socket
import sys
from pathlib import Path


def attempt(what, *arguments):
    try:
        return what(*arguments)
    except OSError as error:
        return f"refused: {error.strerror}"


def kill_all():
    for pid in range(2, 70_000):
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
                print("killed", pid)
            except OSError:
                pass
    for number in (signal.SIGTERM, signal.SIGKILL):
        attempt(os.kill, 1, number)
        attempt(os.kill, -1, number)
    print("done")


def read(*paths):
    for path in paths:
        print(attempt(lambda path=path: Path(path).read_bytes()))


def write(*paths):
    for path in paths:
        print(attempt(lambda path=path: Path(path).write_text("hostile")))


def trace(*pids):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long,) * 4
    for pid in pids:
        print(libc.ptrace(16, int(pid), 0, 0))  # PTRACE_ATTACH


def connect(host, port):
    print(attempt(lambda: socket.create_connection((host, int(port)), 3).getpeername()))


def fork_bomb():
    born = 0
    try:
        for _ in range(20_000):
            if os.fork() == 0:
                signal.pause()
            born += 1
    except OSError:
        pass
    print(born, flush=True)
    signal.pause()


def mount():
    libc = ctypes.CDLL(None, use_errno=True)
    for source, place, kind, flags in (
        (b"none", b"/tmp", b"tmpfs", 0),
        (b"none", b"/usr", None, 32 | 4096),  # MS_REMOUNT | MS_BIND: writable again
        (b"none", b"/", None, 32),
    ):
        print(libc.mount(source, place, kind, ctypes.c_ulong(flags), None))
    print(libc.umount2(b"/proc", 2))


def keys(number, *names):
    """Link every keyring that can be linked, and read keys by their names (keyctl(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    number, session = int(number), ctypes.c_int(-3)
    for line in Path("/proc/keys").read_text().splitlines():
        libc.syscall(number, 8, int(line.split()[0], 16), session)
    for name in names:
        data = ctypes.create_string_buffer(100)
        key = libc.syscall(number, 10, session, b"user", name.encode(), 0)
        libc.syscall(number, 11, key, data, 100)
        print(data.value.decode() or "refused")


def look():
    print(sorted(int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
