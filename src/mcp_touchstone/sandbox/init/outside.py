"""The process that the caller of a sandbox sees."""

import os
import resource

from .common import (
    ALONE,
    FAILED,
    INFO,
    PASSED_ON,
    STATUS,
    STDIO,
    environment,
    fail,
    read_all,
    write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the module signal imports enum: 5 to 10 ms

READY = b"ready"


def outside_bwrap(words: list[str]) -> "NoReturn":
    """Start bubblewrap with ``words`` and follow the command in it."""
    report, info = os.pipe(), os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(number, STDIO[number])
    os.dup2(report[1], STATUS)
    os.dup2(info[1], INFO)
    mask = hold_signals()
    child = os.fork()
    if not child:
        os.setsid()  # signals to the group of the outside must not end bubblewrap
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.dup2(null, 0)
        os.dup2(null, 1)
        try:
            os.execve(words[0], words, environment())
        except OSError as error:
            fail(error)
    os.close(info[1])
    os.closerange(STDIO[0], INFO + 1)
    child_info = read_all(info[0]).partition(b'"child-pid":')[2].replace(b"}", b",")
    follow(child, int(child_info.partition(b",")[0] or child), report, null, mask)


def outside_unshare(words: list[str]) -> "NoReturn":
    """Make the namespaces and follow the command in them.

    Args:
        words: the greatest size of its own file systems in bytes, options of bubblewrap, ``--``,
            and the words of ``inside``.
    """
    # the outside of bubblewrap needs no C functions: 3 ms
    from .inside import inside
    from .libc import NEWIPC, NEWNET, NEWNS, NEWPID, NEWUSER, PR_SET_PDEATHSIG, check, libc
    from .limits import drop_capabilities
    from .mounts import build
    from .network import start_loopback

    separator = words.index("--")
    own, mounts, rest = int(words[0]), words[1:separator], words[separator + 1 :]
    has_network = "--unshare-net" not in mounts
    report, ready = os.pipe(), os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(report[1], STATUS)
    user, group = os.geteuid(), os.getegid()
    try:
        spaces = NEWUSER | NEWNS | NEWPID | NEWIPC | (0 if has_network else NEWNET)
        check("namespaces", libc.unshare(spaces))
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
        mask = hold_signals()
        child = os.fork()
        if not child:
            os.close(report[0])
            os.close(ready[1])
            os.setsid()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            words = [word for word in mounts if word != "--unshare-net"]
            build(words, most=int(rest[4]), own=own)
            drop_capabilities()
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            for number in (0, 1, 2):
                os.dup2(number, STDIO[number])
            if read_all(ready[0]) != READY:
                os._exit(FAILED)
            inside(rest)
        if not has_network:  # it takes 8 ms, and as long as the mounts
            start_loopback()
        os.write(ready[1], READY)
        os.close(ready[1])
    except OSError as error:
        fail(error)
    os.close(STATUS)
    follow(child, child, report, null, mask)


def hold_signals() -> set[int]:
    """Delay signals until ``follow`` can pass them on; return the mask of before.

    The command may run before this process runs again. Without the delay a signal that is sent
    then ends this process, and the command gets no signal.
    """
    return signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)


def follow(
    child: int, inside_pid: int, report: tuple[int, int], null: int, mask: set[int]
) -> "NoReturn":
    """Pass signals on to the inside, wait for the command, and end as the command ended.

    Args:
        child: id of the forked process.
        inside_pid: id of process 1 of the sandbox, as seen outside.
        report: both ends of the pipe through which the inside reports.
        null: a descriptor of ``/dev/null``.
        mask: the signals that were blocked before ``hold_signals``.
    """
    os.close(report[1])
    for number in (0, 1, 2):  # so that the caller notices when the command closes its output
        os.dup2(null, number)
    if os.read(report[0], 1):
        for number in PASSED_ON:
            signal.signal(number, lambda caught, _frame: os.kill(inside_pid, caught))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    words = read_line(report[0]).split()
    if not words or words[0] == ALONE:
        _, status = os.waitpid(child, 0)
        if not words:  # the inside was killed, or there is no sandbox
            end(status if os.WIFSIGNALED(status) else FAILED << 8)
    end(int(words[1]))


def read_line(descriptor: int) -> bytes:
    """Read up to a line feed or the end."""
    found = b""
    while not found.endswith(b"\n") and (data := os.read(descriptor, 1)):
        found += data
    return found


def end(status: int) -> "NoReturn":
    """End this process with the same wait status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))
