"""The server's life: read until the input ends, answer what is owed, leave.

``serve`` is all an embedder needs: it touches no signal, no standard stream and no global.
"""

from __future__ import annotations

import functools
import math
import os
import time
from queue import Empty, SimpleQueue

from .operation import hooks
from .operation.log import Log
from .protocol.connection import Connection
from .protocol.reader import Reader
from .protocol.source import Source
from .protocol.wire import Wire
from .protocol.workers import Workers
from .settings import Settings
from .surface import Surface

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Feature: TypeAlias = Callable[[Surface], None]

ALL_ANSWERED = 0
ANSWERS_LOST = 1

_MOMENT = 1.0
"""Seconds to wait for threads that have nothing left to do."""

_END_OF_INPUT = "end of input"
_STOPPED = "stopped"
_CLIENT_LEFT = "client left"


def serve(
    read_fd: int,
    write_fd: int,
    settings: Settings | None = None,
    features: Iterable[Feature] | None = None,
) -> int:
    """Serve one client over two descriptors until it closes its end; blocks.

    Args:
        read_fd: Blocking descriptor with the client's lines. It stays the caller's to close.
        write_fd: Blocking descriptor for ours. It stays the caller's to close.
        settings: The operator's decisions; defaults read below the current directory.
        features: What to offer; everything this package has by default. Each is called once with
            the surface it adds itself to.

    Returns:
        0 if every request accepted was answered, 1 if answers were lost.
    """
    return Server(read_fd, write_fd, settings, features).run()


def default_features() -> Iterable[Feature]:
    """Give the features the bundled server has."""
    from . import features  # noqa: PLC0415 - an embedder with features of its own need not load them

    return features.ALL_FEATURES


class Server:
    """One client served from start to end; the arguments are those of ``serve``."""

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        settings: Settings | None = None,
        features: Iterable[Feature] | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._log = Log(self._settings)
        self._source = Source(read_fd)
        # A SimpleQueue, because a signal handler may put into it at any moment.
        self._ends: SimpleQueue[str] = SimpleQueue()
        self._deadline = math.inf
        self._answers_lost = False
        self._workers = Workers(self._settings.workers, self._settings.queue)
        self._surface = surface = Surface(self._settings, self._log)
        for feature in default_features() if features is None else features:
            feature(surface)
        wire = Wire(write_fd, self._client_left)
        self._reader = Reader(
            self._source,
            self._settings.max_line,
            self._receive,
            lambda: self._ends.put(_END_OF_INPUT),
        )
        self._connection = Connection(surface, wire, self._workers, self._reader.lend)
        self._connection.calls.finished = functools.partial(hooks.finished, surface)
        surface.connection = self._connection

    def run(self) -> int:
        """Serve until the end and give the exit code that ``serve`` describes. Call it once."""
        self._reader.start()
        self._surface.start()
        why = self._wait_for_end()
        self._log.info("ending", why=why)
        self._finish_within(self._settings.drain_seconds)
        self._connection.input_ended()
        calls = self._connection.calls
        complete = calls.wait(lambda: self._deadline) and not self._answers_lost
        self._surface.end()
        calls.cancel_all()
        read_out = self._reader.join(_MOMENT)
        self._workers.close(_MOMENT)
        self._surface.close()
        self._log.close()
        if read_out:
            self._source.close()
        return ALL_ANSWERED if complete else ANSWERS_LOST

    def stop(self) -> None:
        """Read nothing more and finish soon; safe to call from a signal handler."""
        self._finish_within(self._settings.stop_seconds)
        self._source.stop()
        self._ends.put(_STOPPED)

    def _finish_within(self, seconds: float) -> None:
        self._deadline = min(self._deadline, time.monotonic() + seconds)

    def _wait_for_end(self) -> str:
        if os.name != "nt":
            return self._ends.get()
        while True:  # a wait without a timeout would keep Ctrl-C waiting too
            try:
                return self._ends.get(timeout=0.25)
            except Empty:
                continue

    def _client_left(self) -> None:
        self._answers_lost = True
        self._finish_within(0)
        self._source.stop()
        self._ends.put(_CLIENT_LEFT)

    def _receive(self, line: bytes | None) -> None:
        try:
            self._connection.receive(line)
        except Exception as defect:  # noqa: BLE001 - one odd line must not end the conversation
            self._log.error("defect", type=type(defect).__name__)
