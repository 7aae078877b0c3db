"""Limits that leave out the time in which nobody let the server run."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_touchstone import turns as turns_module
from mcp_touchstone.connection import Connection
from mcp_touchstone.pace import Pace
from mcp_touchstone.patience import MOST, SHORT, Patience, Turn, Turns
from mcp_touchstone.process import ServerProcess, now
from mcp_touchstone.transcript import Transcript
from mcp_touchstone.turns import turns

needs_counts = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists() or not hasattr(os, "sched_setaffinity"),
    reason="the system does not tell who waits for a core",
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
"""In a session each, so that each is a scheduling group of its own."""
HOG = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
"""


class Clock:
    """A clock, and threads that wait for a core for a share of its time."""

    def __init__(self, **shares: float) -> None:
        self.now = 0.0
        self.shares = list(shares.values())

    def turns(self) -> Turns:
        return {number: Turn(share * self.now) for number, share in enumerate(self.shares)}

    def spend(self, seconds: float) -> tuple[float, float]:
        """Wait with a limit to its end; give what was waited and what was granted."""
        patience = Patience(seconds, self.turns, lambda: self.now)
        begun = self.now
        while left := patience.left():
            self.now += left
        return self.now - begun, patience.granted


def test_a_limit_is_kept_where_everybody_gets_a_core() -> None:
    assert Clock(server=0.0).spend(5.0) == (5.0, 0.0)


def test_time_without_a_core_does_not_count() -> None:
    spent, granted = Clock(server=0.5).spend(5.0)

    assert spent == pytest.approx(5.0 + granted, abs=0.1)
    assert 8.5 < spent <= 10.0  # what the first part lost is not looked at


def test_who_waited_most_counts_and_waits_are_not_added_up() -> None:
    spent, _ = Clock(one=0.5, other=0.5, third=0.1).spend(5.0)

    assert 8.5 < spent <= 10.0  # what the first part lost is not looked at


def test_there_is_an_end_to_it() -> None:
    spent, granted = Clock(server=1.0).spend(5.0)

    assert spent == pytest.approx(5.0 * MOST)
    assert granted == pytest.approx(5.0 * (MOST - 1))


def test_what_was_lost_before_the_wait_is_no_excuse() -> None:
    clock = Clock()
    patience = Patience(5.0, lambda: {1: Turn(100.0)}, lambda: clock.now)
    while left := patience.left():
        clock.now += left

    assert clock.now == pytest.approx(5.0)


def test_a_wait_for_a_core_that_has_not_ended_counts() -> None:
    clock = Clock()
    patience = Patience(5.0, lambda: {1: Turn(0.0, ready=clock.now < 8.0)}, lambda: clock.now)
    while left := patience.left():
        clock.now += left

    assert clock.now > 8.0


def test_a_server_that_has_a_core_all_the_time_gets_no_more() -> None:
    clock = Clock()
    patience = Patience(5.0, lambda: {1: Turn(0.0, clock.now, ready=True)}, lambda: clock.now)
    while left := patience.left():
        clock.now += left

    assert clock.now == pytest.approx(5.0)


def test_a_short_wait_looks_at_nothing() -> None:
    def look() -> Turns:
        raise AssertionError("looked")

    clock = Clock()
    patience = Patience(SHORT, look, lambda: clock.now)
    while left := patience.left():
        clock.now += left

    assert clock.now == SHORT


def test_no_wait_is_over_at_once() -> None:
    assert Clock(server=0.5).spend(0.0) == (0.0, 0.0)


@needs_counts
def test_threads_of_a_process_of_those_below_it_and_ours_are_looked_at() -> None:
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {DEAF!r}])"
    waits = threading.Event()
    ours = threading.Thread(target=waits.wait)
    ours.start()
    with subprocess.Popen([sys.executable, "-c", below], stdin=subprocess.PIPE) as process:
        try:
            end = time.monotonic() + 20
            while len(found := turns(process.pid)) < 3 and time.monotonic() < end:
                time.sleep(0.01)
            assert {process.pid, threading.get_native_id()} < set(found)
            assert set(turns(process.pid, (ours,))) - set(found) == {ours.native_id}
        finally:
            for child in list(found):
                if child not in {process.pid, threading.get_native_id()}:
                    os.kill(child, 9)
            process.kill()
            waits.set()


def test_a_system_that_does_not_tell_lets_every_second_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(turns_module, "PROCESSES", tmp_path)

    assert turns(os.getpid()) == {}


@contextmanager
def connected(
    program: str, *, patience: float = 20.0, crowded: float = 0.0
) -> Iterator[Connection]:
    """Talk to a program that, for some seconds, gets a core only when nobody else wants it."""
    transcript = Transcript("2025-11-25", now)
    process = ServerProcess([sys.executable, "-S", "-c", program], transcript, env={})
    hogs: list[subprocess.Popen[bytes]] = []
    try:
        if crowded:
            os.sched_setaffinity(process.pid, {0})
            os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
            for _ in range(HOGS):
                hogging = [sys.executable, "-S", "-c", HOG, str(crowded)]
                hogs += [subprocess.Popen(hogging, start_new_session=True)]
                os.sched_setaffinity(hogs[-1].pid, {0})
        yield Connection(process, transcript, Pace(patience))
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        process.end(0.5, polite=False)


@needs_counts
def test_a_server_that_gets_no_core_is_waited_for() -> None:
    with connected(SLOW, patience=1.0, crowded=4.0) as connection:
        reply = connection.request("ping")

    assert reply.answered, str(reply)


@needs_counts
def test_who_wants_to_know_what_is_there_by_then_is_told_what_is_there_by_then() -> None:
    with connected(SLOW, crowded=4.0) as connection:
        reply = connection.request("ping", seconds=0.5)

    assert str(reply).endswith("no answer within 0.5 s")


@needs_counts
def test_a_server_that_is_not_waited_for_to_the_end_is_told_by_what_it_lost() -> None:
    with connected("while True: pass", patience=0.5, crowded=60.0) as connection:
        reply = connection.request("ping")

    assert "no answer within 0.5 s, and " in str(reply)
    assert "s in which it had no core" in str(reply)


def test_a_deaf_server_gets_its_limit_and_no_more() -> None:
    with connected(DEAF, patience=0.5) as connection:
        reply = connection.request("ping")

    assert str(reply).endswith("no answer within 0.5 s")
