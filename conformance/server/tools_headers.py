"""server/tools: parameters that are copied into HTTP headers (x-mcp-header)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp_touchstone.suite import Breach, Record, Seen, ambient, brief, each

HEADER = "x-mcp-header"
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PRIMITIVE = frozenset({"integer", "string", "boolean"})
SECRET = re.compile(
    r"passw(or)?d|passphrase|secret|token|api_?key|credential|private_?key|ssn|birth|e_?mail|phone",
    re.IGNORECASE,
)

ONE = frozenset({
    "items", "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if",
    "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema",
})  # fmt: skip
MANY = frozenset({"items", "prefixItems", "allOf", "anyOf", "oneOf"})
NAMED = frozenset({"patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose subschema is not the schema of a property."""


@dataclass(frozen=True)
class Mark:
    """One x-mcp-header.

    Attributes:
        place: its path in the message.
        name: the property it is on; empty if it is on none.
        schema: the schema that contains it.
        reachable: whether only properties lead there.
    """

    place: str
    name: str
    schema: dict[str, Any]
    reachable: bool

    @property
    def value(self) -> Any:
        """The name of the header."""
        return self.schema[HEADER]


def _marks(schema: Any, place: str, name: str = "", *, reachable: bool = True) -> Iterator[Mark]:
    """Yield the marks of a schema; data in it (default, const, enum, examples) is skipped."""
    if not isinstance(schema, dict):
        return
    if HEADER in schema:
        yield Mark(place, name, schema, reachable and bool(name))
    for keyword, below in schema.items():
        at = f"{place}.{keyword}"
        if keyword == "properties" and isinstance(below, dict):
            for key, one in below.items():
                yield from _marks(one, f"{at}.{key}", key, reachable=reachable)
        elif keyword in NAMED and isinstance(below, dict):
            for key, one in below.items():
                yield from _marks(one, f"{at}.{key}", reachable=False)
        elif keyword in MANY and isinstance(below, list):
            for index, one in enumerate(below):
                yield from _marks(one, f"{at}[{index}]", name, reachable=False)
        elif keyword in ONE:
            yield from _marks(below, at, name, reachable=False)


@ambient(
    "tools-x-mcp-header-value",
    "tools-x-mcp-header-unique",
    "tools-x-mcp-header-primitive",
    "tools-x-mcp-header-reachable",
    "tools-x-mcp-header-not-sensitive",
)
def marks_header_parameters_correctly(record: Record) -> Iterator[Seen]:
    """An x-mcp-header is a unique token on a primitive property, reachable by properties only."""
    for message, place, schema in each(record, "InputSchema"):
        marks = list(_marks(schema, place))
        if not marks:
            continue
        n = message.entry.n
        wrong = [mark for mark in marks if not _is_token(mark.value)]
        yield _seen("value", n, wrong, "a token as in RFC 9110")
        wrong = [mark for mark in marks if not mark.reachable]
        yield _seen("reachable", n, wrong, "marks on properties that properties alone lead to")
        wrong = [mark for mark in marks if SECRET.search(mark.name)]
        yield _seen("not-sensitive", n, wrong, "no mark on what sounds like a secret")
        yield _primitive(n, marks)
        values = [mark.value.lower() for mark in marks if isinstance(mark.value, str)]
        wrong = [m for m in marks if isinstance(m.value, str) and values.count(m.value.lower()) > 1]
        if len(values) > 1:
            yield _seen("unique", n, wrong, "names that differ in more than case")


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and TOKEN.fullmatch(value) is not None


def _primitive(n: int, marks: list[Mark]) -> Seen:
    """Judge the types of marked properties; a union or a missing type is not judged."""
    typed = [mark for mark in marks if mark.name]
    plain = [mark for mark in typed if isinstance(mark.schema.get("type"), str)]
    wrong = [mark for mark in plain if mark.schema["type"] not in PRIMITIVE]
    vague = [mark for mark in typed if mark not in plain]
    mild = None if wrong else Breach.NOTE
    return _seen("primitive", n, wrong or vague, "marks on integer, string, boolean", mild)


def _seen(name: str, n: int, wrong: list[Mark], expected: str, mild: Breach | None = None) -> Seen:
    shown = (f"{m.place}: {brief(m.value, 40)}, type {brief(m.schema.get('type'))}" for m in wrong)
    clause = f"tools-{HEADER}-{name}"
    return Seen(clause, not wrong, n, expected, "; ".join(shown), mild=mild)
