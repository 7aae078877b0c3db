"""Servers of the tests, forked from a process that has imported their modules.

The tests start thousands of mutants, fakes and reference servers. A start costs more processor time
than the conversation with the server: most of it is the interpreter and the imports. So one process
imports everything, and a server is a fork of it. The server is a child of the process that judges
it, as if that had started it: ``clone`` of Linux can give a fork the parent of the process that
forks. On other systems, in a sandbox, and for all other commands the server is started as usual.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, Any, Final, NoReturn

HERE: Final = Path(__file__).parent
MUTANTS: Final = (str(HERE / "mutants"),)
FAKES: Final = (str(HERE / "fakes"),)
REFERENCE: Final = ("-m", "reference_server")
SCRIPTS: Final = tuple(("-S", str(HERE / f"{name}_server.py")) for name in ("golden", "toy"))
SWAPPING: Final = ("-S", str(HERE / "swapping_server.py"))
KINDS: Final = (MUTANTS, FAKES, REFERENCE, *SCRIPTS, SWAPPING)
"""The first words after the interpreter of the commands that are forked."""

WORKERS: Final = frozenset(
    {
        "reference_server.features.cedarscript.library",
        "reference_server.features.cedarscript.worker",
    }
)
"""Modules of a process that the reference server starts."""

LONGEST: Final = 1 << 20
"""The most bytes of a command with its environment."""

CLONE: Final = {"x86_64": 56, "aarch64": 220}
"""Number of the system call ``clone`` of Linux, by machine."""

CLONE_PARENT: Final = 0x8000
"""See ``linux/sched.h``."""


Begin = Callable[[socket.socket], Callable[[], object]]


class Forked:
    """A running server: the part of ``subprocess.Popen`` that a ``ServerProcess`` uses."""

    def __init__(self, command: Sequence[str], pid: int, pipes: Sequence[int]) -> None:
        self.args = command
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] = os.fdopen(pipes[0], "wb", 0)
        self.stdout: IO[bytes] = os.fdopen(pipes[1], "rb", 0)
        self.stderr: IO[bytes] = os.fdopen(pipes[2], "rb", 0)
        self._waiting = threading.Lock()

    def poll(self) -> int | None:
        """Return its exit status, or None while it runs."""
        with self._waiting:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its exit.

        Raises:
            subprocess.TimeoutExpired: the seconds passed first.
        """
        end = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() >= end:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.005)
        return status


class ForkServer:
    """The process that has imported the modules of all servers.

    Args:
        begin: starts it with the socket of its orders, and returns a function that waits for its
            end.
    """

    def __init__(self, begin: Begin) -> None:
        self._one_at_a_time = threading.Lock()
        self._orders, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._wait = begin(other)

    def start(self, command: Sequence[str], env: Mapping[str, str], cwd: str) -> Forked:
        """Fork a server.

        Raises:
            RuntimeError: this process has ended.
        """
        order = json.dumps({"words": list(command), "env": dict(env), "cwd": cwd}).encode()
        stdin, ours_in = os.pipe()
        ours_out, stdout = os.pipe()
        ours_err, stderr = os.pipe()
        try:
            with self._one_at_a_time:
                socket.send_fds(self._orders, [order], [stdin, stdout, stderr])
                pid = self._orders.recv(64)
        except OSError:
            pid = b""
        finally:
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)
        if not pid:
            for descriptor in (ours_in, ours_out, ours_err):
                os.close(descriptor)
            raise RuntimeError("the fork server of the tests has ended; its output says why")
        return Forked(command, int(pid), (ours_in, ours_out, ours_err))

    def close(self) -> None:
        """End it; the servers go on."""
        self._orders.close()
        self._wait()


class Launcher:
    """Starts servers in place of ``mcp_touchstone.transport.process._launch``.

    Args:
        ordinary: that function.
        begin: starts the fork server, when it is first needed.
    """

    def __init__(self, ordinary: Callable[..., Any], begin: Begin) -> None:
        self._ordinary = ordinary
        self._begin = begin
        self._server: ForkServer | None = None
        self._starting = threading.Lock()

    def __call__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        sandbox: object,
    ) -> Any:
        """Start a server."""
        folder = Path(cwd or ".").absolute()
        if kind(command) is None or sandbox is not None or not folder.is_dir():
            return self._ordinary(command, env, cwd, sandbox)
        return self.server().start(command, env, str(folder))

    def server(self) -> ForkServer:
        """Return the fork server; start it if it does not run."""
        with self._starting:
            if self._server is None:
                self._server = ForkServer(self._begin)
            return self._server

    def close(self) -> None:
        """End the fork server."""
        if self._server is not None:
            self._server.close()
            self._server = None


def kind(command: Sequence[str]) -> tuple[str, ...] | None:
    """Return the first words of a server that can be forked; None for another command."""
    can_fork = sys.platform == "linux" and platform.machine() in CLONE
    if not can_fork or tuple(command[:1]) != (sys.executable,):
        return None
    return next((one for one in KINDS if tuple(command[1 : 1 + len(one)]) == one), None)


@contextlib.contextmanager
def forking(begin: Begin | None = None) -> Iterator[None]:
    """Fork the servers that this process starts.

    Args:
        begin: forks the fork server at once, while this process has one thread; if None, an
            interpreter is started for it when it is first needed.
    """
    from mcp_touchstone.transport import process  # noqa: PLC0415  (few servers need it)

    ordinary = process._launch
    launcher = Launcher(ordinary, begin or _started)
    if begin is not None:
        launcher.server()
    process._launch = launcher
    try:
        yield
    finally:
        process._launch = ordinary
        launcher.close()


def _started(orders: socket.socket) -> Callable[[], object]:
    """Start a fork server in a new interpreter."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fork_server", str(orders.fileno())],
        stdin=subprocess.DEVNULL,
        cwd=HERE.parent,
        pass_fds=[orders.fileno()],
        start_new_session=True,
    ).wait


def main(orders: socket.socket) -> None:
    """Fork a server for each order, until the other end is closed."""
    while True:
        order, pipes, _, _ = socket.recv_fds(orders, LONGEST, 3)
        if not order:
            return
        if not _fork_sibling():
            _become(json.loads(order), pipes, orders)
        for pipe in pipes:
            os.close(pipe)


def _fork_sibling() -> int:
    """Fork this process, as another child of its parent; return 0 in the fork.

    Raises:
        OSError: the system has no room for another process.
    """
    python = ctypes.PyDLL(None)  # it keeps the lock of the interpreter, as ``os.fork`` does
    python.PyOS_BeforeFork()
    found: int = python.syscall(
        CLONE[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0
    )
    if found:
        python.PyOS_AfterFork_Parent()
    else:
        python.PyOS_AfterFork_Child()
    if found < 0:
        raise OSError("clone")
    return found


_RUN: Final[dict[tuple[str, ...], Callable[[list[str]], int]]] = {}
"""The function that runs a server of each kind."""


def _prepare() -> None:
    """Import the modules of all servers."""
    from mcp_touchstone.catalog.loader import home  # noqa: PLC0415  (only this process needs it)

    sys.path.insert(0, str(home()))
    for folder in (MUTANTS, FAKES):
        name = f"tests.{Path(folder[0]).name}"
        _RUN[folder] = _module(f"{name}.__main__").main
        for path in sorted(Path(folder[0]).glob("*.py")):
            if path.stem not in {"__main__", "matrix", "catalogue"}:
                _module(f"{name}.{path.stem}")
    _RUN[REFERENCE] = _module("reference_server.__main__").main
    for part in pkgutil.walk_packages(_module("reference_server").__path__, "reference_server."):
        if part.name not in WORKERS:
            _module(part.name)
    # A list of tools starts the worker of scripts early. That takes longer than most conversations
    # of the tests, and few of them send a script. The first script starts it as well.
    _module("reference_server.features.cedarscript.engine").Engine.warm = lambda _engine: None
    # Its first call reads a table and compiles forty expressions, a third of the work of a mutant.
    _module("reference_server.features.cedarscript.explain").find("")
    for script in (*SCRIPTS, SWAPPING):
        path = Path(script[-1])
        _RUN[script] = partial(_script, compile(path.read_bytes(), path, "exec"))
    gc.collect()
    gc.freeze()


def _script(code: CodeType, _words: list[str]) -> int:
    known = {"__name__": "__main__", "__file__": code.co_filename, "begin": _begin}
    exec(code, known)  # noqa: S102  (one of ours)
    return 0


def _begin(command: Sequence[str]) -> Forked:
    """Start a server behind a server, as a fork of it; both write to one standard error."""
    stdin, ours_in = os.pipe()
    ours_out, stdout = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.closerange(3, 256)
        _run(command)
    os.close(stdin)
    os.close(stdout)
    return Forked(command, pid, (ours_in, ours_out, os.open(os.devnull, os.O_RDONLY)))


def _module(name: str) -> ModuleType:
    return importlib.import_module(name)


def _become(order: dict[str, Any], pipes: Sequence[int], orders: socket.socket) -> None:
    """Behave like a process that was started with the command, and exit."""
    os.setsid()
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    orders.send(str(os.getpid()).encode())
    orders.close()
    _run(order["words"])


def _run(command: Sequence[str]) -> NoReturn:
    """Run the program of a command in this process, and exit."""
    found = kind(command)
    assert found is not None
    words = [*command[1 + len(found) :]]
    sys.argv = [found[-1], *words]
    if found is REFERENCE:
        sys.argv[0] = str(sys.modules[_RUN[found].__module__].__file__)
    (gc.disable if found is MUTANTS else gc.enable)()
    status = 1
    try:
        # A server of HTTP starts another one. That of a fake has its port after the name and root.
        over_http = "--http" in words or (found is FAKES and len(words) > 2)
        with forking(_forked) if over_http else contextlib.nullcontext():
            status = _RUN[found](words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  (the interpreter would do the same)
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]  # it waits for threads, as at an exit
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status & 0xFF)


def _forked(orders: socket.socket) -> Callable[[], object]:
    """Start a fork server as a fork of this process."""
    pid = os.fork()
    if not pid:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.closerange(3, orders.fileno())
        os.closerange(orders.fileno() + 1, 256)
        main(orders)
        os._exit(0)
    return lambda: os.waitpid(pid, 0)


if __name__ == "__main__":
    _prepare()
    main(socket.socket(fileno=int(sys.argv[1])))
