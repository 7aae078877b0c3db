"""The life of a server: start it, wait for it, end it and all processes it started.

Knows no MCP; deadlines on every wait. Features of POSIX alone (process groups,
signals) have a Windows alternative here, which was never run, see ``docs/reference/platforms.md``.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.sandbox.sandbox import (
    COMMAND,
    Sandbox,
    SandboxSockets,
    command_pid,
    listen,
    outer,
    wrap,
)
from mcp_touchstone.transport.cpu_wait import below, turns
from mcp_touchstone.transport.deadline import ALONE, MOST, NEVER, Patience
from mcp_touchstone.transport.family import WINDOWS, Family
from mcp_touchstone.transport.pipes import LineSink, Pipes
from mcp_touchstone.wire.events import Happened

JUDGED_END: Final = 3.0
"""Greatest extension of a step of a shutdown on a busy machine, as a multiple of its limit."""

AT_ONCE: Final = 0.5
"""Seconds from SIGTERM to SIGKILL for a process whose end is not judged, on any machine."""

LOOK: Final = 0.05
"""Seconds between two looks at a process that may spin."""

WANTED: Final = 0.5
"""Least share of the time in which a process that spins ran or waited for a core, as far as the
system has counted: it is also ready at each look."""

STARVED: Final = 10.0
"""Multiple of that time after which a process that had no core is let go, and does not spin."""

GRACE: Final = 2.0
"""Greatest seconds for the descendants of a process to exit after it."""

MARK: Final = "MCP_TOUCHSTONE_RUN"
"""Environment variable that every process of a run inherits, so that strays can be found."""

launched: Final[set[int]] = set()
"""Processes we started and have not ended yet."""


now = time.monotonic
sleep = time.sleep


class LaunchError(UserError):
    """The server could not be started; the message names the reason and the remedy."""


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


class ServerProcess:
    """One running server; lines of its output go into the transcript.

    Attributes:
        ending: its end; None while it runs.
        outer: id of the process that we started, in a sandbox another one than the server.
    """

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
        self.ending: Ending | None = None
        self._terminated = False
        self.sandbox = sandbox
        self._found: int | None = None
        self._sandbox_sockets: SandboxSockets | None = None
        self._popen = _launch(self.command, env, cwd, sandbox)
        self.outer = self._popen.pid
        self.family = Family(self._popen, in_sandbox=sandbox is not None)
        launched.add(self._popen.pid)
        self.pipes = Pipes(self._popen, self.family, transcript, on_stderr)

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
        """Return the process id of the server in its sandbox."""
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

    def wait(self, seconds: float, most: float = MOST) -> int | None:
        """Wait for its exit; return None if the seconds pass first.

        Args:
            seconds: the limit.
            most: its greatest extension on a busy machine, as a multiple of it.
        """
        patience = replace(self.patience(seconds), most=most)
        while left := patience.left():
            before = now()
            _await_exit(self._popen, left)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._popen.wait(max(0.0, before + left - now()))
        return self._popen.poll()

    def spins(self, seconds: float) -> bool:
        """Return whether it uses a whole core for some seconds; at once if no thread of it runs.

        The time in which a thread waits for a core counts as use. But it must have had one for half
        of the seconds: where it gets none, the little work that is left wants one for as long.
        """
        begun, before = now(), below(self._popen.pid)
        found = before
        while any(thread.ready for thread in found.values()):
            elapsed, ran, waited = now() - begun, 0.0, 0.0
            for number, thread in found.items():
                earlier = before.get(number, NEVER)
                ran += thread.ran - earlier.ran
                waited += thread.waited - earlier.waited
            if elapsed >= seconds and ran >= WANTED * seconds:
                return ran + waited >= WANTED * elapsed
            if elapsed >= STARVED * seconds:
                return False
            sleep(LOOK)
            found = below(self._popen.pid)
        return False

    def patience(self, seconds: float) -> Patience:
        """Begin to wait for it, for ``seconds`` in which it and its reader threads had a core."""
        return Patience(seconds, lambda: turns(self._popen.pid, (self.pipes.reader,)), now)

    def terminate(self) -> None:
        """Send SIGTERM once, and leave its input open."""
        self.pipes.heed()
        self._terminated = True
        self.transcript.happened(Happened.TERMINATED)
        self.family.signal(self.family.members(), force=False)

    def end(self, patience: float, *, polite: bool = True, hurry: float | None = None) -> Ending:
        """Close its input, then SIGTERM, then SIGKILL.

        Args:
            patience: seconds for each step.
            polite: whether its end is judged; otherwise it is ended at once, and neither the end
                of its input nor what it says then is recorded.
            hurry: seconds for that step, in place of ``patience``.
        """
        if self.ending is not None:
            return self.ending
        self.pipes.heed()
        if self._sandbox_sockets is not None:
            self._sandbox_sockets.close()
        begun = now()
        step = Step.TERMINATED if self._terminated else Step.ITSELF
        status = self._popen.poll()
        if status is None and self.transcript.ended:
            status = self.wait(1.0)
        # before it leaves: afterwards they are no children of its
        members = self.family.members() if status is None and polite else []
        if status is None and polite:
            self.pipes.close_input()
            step = Step.INPUT_CLOSED
            status = self.wait(patience if hurry is None else hurry, JUDGED_END)
        if status is None and not polite:
            self.pipes.hang_up()  # some servers say at a signal what breaks a rule at other times
        members = list({*members, *self.family.members()})
        if status is None:
            step = Step.TERMINATED
            self.pipes.closed = True  # that its output ends is no event of its own any more
            self.family.signal(members, force=False)
            self.pipes.close()  # a client of containers ends with its input
            most = JUDGED_END if polite else ALONE
            status = self.wait(min(patience, 2.0) if polite else AT_ONCE, most)
        if status is None:
            step = Step.KILLED
            self.family.signal(members, force=True)
            status = self.wait(5.0, ALONE)
        spent = now() - begun
        waits = step is Step.INPUT_CLOSED and hurry is None
        strays = self.family.end_strays(members, min(patience, GRACE) if waits else 0.0)
        self.pipes.close()
        self.pipes.join(0.5)  # each closes its pipe; a daemon may keep one open until ``sweep``
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


def sacrifice(pid: int) -> None:
    """Let Linux end a process and its children before all others if memory runs out."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")


def _launch(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    sandbox: Sandbox | None,
) -> subprocess.Popen[bytes]:
    try:
        words, given = command, dict(env)
        if sandbox is not None:
            words = wrap(sandbox, command, cwd=os.path.abspath(cwd or "."), env=env)  # noqa: PTH100
            given = outer(env)
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=given,
            cwd=cwd,
            start_new_session=not WINDOWS,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    except (OSError, ValueError, IndexError) as error:
        raise LaunchError(_advice(command, cwd, error)) from error
    sacrifice(process.pid)
    return process


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
