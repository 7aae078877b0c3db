"""basic/schema: the types of all messages, icons, and JSON Schemas."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Flaw,
    Record,
    Reply,
    Seen,
    Typed,
    allows,
    ambient,
    arguments,
    brief,
    catalogue,
    dangling,
    dialect_of,
    each,
    list_in,
    scenario,
    shapes,
    typed,
    violations,
)

CATALOGUE = catalogue()
VALID = "schema-valid-for-dialect"
SIZE = re.compile(r"any|[0-9]+x[0-9]+")
DATA = re.compile(r"data:[^,]*;base64,(?P<data>.*)", re.IGNORECASE | re.DOTALL)
WEB = re.compile(r"(?P<scheme>https?)://[^/?#]", re.IGNORECASE)
PARTICULAR = ("prefixItems", "dependentRequired", "unevaluatedProperties")
"""Keywords that earlier dialects lack or define differently."""
EXAMPLES: Mapping[str, Any] = {
    "string": "hello",
    "number": 1,
    "integer": 1,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}


def _is_counted_here(flaw: Flaw) -> bool:
    """Whether no judged clause of another chapter covers a flaw."""
    return flaw.clause not in CATALOGUE or not CATALOGUE[flaw.clause].judged


@ambient("schema-result-conformance")
def conforms_to_the_schema_of_its_revision(record: Record) -> Iterator[Seen]:
    """Results, notifications and requests have the members, types and values of their schema.

    Clients rely on these types: a strict client drops a whole list because of one malformed entry.
    """
    for message in typed(record):
        flaws = filter(_is_counted_here, message.look.flaws)
        yield message.seen("schema-result-conformance", flaws)


# --- icons


@ambient("schema-icon-shape")
def writes_icons_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Icons are objects with a string src; type, sizes and theme have their defined types."""
    yield from shapes(record, "schema-icon-shape")


@ambient("schema-icon-src-scheme", "schema-icon-sizes-format")
def gives_icons_valid_sources_and_sizes(record: Record) -> Iterator[Seen]:
    """The src of an icon is an HTTPS URL or base64 data; its sizes give width and height."""
    for message, place, icon in each(record, "Icon"):
        if isinstance(src := icon.get("src"), str):
            yield _source(message, f"{place}.src", src)
        for index, size in enumerate(list_in(icon, "sizes")):
            if isinstance(size, str):
                yield _size(message, f"{place}.sizes[{index}]", size)


def _source(message: Typed, place: str, src: str) -> Seen:
    web = WEB.match(src)
    return Seen(
        "schema-icon-src-scheme",
        (web is not None and web["scheme"].lower() == "https") or _is_data(src),
        message.entry.n,
        "an HTTPS URL, or a data URI with base64",
        f"{place}: {brief(src, 80)}",
        mild=Breach.NOTE if web else None,
    )


def _is_data(src: str) -> bool:
    found = DATA.fullmatch(src)
    if not found:
        return False
    try:
        base64.b64decode(unquote(found["data"]), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _size(message: Typed, place: str, size: str) -> Seen:
    return Seen(
        "schema-icon-sizes-format",
        SIZE.fullmatch(size) is not None,
        message.entry.n,
        "WIDTHxHEIGHT, or any",
        f"{place}: {brief(size, 40)}",
        mild=Breach.NOTE if SIZE.fullmatch(size.replace("X", "x")) else None,
    )


# --- the JSON Schemas a server sends


@ambient("schema-valid-for-dialect", "schema-2020-12-recommended")
def sends_valid_json_schemas(record: Record) -> Iterator[Seen]:
    """Schemas are valid under their named dialect, or else under 2020-12."""
    for message, place, schema in each(record, "InputSchema", "OutputSchema", "RequestedSchema"):
        dialect = dialect_of(schema)
        expected = f"{place}, valid under {dialect or 'its named dialect'}"
        yield message.seen(VALID, _wrong(message, place, schema), expected=expected)
        named = schema.get("$schema", "")
        if isinstance(named, str):
            known = not named or dialect in {"draft-07", "2020-12"}
            expected, actual = "JSON Schema 2020-12", f"{place}.$schema: {brief(named, 80)}"
            yield Seen("schema-2020-12-recommended", known, message.entry.n, expected, actual)


@ambient("schema-local-reference-resolves")
def refers_to_parts_that_its_schemas_have(record: Record) -> Iterator[Seen]:
    """A reference of a schema into itself leads to a part of it."""
    for message, place, schema in each(record, "InputSchema", "OutputSchema", "RequestedSchema"):
        lost = [Flaw(place, f"$ref {brief(one, 80)} leads nowhere") for one in dangling(schema)]
        yield message.seen(
            "schema-local-reference-resolves",
            lost,
            expected=f"a part of {place} for each $ref into it",
        )


def _wrong(message: Typed, place: str, schema: dict[str, Any]) -> list[Flaw]:
    """List the flaws of a schema, except those that the type of the message covers."""
    flaws = message.look.flaws
    elsewhere = {flaw.path for flaw in flaws if flaw.clause != VALID}
    found = {flaw.path: flaw for flaw in flaws if flaw.clause == VALID}
    mine = {path: flaw for path, flaw in found.items() if path.startswith(place)}
    for at, why in violations(schema):
        path = place + ("" if at.startswith("[") or not at else ".") + at
        if path not in elsewhere:
            mine.setdefault(path, Flaw(path, why))
    return list(mine.values())


@scenario("schema-2020-12-supported")
def validates_arguments_by_2020_12(talk: Conversation) -> None:
    """Arguments that only a keyword of 2020-12 rules out are refused."""
    clause = "schema-2020-12-supported"
    for name, good, bad in _spoilt(talk):
        if not _call(talk, name, good).ran:
            continue
        reply = _call(talk, name, bad)
        talk.judge.expect(reply, clause, not reply.ran, f"an error for {name} with {brief(bad)}")
    talk.judge.otherwise_unseen(clause, f"no harmless tool uses {', '.join(PARTICULAR)}")


def _call(talk: Conversation, name: str, given: dict[str, Any]) -> Reply:
    return talk.wire.request("tools/call", {"name": name, "arguments": given}, required=False)


def _spoilt(talk: Conversation) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield harmless tools with valid arguments, and arguments that only one keyword excludes."""
    harmless = talk.spoken.harmless  # computed once: it reads all tools
    for tool in talk.spoken.lists.get("tools", []):
        if not isinstance(tool, dict) or tool.get("name") not in harmless:
            continue
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict) or dialect_of(schema) != "2020-12":
            continue
        good = {**arguments.form(schema), **dict(_tuples(schema))}
        if allows(schema, good):
            older = _without(schema)
            for bad in _bad(schema, good):
                if allows(schema, bad) is False and allows(older, bad):
                    yield tool["name"], good, bad


def _properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, below in schema.get("properties", {}).items():
        if isinstance(below, dict):
            yield name, below


def _tuples(schema: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for name, below in _properties(schema):
        if prefix := below.get("prefixItems"):
            yield name, [_example(one) for one in prefix]


def _example(schema: Any) -> Any:
    options = [schema["const"]] if "const" in schema else schema.get("enum")
    return options[0] if options else EXAMPLES.get(str(schema.get("type")))


def _bad(schema: dict[str, Any], good: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for needed in schema.get("dependentRequired", {}).values():
        for name in needed:
            yield {key: value for key, value in good.items() if key != name}
    for name, values in _tuples(schema):
        for odd in ({"touchstone": True}, "touchstone"):
            yield {**good, name: [odd, *values[1:]]}
    if schema.get("unevaluatedProperties") is False:
        yield {**good, "touchstone": True}


def _without(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the keywords of 2020-12."""
    plain = {word: below for word, below in schema.items() if word not in PARTICULAR}
    for name, below in _properties(schema):
        kept = {word: one for word, one in below.items() if word not in PARTICULAR}
        plain["properties"] = {**plain["properties"], name: kept}
    return plain
