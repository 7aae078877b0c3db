"""A few processes start at a time, however many are wanted."""

import threading
import time

from mcp_touchstone.doorway import Doorway, Newcomer, Turn

SOON = 5.0


def test_who_comes_while_it_is_full_waits_until_somebody_has_started() -> None:
    doorway = Doorway(patience=lambda: 60.0, width=2)
    first, _second = doorway.enter(), doorway.enter()
    entered = threading.Event()

    def enter() -> None:
        doorway.enter()
        entered.set()

    threading.Thread(target=enter, daemon=True).start()
    assert not entered.wait(0.1)
    first.settled = lambda: True

    assert entered.wait(SOON)


def test_who_was_let_in_and_started_nothing_leaves_room() -> None:
    doorway = Doorway(patience=lambda: 60.0, width=1)
    doorway.enter().gave_up()

    doorway.enter()


def test_who_says_nothing_for_long_is_waited_for_no_more() -> None:
    doorway = Doorway(patience=lambda: 0.05, width=1)
    doorway.enter()

    doorway.enter()


def test_a_process_many_wait_for_goes_before_those_that_came_earlier() -> None:
    doorway = Doorway(patience=lambda: 60.0, width=1)
    held = doorway.enter()
    went: list[tuple[Turn, Newcomer]] = []

    def enter(turn: Turn) -> None:
        went.append((turn, doorway.enter(turn)))

    threads = []
    for turn in (Turn.OTHER, Turn.LONG, Turn.MANY):
        threads.append(threading.Thread(target=enter, args=(turn,), daemon=True))
        threads[-1].start()
        time.sleep(0.05)
    held.gave_up()
    for number in range(len(threads)):
        until = time.monotonic() + SOON
        while len(went) <= number and time.monotonic() < until:
            time.sleep(0.005)
        went[number][1].gave_up()

    assert [turn for turn, _ in went] == [Turn.MANY, Turn.LONG, Turn.OTHER]
