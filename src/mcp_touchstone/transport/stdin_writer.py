"""The input of a process: what fits into its pipe is written at once, the rest by a thread.

A hand-over to a thread for each line would cost more than the line. The Windows path, where
everything goes through the thread, was never run, see ``docs/platforms.md``.
"""

import contextlib
import os
import queue
import select
import sys
import threading
from typing import IO, Final

WINDOWS: Final = sys.platform == "win32"


class Feed:
    """Writes to one pipe, in order, without ever keeping its caller waiting.

    Attributes:
        broken: whether nobody reads the pipe any more.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self.broken = False
        self._pipe = pipe
        self._descriptor = pipe.fileno()
        self._outbox: queue.SimpleQueue[tuple[memoryview, threading.Event] | None] = (
            queue.SimpleQueue()
        )
        self._behind = 0
        self._lock = threading.Lock()
        self._closed = False
        self._thread: threading.Thread | None = None
        if not WINDOWS:
            os.set_blocking(self._descriptor, False)

    def write(self, data: bytes) -> threading.Event:
        """Write, or have it written behind what waits; the event is set once it has been.

        What is written to a broken pipe, or to one that was closed, is lost.
        """
        done = threading.Event()
        with self._lock:
            rest = memoryview(data)
            if not (self._behind or self._closed or WINDOWS):
                rest = self._try(rest)
            if self.broken or self._closed or not rest:
                done.set()
            else:
                self._hand_over((rest, done))
        return done

    def close(self) -> None:
        """Close the pipe, behind what waits."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._thread is None:
                self._shut()
            else:
                self._hand_over(None)

    def join(self, seconds: float) -> None:
        """Wait until what waits was written, at most so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _try(self, data: memoryview) -> memoryview:
        """Write what fits now; give the rest."""
        while data and not self.broken:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                break
            except OSError:
                self.broken = True
        return data

    def _hand_over(self, item: tuple[memoryview, threading.Event] | None) -> None:
        self._behind += 1
        self._outbox.put(item)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while item := self._outbox.get():
            data, done = item
            while (data := self._try(data)) and not self.broken:
                self._await_room()
            with self._lock:
                self._behind -= 1
            done.set()
        self._shut()

    def _await_room(self) -> None:
        room = select.poll()
        room.register(self._descriptor, select.POLLOUT)
        room.poll()

    def _shut(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.close()
