"""What the rules of profiles measure: a closed set of functions on lists of a server. Pure.

Each function yields what is over the limit: the name of a tool (empty for the whole server), and
a few words on what was seen. Only what the source of a rule is sure to mean is measured: schemas
below ``$defs`` are not searched.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.profiles.rule import Rule

Found = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a run saw of a server that profiles can measure.

    Attributes:
        revision: the revision of the lists.
        server: the name that the server gives itself.
        instructions: its instructions; empty if it has none.
        tools: the listed tools that have a name.
        more: whether the list of tools has further pages, which were not read.
        results: name of a tool -> characters of its longest result.
        record: the record of a registry; None if none was named.
    """

    revision: str = ""
    server: str = ""
    instructions: str = ""
    tools: Sequence[Mapping[str, Any]] = ()
    more: bool = False
    results: Mapping[str, int] = field(default_factory=dict)
    record: Mapping[str, Any] | None = None


Find = Callable[[Seen, Rule], Found]


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of rule.

    Attributes:
        what: what it measures, for a table.
        find: yields what breaks a rule of this kind.
        uses: which of the keys limit, pattern and words of a rule it uses.
        of_record: whether it measures the record of a registry, not the server.
    """

    what: str
    find: Find
    uses: frozenset[str] = frozenset()
    of_record: bool = False


MEASURES: Final[dict[str, Measure]] = {}
"""Word for the key ``measures`` -> the kind."""


def _measure(name: str, what: str, *uses: str, of_record: bool = False) -> Callable[[Find], Find]:
    def add(find: Find) -> Find:
        MEASURES[name] = Measure(what, find, frozenset(uses), of_record)
        return find

    return add


# --- names and texts


@_measure("tool-name-characters", "characters of tool names", "pattern")
def _tool_name_characters(seen: Seen, rule: Rule) -> Found:
    for tool in seen.tools:
        if not re.fullmatch(rule.pattern, tool["name"]):
            yield tool["name"], ""


@_measure("tool-name-length", "length of tool names, with the client's prefix", "limit")
def _tool_name_length(seen: Seen, rule: Rule) -> Found:
    before = rule.before(seen.server)
    for tool in seen.tools:
        if len(before + tool["name"]) > rule.limit:
            prefix = f" with {before!r} before it" if before else ""
            yield tool["name"], f"{len(before + tool['name'])} characters{prefix}"


@_measure("description-length", "length of descriptions", "limit")
def _description_length(seen: Seen, rule: Rule) -> Found:
    for tool in seen.tools:
        text = tool.get("description")
        if isinstance(text, str) and len(text) > rule.limit:
            yield tool["name"], f"{len(text)} characters"


@_measure("instructions-length", "length of the instructions", "limit")
def _instructions_length(seen: Seen, rule: Rule) -> Found:
    if len(seen.instructions) > rule.limit:
        yield "", f"{len(seen.instructions)} characters"


@_measure("tool-count", "number of tools", "limit")
def _tool_count(seen: Seen, rule: Rule) -> Found:
    if len(seen.tools) > rule.limit:
        yield "", f"{len(seen.tools)} tools{' on the first page' if seen.more else ''}"


@_measure("result-length", "length of results", "limit")
def _result_length(seen: Seen, rule: Rule) -> Found:
    for name, length in seen.results.items():
        if length > rule.limit:
            yield name, f"{length} characters"


# --- titles and hints


@_measure("title", "tools without a title")
def _title(seen: Seen, _rule: Rule) -> Found:
    for tool in seen.tools:
        if not any(
            isinstance(one, str) and one for one in (tool.get("title"), _hint(tool)("title"))
        ):
            yield tool["name"], ""


@_measure("all-hints", "tools without one of the hints", "words")
def _all_hints(seen: Seen, rule: Rule) -> Found:
    for tool in seen.tools:
        missing = [one for one in rule.words if not isinstance(_hint(tool)(one), bool)]
        if missing:
            yield tool["name"], f"without {', '.join(missing)}"


@_measure("any-hint", "tools with none of the hints", "words")
def _any_hint(seen: Seen, rule: Rule) -> Found:
    for tool in seen.tools:
        if not any(isinstance(_hint(tool)(one), bool) for one in rule.words):
            yield tool["name"], ""


@_measure("not-read-only", "tools that are not annotated read-only")
def _not_read_only(seen: Seen, _rule: Rule) -> Found:
    for tool in seen.tools:
        if _hint(tool)("readOnlyHint") is not True:
            yield tool["name"], ""


def _hint(tool: Mapping[str, Any]) -> Callable[[str], Any]:
    annotations = tool.get("annotations")
    return annotations.get if isinstance(annotations, dict) else lambda _name: None


# --- input schemas


@_measure("property-keys", "keys of arguments", "pattern")
def _property_keys(seen: Seen, rule: Rule) -> Found:
    for tool, schema in _schemas(seen):
        for key in _members(schema, "properties"):
            if not re.fullmatch(rule.pattern, key):
                yield tool, f"argument {key!r}"


@_measure("root-keywords", "keywords at the root of an input schema", "words")
def _root_keywords(seen: Seen, rule: Rule) -> Found:
    for tool, schema in _schemas(seen):
        used = [word for word in rule.words if word in schema]
        if used:
            yield tool, f"{', '.join(used)} at the root"


@_measure("no-properties", "input schemas without properties")
def _no_properties(seen: Seen, _rule: Rule) -> Found:
    for tool, schema in _schemas(seen):
        if "properties" not in schema:
            yield tool, ""


@_measure("draft-07", "input schemas that are no JSON Schema of draft 7")
def _draft_07(seen: Seen, _rule: Rule) -> Found:
    from jsonschema import Draft7Validator  # noqa: PLC0415  (only if it is measured)

    judge = Draft7Validator(Draft7Validator.META_SCHEMA)
    for tool, schema in _schemas(seen):
        with contextlib.suppress(RecursionError):  # a schema so deep is for others to judge
            error = next(judge.iter_errors(schema), None)
            if error is not None:
                yield tool, ".".join(map(str, error.absolute_path)) or ROOT


@_measure("array-items", "arrays without items")
def _array_items(seen: Seen, _rule: Rule) -> Found:
    for tool, place, node in _nodes(seen):
        if node.get("type") == "array" and node.get("items") in (None, False):
            yield tool, place


@_measure("tuple-items", "arrays of schemas as items")
def _tuple_items(seen: Seen, _rule: Rule) -> Found:
    for tool, place, node in _nodes(seen):
        if node.get("type") == "array" and isinstance(node.get("items"), list):
            yield tool, place


@_measure("required-names", "required arguments that are not defined")
def _required_names(seen: Seen, _rule: Rule) -> Found:
    for tool, place, node in _nodes(seen):
        known = node.get("properties", {} if place == ROOT else None)
        wanted = node.get("required")
        if node.get("type") == "object" and isinstance(known, dict) and isinstance(wanted, list):
            for name in wanted:
                if isinstance(name, str) and name not in known:
                    yield tool, f"{place}: {name!r}"


@_measure("reference-siblings", "keywords beside $ref", "words")
def _reference_siblings(seen: Seen, rule: Rule) -> Found:
    for tool, place, node in _nodes(seen):
        beside = sorted({*node} - {"$ref", *rule.words}) if "$ref" in node else []
        if beside:
            yield tool, f"{place}: {', '.join(beside)} beside $ref"


ROOT: Final = "the root"

DEEPEST: Final = 60
"""Depth at which the search of a schema ends."""


def _schemas(seen: Seen) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in seen.tools:
        if isinstance(tool.get("inputSchema"), dict):
            yield tool["name"], tool["inputSchema"]


def _nodes(seen: Seen) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each schema in each input schema: the tool, its place, the schema."""
    for tool, schema in _schemas(seen):
        for place, node in _below(schema, "", DEEPEST):
            yield tool, place or ROOT, node


def _below(node: Any, place: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(node, dict) or not depth:
        return
    yield place, node
    for word in ("properties", "patternProperties", "dependencies"):
        for key, value in _members(node, word).items():
            yield from _below(value, f"{place}.{key}".lstrip("."), depth - 1)
    for word in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
        values = node.get(word)
        for value in values if isinstance(values, list) else [values]:
            yield from _below(value, f"{place}.{word}".lstrip("."), depth - 1)
    for word in ("anyOf", "allOf", "oneOf"):
        values = node.get(word)
        for value in values if isinstance(values, list) else []:
            yield from _below(value, f"{place}.{word}".lstrip("."), depth - 1)


def _members(node: Mapping[str, Any], word: str) -> dict[str, Any]:
    found = node.get(word)
    return found if isinstance(found, dict) else {}


# --- records of a registry


@_measure("record-pattern", "a member of the record", "pattern", "words", of_record=True)
def _record_pattern(seen: Seen, rule: Rule) -> Found:
    for place, value in _of_record(seen, rule):
        if not (isinstance(value, str) and re.fullmatch(rule.pattern, value, re.DOTALL)):
            yield "", f"{place}: {value!r}"


@_measure("record-length", "length of a member of the record", "limit", "words", of_record=True)
def _record_length(seen: Seen, rule: Rule) -> Found:
    for place, value in _of_record(seen, rule):
        if isinstance(value, str) and len(value) > rule.limit:
            yield "", f"{place}: {len(value)} characters"


def _of_record(seen: Seen, rule: Rule) -> Iterator[tuple[str, Any]]:
    """Yield the members that a rule names; ``packages.version`` is one of each package."""
    record = seen.record or {}
    for word in rule.words:
        outer, dot, inner = word.partition(".")
        if not dot and word in record:
            yield word, record[word]
        rows = record.get(outer) if dot else ()
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            if isinstance(row, dict) and inner in row:
                yield f"{outer}[{number}].{inner}", row[inner]
