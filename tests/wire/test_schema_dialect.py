"""JSON schemas of servers: dialect, meta-schema violations, and allowed values."""

import json
import random
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import pytest
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator

from mcp_touchstone.wire.framing import excess
from mcp_touchstone.wire.schema_dialect import (
    DIALECTS,
    LONGEST,
    MOST_REFERENCES,
    allows,
    dangling,
    dialect_of,
    violations,
)
from tests.cases import cases
from tests.schema_cases import spoilt

DRAFT_07: Final = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize("name", DIALECTS)
def test_dialect_is_recognized_by_its_uri(name: str) -> None:
    address = DIALECTS[name]

    assert dialect_of({"$schema": address}) == name
    assert dialect_of({"$schema": address + "#"}) == name
    assert dialect_of({"$schema": address.replace("http://", "https://")}) == name


@cases(
    ({}, "2020-12"),
    ({"$schema": "https://a.example/dialect"}, ""),
    ({"$schema": "draft-07"}, ""),
    ({"$schema": 7}, ""),
    ({"$schema": None}, ""),
    (True, ""),
    ([], ""),
)
def test_schema_without_dialect_uses_the_latest(schema: Any, name: str) -> None:
    assert dialect_of(schema) == name


@cases(
    ({"type": "object", "properties": {"a": {"type": "string"}, "b": True}}, []),
    ({"x-own": 5, "format": "phone", "$ref": "https://a.example/s.json"}, []),
    ({"type": "strin"}, ["type"]),
    ({"type": ["string", "strin"]}, ["type[1]"]),
    ({"properties": {"a b": {"minLength": -1}}}, ['properties["a b"].minLength']),
    ({"items": [{}]}, ["items"]),
    ({"$schema": DRAFT_07, "items": [{}]}, []),
    ({"$schema": DRAFT_07, "items": [5]}, ["items[0]"]),
    ({"$schema": DRAFT_07.replace("7", "4"), "exclusiveMinimum": True, "minimum": 1}, []),
    ({"exclusiveMinimum": True}, ["exclusiveMinimum"]),
    ({"required": ["a", "a"]}, ["required"]),
    ({"required": "a"}, ["required"]),
    ({"$defs": {"a": {"anyOf": []}}}, ["$defs.a.anyOf"]),
    ({"$schema": "https://a.example/dialect", "type": 5}, []),
    (None, []),
)
def test_meta_schema_violations_are_located(schema: Any, found: list[str]) -> None:
    assert [place for place, _ in violations(schema)] == found


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dialect", ["draft-07", "2020-12"])
def test_plain_schema_has_no_violation(dialect: str, seed: int) -> None:
    """The library is not asked about a schema that looks plain; it would find nothing."""
    validator = {"draft-07": Draft7Validator, "2020-12": Draft202012Validator}[dialect]
    plain = {
        "type": "object",
        "properties": {"a": {"type": "number", "minimum": 1}, "b": {"enum": [1]}, "c": True},
        "required": ["a"],
        "additionalProperties": {"items": {"type": "string", "default": None}},
    }
    assert violations(plain, dialect) == ()

    for schema in (plain, *spoilt(plain, 25, str(seed))):
        if violations(schema, dialect) == ():
            assert not [*validator(validator.META_SCHEMA).iter_errors(schema)]


def test_schema_can_be_checked_against_any_dialect() -> None:
    assert violations({"items": [{}]}, "draft-04") == ()
    assert violations({"items": [{}]}, "2020-12") != ()


@pytest.mark.parametrize("official", [Draft201909Validator, Draft202012Validator])
def test_bundled_meta_schema_agrees_with_the_official_one(official: Any) -> None:
    validator = official(official.META_SCHEMA)
    dialect = dialect_of(official.META_SCHEMA)
    dice = random.Random(5)  # noqa: S311  (nothing secret: the same schemas each time)
    words = [word for word in _words() if word != "$schema"]
    seen = set()
    for _ in range(1500):
        schema = _schema(dice, words, 0)
        valid = validator.is_valid(schema)
        seen.add(valid)
        assert bool(violations(schema, dialect)) != valid, schema
    assert seen == {True, False}


WRAPPERS: Final[dict[str, Callable[[Any], Any]]] = {
    "properties": lambda inner: {"properties": {"p": inner}},
    "items": lambda inner: {"items": inner},
    "anyOf": lambda inner: {"anyOf": [inner, True]},
    "allOf": lambda inner: {"allOf": [inner]},
    "not": lambda inner: {"not": inner},
    "enum": lambda inner: {"enum": [inner]},
    "dependencies": lambda inner: {"dependencies": {"p": inner}},
}


@pytest.mark.parametrize("word", WRAPPERS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_schema_of_the_greatest_depth_is_checked(dialect: str, word: str) -> None:
    schema: Any = {"type": 5}
    while excess(json.dumps(WRAPPERS[word](schema))) is None:
        schema = WRAPPERS[word](schema)

    assert (violations(schema, dialect) == ()) is (word == "enum")


@cases(
    {"items": {"$ref": "#"}},
    {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"items": {"$ref": "#"}}]}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"unevaluatedItems": {"$ref": "#"}, "not": {"not": {"$ref": "#/not/not"}}},
)
def test_endless_references_end_before_the_stack(schema: Any) -> None:
    value: Any = 5
    while excess(json.dumps([value])) is None:
        value = [value]

    assert allows(schema, value) is None


def test_schema_that_may_not_be_whole_decides_nothing() -> None:
    nested: Any = {"type": "string"}
    for _ in range(60):
        nested = {"not": nested}

    assert allows(nested, 5) is False
    for _ in range(60):
        nested = {"not": nested}
    assert allows(nested, 5) is None


def _words() -> list[str]:
    from jsonschema_specifications import (  # type: ignore[import-untyped]  # noqa: PLC0415
        REGISTRY,
    )

    names = ("core", "applicator", "unevaluated", "validation", "meta-data", "content")
    base = DIALECTS["2020-12"].removesuffix("schema") + "meta/"
    return [word for name in names for word in REGISTRY.contents(base + name)["properties"]]


def _schema(dice: random.Random, words: list[str], depth: int) -> dict[str, Any]:
    values: list[Any] = [
        None,
        5,
        -1,
        1.5,
        "x",
        "string",
        True,
        [],
        {},
        ["a"],
        ["a", "a"],
        {"a": {}},
        [{}],
    ]
    made: dict[str, Any] = {}
    for word in dice.sample(words, dice.randint(0, 3)):
        made[word] = dice.choice(values)
        if depth < 3 and dice.random() < 0.4:
            below = _schema(dice, words, depth + 1)
            made[word] = dice.choice([below, {"p": below}, [below]])
    return made


def test_expensive_schema_is_not_checked() -> None:
    wide = {"properties": {f"p{n}": {"type": 5} for n in range(LONGEST // 8)}}
    twice = {"$schema": DRAFT_07, "enum": [{"n": n} for n in range(20_000)]}
    before = time.monotonic()

    assert violations(wide) == ()
    assert violations(twice) == ()
    assert time.monotonic() - before < 20


@cases(
    ({"prefixItems": [{"type": "string"}]}, [5], False),
    ({"prefixItems": [{"type": "string"}]}, ["a", 5], True),
    ({"$schema": DRAFT_07, "items": [{"type": "string"}]}, [5], False),
    ({"$schema": DRAFT_07, "prefixItems": [{"type": "string"}]}, [5], True),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, 5, False),
    ({"$ref": "https://a.example/schema.json"}, 5, None),
    ({"$ref": "#"}, 5, None),
    ({"$schema": "https://a.example/dialect"}, 5, None),
    ({"type": "strin"}, 5, None),
    ({"patternProperties": {"(a+)+$": {}}, "additionalProperties": False}, {"a": 1}, None),
    ({"pattern": "(a+)+$"}, "a" * 60 + "b", True),
    ({"multipleOf": 3}, 1e999, False),
    (True, 5, None),
)
def test_schema_allows_or_refuses_a_value(schema: Any, value: Any, allowed: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the library warns before it fetches anything
        assert allows(schema, value) is allowed


@cases(
    ({"items": {"$ref": "#/$defs/Place"}}, ["#/$defs/Place"]),
    ({"items": {"$ref": "#/$defs/Place"}, "$defs": {"Place": {}}}, []),
    ({"items": {"$ref": "#/$defs/a~1b%20c"}, "$defs": {"a/b c": {}}}, []),
    ({"items": {"$ref": "#place"}, "$defs": {"Place": {"$anchor": "place"}}}, []),
    ({"items": {"$ref": "#place"}, "$defs": {"Place": {"$anchor": "places"}}}, ["#place"]),
    ({"items": {"$ref": "#"}, "$defs": {"a": {"$ref": ""}}}, []),
    ({"items": {"$ref": "https://a.example/schema.json#/x"}}, []),
    ({"properties": {"$ref": {"default": {"$ref": "#/x"}, "const": {"$ref": "#/x"}}}}, []),
    ({"$id": "https://a.example/s", "items": {"$ref": "s#/x"}, "not": {"$ref": "t#/x"}}, ["s#/x"]),
    ({"$defs": {"a": {"$id": "b", "$defs": {"c": {}}}}, "items": {"$ref": "b#/$defs/c"}}, []),
    ({"$schema": DRAFT_07, "items": {"$ref": "#/definitions/x"}}, ["#/definitions/x"]),
    ({"$schema": "https://a.example/dialect", "items": {"$ref": "#/x"}}, []),
    ({"type": 5, "items": {"$ref": "#/x"}}, []),
    ({"items": {"$ref": "//[::"}}, []),
    ({"$id": "//[::", "items": {"$ref": "#/x"}}, []),
    (True, []),
    (None, []),
)
def test_references_into_the_schema_that_lead_nowhere_are_found(
    schema: Any, found: list[str]
) -> None:
    assert [*dangling(schema)] == found


def test_number_of_followed_references_is_limited() -> None:
    below = {f"p{number}": {"$ref": "#/$defs/a"} for number in range(MOST_REFERENCES)}
    schema = {"properties": {"last": {"$ref": "#/x"}, **below}, "$defs": {"a": {}}}

    assert dangling({"properties": {"last": {"$ref": "#/x"}}}) == ("#/x",)
    assert dangling(schema) == ()
