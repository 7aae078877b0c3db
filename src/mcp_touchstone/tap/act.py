"""Play a part on our own stdin and stdout, for a client that starts us as its server."""

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable

from mcp_touchstone.parts.part import Part
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.transport.process import signal_name
from mcp_touchstone.wire.events import Happened


class Descriptors:
    """A client at three descriptors: those of our own process, or pipes."""

    def __init__(
        self,
        source: int = 0,
        sink: int = 1,
        errors: int = 2,
        note: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        self._sources = [source]
        self._sink, self._errors, self._note = sink, errors, note

    def read(self, seconds: float) -> bytes | None:
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

    def write(self, raw: bytes) -> None:
        """Write bytes."""
        with contextlib.suppress(OSError):
            while raw:
                raw = raw[os.write(self._sink, raw) :]

    def log(self, raw: bytes) -> None:
        """Write bytes to standard error."""
        with contextlib.suppress(OSError):
            while raw:
                raw = raw[os.write(self._errors, raw) :]
            self._note(Happened.STDERR_READ)


def play(scenario: type[Part], recorder: Recorder) -> int:
    """Play a part on our stdin and stdout; a signal is recorded and ends it."""

    def take(number: int, _frame: object) -> None:
        recorder.event(f"{Happened.SIGNALLED}{signal_name(number)}")
        os._exit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), take)
    return scenario(recorder, Descriptors(note=recorder.event)).run()
