"""Deadlines that exclude the time a process spends waiting for a core."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.transport import cpu_wait
from mcp_touchstone.transport.channel import StdioChannel
from mcp_touchstone.transport.cpu_wait import turns
from mcp_touchstone.transport.deadline import MOST, SHORT, Patience, ThreadTimes, Turns
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.transport.process import now
from tests.conftest import eventually

needs_counts = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists() or not hasattr(os, "sched_setaffinity"),
    reason="needs schedstat and sched_setaffinity",
)

SLOW = """
import json, sys, time
for line in sys.stdin:
    number = json.loads(line)["id"]
    time.sleep(0.3)  # seen asleep by then
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}), flush=True)
"""
"""A server whose answer takes 0.3 s of a core."""

DEAF = "import sys, time; sys.stdin.readline(); time.sleep(600)"
HOGS = 6
"""Each runs in its own session, so that each is its own scheduling group."""
HOG = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
"""


class Clock:
    """A clock, and threads that wait for a core during a share of its time."""

    def __init__(self, **shares: float) -> None:
        self.now = 0.0
        self.shares = list(shares.values())

    def turns(self) -> Turns:
        return {number: ThreadTimes(share * self.now) for number, share in enumerate(self.shares)}

    def spend(
        self, seconds: float, turns: Callable[[], Turns] | None = None
    ) -> tuple[float, float]:
        """Wait until the deadline; return the seconds waited and the seconds granted."""
        patience = Patience(seconds, turns or self.turns, lambda: self.now)
        begun = self.now
        while left := patience.left():
            self.now += left
        return self.now - begun, patience.granted


def test_deadline_is_exact_without_cpu_contention() -> None:
    assert Clock(server=0.0).spend(5.0) == (5.0, 0.0)


def test_time_without_a_core_does_not_count() -> None:
    spent, granted = Clock(server=0.5).spend(5.0)

    assert spent == pytest.approx(5.0 + granted, abs=0.1)
    assert 8.5 < spent <= 10.0  # losses in the first part do not count


def test_only_the_longest_cpu_wait_extends_the_deadline() -> None:
    spent, _ = Clock(one=0.5, other=0.5, third=0.1).spend(5.0)

    assert 8.5 < spent <= 10.0  # losses in the first part do not count


def test_deadline_extension_is_bounded() -> None:
    spent, granted = Clock(server=1.0).spend(5.0)

    assert spent == pytest.approx(5.0 * MOST)
    assert granted == pytest.approx(5.0 * (MOST - 1))


def test_cpu_wait_before_the_deadline_started_does_not_count() -> None:
    assert Clock().spend(5.0, lambda: {1: ThreadTimes(100.0)})[0] == pytest.approx(5.0)


def test_unfinished_cpu_wait_extends_the_deadline() -> None:
    clock = Clock()

    assert clock.spend(5.0, lambda: {1: ThreadTimes(0.0, ready=clock.now < 8.0)})[0] > 8.0


def test_running_server_gets_no_extension() -> None:
    clock = Clock()
    spent, _ = clock.spend(5.0, lambda: {1: ThreadTimes(0.0, clock.now, ready=True)})

    assert spent == pytest.approx(5.0)


def test_short_wait_reads_no_cpu_times() -> None:
    def look() -> Turns:
        raise AssertionError("looked")

    assert Clock().spend(SHORT, look)[0] == SHORT


def test_deadline_of_zero_seconds_expires_at_once() -> None:
    assert Clock(server=0.5).spend(0.0) == (0.0, 0.0)


@needs_counts
def test_cpu_times_cover_the_process_its_children_and_our_threads() -> None:
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {DEAF!r}])"
    waits = threading.Event()
    ours = threading.Thread(target=waits.wait)
    ours.start()
    found: dict[int, Any] = {}
    with subprocess.Popen([sys.executable, "-c", below], stdin=subprocess.PIPE) as process:
        try:
            found = eventually(lambda: len(now := turns(process.pid)) >= 3 and now)
            assert {process.pid, threading.get_native_id()} < set(found)
            assert set(turns(process.pid, (ours,))) - set(found) == {ours.native_id}
        finally:
            for child in list(found):
                if child not in {process.pid, threading.get_native_id()}:
                    os.kill(child, 9)
            process.kill()
            waits.set()


def test_system_without_schedstat_gives_no_cpu_times(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cpu_wait, "PROCESSES", tmp_path)

    assert turns(os.getpid()) == {}


def free(pid: int, cores: set[int]) -> None:
    """Let a process use all cores like any other."""
    os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(pid, cores)


@contextmanager
def connected(
    program: str, *, patience: float = 20.0, crowded: float = 0.0
) -> Iterator[Connection]:
    """Connect to a program that gets only idle time of its core for some seconds."""
    transcript = LiveTranscript("2025-11-25", now)
    process = StdioChannel([sys.executable, "-S", "-c", program], transcript, env={})
    hogs: list[subprocess.Popen[bytes]] = []
    timer: threading.Timer | None = None
    usual = os.sched_getaffinity(0)
    try:
        if crowded:
            os.sched_setaffinity(process.pid, {0})
            os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
            timer = threading.Timer(crowded, free, (process.pid, usual))
            timer.start()
            for _ in range(HOGS):
                hogging = [sys.executable, "-S", "-c", HOG, str(crowded)]
                hogs += [subprocess.Popen(hogging, start_new_session=True)]
                os.sched_setaffinity(hogs[-1].pid, {0})
        yield Connection(process, transcript, Pace(patience))
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        if timer is not None:
            timer.cancel()
            timer.join()
            free(process.pid, usual)  # with idle time only, it would not even end
        process.end(0.5, polite=False)


@needs_counts
def test_starved_server_gets_more_time() -> None:
    # Afterwards other tests compete with it, and it needs 0.3 s of a core within twelve.
    with connected(SLOW, patience=3.0, crowded=6.0) as connection:
        reply = connection.request("ping")

    assert reply.answered, str(reply)


@needs_counts
def test_short_wait_is_not_extended_for_cpu_starvation() -> None:
    with connected(SLOW, crowded=4.0) as connection:
        reply = connection.request("ping", seconds=0.5)

    assert str(reply).endswith("within 0.5 s")


@needs_counts
def test_timeout_message_states_the_time_without_a_core() -> None:
    with connected("while True: pass", patience=0.5, crowded=60.0) as connection:
        reply = connection.request("ping")

    assert "no answer within 0.5 s, and " in str(reply)
    assert "no core" in str(reply)


def test_silent_server_gets_no_extension() -> None:
    with connected(DEAF, patience=0.5) as connection:
        reply = connection.request("ping")

    assert str(reply).endswith("within 0.5 s")
