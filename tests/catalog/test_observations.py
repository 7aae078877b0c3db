"""Observations of the rules on all traffic."""

from dataclasses import fields, replace

from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.scenario import Seen


def test_an_observation_of_another_clause_keeps_all_other_members() -> None:
    seen = Seen("one", False, 3, "this", "that", Breach.WARN, True, True, (("client:0", 4),))
    usual = Seen("one", True)

    assert all(getattr(seen, one.name) != getattr(usual, one.name) for one in fields(Seen)[1:])
    assert seen.of("two") == replace(seen, clause="two")
