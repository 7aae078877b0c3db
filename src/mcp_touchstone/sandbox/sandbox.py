"""Run a command in separate namespaces, where it can do no harm. Linux only; knows no MCP.

The command sees only its own processes. It can write to the given folders and to a ``/tmp`` of its
own, and nowhere else. It sees the system's programs and the given files, and no other file of the
user. Unless it is given the network, it has only a loopback device of its own.

``Sandbox`` lists the files that the command may read and change, and ``wrap`` returns the command
line that runs it there. ``command_files`` finds the files that a command needs. ``init`` is a
program that runs at each start, so it imports nearly nothing. A server in a sandbox has these
processes:

    outside       started by ServerProcess; passes signals on, ends as the server ended
    (bwrap)       with --sandbox bwrap only
      inside      process 1: reaps orphans; when it ends, Linux ends all others in the sandbox
        server    process 2: ``ServerProcess.pid`` outside, ``own_pid`` in the sandbox

The outside and the inside close the input and outputs of the server, so that their ends show as
without a sandbox. Reproduction scripts use bubblewrap with the arguments of ``wrap``. ``listen``
opens a port in the network of a sandbox, for attacks that wait for requests of the server, and
``SandboxSockets`` makes connections to an HTTP server there. The loopback can have further
addresses, which look like those of other networks.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final

from mcp_touchstone.sandbox.init.common import HELD, LOADER

FOLDER: Final = Path(__file__).parent
RUN: Final = "import sys; sys.path.append(sys.argv.pop(1)); from init import program; program.run()"
"""The program in the folder. Python compiles its parts and keeps them: that takes 5 ms."""

PATIENCE: Final = 10.0
"""Seconds for the test of a method."""

FILE_SIZE: Final = 256 * 1024 * 1024
"""Default of the greatest size of a file, in bytes."""

OWN: Final = 128 * 1024 * 1024
"""Default of the greatest size of the file systems of a sandbox, which are memory, in bytes."""

PROCESSES: Final = 2048
"""Default of the greatest number of processes and threads."""

COMMAND: Final = 2
"""Process id of the command in the sandbox."""

INFO: Final = 14
"""Descriptor on which bubblewrap reports the process it started, see ``init``."""

CAPABILITIES: Final = (
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "NET_BIND_SERVICE",
)
"""Capabilities that root keeps under bubblewrap, for full access to its files."""

SYSTEM: Final = tuple(
    Path(text)
    for text in (
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/opt",
        "/nix/store",
        "/snap",
        "/sys/devices/system/cpu",
    )
)
"""Folders of the system that every command may read."""

SETTINGS: Final = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "gai.conf",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "java-*",
    "ld.so.*",
    "locale.*",
    "localtime",
    "machine-id",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert*",
    "pki/tls/openssl.cnf",
    "profile",
    "protocols",
    "resolv.conf",
    "services",
    "shells",
    "ssl/cert*",
    "ssl/openssl.cnf",
    "timezone",
)
"""Names and patterns below ``/etc`` that every command may read; none of them holds a secret."""

VARIABLES: Final = re.compile(
    r"PATH|HOME|USER|USERPROFILE|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR"
    r"|PYTHON\w+|VIRTUAL_ENV|CONDA_PREFIX|NODE_PATH|NODE_ENV|NODE_EXTRA_CA_CERTS"
    r"|LD_LIBRARY_PATH|CLASSPATH|JAVA_HOME|GOROOT|GOPATH|GOCACHE|CARGO_HOME|RUSTUP_HOME"
    r"|DOTNET_ROOT|NUGET_PACKAGES|GEM_HOME|npm_config_cache|COREPACK_HOME|YARN_CACHE_FOLDER"
    r"|PNPM_HOME|BUN_INSTALL|DENO_DIR|VOLTA_HOME|NVM_DIR|UV_CACHE_DIR|UV_TOOL_DIR"
    r"|UV_PYTHON_INSTALL_DIR|PIPX_HOME|PYENV_ROOT|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE"
)
"""The variables of the user that a sandboxed command inherits."""

OFFLINE: Final = {"npm_config_offline": "true", "UV_OFFLINE": "1"}
"""Variables that make launchers take packages from their caches."""


class Method(StrEnum):
    """The method of making a sandbox.

    ``unshare`` starts in half the time of ``bwrap``. Some systems allow only bubblewrap to
    make namespaces.
    """

    UNSHARE = "unshare"
    BWRAP = "bwrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """The permissions of a command. All paths are absolute and the same inside.

    Attributes:
        writable: folders it may change.
        readable: files and folders it may read.
        copied: folders it may read and change, but the changes stay in the sandbox and vanish
            with it. Read-only if the system does not support that and the folder is large.
        links: symbolic links, with their targets.
        hidden: folders that are empty for it, except for the paths above.
        network: whether it has access to the network of the machine.
        file_size: greatest size of a file, in bytes.
        own: greatest size of its own file systems, such as ``/tmp``, in bytes: of each with
            ``bwrap`` (0.7 or later), of all together with ``unshare``.
        processes: greatest number of processes and threads. For root, only ``unshare`` sets this
            limit, since Linux 6.14.
    """

    method: Method
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    copied: tuple[Path, ...] = ()
    links: Mapping[Path, str] = field(default_factory=dict)
    hidden: tuple[Path, ...] = ()
    network: bool = False
    file_size: int = FILE_SIZE
    own: int = OWN
    processes: int = PROCESSES

    @property
    def own_places(self) -> tuple[str, ...]:
        """Where its own file systems are; with ``unshare`` they are one."""
        shared = ("/tmp",)  # noqa: S108  (it is the sandbox's own)
        if self.method is Method.UNSHARE:
            return shared
        return (*shared, "/var/tmp", "/dev/shm", *map(str, self.hidden))  # noqa: S108  (as above)


def outer(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the command of ``wrap``, which passes ``env`` on.

    What ``env`` says to the dynamic loader and the C library holds inside only: it would load code
    of the command into our programs outside.
    """
    ours = {name: value for name, value in os.environ.items() if name.startswith(LOADER)}
    theirs = {
        f"{HELD}{name}" if name.startswith(LOADER) else name: value for name, value in env.items()
    }
    return {**theirs, **ours}


def wrap(
    sandbox: Sandbox, command: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command that runs a command in a sandbox. Start it with ``outer(env)``.

    It behaves like the command itself: input and output are the command's own, SIGTERM, SIGINT,
    SIGHUP and SIGQUIT are passed on, and it ends with the same status or by the same signal. It
    ends with status 125, and prints the reason on stderr, if the sandbox cannot be made.

    Args:
        command: program and arguments; the program is looked for on the PATH of ``env``.
        cwd: the command's working folder; it must exist in the sandbox.

    Raises:
        FileNotFoundError: there is no such program, or no such folder.
        PermissionError: the program may not be run.
    """
    if not Path(cwd).is_dir():
        raise FileNotFoundError(2, "there is no such folder", os.fspath(cwd))
    program = find_program(command[0], cwd, env)
    if program is None and os.sep in command[0] and (Path(cwd) / command[0]).is_file():
        raise PermissionError(13, "it may not be run", command[0])
    if program is None:
        raise FileNotFoundError(2, "there is no such program", command[0])
    limits = (str(sandbox.file_size), str(sandbox.processes))
    rest = (program, os.fspath(cwd), env.get("PWD", ""), *limits, *command)
    if sandbox.method is Method.UNSHARE:
        mounts = _mounts(sandbox, overlays=True, sized=False)
        return (*_init("unshare"), str(sandbox.own), *mounts, "--", *rest)
    ours = (FOLDER, Path(os.path.realpath(sys.executable)), Path(sys.base_prefix).resolve())
    outer = replace(sandbox, readable=(*sandbox.readable, *ours))
    words = (*bubblewrap(outer), "--as-pid-1", "--die-with-parent", "--info-fd", str(INFO), "--")
    return (*_init("bwrap"), *words, *_init("inside"), *rest)


def keeper() -> tuple[str, ...]:
    """Return the command that runs a command and ends it with all that it started, see ``keep``."""
    return _init("keep")


def bubblewrap(sandbox: Sandbox) -> list[str]:
    """Return bubblewrap with the options of a sandbox; the command must follow."""
    program = shutil.which("bwrap") or "bwrap"
    words = [program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        words += [word for name in CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]
    known = _options(program)
    return words + _mounts(sandbox, overlays="--tmp-overlay" in known, sized="--size" in known)


@lru_cache
def probe(method: Method) -> str:
    """Return the reason a method does not work on this machine; empty if it works."""
    if sys.platform != "linux":
        return "only Linux has namespaces"
    if method is Method.BWRAP and shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    words = wrap(Sandbox(method=method), ["true"], cwd="/", env=os.environ)
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE, cwd="/")
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        return said.decode("utf-8", "replace").strip().splitlines()[-1]
    return ""


def variables(env: Mapping[str, str], *, network: bool) -> dict[str, str]:
    """Return the variables a sandboxed command inherits: no keys, tokens or agents."""
    kept = {name: value for name, value in env.items() if VARIABLES.fullmatch(name)}
    return kept if network else {**kept, **OFFLINE}


def choose(wanted: str) -> tuple[Method | None, str]:
    """Choose the method of making sandboxes on this machine.

    Args:
        wanted: the name of a method, or ``auto`` for the first one that works.

    Returns:
        the method, or None with the reason in a sentence.
    """
    methods = [method for method in Method if wanted in {method, "auto"}]
    reasons = []
    for method in methods:
        if not (why := probe(method)):
            return method, ""
        reasons.append(why)
    return None, "; ".join(reasons)


def command_pid(outer: int) -> int | None:
    """Return the process id of a sandboxed command, as seen outside the sandbox.

    Args:
        outer: the process that was started.

    Returns:
        None if it has not started yet, or has exited.
    """
    below = [outer]
    while below:
        pid = below.pop()
        if _numbers(pid)[1:][-1:] == [COMMAND]:
            return pid
        if pid == outer or is_helper(pid):
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
                below += map(int, children.split())
    return None


def listen(
    pid: int, host: str, port: int, *, kind: str = "tcp", addresses: Sequence[str] = ()
) -> socket.socket:
    """Listen in the network of a sandbox.

    Args:
        pid: id of a process of the sandbox, as seen outside.
        host: the address; ``::`` for all addresses of IPv4 and IPv6.
        kind: ``tcp`` or ``udp``.
        addresses: IPv4 addresses that the loopback device of the sandbox gets before.

    Raises:
        OSError: the sandbox has ended, or the port is in use there.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = [str(pid), kind, host, str(port), str(theirs.fileno()), *addresses]
        try:
            subprocess.run(
                [*_init("listen"), *words],
                pass_fds=[theirs.fileno()],
                capture_output=True,
                timeout=PATIENCE,
                check=True,
            )
        except subprocess.SubprocessError as error:
            said = getattr(error, "stderr", None) or str(error).encode()
            raise OSError(said.decode("utf-8", "replace").strip().splitlines()[-1]) from error
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=descriptors[0])


class SandboxSockets:
    """Makes sockets in the network of a sandbox, in a process that is started at first use.

    Args:
        pid: returns the id of a process of the sandbox, as seen outside.
    """

    def __init__(self, pid: Callable[[], int]) -> None:
        self._pid = pid
        self._lock = threading.Lock()
        self._ours: socket.socket | None = None
        self._maker: subprocess.Popen[bytes] | None = None

    def make(self, family: int) -> socket.socket:
        """Return a TCP socket of ``AF_INET`` or ``AF_INET6`` that is not connected.

        Raises:
            OSError: the sandbox has not started, or has ended.
        """
        with self._lock:
            if self._ours is None:
                self._ours = self._start()
            try:
                self._ours.sendall(b"6" if family == socket.AF_INET6 else b"4")
                data, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
            except OSError:
                self._end()
                raise
            if not data:
                self._end()
                raise ConnectionRefusedError("the sandbox has ended")
        return socket.socket(fileno=descriptors[0])

    def _start(self) -> socket.socket:
        pid = self._pid()  # before the pair, which an error would leave open
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE)
        words = [str(pid), str(theirs.fileno())]
        with theirs:
            self._maker = subprocess.Popen(
                [*_init("sockets"), *words],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        return ours

    def _end(self) -> None:
        if self._ours is not None:
            self._ours.close()
        if self._maker is not None:
            self._maker.kill()
            self._maker.wait()
        self._ours = self._maker = None

    def close(self) -> None:
        """End the process that makes them."""
        with self._lock:
            self._end()


def is_helper(pid: int) -> bool:
    """Return whether a process below the started one is ours or bubblewrap's."""
    numbers = _numbers(pid)
    return len(numbers) == 1 or numbers[-1:] == [1]


def _numbers(pid: int) -> list[int]:
    """Return the ids of a process, the outermost first; empty if it has exited."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return next(
        (
            [int(word) for word in line.split()[1:]]
            for line in status.splitlines()
            if line.startswith("NSpid:")
        ),
        [],
    )


def find_program(name: str, cwd: str | os.PathLike[str], env: Mapping[str, str]) -> str | None:
    """Return the absolute path of a program, as the system would find it; None if not found.

    Args:
        name: a name to search for on PATH, or a path.
        cwd: the folder that relative paths start from.
        env: the environment with the PATH.
    """
    place = Path(cwd)
    found = str(place / name) if os.sep in name else name
    found = shutil.which(found, path=env.get("PATH", os.defpath)) or ""
    return str(place / found) if found else None


class _Kind(StrEnum):
    """Kind of access to a path in a sandbox."""

    HIDE = "hide"
    LINK = "link"
    READ = "read"
    COPY = "copy"
    WRITE = "write"


def _mounts(sandbox: Sandbox, *, overlays: bool, sized: bool) -> list[str]:
    """Return the options of bubblewrap for the network and the files of a sandbox.

    Args:
        overlays: whether it can mount overlays.
        sized: whether it can limit the size of a file system.
    """
    empty = ["--size", str(sandbox.own), "--tmpfs"] if sized else ["--tmpfs"]
    words = [] if sandbox.network else ["--unshare-net"]
    words += [*_system(), "--proc", "/proc", "--dev", "/dev"]
    words += [*empty, "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108  (it is the sandbox's own)
    if sandbox.method is Method.BWRAP:
        words += [word for path in _machine_wide() for word in ("--ro-bind", path, path)]
    words += [*empty, "/tmp", *empty, "/var/tmp"]  # noqa: S108  (as above)
    for path, kind in _needed(sandbox):
        place = str(path)
        if kind is _Kind.WRITE:
            words += ["--bind", place, place]
        elif kind is _Kind.COPY and overlays:
            words += ["--overlay-src", place, "--tmp-overlay", place]
        elif kind is _Kind.LINK:
            words += ["--symlink", sandbox.links[path], place]
        elif kind is _Kind.HIDE:
            words += [*empty, place]
        else:
            words += ["--ro-bind", place, place]
    return [*words, "--remount-ro", "/"]


def _needed(sandbox: Sandbox) -> Iterator[tuple[Path, _Kind]]:
    """Yield the paths to mount beside the system, folders first, each once."""
    wanted: dict[Path, _Kind] = {}
    for kind, paths in (
        (_Kind.LINK, sandbox.links),
        (_Kind.HIDE, sandbox.hidden),
        (_Kind.READ, sandbox.readable),
        (_Kind.COPY, sandbox.copied),
        (_Kind.WRITE, sandbox.writable),
    ):
        wanted.update(dict.fromkeys(paths, kind))
    there = dict.fromkeys(SYSTEM, _Kind.READ)
    for path in sorted(wanted, key=lambda path: len(path.parts)):
        kind = wanted[path]
        above = next((there[one] for one in (path, *path.parents) if one in there), None)
        empty = above in {None, _Kind.HIDE}
        if {
            _Kind.HIDE: not empty,
            _Kind.LINK: empty,
            _Kind.READ: empty,
            _Kind.COPY: above not in {_Kind.COPY, _Kind.WRITE},
            _Kind.WRITE: above is not _Kind.WRITE,
        }[kind]:
            there[path] = kind
            yield path, kind


def _init(part: str) -> tuple[str, ...]:
    """Return the command that runs a part of ``init``, without the words that it takes."""
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", RUN, str(FOLDER), part)


@lru_cache
def _system() -> tuple[str, ...]:
    """Return the options for the folders and the settings of the system."""
    words: list[str] = []
    for path in SYSTEM:
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    for pattern in SETTINGS:
        for path in sorted(Path("/etc").glob(pattern)):
            if path.exists():
                words += ["--ro-bind", str(path.resolve()), str(path)]
    return tuple(words)


@lru_cache
def _machine_wide() -> tuple[str, ...]:
    """Return the paths below ``/proc`` through which root can change the whole machine.

    Bubblewrap leaves some of them writable; ``init.mounts`` makes all of them read-only itself.
    """
    entries = [entry for entry in os.scandir("/proc") if not entry.name.isdigit()]
    return tuple(
        sorted(
            entry.path
            for entry in entries
            if entry.is_dir(follow_symlinks=False)
            or (entry.is_file(follow_symlinks=False) and entry.stat().st_mode & 0o222)
        )
    )


@lru_cache
def _options(program: str) -> str:
    """Return the help of bubblewrap, which lists its options; empty if it prints none."""
    try:
        return subprocess.check_output(
            [program, "--help"], stderr=subprocess.STDOUT, timeout=PATIENCE, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
