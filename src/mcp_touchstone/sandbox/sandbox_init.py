"""A program that runs a command in a sandbox and behaves like that command. Linux only.

It is run by its path with ``python -I -S`` and imports almost nothing: its start-up time is added
to every start of a server. ``sandbox.wrap`` writes its command line. It has three parts:

- *outside*: the process that the caller sees. It passes signals on, and it ends with the status
  or by the signal of the command.
- *inside*: process 1 of the sandbox. It starts the command as process 2, reaps orphans, and
  reports how the command ended.
- *listen*: it listens in the network of a sandbox, and sends the socket to its caller.
- *sockets*: it makes sockets in the network of a sandbox, one for each byte of its caller.

With ``bwrap`` the outside starts bubblewrap, which starts the inside. With ``unshare`` the
outside makes the namespaces itself and forks; it understands the same options for mounts.
"""

import os
import resource
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the module signal imports enum: 5 to 10 ms

if sys.argv[1:2] != ["bwrap"]:  # the outside of bubblewrap needs no C functions: 3 ms
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    libc.mount.argtypes = (*[ctypes.c_char_p] * 3, ctypes.c_ulong, ctypes.c_char_p)

STDIO = (10, 11, 12)
"""Descriptors of the command's input, output and error output on the way through bubblewrap."""

STATUS, INFO = 13, 14
"""Descriptors of the pipe that reports the command's end, and of the one for bubblewrap's child."""

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)

ALONE, LEFT = b"alone", b"left"
"""Whether the command was the last process of the sandbox when it ended."""

READY = b"ready"

FAILED = 125
"""Exit status when the sandbox could not be made; 126 and 127 when the command did not start."""

KEPT_CAPABILITIES = (0, 1, 2, 3, 4, 5, 6, 7, 10)
"""Capabilities of root for files, ids and low ports. None for mounts, traces or networks.

Capabilities as in capabilities(7): CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, KILL,
SETGID, SETUID, NET_BIND_SERVICE. Users other than root have none.
"""

RESERVED = 301
"""The lowest limit of process ids that Linux accepts; it does not reuse that many ids."""

TMPFS_OPTIONS = "mode={},size=512m"

LARGEST_COPY = 64 << 20
"""Size in bytes up to which a folder is copied at each start."""

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1
SYS_MOUNT_SETATTR = 442  # on nearly all architectures, since Linux 5.12
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_CAPBSET_READ, PR_CAPBSET_DROP = 23, 24
CAPABILITY_VERSION = 0x20080522
ARG_START = 45  # in /proc/self/stat, counted from behind the name; see proc(5)
NS_GET_USERNS = 0xB701
KEY_CALLS = {
    "x86_64": ((0xC000003E, 248), (0x40000003, 286)),
    "aarch64": ((0xC00000B7, 217), (0x40000028, 309)),
    "riscv64": ((0xC00000F3, 217),),
    "loongarch64": ((0xC0000102, 217),),
    "ppc64le": ((0xC0000015, 269),),
    "s390x": ((0x80000016, 278),),
}
"""Machine -> its architectures, the own one first: number in seccomp(2), and number of ``add_key``.

The numbers of ``request_key`` and ``keyctl`` are the next two.
"""
KEYCTL_JOIN_SESSION_KEYRING = 1
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
ENOSYS, EPERM = 38, 1
AF_INET, SOCK_DGRAM = 2, 2
SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8914, 0x8916, 1


def check(what: str, result: int) -> int:
    """Return the result of a C function.

    Raises:
        OSError: the result is negative; with the errno of the function.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


# --- outside


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
    """Make the namespaces and follow the command in them."""
    separator = words.index("--")
    mounts, rest = words[:separator], words[separator + 1 :]
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
            build([word for word in mounts if word != "--unshare-net"], most=int(rest[4]))
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


def end(status: int) -> "NoReturn":
    """End this process with the same wait status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


# --- mounts


def build(words: list[str], most: int) -> None:
    """Make a new root by mounts, given as options of bubblewrap, and enter it.

    Args:
        words: the mounts.
        most: greatest number of processes.

    Raises:
        OSError: a mount was refused.
    """
    new = "/tmp"  # any existing folder: only this process sees the mounts there
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    mount("tmpfs", new, "tmpfs", MS_NOSUID | MS_NODEV, TMPFS_OPTIONS.format("755"))
    os.mkdir(f"{new}/old")
    check("pivot_root", libc.pivot_root(new.encode(), f"{new}/old".encode()))
    os.chdir("/")
    os.mkdir("/copies")
    mount("tmpfs", "/copies", "tmpfs", MS_NOSUID | MS_NODEV, TMPFS_OPTIONS.format("700"))
    read_only = []
    rest = iter(words)
    lower = ""
    for word in rest:
        if word == "--ro-bind":
            set_read_only(bind(next(rest), next(rest)), recursive=True)
        elif word == "--bind":
            bind(next(rest), next(rest))
        elif word == "--overlay-src":
            lower = next(rest)
        elif word == "--tmp-overlay":
            overlay(lower, next(rest))
        elif word == "--symlink":
            target, place = next(rest), next(rest)
            make_folder(os.path.dirname(place))
            os.symlink(target, place)
        elif word == "--tmpfs":
            place = next(rest)
            make_folder(place)
            mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, TMPFS_OPTIONS.format("1777"))
        elif word == "--proc":
            mount_proc(next(rest), most)
        elif word == "--dev":
            mount_dev(next(rest))
        elif word == "--remount-ro":
            read_only.append(next(rest))
    for place in ("/old", "/copies"):
        check(f"umount {place}", libc.umount2(place.encode(), MNT_DETACH))
        os.rmdir(place)
    for place in read_only:
        set_read_only(place)


def mount(source: str, place: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount a file system with the system call mount.

    Raises:
        OSError: it was refused.
    """
    names = [None if text is None else os.fsencode(text) for text in (source, place, kind, options)]
    check(f"mount {place}", libc.mount(*names[:3], flags, names[3]))


def bind(source: str, place: str) -> str:
    """Bind a file or folder of the old root to a place of the new one; return the place.

    Raises:
        OSError: it does not exist, or the mount was refused.
    """
    if os.path.isdir(f"/old{source}"):
        make_folder(place)
    else:
        make_folder(os.path.dirname(place))
        if not os.path.lexists(place):
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(f"/old{source}", place, None, MS_BIND | MS_REC, None)
    return place


def overlay(lower: str, place: str) -> None:
    """Mount a folder such that changes to it stay in the sandbox; read-only if that fails.

    Where the kernel has no overlays for users, the folder is copied if it is small.

    Raises:
        OSError: all failed.
    """
    number = len(os.listdir("/copies"))
    upper, work = f"/copies/{number}", f"/copies/{number + 1}"
    os.mkdir(upper)
    os.mkdir(work)
    escaped = f"/old{lower}".replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    options = f"lowerdir={escaped},upperdir={upper},workdir={work},userxattr"
    make_folder(place)
    try:
        mount("overlay", place, "overlay", MS_NOSUID | MS_NODEV, options)
    except OSError:
        if copy(f"/old{lower}", upper, LARGEST_COPY):
            mount(upper, place, None, MS_BIND, None)
        else:
            set_read_only(bind(lower, place), recursive=True)


def copy(source: str, target: str, most: int) -> bool:
    """Copy the content of a folder, links as links; return whether that was possible.

    Args:
        source: the folder.
        target: an empty folder.
        most: greatest size in bytes; each file and folder counts as 1000 more.
    """
    import shutil  # noqa: PLC0415  (slow to import, and rarely needed)

    try:
        for folder, _, names in os.walk(source):
            most -= 1000 + sum(1000 + os.lstat(f"{folder}/{name}").st_size for name in names)
            if most < 0:
                return False
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error):
        return False
    return True


def set_read_only(place: str, *, recursive: bool = False) -> None:
    """Make a mount read-only.

    Raises:
        OSError: it was refused.
    """
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    words = (SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(place), AT_RECURSIVE if recursive else 0)
    number, folder, name, flags = (w if isinstance(w, bytes) else ctypes.c_long(w) for w in words)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    done = libc.syscall(number, folder, name, flags, ctypes.byref(attributes), size)
    check(f"read-only {place}", done)


def mount_proc(place: str, most: int) -> None:
    """Mount ``/proc`` of the sandbox; settings of the whole machine are read-only.

    Root is limited to ``most`` processes here, since nothing else limits root.

    Raises:
        OSError: it was refused.
    """
    make_folder(place)
    mount("proc", place, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    if kernel() >= (6, 14) and os.geteuid() == 0:  # before, one number for the machine
        write(f"{place}/sys/kernel/pid_max", str(RESERVED + most))
    for name in os.listdir(place):
        path = f"{place}/{name}"
        mode = os.lstat(path).st_mode
        is_folder, is_file = stat.S_ISDIR(mode), stat.S_ISREG(mode)
        if not name.isdigit() and (is_folder or (is_file and mode & 0o222)):
            mount(path, path, None, MS_BIND | MS_REC, None)
            set_read_only(path, recursive=True)


def mount_dev(place: str) -> None:
    """Make the devices that every program expects, and no other.

    Raises:
        OSError: it was refused.
    """
    make_folder(place)
    mount("tmpfs", place, "tmpfs", MS_NOSUID, TMPFS_OPTIONS.format("755"))
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        bind(f"/dev/{name}", f"{place}/{name}")
    for name in ("shm", "pts"):
        os.mkdir(f"{place}/{name}")
    options = "newinstance,ptmxmode=0666,mode=620"
    mount("devpts", f"{place}/pts", "devpts", MS_NOSUID | MS_NOEXEC, options)
    mount("tmpfs", f"{place}/shm", "tmpfs", MS_NOSUID | MS_NODEV, TMPFS_OPTIONS.format("1777"))
    for name, number in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
        os.symlink(f"/proc/self/fd{number}", f"{place}/{name}")
    os.symlink("pts/ptmx", f"{place}/ptmx")


def make_folder(path: str) -> None:
    """Make a folder and those above it, if they are missing."""
    if path not in {"", "/"} and not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        os.mkdir(path, 0o755)


def start_loopback() -> None:
    """Enable 127.0.0.1 for the processes of the sandbox.

    Raises:
        OSError: it was refused.
    """
    socket = check("socket", libc.socket(AF_INET, SOCK_DGRAM, 0))
    request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + bytes([IFF_UP, 0]), 40)
    check("loopback", libc.ioctl(socket, SIOCSIFFLAGS, request))
    os.close(socket)


def drop_capabilities() -> None:
    """Permanently drop the capabilities that could undo the sandbox.

    Raises:
        OSError: it was refused.
    """
    check("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    kept = KEPT_CAPABILITIES if os.geteuid() == 0 else ()
    number = 0
    while libc.prctl(PR_CAPBSET_READ if number in kept else PR_CAPBSET_DROP, number, 0, 0, 0) >= 0:
        number += 1
    mask = sum(1 << number for number in kept)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    check("capset", libc.capset(ctypes.byref(header), ctypes.byref(sets)))


def close_keyrings() -> None:
    """Refuse the keys that the kernel keeps for the user, for good.

    A new session keyring is not enough: a process of the same user may link the user's keyring
    by its number, and then read the keys in it.

    Raises:
        OSError: it was refused.
    """
    natives = KEY_CALLS.get(os.uname().machine, ())
    if not natives or sys.maxsize < 1 << 32:
        return
    number = ctypes.c_long(natives[0][1] + 2)
    if libc.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None) < 0 and (
        ctypes.get_errno() in {ENOSYS, EPERM}
    ):
        return  # the kernel has no keyrings, or a container refuses them already
    steps: list[tuple[int, ...]] = []
    for architecture, first in natives:
        steps += [
            (0x20, 0, 0, 4),  # load the architecture
            (0x15, 0, 5, architecture),  # another one: go to the next block
            (0x20, 0, 0, 0),  # load the number of the call
            (0x54, 0, 0, 0xBFFFFFFF),  # without the mark of x32
            (0x14, 0, 0, first),  # subtract; a lower number becomes a large one
            (0x25, 1, 0, 2),  # more than two above: go to the next block
            (0x06, 0, 0, 0x50000 | EPERM),  # refuse
        ]
    steps.append((0x06, 0, 0, 0x7FFF0000))  # allow
    code = b"".join(
        number.to_bytes(size, sys.byteorder)
        for step in steps
        for number, size in zip(step, (2, 1, 1, 4), strict=True)
    )
    filters = ctypes.create_string_buffer(code, len(code))
    program = (ctypes.c_size_t * 2)()  # struct sock_fprog: a short, and a pointer
    ctypes.c_ushort.from_buffer(program).value = len(steps)
    program[1] = ctypes.addressof(filters)
    address = ctypes.addressof(program)
    check("seccomp", libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, address, 0, 0))


def kernel() -> tuple[int, int]:
    """Return the version of Linux as two numbers."""
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)) or 0)


# --- inside


def inside(words: list[str]) -> "NoReturn":
    """Start the command as process 2 and reap orphans until no process is left.

    Args:
        words: the program as a path, its folder, the PWD of its environment (empty for none), the
            greatest size of a file in bytes, the greatest number of processes, and the command.
    """
    program, folder, pwd, files, processes, *command = words
    env = environment()
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


def limit_files(largest: int) -> None:
    """Limit the size of files in bytes (getrlimit(2)), and disable core dumps."""
    for kind, wanted in ((resource.RLIMIT_FSIZE, largest), (resource.RLIMIT_CORE, 0)):
        set_limit(kind, wanted)


def limit_processes(most: int) -> None:
    """Limit the processes and threads of the sandbox, if the system counts them separately.

    Since 5.14 Linux counts the processes of a user separately in each user namespace. That does not
    limit root; ``mount_proc`` limits root if Linux can.
    """
    if kernel() >= (5, 14):
        set_limit(resource.RLIMIT_NPROC, most)


def set_limit(kind: int, wanted: int) -> None:
    """Set a resource limit, not above the present one."""
    hard = resource.getrlimit(kind)[1]
    bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (bound, bound))


# --- listen


def listen(words: list[str]) -> None:
    """Send a socket that listens in the network of a sandbox.

    Args:
        words: id of a process in the sandbox, as seen outside; ``tcp`` or ``udp``; the address and
            the port; the descriptor of the Unix socket to send it over; and addresses that the
            loopback device of the sandbox gets before.

    Raises:
        OSError: the sandbox has ended, or the port is in use there.
    """
    import socket  # noqa: PLC0415  (the other parts have no use for it)

    pid, kind, host, port, descriptor, *addresses = words
    enter_network(pid)
    for number, address in enumerate(addresses):
        add_address(f"lo:{number}", socket.inet_aton(address))
    if kind == "udp":
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.bind((host, int(port)))
    elif ":" in host and socket.has_dualstack_ipv6():
        family = socket.AF_INET6
        listener = socket.create_server((host, int(port)), family=family, dualstack_ipv6=True)
    else:
        listener = socket.create_server(("" if ":" in host else host, int(port)))
    with listener, socket.socket(fileno=int(descriptor)) as caller:
        socket.send_fds(caller, [b"."], [listener.fileno()])


def sockets(words: list[str]) -> None:
    """Send TCP sockets of the network of a sandbox, one for each byte that is received.

    A socket stays in the network in which it was made, so the caller can connect it.

    Args:
        words: id of a process in the sandbox, as seen outside, and the descriptor of the Unix
            socket of the caller. A byte ``6`` asks for IPv6.

    Raises:
        OSError: the sandbox has ended.
    """
    import socket  # noqa: PLC0415  (the other parts have no use for it)

    pid, descriptor = words
    enter_network(pid)
    with socket.socket(fileno=int(descriptor)) as caller:
        while asked := caller.recv(1):
            with socket.socket(socket.AF_INET6 if asked == b"6" else socket.AF_INET) as made:
                socket.send_fds(caller, [b"."], [made.fileno()])


def enter_network(pid: str) -> None:
    """Enter the network of a process.

    Raises:
        OSError: it has ended.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    owner = check("owner of the network", libc.ioctl(network, NS_GET_USERNS))
    check("setns", libc.setns(owner, NEWUSER))
    check("setns", libc.setns(network, NEWNET))


def add_address(label: str, address: bytes) -> None:
    """Add an IPv4 address to a network device.

    Args:
        label: name of the device, a colon, and a name for the address.
        address: the four bytes of the address.

    Raises:
        OSError: it was refused.
    """
    control = check("socket", libc.socket(AF_INET, SOCK_DGRAM, 0))
    family = AF_INET.to_bytes(2, sys.byteorder)
    fields = label.encode().ljust(16, b"\0") + family + bytes(2) + address
    request = ctypes.create_string_buffer(fields, 40)
    check(f"address {label}", libc.ioctl(control, SIOCSIFADDR, request))
    os.close(control)


# --- helpers


def environment() -> dict[bytes, bytes]:
    """Return the initial environment of this process; Python adds to ``os.environ``."""
    data = read_all(os.open("/proc/self/environ", os.O_RDONLY))
    return dict(pair.split(b"=", 1) for pair in data.split(b"\0") if b"=" in pair)


def read_all(descriptor: int) -> bytes:
    """Read a descriptor to its end, and close it."""
    found = b""
    while data := os.read(descriptor, 65536):
        found += data
    os.close(descriptor)
    return found


def read_line(descriptor: int) -> bytes:
    """Read up to a line feed or the end."""
    found = b""
    while not found.endswith(b"\n") and (data := os.read(descriptor, 1)):
        found += data
    return found


def write(path: str, text: str) -> None:
    """Write a text to an existing file.

    Raises:
        OSError: it was refused.
    """
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def fail(error: OSError) -> "NoReturn":
    """Print the reason there is no sandbox, and exit."""
    os.write(2, f"mcp-touchstone: the sandbox could not be made: {error}\n".encode())
    os._exit(FAILED)


if __name__ == "__main__":
    PARTS = {
        "bwrap": outside_bwrap,
        "unshare": outside_unshare,
        "inside": inside,
        "listen": listen,
        "sockets": sockets,
    }
    PARTS[sys.argv[1]](sys.argv[2:])
