"""A part on stdio, also on our own: what its client and it say is recorded as lines."""

import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp_touchstone.parts.part import END, ClientGone, Part, listening
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.stand_in import is_closed
from mcp_touchstone.transport.process import signal_name
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.framing import LineSplitter, read


class StdioPeer:
    """A client on stdio, for its part; a subclass has its pipes."""

    def __init__(
        self,
        recorder: Recorder,
        listen: Callable[[], socket.socket] = listening,
        place: Path | None = None,
        lost: set[str] | None = None,
    ) -> None:
        self.is_first, self.listen, self.place = recorder.is_first, listen, place
        self.lost: set[str] = set() if lost is None else lost
        self._recorder, self._splitter = recorder, LineSplitter()

    def take(self, seconds: float) -> bytes | None:
        """Return its next bytes; empty at the end of the input, None if none come in time.

        Raises:
            ClientGone: it has ended the conversation.
        """
        raise NotImplementedError

    def put(self, raw: bytes) -> None:
        """Write bytes to it."""
        raise NotImplementedError

    def shout(self, raw: bytes) -> None:
        """Write bytes to its standard error."""
        raise NotImplementedError

    def read(self, seconds: float) -> list[Any]:
        """Record the next bytes, and return their messages."""
        if self._recorder.full:
            raise ClientGone(Happened.FULL)
        chunk = self.take(seconds)
        if chunk is None:
            return []
        self._recorder.take(Side.CLIENT, chunk)
        if chunk:
            return [one for line in self._splitter.feed(chunk) for one in read(line).messages]
        self._recorder.end(Side.CLIENT)
        self._recorder.event(Happened.CLIENT_CLOSED)
        rest = self._splitter.close()
        return [*(read(rest).messages if rest else ()), END]

    def write(self, raw: bytes) -> None:
        """Record a message, and write it."""
        self._recorder.take(Side.SERVER, raw)
        self.put(raw)

    def note(self, sentence: str) -> None:
        """Record what it did at the canary."""
        self._recorder.event(sentence)

    def log(self, raw: bytes) -> None:
        """Write bytes to standard error; one event says so, another one that they were read."""
        self._recorder.event(Happened.SHOUTED)
        self.shout(raw)

    def converse(self, scenario: type[Part]) -> int:
        """Play a part until the client closes the input; return the exit status."""
        try:
            status = scenario(self).run()
        except ClientGone as error:
            self._recorder.event(str(error))
            return 1
        self._recorder.event(f"{Happened.EXITED}{status}")
        return status


class Descriptors(StdioPeer):
    """A client at three descriptors: those of our own process, or pipes."""

    def __init__(self, recorder: Recorder, source: int = 0, sink: int = 1, errors: int = 2) -> None:
        super().__init__(recorder)
        self._sources, self._sink, self._errors = [source], sink, errors

    def take(self, seconds: float) -> bytes | None:
        """Return the next bytes."""
        if not select.select(self._sources, [], [], seconds)[0]:
            return None
        try:
            chunk = os.read(self._sources[0], 1 << 16)
        except OSError:
            chunk = b""
        if not chunk:
            self._sources.clear()
        return chunk

    def look_for_its_end(self) -> None:
        """Record that the client has closed its end, if it has and we have not read so far."""
        if any(map(is_closed, self._sources)):
            self._recorder.event(Happened.CLIENT_CLOSED)

    def put(self, raw: bytes) -> None:
        """Write bytes."""
        with contextlib.suppress(OSError):
            while raw:
                raw = raw[os.write(self._sink, raw) :]

    def shout(self, raw: bytes) -> None:
        """Write bytes to standard error."""
        with contextlib.suppress(OSError):
            while raw:
                raw = raw[os.write(self._errors, raw) :]
            self._recorder.event(Happened.STDERR_READ)


def play(scenario: type[Part], recorder: Recorder) -> int:
    """Play a part on our stdin and stdout; a signal is recorded and ends it."""
    peer = Descriptors(recorder)

    def take(number: int, _frame: object) -> None:
        peer.look_for_its_end()
        recorder.event(f"{Happened.SIGNALLED}{signal_name(number)}")
        os._exit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), take)
    return peer.converse(scenario)
