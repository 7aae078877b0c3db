"""The pipes of a server: its input, and the threads that read its outputs. Knows no MCP."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Final, Protocol

from mcp_touchstone.transport.family import Family
from mcp_touchstone.transport.stdin_writer import Feed
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import Line, LineSplitter, is_whole

if TYPE_CHECKING:
    import subprocess

if sys.platform == "linux":
    import fcntl
    import termios

CHUNK: Final = 65_536
PIPE: Final = 4096
"""Size of the pipe of an unread output in bytes, if the system permits to set it."""

STDERR_KEPT: Final = 65_536
"""Bytes of the end of stderr kept for people; all of it is drained."""

LAST_WORDS: Final = 1.0
"""Greatest seconds for reading the stderr of an exited process to its end."""


class Gone(Exception):  # noqa: N818  (an event of the server's life, not a fault of ours)
    """The server has exited, or no longer reads."""


class OutputStream(StrEnum):
    """An output of a process."""

    STDOUT = "stdout"
    STDERR = "stderr"


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


class Pipes:
    """The input and the outputs of one process; lines of its stdout go into a sink.

    Attributes:
        closed: whether we closed its input.
        reader: the thread that reads its stdout.
        stderr_bytes: length of its stderr, in bytes.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        family: Family,
        sink: LineSink,
        on_stderr: Callable[[bytes], object] | None,
    ) -> None:
        """Begin to read; a process whose output has no end is killed with its ``family``."""
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018  (asked for)
        self._popen, self._family, self._sink = process, family, sink
        self._outputs: dict[OutputStream, IO[bytes]] = {
            OutputStream.STDOUT: process.stdout,
            OutputStream.STDERR: process.stderr,
        }
        self._heeded = {stream: threading.Event() for stream in OutputStream}
        self.heed()
        self._feed = Feed(process.stdin)
        self.closed = self._hung_up = False
        self._stuck: threading.Event | None = None
        self._splitter = LineSplitter()
        self._splitting = threading.Lock()
        self._stderr = bytearray()
        self.stderr_bytes = 0
        self._on_stderr = on_stderr
        self.reader = threading.Thread(target=self._read_stdout, daemon=True)
        self._stderr_reader = threading.Thread(target=self._read_stderr, daemon=True)
        self.reader.start()
        self._stderr_reader.start()

    def stderr(self) -> str:
        """Return the end of its stderr as text, completely read if it has exited."""
        if self._popen.poll() is not None:
            self._stderr_reader.join(LAST_WORDS)
        return bytes(self._stderr).decode("utf-8", "replace")

    @property
    def stderr_tail(self) -> bytes:
        """The end of its stderr."""
        return bytes(self._stderr)

    def send(self, data: bytes, seconds: float) -> None:
        """Write bytes to its input, waiting at most ``seconds`` for the pipe to take them.

        Raises:
            Gone: it exited, closed its input, or did not read in time; or we closed its input.
                After a timeout, later calls do not wait until it has read.
        """
        if self.closed:
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
        if sys.platform == "linux":
            with contextlib.suppress(OSError, ValueError):
                fcntl.fcntl(self._outputs[stream].fileno(), fcntl.F_SETPIPE_SZ, PIPE)

    def hang_up(self) -> None:
        """Drop its next output, and then close our end of its stdout."""
        self._hung_up = True

    def unread(self, stream: OutputStream) -> int | None:
        """Return the number of bytes in the pipe of an output; None if unknown."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError, ValueError):
                room = bytearray(4)
                fcntl.ioctl(self._outputs[stream].fileno(), termios.FIONREAD, room)
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
                self._sink.heard(line)
            return line is not None

    def close_input(self) -> None:
        """Close its input, and record it, after delivering earlier bytes; it may still answer."""
        if not self.closed:
            self._sink.input_closed()
            self.close()

    def close(self) -> None:
        """Close its input; record nothing."""
        self.closed = True
        self._feed.close()

    def join(self, seconds: float) -> None:
        """Wait for the threads that read and write its pipes, after all processes have exited."""
        self.reader.join(seconds)
        self._stderr_reader.join(seconds)
        self._feed.join(seconds)

    def _chunks(self, stream: OutputStream) -> Iterator[bytes]:
        descriptor = self._outputs[stream].fileno()
        with contextlib.suppress(OSError):
            while self._heeded[stream].wait() and (chunk := os.read(descriptor, CHUNK)):
                yield chunk

    def _read_stdout(self) -> None:
        for chunk in self._chunks(OutputStream.STDOUT):
            if self._hung_up:
                break
            with self._splitting:
                for line in self._splitter.feed(chunk):
                    self._sink.heard(line)
                if self._splitter.overlong:  # its end may never come
                    endless = self._splitter.close()
                    if endless is not None:
                        self._sink.heard(endless)
            if self._sink.overflow:
                self._family.signal((), force=True)
                break
        self._outputs[OutputStream.STDOUT].close()
        with self._splitting:
            rest = self._splitter.close()
        if rest is not None and not self._sink.overflow:
            self._sink.heard(rest)
        if not self.closed and not self._hung_up:
            self._sink.happened(Happened.SERVER_CLOSED)
        self._sink.finished()

    def _read_stderr(self) -> None:
        for chunk in self._chunks(OutputStream.STDERR):
            self.stderr_bytes += len(chunk)
            self._stderr += chunk
            del self._stderr[:-STDERR_KEPT]
            if self._on_stderr is not None:
                self._on_stderr(chunk)
        self._outputs[OutputStream.STDERR].close()
