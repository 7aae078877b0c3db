"""One process of the bridged server: lines in, messages out, and a complete shutdown."""

import codecs
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from mcp_touchstone.report.text import cut
from mcp_touchstone.runtime.console import relay, say
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.transport.orphans import sweep
from mcp_touchstone.transport.process import MARK, LaunchError, ServerProcess, left
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import Fault, Line, encode, read

WRITING: Final = 30.0
"""Seconds a server may take to read one message."""

PATIENCE: Final = 3.0
"""Seconds it may take to exit after its input is closed; then it is ended."""

_SHOWN: Final = 160


Hear = Callable[[bytes, Any], object]
"""Gets each message (or batch) of a server: the bytes of one line, and their value."""


class RunningServer(Protocol):
    """A running server of the bridge."""

    @property
    def running(self) -> bool:
        """Whether it still accepts messages."""

    def send(self, line: bytes) -> None:
        """Write one message, without its line feed.

        Raises:
            Gone: it has exited, or does not read.
        """

    def end(self) -> None:
        """Close its input, then end it and all processes it started."""


class Backend(Protocol):
    """What a bridge starts for each session."""

    def begin(self, hear: Hear, gone: Callable[[str], object]) -> RunningServer:
        """Start a server.

        Args:
            hear: called with each of its messages.
            gone: called once, with a sentence, when its output has ended.

        Raises:
            LaunchError: it cannot be started.
        """

    def sweep(self) -> object:
        """End what the ended servers left behind."""

    def log(self, sentence: str) -> None:
        """Tell the user about a message of a server that reaches no client."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The parameters for starting a process of the server.

    Attributes:
        cwd: working folder; ours by default.
        mark: part of the environment of every started process, so that strays can be found.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: str | None = None
    mark: str = field(default_factory=lambda: f"{os.getpid()}-{uuid.uuid4().hex}")

    def check(self) -> None:
        """Check that the program and the folder exist, before the first request.

        Raises:
            LaunchError: one of them does not exist.
        """
        program = self.command[0] if self.command else ""
        if self.cwd is not None and not os.path.isdir(self.cwd):  # noqa: PTH112  (it is a str)
            raise LaunchError(f"the folder {self.cwd} does not exist; name another with --cwd")
        if shutil.which(program, path=self.env.get("PATH")) is None:
            raise LaunchError(f"there is no program {program!r} that may be run; is it on PATH?")

    def begin(self, hear: Hear, gone: Callable[[str], object]) -> "Child":
        """Start a process, see ``Backend``."""
        return Child(self, hear, gone)

    def sweep(self) -> int:
        """End every process that is left."""
        return sweep(self.mark)

    def log(self, sentence: str) -> None:
        """Print it."""
        log(sentence)


class Child:
    """One process; the ``Record`` of its output.

    Args:
        hear: called with each message (or batch): the bytes of one line, and their value.
        gone: called once, with a sentence, when its output has ended.

    Raises:
        LaunchError: it cannot be started.
    """

    def __init__(
        self,
        launch: Launch,
        hear: Hear,
        gone: Callable[[str], object],
    ) -> None:
        self.ended = False
        self.overflow = ""
        self._hear = hear
        self._gone = gone
        self._reported = False
        self._lock = threading.Lock()
        self._started = threading.Event()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._process = ServerProcess(
            launch.command,
            self,
            env={**launch.env, MARK: launch.mark},
            cwd=launch.cwd,
            on_stderr=lambda chunk: relay(decoder.decode(chunk)),
        )
        self._started.set()

    @property
    def running(self) -> bool:
        """Whether it still accepts messages."""
        return not self.ended and self._process.running

    def send(self, line: bytes) -> None:
        """Write one message, without its line feed.

        Raises:
            Gone: it has exited, or does not read.
        """
        self._process.pipes.send(line + b"\n", WRITING)

    def end(self) -> None:
        """Close its input, then end it and all processes it started."""
        self._process.end(PATIENCE)

    # --- the record

    def heard(self, line: Line) -> None:
        """Forward a message; write any other line to stderr."""
        reading = read(line)
        if Fault.TOO_LONG in reading.faults:
            self.overflow = f"it wrote a line of {line.length:,} bytes and more"
        elif Fault.BLANK in reading.faults:
            pass
        elif not reading.readable or not isinstance(reading.value, dict | list):
            shown = cut(safe(line.raw[: 4 * _SHOWN].decode("utf-8", "replace")), _SHOWN)
            log(f"the server wrote a line that is no message: {shown}")
        elif reading.faults & {Fault.NOT_UTF8, Fault.BYTE_ORDER_MARK}:
            self._hear(encode(reading.value).rstrip(b"\n"), reading.value)
        else:
            self._hear(line.raw.replace(b"\r", b" "), reading.value)

    def happened(self, sentence: str) -> None:
        """Ignore it: a bridge keeps no record."""

    def input_closed(self) -> None:
        """Ignore it."""

    def finished(self) -> None:
        """Report the end of the output."""
        self.ended = True
        with self._lock:
            reported, self._reported = self._reported, True
        if not reported:
            self._gone(self._how())

    def _how(self) -> str:
        if self.overflow:
            return f"we stopped listening to the server: {self.overflow}"
        self._started.wait()  # it may have exited before the constructor returned
        status = self._process.wait(1.0)
        return Happened.SERVER_CLOSED if status is None else left(status)


def log(sentence: str) -> None:
    """Print a sentence for the user, on one line."""
    say(f"mcp-touchstone bridge: {sentence}", error=True, flush=True)
