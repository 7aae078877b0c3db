"""Scenarios that change things do it in a world of their own."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_touchstone.gate import Choice, judge
from mcp_touchstone.loader import load
from mcp_touchstone.pace import Pace
from mcp_touchstone.pool import Pool
from mcp_touchstone.target import reference
from mcp_touchstone.verdict import Outcome
from mcp_touchstone.world import World


def test_a_process_apart_serves_a_tree_that_nobody_else_sees() -> None:
    with World() as world:
        pool = Pool(reference(startup=20.0), world, Pace(20.0))
        try:
            connection = pool.apart("2026-07-28", "alone")
            root = connection.root
            assert isinstance(root, Path)
            (root / "added.txt").write_text("added\n")
            connection.open()
            listed = (connection.request("resources/list").result or {})["resources"]
        finally:
            pool.close()

        assert any(item["name"] == "added.txt" for item in listed)
        assert root != world.root
        assert not root.exists()
        assert not (world.root / "added.txt").exists()


# --- started before anybody asks

MODERN = "2026-07-28"
LONG = 20.0


@pytest.fixture
def pool() -> Iterator[Pool]:
    with World() as world:
        pool = Pool(reference(startup=LONG), world, Pace(LONG))
        yield pool
        pool.close()


def test_a_process_that_was_started_ahead_is_given_once(pool: Pool) -> None:
    pool.reserve(MODERN, "lasts")

    given = pool.apart(MODERN, "lasts")
    another = pool.apart(MODERN, "lasts")

    assert given.started_ahead
    assert given.transcript.judged
    assert given.open().answered
    assert not another.started_ahead
    assert another.root != given.root


def test_one_that_left_meanwhile_is_not_given(pool: Pool) -> None:
    pool.reserve(MODERN, "lasts")
    until = threading.Event()
    while not pool.connections and not until.wait(0.01):
        pass
    (early,) = pool.connections
    early.process.kill()
    assert early.process.wait(LONG) is not None

    given = pool.apart(MODERN, "lasts")

    assert given is not early
    assert given.open().answered
    assert not early.transcript.judged


def test_one_nobody_asks_for_is_ended_and_not_judged(pool: Pool) -> None:
    pool.reserve(MODERN, "lasts")

    pool.settle()

    for connection in pool.connections:  # none, where it was never begun
        assert connection.process.ending is not None
        assert not connection.transcript.judged


def test_what_needs_a_call_that_lasts_is_started_while_one_is_looked_for() -> None:
    choice = Choice(select=("cancellation-no-response",), revisions=("2025-11-25",))
    run = judge(reference(startup=LONG), load(), choice)

    assert any(connection.started_ahead for connection in run.connections)
    assert not run.of(Outcome.FAIL, Outcome.WARN, Outcome.BROKEN)
