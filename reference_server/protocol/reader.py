"""The thread that reads, and its replacement when a call takes long.

Passing a call to a worker takes as long as a small call. If no other call runs, the reading thread
therefore runs it itself. If the call takes long, a watcher starts another thread that continues to
read. A ping is then answered while a tool runs, a few milliseconds late.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from .framing import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .source import Source

    Job: TypeAlias = Callable[[], None]

PATIENCE = 0.004
"""Seconds between two checks of the watcher. A thread with the same job at both is replaced."""

_LULL = 25
"""Number of checks without a new call before the watcher sleeps."""


class Reader:
    """Reads lines until the input ends, on one thread at a time.

    Args:
        receive: Handles one line; None stands for a line beyond the limit. Must not raise.
        ended: Called once, when the input has ended or was stopped.
    """

    def __init__(
        self,
        source: Source,
        longest: int,
        receive: Callable[[bytes | None], None],
        ended: Callable[[], None],
    ) -> None:
        self._source = source
        self._lines = Lines(longest)
        self._pending: deque[bytes | None] = deque()
        self._receive = receive
        self._ended = ended
        self._over = False
        self._leader = self._another()
        self._lock = threading.Lock()  # for the leader and the attributes below
        self._turn = 0
        self._busy = 0  # turn of the job that the leader runs
        self._running = 0  # lent jobs in progress, including those of replaced threads
        self._watcher: threading.Thread | None = None
        self._asleep = False
        self._closed = False
        self._alarm = threading.Semaphore(0)

    def start(self) -> None:
        self._leader.start()

    def lend(self, job: Job) -> bool:
        """Run a job on the reading thread; return whether this was possible.

        It is not possible while another job runs, or on another thread.
        """
        with self._lock:
            if self._running or threading.current_thread() is not self._leader:
                return False
            self._running += 1
            self._turn += 1
            self._busy = self._turn
            self._wake()
        try:
            job()
        finally:
            with self._lock:
                self._running -= 1
                if threading.current_thread() is self._leader:
                    self._busy = 0
        return True

    def join(self, seconds: float) -> bool:
        """Wait until no thread reads; return False after this number of seconds."""
        until = time.monotonic() + seconds
        with self._lock:
            leader = self._leader
        leader.join(seconds)
        while leader is not self._leader:  # it was replaced meanwhile
            leader = self._leader
            leader.join(max(0.0, until - time.monotonic()))
        if leader.is_alive():
            return False
        with self._lock:
            self._closed = True
            watcher = self._watcher
        if watcher is not None:
            self._alarm.release()
            watcher.join(seconds)
        return True

    def _another(self) -> threading.Thread:
        return threading.Thread(target=self._read, name="mcp-reader", daemon=True)

    def _read(self) -> None:
        me = threading.current_thread()
        while self._leader is me:
            if not self._pending and not self._fill():
                self._ended()
                return
            while self._pending and self._leader is me:
                line = self._pending.popleft()
                if self._source.stopped:
                    self._pending.clear()
                    break
                self._receive(line)

    def _fill(self) -> bool:
        while not self._pending:
            if self._over:
                return False
            chunk = self._source.read()
            if not chunk:
                if self._source.stopped:
                    return False
                # The last line may be complete although it has no newline.
                self._over = True
                self._pending.append(self._lines.rest())
            self._pending.extend(self._lines.feed(chunk))
        return True

    # --- the watcher

    def _wake(self) -> None:
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="mcp-relief", daemon=True)
            self._watcher.start()
        elif self._asleep:
            self._asleep = False
            self._alarm.release()

    def _watch(self) -> None:
        seen, quiet = 0, 0
        while not self._closed:
            time.sleep(PATIENCE)
            with self._lock:
                if self._busy and self._busy == seen:
                    self._busy = 0
                    self._leader = self._another()
                    self._leader.start()
                quiet = quiet + 1 if self._turn == seen else 0
                seen = self._turn
                if quiet < _LULL:
                    continue
                self._asleep = True
            self._alarm.acquire()
            quiet = 0
