"""Threads for slow work, so that a ping need not wait for a slow tool."""

from __future__ import annotations

import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Job: TypeAlias = Callable[[], None]

_here = threading.local()


def aside(wait: Callable[[], object]) -> None:
    """Wait for the client inside a job, and let another job run meanwhile.

    Without this, the reader could block in ``submit`` because the queue is full, and never read the
    answer that the job waits for. After the wait, the job continues when the number of running jobs
    is below the limit.
    """
    workers: Workers | None = getattr(_here, "workers", None)
    if workers is None:
        wait()
    else:
        workers.aside(wait)


class _Seat:
    """Lets one idle thread wait for its next job.

    With a shared queue, a job could wake a second thread for nothing, which takes longer than a
    small job.
    """

    __slots__ = ("job", "woken")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.woken = threading.Lock()
        self.woken.acquire()

    def wake(self, job: Job | None) -> None:
        """Let the thread run a job, or end if the job is None."""
        self.job = job
        self.woken.release()


class Workers:
    """A bounded pool of daemon threads, started when they are first needed.

    The threads are daemons because a tool that blocks in a system call must not keep the process
    alive. ``concurrent.futures`` would join them at exit, and its import takes ten times as long.

    Args:
        most: Maximum number of jobs that run at once.
        waiting: Maximum number of jobs that wait. Beyond it ``submit`` blocks, and the reader with
            it. This limits a client that sends requests faster than the tools can answer.
    """

    def __init__(self, most: int, waiting: int) -> None:
        self._most = most
        self._waiting = max(waiting, 1)
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()  # for the attributes below
        self._room = threading.Condition(self._lock)
        self._ended = threading.Condition(self._lock)
        self._jobs: deque[Job] = deque()
        self._idle: list[_Seat] = []  # only while no job waits
        self._threads: set[threading.Thread] = set()
        self._unfinished = 0
        self._away = 0

    @property
    def busy(self) -> bool:
        return self._unfinished > 0

    def submit(self, job: Job) -> None:
        """Run a job on some thread, soon. The job must not raise."""
        with self._lock:
            while len(self._jobs) >= self._waiting:
                self._room.wait()
            self._unfinished += 1
            if self._idle:
                self._idle.pop().wake(job)
            else:
                self._jobs.append(job)
                self._start_if_needed()

    def run(self, job: Job) -> None:
        """Run a job on the calling thread. It counts towards the limit."""
        with self._lock:
            self._unfinished += 1
        _here.workers = self
        try:
            with self._places:
                job()
        finally:
            _here.workers = None
            with self._lock:
                self._end_one()

    def aside(self, wait: Callable[[], object]) -> None:
        """Wait inside a job of these workers; see the function ``aside``."""
        with self._lock:
            self._away += 1
            self._start_if_needed()
        self._places.release()
        try:
            wait()
        finally:
            self._places.acquire()
            with self._lock:
                self._away -= 1

    def close(self, seconds: float) -> None:
        """Wait for jobs and threads to end, because a job may have a file half written."""
        with self._lock:
            if not self._ended.wait_for(lambda: not self._unfinished, seconds):
                return  # a job is stuck; its daemon thread ends with the process
            threads = list(self._threads)
            self._most = 0
            while self._idle:
                self._idle.pop().wake(None)
        for thread in threads:
            thread.join(seconds)

    def _start_if_needed(self) -> None:
        if self._jobs and len(self._threads) < self._most + self._away:
            thread = threading.Thread(target=self._work, name="mcp-worker", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _work(self) -> None:
        _here.workers = self
        seat = _Seat()
        job = self._next(seat)
        while job:
            with self._places:
                job()
            with self._lock:
                self._end_one()
            job = self._next(seat)

    def _end_one(self) -> None:
        self._unfinished -= 1
        if not self._unfinished:
            self._ended.notify_all()

    def _next(self, seat: _Seat) -> Job | None:
        """Wait for the next job of a thread; return None if the thread must end."""
        with self._lock:
            if len(self._threads) > self._most + self._away:
                self._threads.discard(threading.current_thread())
                return None
            if self._jobs:
                self._room.notify()
                return self._jobs.popleft()
            self._idle.append(seat)
        seat.woken.acquire()
        return seat.job
