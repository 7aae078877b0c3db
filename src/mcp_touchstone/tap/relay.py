"""Pass on what a client and a stdio server say, and record it. Judges nothing.

The server is the leader of a group of its own, so a signal to the group of the tap reaches it once:
the tap forwards each signal to that group. The main thread waits for signals with sigwait, because
a handler loses a signal that comes just before the wait for the server begins.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcp_touchstone.runtime.console import say
from mcp_touchstone.tap.faults import Faults
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.stand_in import is_closed
from mcp_touchstone.transport.process import signal_name
from mcp_touchstone.wire.events import Happened, Side

FORWARDED: Final = tuple(
    getattr(signal, name)
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
POSIX: Final = os.name == "posix"
WAITED: Final = {*FORWARDED, signal.SIGCHLD} if POSIX else set(FORWARDED)
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit statuses of a shell for a command that it cannot start."""

AFTER_EXIT: Final = 10.0
"""Greatest seconds for a client to take the last output after the exit."""

CHUNK: Final = 1 << 16
_PR_SET_PDEATHSIG: Final = 1


def run(
    command: Sequence[str],
    recorder: Recorder,
    env: Mapping[str, str],
    faults: Faults | None = None,
) -> int:
    """Run a server between our stdin and stdout until it exits.

    Args:
        faults: what is not passed on as it is; None for nothing.

    Returns:
        its exit status, negative for a signal, as in subprocess.
    """
    _hold_signals()
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            process_group=0 if POSIX else None,
            preexec_fn=_in_server if POSIX else None,  # noqa: PLW1509  (no thread yet)
        )
    except OSError as error:
        return refused(command, recorder, error)
    routes = list(_routes(child, recorder, faults))
    threads = [threading.Thread(target=route.pump, daemon=True) for route in routes]
    for thread in threads:
        thread.start()
    status = _wait(child, recorder, routes[0])
    for route, thread in zip(routes[1:], threads[1:], strict=True):
        route.stop()
        thread.join(AFTER_EXIT)
    recorder.event(
        f"{Happened.EXITED}{status}" if status >= 0 else f"{Happened.DIED}{signal_name(-status)}"
    )
    return status


def refused(command: Sequence[str], recorder: Recorder, error: OSError) -> int:
    """Say that a server could not be started; return the exit status of a shell for that."""
    reason = error.strerror or str(error)
    recorder.event(f"{Happened.NOT_STARTED}{reason}")
    say(f"mcp-touchstone tap: {command[0]}: {reason}", error=True)
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def _wait(child: "subprocess.Popen[bytes]", recorder: Recorder, forth: "_Route") -> int:
    """Forward signals until the server exits."""
    if not POSIX:
        return child.wait()
    while (status := child.poll()) is None:
        number = signal.sigwait(WAITED)
        if number != signal.SIGCHLD:
            forth.look_for_its_end()
            recorder.event(f"{Happened.SIGNALLED}{signal_name(number)}")
            with contextlib.suppress(OSError):
                os.killpg(child.pid, number)
    return status


def _routes(
    child: "subprocess.Popen[bytes]", recorder: Recorder, faults: Faults | None
) -> "Iterator[_Route]":
    pipes = (child.stdin, child.stdout, child.stderr)
    stdin, stdout, stderr = (-1 if pipe is None else pipe.fileno() for pipe in pipes)
    there = (0, stdin, Happened.CLIENT_CLOSED, Happened.SERVER_DEAF)
    back = (stdout, 1, Happened.SERVER_CLOSED, Happened.CLIENT_DEAF)
    yield _Route(recorder, Side.CLIENT, *there, faults=faults, server=child)
    yield _Route(recorder, Side.SERVER, *back, faults=faults)
    yield _Route(recorder, Side.STDERR, stderr, 2)


def _hold_signals() -> None:
    """Keep signals for sigwait; a client may have started us with SIGCHLD ignored."""
    if POSIX:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)


def _in_server() -> None:
    """Let signals through, and get SIGKILL when the tap ends, as in the place of the tap."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WAITED)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@dataclass
class _Route:
    """One direction of the conversation.

    Attributes:
        faults: what is not passed on as it is; None for nothing.
        server: the one that the faults may end.
    """

    recorder: Recorder
    side: Side
    source: int
    sink: int
    ended: str = ""
    deaf: str = ""
    pipe: tuple[int, int] = field(default_factory=os.pipe)
    telling: threading.Lock = field(default_factory=threading.Lock)
    faults: Faults | None = None
    server: "subprocess.Popen[bytes] | None" = None

    def pump(self) -> None:
        """Pass bytes on until the writer has ended or the reader has gone."""
        while chunk := self._read():
            self.recorder.take(self.side, chunk)
            passed = chunk if self.faults is None else self.faults.passed(self.side, chunk)
            if not self._write(passed):
                self._finish(is_deaf=True)
                return
            if self.server is not None and self.faults is not None and self.faults.ends_server():
                self.server.kill()
        if self.faults is not None:
            self._write(self.faults.rest(self.side))
        self._finish(is_deaf=False)

    def look_for_its_end(self) -> None:
        """Record that the writer has ended, if it has, though there may be bytes to pass on."""
        if is_closed(self.source):
            self._tell_end()

    def stop(self) -> None:
        """End after what has come so far: a child of the server may keep the pipe open."""
        os.close(self.pipe[1])

    def _finish(self, *, is_deaf: bool) -> None:
        """Close both ends, so that each peer sees that the other one has gone."""
        self.recorder.end(self.side)
        if not is_deaf:
            self._tell_end()
        elif self.deaf:
            self.recorder.event(self.deaf)
        for descriptor in (self.source, self.sink):
            with contextlib.suppress(OSError):
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, descriptor)  # a number that is closed could be used again
                os.close(nowhere)

    def _tell_end(self) -> None:
        """Record the end of the writer, once; two threads may see it."""
        with self.telling:
            event, self.ended = self.ended, ""
            if event:
                self.recorder.event(event)

    def _read(self) -> bytes:
        while True:
            try:
                if POSIX:
                    ready, _, _ = select.select([self.source, self.pipe[0]], [], [])
                    if self.source not in ready:
                        return b""
                return os.read(self.source, CHUNK)
            except BlockingIOError:
                os.set_blocking(self.source, True)
            except OSError:
                return b""

    def _write(self, chunk: bytes) -> bool:
        rest = memoryview(chunk)
        while rest:
            try:
                rest = rest[os.write(self.sink, rest) :]
            except BlockingIOError:
                os.set_blocking(self.sink, True)
            except OSError:
                return False
        return True


def exit_like(status: int) -> int:
    """Return an exit status, or end by the signal that ended the server."""
    if status < 0 and POSIX:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
        os.kill(os.getpid(), -status)
    return status
