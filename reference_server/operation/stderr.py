"""Writes lines to standard error on a separate thread, which may block.

Nobody need read the standard error of a server. Once the pipe is full, a plain write blocks for
ever. The descriptor cannot be made non-blocking, because that would affect every process that
shares it. One thread therefore writes, and only that thread blocks. Lines beyond the limit are
counted, and the count is written when there is room again.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STDERR = 2

ROOM = 256 * 1024
"""Maximum number of bytes of ordinary lines that wait."""

ROOM_FOR_ALL = 1024 * 1024
"""Maximum number of bytes that wait if they include lines that must not be lost."""

PATIENCE = 1.0
"""Seconds to wait for a line that must not be lost, or for the last lines at the end."""

_PAUSE = 0.05


class StandardError:
    """Accepts lines from any thread; writes each in one piece, in order.

    It writes to the descriptor and not to ``sys.stderr``. A daemon thread that holds the lock of a
    buffered stream while the interpreter exits would crash the process.

    Args:
        lost: Returns the line for a number of lost lines.
    """

    def __init__(self, lost: Callable[[int], bytes], descriptor: int = STDERR) -> None:
        self._lost_line = lost
        self._descriptor = descriptor
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._waiting = 0  # bytes
        self._accepted = self._settled = 0  # numbers of all lines, and of written or lost ones
        self._lost = 0
        self._failing = False  # the last write failed, so lost lines cannot be reported
        self._stuck = False  # a caller has waited for too long
        self._closed = False
        self._thread: threading.Thread | None = None

    def put(self, line: bytes) -> None:
        """Write a line soon, or count it if too many wait."""
        with self._changed:
            self._put(line, ROOM)

    def put_for_sure(self, lines: list[bytes]) -> None:
        """Write lines before this returns, unless the reader is too slow.

        These lines have a higher limit than ordinary ones. After a timeout, calls return at once
        until a line is written again.
        """
        until = time.monotonic() + PATIENCE
        with self._changed:
            last = 0
            for line in lines:
                self._wait(lambda: self._waiting <= ROOM_FOR_ALL, until)
                last = self._put(line, ROOM_FOR_ALL) or last
            self._wait(lambda: self._settled >= last, until)

    def close(self) -> None:
        """Write the waiting lines if they are read in time; drop all later lines."""
        with self._changed:
            self._wait(self._is_idle, time.monotonic() + PATIENCE)
            self._closed = True
            self._changed.notify_all()
        if self._thread and not self._stuck:
            self._thread.join(PATIENCE)

    def _put(self, line: bytes, room: int) -> int:
        """Queue a line and return its number, or 0 if there is no room for it."""
        if self._closed:
            return 0
        if self._waiting > room:
            self._lost += 1
            return 0
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="mcp-log", daemon=True)
            self._thread.start()
        self._lines.append(line)
        self._waiting += len(line)
        self._accepted += 1
        self._changed.notify_all()
        return self._accepted

    def _wait(self, done: Callable[[], bool], until: float) -> None:
        while not (done() or self._stuck):
            left = until - time.monotonic()
            if left > 0:
                self._changed.wait(left)
            else:
                self._stuck = True

    def _is_idle(self) -> bool:
        return self._settled == self._accepted and not self._has_losses_to_tell()

    def _has_losses_to_tell(self) -> bool:
        return bool(self._lost) and not (self._lines or self._failing)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._lines or self._has_losses_to_tell() or self._closed):
                    self._changed.wait()
                if self._closed:
                    return
                lost = 0 if self._lines else self._lost
                self._lost -= lost
                line = self._lost_line(lost) if lost else self._lines.popleft()
            done = self._write(line)
            with self._changed:
                if not lost:
                    self._settled += 1
                    self._waiting -= len(line)
                if not done:
                    self._lost += lost or 1
                self._failing = not done
                self._stuck = self._stuck and not done
                self._changed.notify_all()

    def _write(self, line: bytes) -> bool:
        """Write a line, for however long that takes; return False if the write fails."""
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another owner of the descriptor has made it non-blocking
                time.sleep(_PAUSE)
                if self._closed:
                    return False
            except OSError:  # closed, or its reader is gone, or the disk is full
                return False
        return True
