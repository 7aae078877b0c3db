"""The input of a process: bytes are written at once if the pipe has room, else by a thread.

Passing each line to a thread would cost more than writing it. The Windows path, which writes all
bytes in the thread, was never run, see ``docs/reference/platforms.md``.
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
    """Writer to one pipe, in order, that never blocks its caller.

    Attributes:
        broken: whether the pipe has no reader any more.
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
        """Write bytes, or queue them; the returned event is set once they are written.

        Bytes for a broken or closed pipe are lost.
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
        """Close the pipe, after the queued bytes."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._thread is None:
                self._shut()
            else:
                self._hand_over(None)

    def join(self, seconds: float) -> None:
        """Wait some seconds at most until the queued bytes are written."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _try(self, data: memoryview) -> memoryview:
        """Write as many bytes as fit now; return the rest."""
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
