"""What a run knows of a server."""

import pytest

from mcp_touchstone.catalog.loader import BOTH, load
from mcp_touchstone.engine import facts


@pytest.mark.parametrize(
    ("threat", "leaves"),
    [
        ("traversal-dotdot", True),
        ("links-write", True),
        ("stats-paths", True),
        ("repositories-outside", True),
        ("special-pipes", False),
        ("injection-commands", False),
        ("commands-shell", False),
        ("repositories-programs", False),
        ("load-cancel", False),
        ("ping-empty-response", False),
    ],
)
def test_only_some_threats_show_that_files_outside_were_reached(threat: str, leaves: bool) -> None:
    assert facts._leaves(load(BOTH).catalogue[threat]) is leaves
