"""The key of a JSON value in a cache."""

import json
from decimal import Decimal
from itertools import combinations

import pytest

from mcp_touchstone.wire.schema import ROOM, digest

APART: tuple[object, ...] = (
    1,
    1.0,
    "1",
    True,
    False,
    0,
    None,
    [],
    {},
    [1],
    {"1": None},
    "\ud800",
    Decimal("1e5000"),
)


@pytest.mark.parametrize("value", APART, ids=repr)
def test_equal_values_have_one_key(value: object) -> None:
    text = "shared, or not"
    first, second = [text, text, value], [text, "".join(text), value]

    assert digest(first) == digest(second)
    assert digest(json.loads(json.dumps([text, text]))) == digest([text, text])


def test_other_values_have_other_keys() -> None:
    for first, second in combinations(APART, 2):
        assert digest(first) != digest(second)


def test_very_long_value_has_no_key() -> None:
    assert digest("x" * ROOM) is None
