"""Start a server, read and write its pipes, end it and all processes it started.

Knows no MCP: bytes in, lines out, deadlines on every wait. Features of POSIX alone (process groups,
signals) have a Windows alternative here, which was never run, see ``docs/reference/platforms.md``.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Final, Protocol

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.sandbox.sandbox import (
    COMMAND,
    Sandbox,
    SandboxSockets,
    command_pid,
    listen,
    wrap,
)
from mcp_touchstone.transport.cpu_wait import turns
from mcp_touchstone.transport.deadline import Patience
from mcp_touchstone.transport.family import WINDOWS, Family
from mcp_touchstone.transport.stdin_writer import Feed
from mcp_touchstone.wire.framing import Line, LineSplitter, is_whole

if sys.platform == "linux":
    import fcntl
    import termios

CHUNK: Final = 65_536
PIPE: Final = 4096
"""Size of the pipe of an unread output in bytes, if the system permits to set it."""

STDERR_KEPT: Final = 65_536
"""Bytes of the end of stderr kept for people; all of it is drained."""

GRACE: Final = 2.0
"""Greatest seconds for the descendants of a process to exit after it."""

LAST_WORDS: Final = 1.0
"""Greatest seconds for reading the stderr of an exited process to its end."""

MARK: Final = "MCP_TOUCHSTONE_RUN"
"""Environment variable that every process of a run inherits, so that strays can be found."""

launched: Final[set[int]] = set()
"""Processes we started and have not ended yet."""


now = time.monotonic
sleep = time.sleep


class LaunchError(UserError):
    """The server could not be started; the message names the reason and the remedy."""


class Gone(Exception):  # noqa: N818  (an event of the server's life, not a fault of ours)
    """The server has exited, or no longer reads."""


class OutputStream(StrEnum):
    """An output of a process."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Step(StrEnum):
    """The step of the shutdown at which a process ended."""

    ITSELF = "by itself"
    INPUT_CLOSED = "when its input was closed"
    TERMINATED = "on SIGTERM"
    KILLED = "on SIGKILL"
    LEFT = "for us: we closed the connection"


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a process.

    Attributes:
        step: the step of the shutdown that ended it.
        status: exit status; negative for a signal, as in subprocess.
        seconds: seconds from the first step of the shutdown to the exit.
        strays: number of processes it left behind, which we ended.
        hurried: whether it had little time to exit after its input was closed.
    """

    step: Step
    status: int
    seconds: float
    strays: int = 0
    hurried: bool = False

    def __str__(self) -> str:
        """Return it as a sentence."""
        return f"ended {self.step} ({_how(self.status)})"


def signal_name(number: int) -> str:
    """Return the name of a signal: 11 -> 'SIGSEGV'."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _how(status: int) -> str:
    return f"status {status}" if status >= 0 else signal_name(-status)


def left(status: int) -> str:
    """Return the words for a server that ended by itself, with its exit status or signal."""
    return f"the server left ({_how(status)})"


class LineSink(Protocol):
    """A receiver of the lines of a server and of events, above all a transcript.

    Attributes:
        ended: whether the server's output reached end of file.
        overflow: the reason it stopped listening; empty while it listens.
    """

    ended: bool
    overflow: str

    def heard(self, line: Line, /) -> None:
        """Record a line of its output."""

    def happened(self, sentence: str, /) -> object:
        """Record an event that is not a line."""

    def input_closed(self) -> None:
        """Record that its input was closed."""

    def finished(self) -> None:
        """Record the end of its output."""


class ServerProcess:
    """One running server with its pipes; lines of its output go into the transcript."""

    def __init__(
        self,
        command: Sequence[str],
        transcript: LineSink,
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None = None,
        born: float | None = None,
        on_stderr: Callable[[bytes], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Start ``command``; its stderr is kept, and passed to ``on_stderr``.

        In a sandbox we start another process than the server, but it behaves like the server.

        Raises:
            LaunchError: the program does not exist or may not be run, or the folder is missing.
        """
        self.transcript = transcript
        self.command = tuple(command)
        self.born = now() if born is None else born
        self._stderr = bytearray()
        self._stderr_bytes = 0
        self._on_stderr = on_stderr
        self.ending: Ending | None = None
        self._stuck: threading.Event | None = None
        self._stdin_closed = self._terminated = False
        self._hung_up = False
        self._heeded = {stream: threading.Event() for stream in OutputStream}
        self.heed()
        self._splitter = LineSplitter()
        self._splitting = threading.Lock()
        self.sandbox = sandbox
        self._found: int | None = None
        self._sandbox_sockets: SandboxSockets | None = None
        self._popen = _launch(self.command, env, cwd, sandbox)
        self.family = Family(self._popen, in_sandbox=sandbox is not None)
        launched.add(self._popen.pid)
        assert self._popen.stdin is not None  # noqa: S101  (a pipe was asked for)
        self._feed = Feed(self._popen.stdin)
        self._stdout_reader = _thread(self._read_stdout, self._popen.stdout)
        self._stderr_reader = _thread(self._read_stderr, self._popen.stderr)

    @property
    def pid(self) -> int:
        """Process id of the server outside its sandbox; there, available after its start."""
        if self.sandbox is not None and self._found is None:
            self._found = command_pid(self._popen.pid)
        return self._found or self._popen.pid

    @property
    def own_pid(self) -> int:
        """Process id of the server inside its sandbox."""
        return self.pid if self.sandbox is None else COMMAND

    def listen(
        self, host: str, port: int, *, kind: str = "tcp", addresses: Sequence[str] = ()
    ) -> socket.socket | None:
        """Listen in the network of the server; None if that is the network of this machine.

        The arguments are those of ``sandbox.listen``.

        Raises:
            OSError: the server has exited, or uses the port itself.
        """
        if self.sandbox is None or self.sandbox.network:
            return None
        return listen(self.pid, host, port, kind=kind, addresses=addresses)

    @property
    def dial(self) -> Callable[[int], socket.socket] | None:
        """Makes sockets in the network of the server; None if it is that of this machine."""
        if self.sandbox is None or self.sandbox.network:
            return None
        if self._sandbox_sockets is None:
            self._sandbox_sockets = SandboxSockets(self._started_pid)
        return self._sandbox_sockets.make

    def _started_pid(self) -> int:
        """Return the process id of the server in its sandbox.

        Raises:
            OSError: it has not started there yet.
        """
        if self.pid == self._popen.pid:
            raise ConnectionRefusedError("the server has not started")
        return self.pid

    @property
    def running(self) -> bool:
        """Whether the process has not exited."""
        return self._popen.poll() is None

    @property
    def status(self) -> int | None:
        """Exit status, or None while it runs."""
        return self._popen.poll()

    def stderr(self) -> str:
        """Return the end of its stderr as text, completely read if it has exited."""
        if not self.running:
            self._stderr_reader.join(LAST_WORDS)
        return bytes(self._stderr).decode("utf-8", "replace")

    @property
    def stderr_tail(self) -> bytes:
        """The end of its stderr."""
        return bytes(self._stderr)

    @property
    def stderr_bytes(self) -> int:
        """Length of its stderr, in bytes."""
        return self._stderr_bytes

    def send(self, data: bytes, seconds: float) -> None:
        """Write bytes to its input, waiting at most ``seconds`` for the pipe to take them.

        Raises:
            Gone: it exited, closed its input, or did not read in time; or we closed its input.
                After a timeout, later calls do not wait until it has read.
        """
        if self._stdin_closed:
            raise Gone("gets no more input: we closed it")
        done = self._feed.write(data)
        if self._stuck is not None and not self._stuck.is_set():
            raise Gone("still does not read its input")
        self._stuck = None
        if not done.wait(seconds):
            self._stuck = done
            raise Gone(f"did not read its input for {seconds:.1f} s")
        if self._feed.broken:
            raise Gone("closed its input")

    def post(self, data: bytes) -> None:
        """Queue bytes for its input; return at once."""
        self._feed.write(data)

    def neglect(self, stream: OutputStream) -> None:
        """Stop reading one of its outputs, after the read in progress, until ``heed``.

        On Linux its pipe is reduced to ``PIPE`` bytes, so that little output fills it.
        """
        self._heeded[stream].clear()
        pipe = self._popen.stdout if stream is OutputStream.STDOUT else self._popen.stderr
        if sys.platform == "linux" and pipe is not None:
            with contextlib.suppress(OSError, ValueError):
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE)

    def hang_up(self) -> None:
        """Drop its next output, and then close our end of its stdout."""
        self._hung_up = True

    def unread(self, stream: OutputStream) -> int | None:
        """Return the number of bytes in the pipe of an output; None if unknown."""
        pipe = self._popen.stdout if stream is OutputStream.STDOUT else self._popen.stderr
        if sys.platform == "linux" and pipe is not None:
            with contextlib.suppress(OSError, ValueError):
                room = bytearray(4)
                fcntl.ioctl(pipe.fileno(), termios.FIONREAD, room)
                return int.from_bytes(room, sys.byteorder)
        return None

    def heed(self) -> None:
        """Read its outputs again."""
        for heeded in self._heeded.values():
            heeded.set()

    def take_unfinished(self) -> bool:
        """Accept the bytes after the last line feed as a line, if they are complete JSON.

        For a server that omits the line feed: the alternative is to wait for ever.
        """
        with self._splitting:
            if not self._splitter.closed or not is_whole(self._splitter.peek()):
                return False
            line = self._splitter.close()
            if line is not None:
                self.transcript.heard(line)
            return line is not None

    def close_stdin(self) -> None:
        """Close its input, after delivering earlier bytes; it may still answer."""
        if not self._stdin_closed:
            self.transcript.input_closed()
            self._stdin_closed = True
            self._feed.close()

    def wait(self, seconds: float) -> int | None:
        """Wait for its exit; return None if the seconds pass first."""
        patience = self.patience(seconds)
        while left := patience.left():
            before = now()
            _await_exit(self._popen, left)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._popen.wait(max(0.0, before + left - now()))
        return self._popen.poll()

    def patience(self, seconds: float) -> Patience:
        """Begin to wait for it, for ``seconds`` in which it and its reader threads had a core."""
        return Patience(seconds, lambda: turns(self._popen.pid, (self._stdout_reader,)), now)

    def terminate(self) -> None:
        """Send SIGTERM once, and leave its input open."""
        self.heed()
        self._terminated = True
        self.transcript.happened("we sent SIGTERM")
        self.family.signal(self.family.members(), force=False)

    def end(self, patience: float, *, polite: bool = True, hurry: float | None = None) -> Ending:
        """Close its input, then SIGTERM, then SIGKILL.

        Args:
            patience: seconds for each step.
            polite: whether to close its input first.
            hurry: seconds for that step, in place of ``patience``.
        """
        if self.ending is not None:
            return self.ending
        self.heed()
        if self._sandbox_sockets is not None:
            self._sandbox_sockets.close()
        begun = now()
        step = Step.TERMINATED if self._terminated else Step.ITSELF
        status = self._popen.poll()
        if status is None and self.transcript.ended:
            status = self.wait(1.0)
        if status is None and polite:
            self.close_stdin()
            step = Step.INPUT_CLOSED
            status = self.wait(patience if hurry is None else hurry)
        members = self.family.members()
        if status is None:
            step = Step.TERMINATED
            self.family.signal(members, force=False)
            status = self.wait(min(patience, 2.0) if polite else 0.5)
        if status is None:
            step = Step.KILLED
            self.family.signal(members, force=True)
            status = self.wait(5.0)
        spent = now() - begun
        waits = step is Step.INPUT_CLOSED and hurry is None
        strays = self.family.end_strays(members, min(patience, GRACE) if waits else 0.0)
        self._stdin_closed = True
        self._feed.close()
        self.join(0.5)  # each closes its pipe; a daemon may keep one open until ``sweep``
        launched.discard(self._popen.pid)
        code = -9 if status is None else status
        self.ending = Ending(step, code, spent, strays, hurried=hurry is not None)
        self.transcript.happened(f"the server {self.ending}")
        self.transcript.finished()
        return self.ending

    def kill(self) -> None:
        """Kill it and its descendants at once; ``end`` must still be called."""
        self.doomed()()

    def doomed(self) -> Callable[[], None]:
        """Return a function that kills it and its present descendants without a lookup."""
        members = self.family.members()

        def end() -> None:
            if self.ending is None:  # after that, its number may belong to another process
                self.family.signal(members, force=True)

        return end

    def join(self, seconds: float) -> None:
        """Wait for the threads that read and write its pipes, after all processes have exited."""
        self._stdout_reader.join(seconds)
        self._stderr_reader.join(seconds)
        self._feed.join(seconds)

    def _read(self, descriptor: int, stream: OutputStream) -> bytes:
        self._heeded[stream].wait()
        return _read(descriptor)

    def _read_stdout(self, pipe: IO[bytes]) -> None:
        descriptor = pipe.fileno()
        while chunk := self._read(descriptor, OutputStream.STDOUT):
            if self._hung_up:
                break
            with self._splitting:
                for line in self._splitter.feed(chunk):
                    self.transcript.heard(line)
                if self._splitter.overlong:  # its end may never come
                    endless = self._splitter.close()
                    if endless is not None:
                        self.transcript.heard(endless)
            if self.transcript.overflow:
                self.family.signal((), force=True)
                break
        pipe.close()
        with self._splitting:
            rest = self._splitter.close()
        if rest is not None and not self.transcript.overflow:
            self.transcript.heard(rest)
        if not self._stdin_closed and not self._hung_up:
            self.transcript.happened("the server closed its output")
        self.transcript.finished()

    def _read_stderr(self, pipe: IO[bytes]) -> None:
        descriptor = pipe.fileno()
        while chunk := self._read(descriptor, OutputStream.STDERR):
            self._stderr_bytes += len(chunk)
            self._stderr += chunk
            del self._stderr[:-STDERR_KEPT]
            if self._on_stderr is not None:
                self._on_stderr(chunk)
        pipe.close()


def processor() -> float:
    """Return the processor time of all ended child processes, in seconds.

    Includes the children they waited for; 0 if the system does not provide it.
    """
    times = os.times()
    return times.children_user + times.children_system


def _await_exit(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Wait until a process has exited, if the system can notify us; else return at once.

    subprocess polls, up to 50 ms apart.
    """
    if not hasattr(os, "pidfd_open") or process.poll() is not None:
        return
    with contextlib.suppress(OSError):  # it has exited, or no descriptor is free
        descriptor = os.pidfd_open(process.pid)
        try:
            watch = select.poll()
            watch.register(descriptor, select.POLLIN)
            watch.poll(1000 * max(0.0, seconds))
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:
        return b""


def _thread(target: object, pipe: IO[bytes] | None) -> threading.Thread:
    thread = threading.Thread(target=target, args=(pipe,), daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def _launch(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    sandbox: Sandbox | None,
) -> subprocess.Popen[bytes]:
    try:
        words = command
        if sandbox is not None:
            words = wrap(sandbox, command, cwd=os.path.abspath(cwd or "."), env=env)  # noqa: PTH100
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(env),
            cwd=cwd,
            start_new_session=not WINDOWS,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    except (OSError, ValueError, IndexError) as error:
        raise LaunchError(_advice(command, cwd, error)) from error


def _advice(command: Sequence[str], cwd: str | os.PathLike[str] | None, error: Exception) -> str:
    """Return the reason a command did not start, and the remedy."""
    program = command[0] if command else ""
    if not program:
        said = "the command is empty; name the program that starts the server"
    elif cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112  (cwd may be a str)
        said = f"the folder {cwd} does not exist; name another with --cwd"
    elif cwd is not None and not os.access(cwd, os.X_OK):
        said = f"the folder {cwd} may not be entered; name another with --cwd"
    elif isinstance(error, FileNotFoundError) and os.path.isfile(program):  # noqa: PTH113
        said = f"{program!r} is there, but not the program its first line (#!) names"
    elif isinstance(error, FileNotFoundError):
        said = f"there is no program {program!r}; is it installed and on PATH?"
    elif isinstance(error, PermissionError):
        said = f"{program!r} may not be run; is it a program, and executable (chmod +x)?"
    elif isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        said = f"{program!r} is no program; a script needs a first line with #!"
    else:
        said = f"{program!r} could not be started: {error}"
    return said
