"""Process 1 of a sandbox, which starts the command as process 2."""

import ctypes
import os

from .common import (
    ALONE,
    HELD,
    INFO,
    LEFT,
    LOADER,
    PASSED_ON,
    STATUS,
    STDIO,
    environment,
    read_all,
)
from .libc import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, libc
from .limits import close_keyrings, limit_files, limit_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the module signal imports enum: 5 to 10 ms

ARG_START = 45  # in /proc/self/stat, counted from after the name; see proc(5)


def inside(words: list[str]) -> "NoReturn":
    """Start the command as process 2 and reap orphans until no process is left.

    Args:
        words: the program as a path, its folder, the PWD of its environment (empty for none), the
            greatest size of a file in bytes, the greatest number of processes, and the command.
    """
    program, folder, pwd, files, processes, *command = words
    loader, held = tuple(map(str.encode, LOADER)), HELD.encode()
    env = {
        name.removeprefix(held): value
        for name, value in environment().items()
        if not name.startswith(loader)  # ours
    }
    env.pop(b"PWD", None)  # bubblewrap sets it
    if pwd:
        env[b"PWD"] = os.fsencode(pwd)
    hide_arguments()
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # so that no process can inspect or trace process 1
    limit_processes(int(processes))
    close_keyrings()
    server = os.fork()
    if not server:
        start(program, folder, int(files), command, env)
    for name in PASSED_ON:
        signal.signal(name, lambda caught, _frame: os.killpg(server, caught))
    null = os.open("/dev/null", os.O_RDWR)
    os.closerange(STDIO[0], STATUS)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.write(STATUS, b".")
    while True:
        try:
            child, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if child == server:
            libc.prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)  # processes of the command live on
            os.write(STATUS, b"%s %d\n" % (LEFT if has_children() else ALONE, status))


def hide_arguments() -> None:
    """Remove the user's paths from ``/proc/1/cmdline``."""
    fields = read_all(os.open("/proc/self/stat", os.O_RDONLY)).rpartition(b")")[2].split()
    begin, size = int(fields[ARG_START]), int(fields[ARG_START + 1]) - int(fields[ARG_START])
    ctypes.memset(begin, 0, size)
    ctypes.memmove(begin, b"sandbox", min(7, size))


def has_children() -> bool:
    """Reap zombies; return whether a child is alive."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def reset_signals() -> None:
    """Restore the default action of every signal: ignored ones stay ignored across ``execve``."""
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL, SIGSTOP and those of the C library
            continue


def start(
    program: str, folder: str, files: int, command: list[str], env: dict[bytes, bytes]
) -> "NoReturn":
    """Replace this process by the command."""
    try:
        os.setsid()
        for number in (0, 1, 2):
            os.dup2(STDIO[number], number)
        os.closerange(3, INFO + 50)
        limit_files(files)
        reset_signals()
        os.chdir(folder)
        os.execve(program, command, env)
    except OSError as error:
        message = f"mcp-touchstone: {command[0]} did not start in the sandbox: {error}\n"
        os.write(2, message.encode(errors="replace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
