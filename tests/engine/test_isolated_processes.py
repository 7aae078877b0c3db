"""Processes for scenarios that change files have their own root folder."""

import sys

from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import Target, reference
from tests.conftest import eventually


def test_apart_process_has_its_own_root_folder() -> None:
    with World() as world:
        pool = ProcessPool(reference(timeout=20.0), world, Pace(20.0))
        try:
            connection = pool.apart("2026-07-28", "alone")
            root = connection.answers.root
            assert isinstance(root, SafePath)
            (root / "added.txt").write_text("added\n")
            connection.open()
            listed = (connection.request("resources/list").result or {})["resources"]
        finally:
            pool.close()

        assert any(item["name"] == "added.txt" for item in listed)
        assert root != world.root
        assert not root.exists()
        assert not (world.root / "added.txt").exists()


def test_process_that_was_asked_nothing_is_not_idle_but_starts() -> None:
    with World() as world:
        busy = Target(command=(sys.executable, "-c", "while True: pass"))
        pool = ProcessPool(busy, world, Pace(20.0))
        try:
            connection = pool.apart("2025-11-25", "alone")
            pool.retire(connection)
            eventually(lambda: connection.channel.ending is not None)
        finally:
            pool.close()

    assert pool.notes == ()
