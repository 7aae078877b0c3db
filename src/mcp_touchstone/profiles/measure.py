"""What the rules of profiles measure: a closed set of checks on the lists of a server. Pure.

Only what the source of a rule is sure to mean is measured: not schemas below ``$defs``.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.profiles.rule import Rule

Found = Iterator[tuple[str, str]]
"""What is not accepted: the name of a tool (empty for the server), and what was seen, if more."""

Said = bool | str | Sequence[str]
"""What a check says of one value; false or empty if it is accepted."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a run saw of a server that profiles can measure.

    Attributes:
        revision: the revision of the lists.
        server: the name that the server gives itself.
        instructions: its instructions; empty if it has none.
        tools: the listed tools that have a name.
        more: whether the list of tools has further pages, which were not read.
        record: the record of a registry; None if none was named.
    """

    revision: str = ""
    server: str = ""
    instructions: str = ""
    tools: Sequence[Json] = ()
    more: bool = False
    record: Json | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of rule.

    Attributes:
        what: what it measures, for a table.
        find: yields what is not accepted.
        uses: which of the keys limit, pattern and words of a rule it uses.
        of_record: whether it measures the record of a registry, not the server.
    """

    what: str
    find: Callable[[ServerFacts, Rule], Found]
    uses: frozenset[str] = frozenset()
    of_record: bool = False


def _on_server(what: str, check: Callable[[ServerFacts, Rule], Said], *uses: str) -> Measure:
    return Measure(what, lambda seen, rule: _found("", check(seen, rule)), frozenset(uses))


def _on_tools(what: str, check: Callable[[Json, Rule], Said], *uses: str) -> Measure:
    def find(seen: ServerFacts, rule: Rule) -> Found:
        for tool in seen.tools:
            yield from _found(tool["name"], check(tool, rule))

    return Measure(what, find, frozenset(uses))


def _on_schemas(what: str, check: Callable[[Json, Rule], Said], *uses: str) -> Measure:
    """Check the input schema of each tool."""

    def find(tool: Json, rule: Rule) -> Said:
        schema = tool.get("inputSchema")
        return check(schema, rule) if isinstance(schema, dict) else ""

    return _on_tools(what, find, *uses)


def _on_nodes(what: str, check: Callable[[str, Json, Rule], Said], *uses: str) -> Measure:
    """Check each schema in each input schema, with its place."""

    def find(root: Json, rule: Rule) -> list[str]:
        return [
            f"{place or ROOT}: {what}" if what else place or ROOT
            for place, node in _below(root, "", DEEPEST)
            for _name, what in _found("", check(place, node, rule))
        ]

    return _on_schemas(what, find, *uses)


def _on_record(what: str, check: Callable[[Any, Rule], Said], *uses: str) -> Measure:
    """Check the members of the record that ``words`` names."""

    def find(seen: ServerFacts, rule: Rule) -> Found:
        for place, value in _of_record(seen.record or {}, rule.words):
            yield from (("", f"{place}: {said}") for _, said in _found("", check(value, rule)))

    return Measure(what, find, frozenset({*uses, "words"}), of_record=True)


def _found(name: str, said: Said) -> Found:
    if said:
        for what in ("",) if said is True else (said,) if isinstance(said, str) else said:
            yield name, str(what)


# --- checks


def _long(text: Any, rule: Rule) -> str:
    known = isinstance(text, str) and len(text) > rule.limit
    return f"{len(text)} characters" if known else ""


def _name_length(seen: ServerFacts, rule: Rule) -> Found:
    before = rule.before(seen.server)
    prefix = f" with {before!r} before it" if before else ""
    for tool in seen.tools:
        said = _long(before + tool["name"], rule)
        yield from _found(tool["name"], said and said + prefix)


def _many(seen: ServerFacts, rule: Rule) -> str:
    page = " on the first page" if seen.more else ""
    return f"{len(seen.tools)} tools{page}" if len(seen.tools) > rule.limit else ""


def _hint(tool: Json, name: str) -> Any:
    return _members(tool, "annotations").get(name)


def _unhinted(tool: Json, rule: Rule) -> list[str]:
    return [one for one in rule.words if not isinstance(_hint(tool, one), bool)]


def _annotation_title(tool: Json, _rule: Rule) -> bool:
    return not (isinstance(title := _hint(tool, "title"), str) and title)


def _keys(schema: Json, rule: Rule) -> list[str]:
    keys = _members(schema, "properties")
    return [f"argument {key!r}" for key in keys if not re.fullmatch(rule.pattern, key)]


def _draft_07(schema: Json, _rule: Rule) -> str:
    from jsonschema import Draft7Validator  # noqa: PLC0415  (only if it is measured)

    with contextlib.suppress(RecursionError):  # a schema so deep is for others to judge
        error = next(Draft7Validator(Draft7Validator.META_SCHEMA).iter_errors(schema), None)
        return "" if error is None else ".".join(map(str, error.absolute_path)) or ROOT
    return ""


def _undefined(place: str, node: Json, _rule: Rule) -> list[str]:
    known, wanted = node.get("properties", None if place else {}), node.get("required")
    if node.get("type") != "object" or not isinstance(known, dict) or not isinstance(wanted, list):
        return []
    return [repr(name) for name in wanted if isinstance(name, str) and name not in known]


def _beside(_place: str, node: Json, rule: Rule) -> str:
    others = ", ".join(sorted({*node} - {"$ref", *rule.words}))
    return f"{others} beside $ref" if others and "$ref" in node else ""


def _is_array(node: Json) -> bool:
    return node.get("type") == "array"


NO_TOOLS: Final = "no-tools"
"""The only kind of tools that is measured on a server without them."""

MEASURES: Final[dict[str, Measure]] = {
    "tool-name-characters": _on_tools(
        "characters of tool names", lambda t, r: not re.fullmatch(r.pattern, t["name"]), "pattern"
    ),
    "tool-name-length": Measure(
        "length of tool names, with the client's prefix", _name_length, frozenset({"limit"})
    ),
    "description-length": _on_tools(
        "length of descriptions", lambda t, r: _long(t.get("description"), r), "limit"
    ),
    "instructions-length": _on_server(
        "length of the instructions", lambda s, r: _long(s.instructions, r), "limit"
    ),
    NO_TOOLS: _on_server("a server that lists no tools", lambda s, _r: not s.tools),
    "tool-count": _on_server("number of tools", _many, "limit"),
    "annotation-title": _on_tools("tools without a title in their annotations", _annotation_title),
    "all-hints": _on_tools(
        "tools without one of the hints",
        lambda t, r: ", ".join(f"without {one}" for one in _unhinted(t, r)),
        "words",
    ),
    "any-hint": _on_tools(
        "tools with none of the hints", lambda t, r: _unhinted(t, r) == [*r.words], "words"
    ),
    "not-read-only": _on_tools(
        "tools that are not annotated read-only", lambda t, _r: _hint(t, "readOnlyHint") is not True
    ),
    "property-keys": _on_schemas("keys of arguments", _keys, "pattern"),
    "root-keywords": _on_schemas(
        "keywords at the root of an input schema",
        lambda s, r: ", ".join(word for word in r.words if word in s),
        "words",
    ),
    "no-properties": _on_schemas(
        "input schemas without properties", lambda s, _r: "properties" not in s
    ),
    "draft-07": _on_schemas("input schemas that are no JSON Schema of draft 7", _draft_07),
    "array-items": _on_nodes(
        "arrays without items", lambda _p, n, _r: _is_array(n) and n.get("items") in (None, False)
    ),
    "tuple-items": _on_nodes(
        "arrays of schemas as items",
        lambda _p, n, _r: _is_array(n) and isinstance(n.get("items"), list),
    ),
    "required-names": _on_nodes("required arguments that are not defined", _undefined),
    "reference-siblings": _on_nodes("keywords beside $ref", _beside, "words"),
    "record-pattern": _on_record(
        "a member of the record",
        lambda v, r: "" if re.fullmatch(r.pattern, str(v), re.DOTALL) else repr(v),
        "pattern",
    ),
    "record-length": _on_record("length of a member of the record", _long, "limit"),
}
"""Word for the key ``measures`` -> the kind."""

ROOT: Final = "the root"

DEEPEST: Final = 60
"""Depth at which the search of a schema ends."""


def _below(node: Any, place: str, depth: int) -> Iterator[tuple[str, Json]]:
    if not isinstance(node, dict) or not depth:
        return
    yield place, node
    inner = [
        (key, value)
        for word in ("properties", "patternProperties", "dependencies")
        for key, value in _members(node, word).items()
    ]
    for word in _SCHEMAS:
        value = node.get(word)
        inner += [(word, one) for one in (value if isinstance(value, list) else [value])]
    for name, value in inner:
        yield from _below(value, f"{place}.{name}".lstrip("."), depth - 1)


_SCHEMAS: Final = (
    "items",
    "additionalProperties",
    "anyOf",
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
)
"""Keywords whose value is a schema, or a list of them."""


def _members(node: Json, word: str) -> dict[str, Any]:
    found = node.get(word)
    return found if isinstance(found, dict) else {}


def _of_record(record: Json, words: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the named members; ``packages.version`` is one of each package."""
    for word in words:
        outer, dot, inner = word.partition(".")
        if not dot and word in record:
            yield word, record[word]
        rows = record.get(outer) if dot else ()
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            if isinstance(row, dict) and inner in row:
                yield f"{outer}[{number}].{inner}", row[inner]
