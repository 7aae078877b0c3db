"""Marks of parameters that headers repeat: which are found, and which are wrong."""

from typing import Any

from mcp_touchstone.wire.http_headers import annotated, mark_fault, marks
from tests.cases import cases

STRING = {"type": "string", "x-mcp-header": "Region"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@cases(
    ("no mark", schema(a={"type": "string"}), ""),
    ("on a property", schema(a=STRING), ""),
    ("on a property of a property", schema(a=schema(b=STRING)), ""),
    ("a type is missing", schema(a={"x-mcp-header": "A"}), ""),
    ("on a number", schema(a={"type": "number", "x-mcp-header": "A"}), "type number"),
    ("in items", schema(a={"type": "array", "items": STRING}), "do not reach"),
    ("in a definition", {"$defs": {"one": STRING}}, "do not reach"),
    ("at the root", {"type": "object", "x-mcp-header": "A"}, "do not reach"),
    ("no token", schema(a={"type": "string", "x-mcp-header": "a b"}), "invalid name"),
    ("no text", schema(a={"type": "string", "x-mcp-header": 1}), "invalid name"),
    ("two of one name", schema(a=STRING, b={**STRING, "x-mcp-header": "REGION"}), "one name"),
    ("a property of that name", schema(**{"x-mcp-header": {"type": "number"}}), ""),
    ("that word in an example", schema(a={"examples": [{"x-mcp-header": " "}]}), ""),
    ("that word in a default", schema(a={**STRING, "default": '"x-mcp-header":'}), ""),
)
def test_fault_of_the_marks_of_a_schema(name: str, given: dict[str, Any], fault: str) -> None:
    found = mark_fault(given)

    assert bool(found) is bool(fault), name
    assert fault in found


def test_annotated_properties_are_the_valid_marks_that_properties_reach() -> None:
    given = schema(a=STRING, b=schema(c={"x-mcp-header": "Zone"}), d={"anyOf": [STRING]})

    assert list(annotated(given)) == [(("a",), "Mcp-Param-Region"), (("b", "c"), "Mcp-Param-Zone")]
    assert [mark.reachable for mark in marks(given)] == [True, True, False]


def test_marks_of_a_deep_schema_are_bounded() -> None:
    deep: dict[str, Any] = dict(STRING)
    for _ in range(500):
        deep = schema(a=deep)

    assert list(marks(deep)) == []
