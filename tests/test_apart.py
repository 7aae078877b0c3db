"""Scenarios that change things do it in a world of their own."""

from pathlib import Path

from mcp_touchstone.pace import Pace
from mcp_touchstone.pool import Pool
from mcp_touchstone.target import reference
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
