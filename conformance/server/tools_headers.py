"""server/tools: parameters that are copied into HTTP headers (x-mcp-header)."""

import re
from collections.abc import Iterator

from mcp_touchstone.suite import (
    HEADER_MARK,
    HEADER_TYPES,
    Breach,
    HeaderMark,
    Record,
    Seen,
    ambient,
    brief,
    each,
    header_marks,
)

SECRET = re.compile(
    r"passw(or)?d|passphrase|secret|token|api_?key|credential|private_?key|ssn|birth|e_?mail|phone",
    re.IGNORECASE,
)


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
        marks = list(header_marks(schema, place))
        if not marks:
            continue
        n = message.entry.n
        wrong = [mark for mark in marks if not mark.is_token]
        yield _seen("value", n, wrong, "a token as in RFC 9110")
        wrong = [mark for mark in marks if not mark.reachable]
        yield _seen("reachable", n, wrong, "marks on properties that properties alone lead to")
        wrong = [mark for mark in marks if mark.path and SECRET.search(mark.path[-1])]
        yield _seen("not-sensitive", n, wrong, "no mark on what sounds like a secret")
        yield _primitive(n, marks)
        values = [mark.value.lower() for mark in marks if isinstance(mark.value, str)]
        wrong = [m for m in marks if isinstance(m.value, str) and values.count(m.value.lower()) > 1]
        if len(values) > 1:
            yield _seen("unique", n, wrong, "names that differ in more than case")


def _primitive(n: int, marks: list[HeaderMark]) -> Seen:
    """Judge the types of marked properties; a union or a missing type is not judged."""
    typed = [mark for mark in marks if mark.path]
    plain = [mark for mark in typed if isinstance(mark.schema.get("type"), str)]
    wrong = [mark for mark in plain if mark.schema["type"] not in HEADER_TYPES]
    vague = [mark for mark in typed if mark not in plain]
    mild = None if wrong else Breach.NOTE
    return _seen("primitive", n, wrong or vague, "marks on integer, string, boolean", mild)


def _seen(
    name: str, n: int, wrong: list[HeaderMark], expected: str, mild: Breach | None = None
) -> Seen:
    shown = (f"{m.place}: {brief(m.value, 40)}, type {brief(m.schema.get('type'))}" for m in wrong)
    clause = f"tools-{HEADER_MARK}-{name}"
    return Seen(clause, not wrong, n, expected, "; ".join(shown), mild=mild)
