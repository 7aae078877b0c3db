"""Differences between two JSON values, and values marked as volatile."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mcp_touchstone.wire.json_diff import (
    ANY_ORDER,
    NOTHING,
    ORDER,
    VOLATILE,
    Difference,
    differences,
    steady,
    still_volatile,
    where,
)
from tests.cases import cases

ECHO = {"name": "echo", "description": "Says it again."}
ADD = {"name": "add", "description": "Adds."}


def found(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    return [(where(one.path), one.old, one.new) for one in differences(old, new)]


def test_long_lists_of_equal_items_are_compared_by_position() -> None:
    items = [0] * 200_000  # aligned, they would take hours

    assert found(items, items[:-1]) == [("[199999]", 0, NOTHING)]


def test_difference_path_is_written_from_the_outside_in() -> None:
    old = {"inputSchema": {"required": ["a", "b"], "type": "object"}}
    new = {"inputSchema": {"required": ["a", "c"], "type": "object"}}

    assert found(old, new) == [("inputSchema.required[1]", "b", "c")]


def test_added_and_removed_members_are_paired_with_nothing() -> None:
    assert list(differences({"a": 1}, {"b": None})) == [
        Difference(("a",), 1, NOTHING),
        Difference(("b",), NOTHING, None),
    ]


def test_list_items_with_names_are_compared_by_name() -> None:
    """A tool inserted before the others is one difference, not a change of all tools."""
    new = {"name": "new", "description": "New."}

    assert found([ECHO, ADD], [new, ECHO, ADD]) == [("new", NOTHING, new)]
    assert found([ECHO, ADD], [ADD, {**ECHO, "description": "x"}]) == [
        ("echo.description", "Says it again.", "x"),
        (ORDER, ["echo", "add"], ["add", "echo"]),
    ]


def test_list_items_with_equal_names_are_compared_by_position() -> None:
    assert found([ECHO, ECHO], [ECHO, {**ECHO, "description": "x"}]) == [
        ("[1].description", "Says it again.", "x")
    ]


def test_inserted_list_item_is_one_difference() -> None:
    assert found(["a", "b", "c"], ["a", "new", "b", "c"]) == [("[1]", NOTHING, "new")]
    assert found(["a", "b", "c"], ["a", "c"]) == [("[1]", "b", NOTHING)]


@cases((True, 1), (0, False), ("1", 1), (None, "null"), ({}, []), ("", None))
def test_values_of_different_types_differ(old: Any, new: Any) -> None:
    assert found(old, new) == [("", old, new)]


def test_integer_equals_the_same_float() -> None:
    assert found([1], [1.0]) == []


def test_volatile_value_matches_anything() -> None:
    assert found({"a": VOLATILE, "b": [VOLATILE, 1]}, {"b": [{}, 1]}) == []


def test_any_order_list_matches_any_order() -> None:
    assert found([ANY_ORDER, "a", "b"], ["b", "a"]) == []
    assert found([ANY_ORDER, ADD, ECHO], [ECHO, ADD]) == []
    assert found([ANY_ORDER, "a", "b"], ["b", "c"]) == [("[0]", "a", "b"), ("[1]", "b", "c")]


def test_steady_marks_differing_values_as_volatile() -> None:
    one = {"id": "x7", "lines": ["same", "12:01"], "extra": 1, "size": [1, 2]}
    two = {"id": "k3", "lines": ["same", "12:02"], "size": [1]}

    assert steady(one, two) == {
        "id": VOLATILE,
        "lines": ["same", VOLATILE],
        "extra": VOLATILE,
        "size": VOLATILE,
    }


def test_steady_marks_a_changed_order() -> None:
    assert steady(["b", "a"], ["a", "b"]) == [ANY_ORDER, "a", "b"]
    assert steady([ECHO, ADD], [ADD, ECHO]) == [ANY_ORDER, ADD, ECHO]


def test_renewed_record_keeps_its_marks() -> None:
    old = {"a": VOLATILE, "gone": VOLATILE, "list": [ANY_ORDER, "a", "b"], "tools": [ECHO]}
    old["tools"] = [{**ECHO, "description": VOLATILE}]
    new = {"a": 1, "list": ["c", "a"], "tools": [ADD, ECHO]}

    assert still_volatile(old, new) == {
        "a": VOLATILE,
        "gone": VOLATILE,
        "list": [ANY_ORDER, "c", "a"],
        "tools": [ADD, {**ECHO, "description": VOLATILE}],
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abn", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "uri", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@example([{}], [{"name": ""}])
@example([{"uri": "a"}], [{"uri": "a", "name": "b"}])
@given(JSON, JSON)
def test_both_recordings_match_their_steady_part(one: Any, two: Any) -> None:
    kept = steady(one, two)

    assert list(differences(kept, one)) == []
    assert list(differences(kept, two)) == []


@given(JSON, JSON)
def test_differences_are_symmetric_and_empty_for_equal_values(one: Any, two: Any) -> None:
    assert list(differences(one, one)) == []
    assert bool(list(differences(one, two))) == bool(list(differences(two, one)))


@given(JSON, JSON)
def test_renewed_record_matches_the_new_value(old: Any, new: Any) -> None:
    assert list(differences(still_volatile(old, new), new)) == []
    assert list(differences(still_volatile(steady(old, new), new), new)) == []
