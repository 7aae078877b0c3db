"""Pass on what a client and a stdio server say, and record it. Judges nothing.

The server is the leader of a group of its own, so a signal to the group of the tap reaches it once:
the tap forwards each signal to that group.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mcp_touchstone.runtime.console import say
from mcp_touchstone.tap.recording import (
    CLIENT_CLOSED,
    CLIENT_DEAF,
    DIED,
    EXITED,
    NOT_STARTED,
    SERVER_CLOSED,
    SERVER_DEAF,
    SIGNALLED,
    Recorder,
    Side,
)
from mcp_touchstone.transport.process import signal_name

FORWARDED: Final = tuple(
    getattr(signal, name)
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit statuses of a shell for a command that it cannot start."""

AFTER_EXIT: Final = 1.0
"""Greatest seconds for the last output after the exit; a child of the server may keep it open."""

CHUNK: Final = 1 << 16
_PR_SET_PDEATHSIG: Final = 1


def run(command: Sequence[str], recorder: Recorder) -> int:
    """Run a server between our stdin and stdout until it exits.

    Returns:
        its exit status, negative for a signal, as in subprocess.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0 if os.name == "posix" else None,
            preexec_fn=_end_with_tap if sys.platform == "linux" else None,  # noqa: PLW1509  (no thread yet)
        )
    except OSError as error:
        reason = error.strerror or str(error)
        recorder.event(f"{NOT_STARTED}{reason}")
        say(f"mcp-touchstone tap: {command[0]}: {reason}", error=True)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    for number in FORWARDED:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, _forwarding(child, recorder))
    threads = []
    for route in _routes(child, recorder):
        threads.append(threading.Thread(target=route.pump, daemon=True))
        threads[-1].start()
    status = child.wait()
    for thread in threads[1:]:
        thread.join(AFTER_EXIT)
    recorder.event(f"{EXITED}{status}" if status >= 0 else f"{DIED}{signal_name(-status)}")
    return status


def _routes(child: "subprocess.Popen[bytes]", recorder: Recorder) -> "Iterator[_Route]":
    pipes = (child.stdin, child.stdout, child.stderr)
    stdin, stdout, stderr = (-1 if pipe is None else pipe.fileno() for pipe in pipes)
    yield _Route(recorder, Side.CLIENT, 0, stdin, CLIENT_CLOSED, SERVER_DEAF)
    yield _Route(recorder, Side.SERVER, stdout, 1, SERVER_CLOSED, CLIENT_DEAF)
    yield _Route(recorder, Side.STDERR, stderr, 2)


def _end_with_tap() -> None:
    """Get SIGKILL when the tap ends, as the server would have got it in its place."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _forwarding(
    child: "subprocess.Popen[bytes]", recorder: Recorder
) -> Callable[[int, object], None]:
    def forward(number: int, _frame: object) -> None:
        recorder.event(f"{SIGNALLED}{signal_name(number)}")
        with contextlib.suppress(OSError):
            os.killpg(child.pid, number)

    return forward


class _Route:
    """One direction of the conversation."""

    def __init__(  # noqa: PLR0917  (a row of the table above)
        self,
        recorder: Recorder,
        side: Side,
        source: int,
        sink: int,
        ended: str = "",
        deaf: str = "",
    ) -> None:
        self._recorder = recorder
        self._side = side
        self._source, self._sink = source, sink
        self._ended, self._deaf = ended, deaf

    def pump(self) -> None:
        """Pass bytes on until the writer has ended or the reader has gone."""
        while chunk := self._read():
            self._recorder.take(self._side, chunk)
            if not self._write(chunk):
                self._finish(self._deaf)
                return
        self._finish(self._ended)

    def _finish(self, event: str) -> None:
        """Close both ends, so that each peer sees that the other one has gone."""
        self._recorder.end(self._side)
        if event:
            self._recorder.event(event)
        for descriptor in (self._source, self._sink):
            with contextlib.suppress(OSError):
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, descriptor)  # a number that is closed could be used again
                os.close(nowhere)

    def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._source, CHUNK)
            except BlockingIOError:
                os.set_blocking(self._source, True)
            except OSError:
                return b""

    def _write(self, chunk: bytes) -> bool:
        rest = memoryview(chunk)
        while rest:
            try:
                rest = rest[os.write(self._sink, rest) :]
            except BlockingIOError:
                os.set_blocking(self._sink, True)
            except OSError:
                return False
        return True


def exit_like(status: int) -> int:
    """Return an exit status, or end by the signal that ended the server."""
    if status < 0 and os.name == "posix":
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status
