"""Only a few processes start at the same time."""

import threading

import pytest

from mcp_touchstone.engine import start_limiter
from mcp_touchstone.engine.start_limiter import Newcomer, StartLimiter, StartPriority
from tests.conftest import eventually

SOON = 5.0


def test_start_waits_for_a_free_slot() -> None:
    doorway = StartLimiter(patience=lambda: 60.0, width=2)
    first, _second = doorway.enter(), doorway.enter()
    entered = threading.Event()

    def enter() -> None:
        doorway.enter()
        entered.set()

    threading.Thread(target=enter, daemon=True).start()
    assert not entered.wait(0.1)
    first.gave_up = True

    assert entered.wait(SOON)


def test_abandoned_start_frees_its_slot() -> None:
    doorway = StartLimiter(patience=lambda: 60.0, width=1)
    doorway.enter().gave_up = True

    doorway.enter()


def test_silent_start_frees_its_slot_after_the_patience() -> None:
    doorway = StartLimiter(patience=lambda: 0.05, width=1)
    doorway.enter()

    doorway.enter()


def test_start_with_higher_priority_goes_first() -> None:
    doorway = StartLimiter(patience=lambda: 60.0, width=1)
    held = doorway.enter()
    went: list[tuple[StartPriority, Newcomer]] = []

    def enter(turn: StartPriority) -> None:
        went.append((turn, doorway.enter(turn)))

    threads = []
    for turn in (StartPriority.OTHER, StartPriority.LONG, StartPriority.MANY, StartPriority.FIRST):
        threads.append(threading.Thread(target=enter, args=(turn,), daemon=True))
        threads[-1].start()
        eventually(lambda: len(doorway._outside) == len(threads))
    held.gave_up = True
    for number in range(len(threads)):
        eventually(lambda: len(went) > number)  # noqa: B023  (it is called at once)
        went[number][1].gave_up = True

    assert [turn for turn, _ in went] == [
        StartPriority.FIRST,
        StartPriority.LONG,
        StartPriority.MANY,
        StartPriority.OTHER,
    ]


def test_start_waits_for_more_urgent_ones_of_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_limiter, "GATHERING", 1.0)
    doorway = StartLimiter(patience=lambda: 60.0, width=1)
    went: list[StartPriority] = []
    arrived = threading.Event()

    def enter(turn: StartPriority) -> None:
        arrived.set()
        held = doorway.enter(turn)
        went.append(turn)
        held.gave_up = True

    first = threading.Thread(target=enter, args=(StartPriority.OTHER,))
    first.start()
    arrived.wait(SOON)
    enter(StartPriority.FIRST)
    first.join(SOON)

    assert went == [StartPriority.FIRST, StartPriority.OTHER]
