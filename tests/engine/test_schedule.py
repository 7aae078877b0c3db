"""The scheduler assigns slots to lanes, and each lane runs to its end."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mcp_touchstone.catalog.scenario import Place, Scenario
from mcp_touchstone.engine.scheduler import Schedule
from mcp_touchstone.engine.worker import Worker
from mcp_touchstone.results.run import PlannedCase

NEW, OLD = "2025-11-25", "2025-06-18"


def slot(name: str, revision: str = NEW, **kind: Any) -> PlannedCase:
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
    return PlannedCase(scenario, revision, ())


def names(lane: Iterable[PlannedCase]) -> list[str]:
    return [one.case.name for one in lane]


def scheduled(*batches: list[PlannedCase]) -> list[list[str]]:
    """Return the names of each lane, in the order in which the lanes began."""
    lanes: list[list[str]] = []

    def drive(lane: Iterable[PlannedCase]) -> None:
        lanes.append([])
        mine = lanes[-1]
        mine.extend(names(lane))

    with ThreadPoolExecutor(16) as threads:
        schedule = Schedule(threads, drive)
        for batch in batches:
            schedule.add(batch)
        schedule.finish()
    return lanes


def test_slots_sharing_a_process_run_in_one_lane() -> None:
    lanes = scheduled([slot("one"), slot("old", OLD)], [slot("two"), slot("three")])

    assert sorted(lanes) == [["old"], ["one", "two", "three"]]


def test_harmful_slots_run_last() -> None:
    assert scheduled([slot("hurts", hurts=True)], [slot("late")]) == [["late", "hurts"]]


def test_slots_needing_a_fresh_process_run_alone() -> None:
    assert sorted(
        scheduled([slot("a", place=Place.OWN_SESSION), slot("b", place=Place.OWN_SESSION)])
    ) == [["a"], ["b"]]


def test_long_slots_run_in_their_own_lane_and_start_first() -> None:
    shared = [slot("quick"), slot("listens", lasts=True), slot("drawn", drawn=True)]

    assert sorted(scheduled(shared)) == [["drawn"], ["listens"], ["quick"]]
    alone = [
        slot("short", place=Place.OWN_SESSION),
        slot("long", place=Place.OWN_SESSION, lasts=True),
    ]
    assert scheduled(alone)[0] == ["long"]


def test_closed_lane_runs_its_remaining_slots() -> None:
    lane = Worker()
    lane.add([slot("one"), slot("hurts", hurts=True)])
    lane.close()

    assert names(lane) == ["one", "hurts"]
