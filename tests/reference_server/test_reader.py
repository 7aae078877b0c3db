"""The reading thread runs small calls itself; another thread takes over during a slow call."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from reference_server.protocol import reader as module
from reference_server.protocol.reader import Reader
from reference_server.protocol.source import Source
from tests.conftest import eventually

PATIENT = 20.0
"""Seconds of patience where the thing waited for happens at once."""

UNHURRIED = 1.0
"""Seconds until a thread is replaced. A busy machine pauses a thread for some milliseconds."""


class Desk:
    """A reader on a pipe, with the outcome of each line."""

    def __init__(self) -> None:
        theirs, self._ours = os.pipe()
        self._theirs = theirs
        self.served: list[tuple[bytes | None, str]] = []
        self.change = threading.Condition()
        self.gate = threading.Event()
        self.over = threading.Event()
        self.source = Source(theirs)
        self.reader = Reader(self.source, 100, self.receive, self.over.set)
        self.reader.start()

    def receive(self, line: bytes | None) -> None:
        if line == b"slow":
            assert self.reader.lend(lambda: self.note(line, wait=True))
        elif line is not None and line.startswith(b"call"):
            lent = self.reader.lend(lambda: self.note(line))
            if not lent:
                self.note(b"refused")
        else:
            self.note(line)

    def note(self, line: bytes | None, *, wait: bool = False) -> None:
        if wait:
            assert self.gate.wait(PATIENT)
        with self.change:
            self.served.append((line, str(threading.get_ident())))
            self.change.notify_all()

    def write(self, raw: bytes) -> None:
        os.write(self._ours, raw)

    def until(self, done: Callable[[], bool]) -> None:
        with self.change:
            assert self.change.wait_for(done, PATIENT), self.served

    def lines(self) -> list[bytes | None]:
        return [line for line, _ in self.served]

    def end(self) -> None:
        self.gate.set()
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1

    def close(self) -> None:
        self.end()
        assert self.over.wait(PATIENT)
        assert self.reader.join(PATIENT)
        self.source.close()
        os.close(self._theirs)


@pytest.fixture
def desk() -> Iterator[Desk]:
    before = set(threading.enumerate())
    desk = Desk()
    yield desk
    desk.close()
    eventually(lambda: not set(threading.enumerate()) - before, PATIENT)


def test_small_call_runs_on_the_reading_thread(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", UNHURRIED)
    desk.write(b"line\ncall\ncall\n")
    desk.until(lambda: len(desk.served) == 3)

    assert len({thread for _, thread in desk.served}) == 1


def test_slow_call_does_not_delay_later_lines(desk: Desk) -> None:
    desk.write(b"slow\nping\nlater\n")
    desk.until(lambda: desk.lines() == [b"ping", b"later"])
    desk.gate.set()
    desk.until(lambda: desk.lines() == [b"ping", b"later", b"slow"])


def test_reader_runs_no_second_call_during_a_slow_call(desk: Desk) -> None:
    desk.write(b"slow\ncall\n")
    desk.until(lambda: desk.lines() == [b"refused"])
    desk.gate.set()
    desk.until(lambda: b"slow" in desk.lines())
    desk.write(b"call again\n")
    desk.until(lambda: b"call again" in desk.lines())


def test_slow_call_after_a_pause_does_not_delay_later_lines(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LULL", 1)
    desk.write(b"call\n")
    desk.until(lambda: desk.lines() == [b"call"])
    eventually(lambda: desk.reader._asleep)
    desk.write(b"slow\nping\n")
    desk.until(lambda: desk.lines() == [b"call", b"ping"])


def test_reader_refuses_calls_from_other_threads(desk: Desk) -> None:
    assert not desk.reader.lend(lambda: pytest.fail("it is not the reading thread"))


def test_last_line_is_served_and_the_end_is_signalled(desk: Desk) -> None:
    desk.write(b"slow\nno line feed")
    desk.end()

    assert desk.over.wait(PATIENT)
    desk.until(lambda: {b"slow", b"no line feed"} <= set(desk.lines()))


def test_stop_ends_the_reader_during_a_slow_call(desk: Desk) -> None:
    first = desk.reader._leader
    desk.write(b"slow\n")
    eventually(lambda: desk.reader._leader is not first)
    desk.source.stop()

    assert desk.over.wait(PATIENT)


def test_stream_of_calls_is_served_once_and_in_order(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", UNHURRIED)
    names = [b"call %d" % n for n in range(2000)]
    for start in range(0, 2000, 100):
        desk.write(b"\n".join(names[start : start + 100]) + b"\n")
    desk.until(lambda: len(desk.served) == 2000)

    assert desk.lines() == names
