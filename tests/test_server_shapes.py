"""Tools that take no plain path to a text file are bound without configuration."""

import sys
from pathlib import Path

import pytest

from mcp_touchstone.bindings.binding import Binding, Operation
from mcp_touchstone.engine.runner import survey
from mcp_touchstone.security.documents import load
from mcp_touchstone.target.target import ROOT, Target

FAKES = Path(__file__).parent / "fakes"
DOCUMENTS = load(FAKES.parents[1] / "security_suite")


def bound(name: str) -> list[Binding]:
    command = (sys.executable, str(FAKES), name, ROOT)
    profile, _ = survey(Target(command=command), words=())
    assert profile.bindings is not None
    return list(profile.bindings.found)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Notes", {Operation.READ, Operation.LIST, Operation.CREATE}),
        ("Titles", {Operation.READ, Operation.CREATE}),
        ("Projects", {Operation.READ, Operation.CREATE}),
        ("Sheets", {Operation.READ, Operation.CREATE}),
        ("Notebooks", {Operation.READ}),
        ("Vaults", {Operation.READ}),
        ("Addresses", {Operation.READ}),
        ("Lines", {Operation.READ}),
    ],
)
def test_tools_of_other_shapes_are_bound(name: str, expected: set[Operation]) -> None:
    assert {binding.operation for binding in bound(name)} >= expected
