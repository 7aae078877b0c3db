"""The time accounting of a run: its parts, its floor and its efficiency."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_touchstone.runtime.timing import Cost, Wait, WaitKind, account

ANY = st.floats(0, 100, allow_nan=False)
WAITS = st.lists(
    st.builds(
        lambda kind, at, long: Wait(kind, at, at + long), st.sampled_from(WaitKind), ANY, ANY
    ),
    max_size=8,
)


def test_overlapping_waits_are_counted_once() -> None:
    one = [Wait(WaitKind.STARTUP, 0, 2), Wait(WaitKind.ANSWER, 2, 3), Wait(WaitKind.SILENCE, 3, 5)]
    other = [Wait(WaitKind.STARTUP, 1, 2.5), Wait(WaitKind.SILENCE, 2.5, 4)]

    cost = account([one, other], 0, 6, processor=0, cores=2)

    assert (cost.startup, cost.answers, cost.silence, cost.ours) == (2.5, 0.5, 2, 1)


def test_floor_is_the_larger_of_cpu_work_and_longest_conversation() -> None:
    talks = [[Wait(WaitKind.STARTUP, 0, 1), Wait(WaitKind.ANSWER, 1, 1.5)]] * 8

    assert account(talks, 0, 9, processor=8.0, cores=2).floor == 4.0
    assert account(talks, 0, 9, processor=0.1, cores=2).floor == 1.5
    assert account(talks, 0, 6, processor=8.0, cores=4).efficiency == pytest.approx(1 / 3)


def test_empty_run_is_fully_efficient() -> None:
    assert account([], 1, 1, processor=0, cores=2).efficiency == 1.0


@given(st.lists(WAITS, max_size=5))
def test_cost_parts_add_up_to_the_wall_time(talks: list[list[Wait]]) -> None:
    cost = account(talks, 10, 90, processor=0.1, cores=2)

    assert isinstance(cost, Cost)
    assert cost.wall == pytest.approx(80)
    assert min(cost.startup, cost.answers, cost.silence, cost.ours) >= -1e-9
    assert 0 <= cost.efficiency <= 1
