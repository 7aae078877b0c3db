"""Slots go to their lanes as they come, and each lane runs to its end."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mcp_touchstone.lane import Lane
from mcp_touchstone.results import Slot
from mcp_touchstone.scenario import Scenario
from mcp_touchstone.schedule import Schedule

NEW, OLD = "2025-11-25", "2025-06-18"


def slot(name: str, revision: str = NEW, **kind: Any) -> Slot:
    scenario = Scenario(
        id=f"conformance/toy/toy.py::{name}",
        clauses=(),
        title=name,
        why="",
        path="",
        line=0,
        order=0,
        body=lambda _: None,
        **kind,
    )
    return Slot(scenario, revision, ())


def names(lane: Iterable[Slot]) -> list[str]:
    return [one.case.name for one in lane]


def scheduled(*batches: list[Slot]) -> list[list[str]]:
    """Give the names of each lane, in the order in which the lanes began."""
    lanes: list[list[str]] = []

    def drive(lane: Iterable[Slot]) -> None:
        lanes.append([])
        mine = lanes[-1]
        mine.extend(names(lane))

    with ThreadPoolExecutor(16) as threads:
        schedule = Schedule(threads, drive)
        for batch in batches:
            schedule.add(batch)
        schedule.finish()
    return lanes


def test_what_shares_a_process_is_one_lane_however_late_it_comes() -> None:
    lanes = scheduled([slot("one"), slot("old", OLD)], [slot("two"), slot("three")])

    assert sorted(lanes) == [["old"], ["one", "two", "three"]]


def test_what_hurts_comes_last_even_if_it_came_first() -> None:
    assert scheduled([slot("hurts", hurts=True)], [slot("late")]) == [["late", "hurts"]]


def test_what_needs_a_virgin_process_is_alone() -> None:
    assert sorted(scheduled([slot("a", fresh=True), slot("b", fresh=True)])) == [["a"], ["b"]]


def test_what_lasts_is_apart_and_begins_first_of_those_alone() -> None:
    shared = [slot("quick"), slot("listens", lasts=True), slot("drawn", drawn=True)]

    assert sorted(scheduled(shared)) == [["drawn"], ["listens"], ["quick"]]
    alone = [slot("short", fresh=True), slot("long", fresh=True, lasts=True)]
    assert scheduled(alone)[0] == ["long"]


def test_a_lane_that_was_closed_ends_without_its_slots_being_lost() -> None:
    lane = Lane()
    lane.add([slot("one"), slot("hurts", hurts=True)])
    lane.close()

    assert names(lane) == ["one", "hurts"]
