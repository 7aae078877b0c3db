"""The life of a server: it reads until the input ends, sends the pending answers and stops.

To embed it, call ``serve``, which does not change signals, standard streams or globals.
"""

from __future__ import annotations

import math
import os
import signal
import time
from contextlib import suppress
from queue import Empty, SimpleQueue

from .operation.hooks import Hooks
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
    from collections.abc import Iterable

    from .surface import Feature

ALL_ANSWERED = 0
ANSWERS_LOST = 1

_LOOK = 0.25
"""Seconds between two checks for a signal on Windows."""

_MOMENT = 1.0
"""Seconds to wait for threads that have no more work."""

_END_OF_INPUT = "end of input"
_STOPPED = "stopped"
_CLIENT_LEFT = "client left"


class _Ends:
    """Passes the reason for the end of a server from any thread or signal handler to one thread.

    On POSIX, a Python signal handler runs between two instructions of the main thread. If a signal
    arrives just before the main thread blocks, its handler does not run while the thread blocks.
    The thread therefore reads from a pipe. After ``wake_on_signals``, the system writes to the pipe
    for each signal.
    """

    def __init__(self) -> None:
        self._reasons: SimpleQueue[str] = SimpleQueue()  # safe in a signal handler
        self._woken, self._waker = -1, -1
        self._has_signals = False
        if os.name != "nt":
            self._woken, self._waker = os.pipe()
            os.set_blocking(self._waker, False)

    def wake_on_signals(self) -> None:
        """Let every handled signal wake the waiting thread; call it on the main thread."""
        if self._waker >= 0:
            signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
            self._has_signals = True

    def put(self, reason: str) -> None:
        self._reasons.put(reason)
        if self._waker >= 0:
            with suppress(OSError):  # a full pipe wakes the thread too; it may also be closed
                os.write(self._waker, b"!")

    def get(self) -> str:
        while True:
            try:
                if self._woken < 0:  # on Windows, Ctrl-C has no effect during a wait
                    return self._reasons.get(timeout=_LOOK)
                return self._reasons.get_nowait()
            except Empty:
                if self._woken >= 0:
                    os.read(self._woken, 64)

    def close(self) -> None:
        if self._has_signals:
            signal.set_wakeup_fd(-1)
        woken, waker, self._woken, self._waker = self._woken, self._waker, -1, -1
        for descriptor in (woken, waker):
            if descriptor >= 0:
                os.close(descriptor)


def serve(
    read_fd: int,
    write_fd: int,
    settings: Settings | None = None,
    features: Iterable[Feature] | None = None,
) -> int:
    """Serve one client over two descriptors until it closes its end; blocks.

    Args:
        read_fd: Blocking descriptor to read the client's lines from. The caller must close it.
        write_fd: Blocking descriptor to write lines to. The caller must close it.
        settings: The operator's decisions; defaults read below the current directory.
        features: The features to offer, by default all of this package. Each is called once with
            the surface, to which it adds itself.

    Raises:
        LookupError: An entry point in the settings is missing.

    Returns:
        0 if every accepted request was answered, 1 if answers were lost.
    """
    return Server(read_fd, write_fd, settings, features).run()


def default_features() -> Iterable[Feature]:
    from . import bundle  # noqa: PLC0415 - not needed by an embedder with its own features

    return bundle.ALL_FEATURES


class Server:
    """The server of one client; the arguments are those of ``serve``."""

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
        self._ends = _Ends()
        self._deadline = math.inf
        self._answers_lost = False
        self._workers = Workers(self._settings.workers, self._settings.queue)
        self._surface = surface = Surface(self._settings, self._log)
        for feature in default_features() if features is None else features:
            feature(surface)
        if self._settings.features:
            from .bundle import named  # noqa: PLC0415 - not needed by most servers

            for feature in named(self._settings.features):
                feature(surface)
        wire = Wire(write_fd, self._client_left)
        self._reader = Reader(
            self._source,
            self._settings.max_line,
            self._receive,
            lambda: self._ends.put(_END_OF_INPUT),
        )
        self._connection = Connection(
            self._settings,
            surface.methods,
            self._log,
            wire=wire,
            workers=self._workers,
            lend=self._reader.lend,
        )
        self._hooks = Hooks(surface)
        self._connection.calls.began = self._hooks.began
        self._connection.calls.finished = self._hooks.finished
        surface.connection = self._connection

    def run(self) -> int:
        """Serve until the end and return the exit code of ``serve``. Call it once."""
        self._reader.start()
        self._surface.start()
        why = self._ends.get()
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
        self._hooks.ended()
        self._log.close()
        if read_out:
            self._source.close()
        self._ends.close()
        return ALL_ANSWERED if complete else ANSWERS_LOST

    def stop(self) -> None:
        """Stop reading and end soon; safe to call from a signal handler."""
        self._finish_within(self._settings.stop_seconds)
        self._ends.put(_STOPPED)  # first, because the reading thread then reports an end of input
        self._source.stop()

    def wake_on_signals(self) -> None:
        """Let no signal be lost whose handler calls ``stop``.

        Call it on the main thread, before ``run``. It uses the only wake-up descriptor of the
        process (``signal.set_wakeup_fd``) until ``run`` returns.
        """
        self._ends.wake_on_signals()

    def _finish_within(self, seconds: float) -> None:
        self._deadline = min(self._deadline, time.monotonic() + seconds)

    def _client_left(self) -> None:
        self._answers_lost = True
        self._finish_within(0)
        self._ends.put(_CLIENT_LEFT)
        self._source.stop()

    def _receive(self, line: bytes | None) -> None:
        try:
            self._connection.receive(line)
        except Exception as defect:  # noqa: BLE001 - one bad line must not end the server
            self._log.error("defect", type=type(defect).__name__)
