"""Arguments generated from schemas are valid, deterministic and point into the world."""

import re
import warnings
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_touchstone.samples import from_regex, from_schema, uri_template
from mcp_touchstone.samples.from_regex import text_for
from mcp_touchstone.samples.from_schema import Places, candidates, form
from tests.cases import cases

WORLD = Places("/world/root", "notes/today.txt", "one\n")


def schema(required: str | None = None, **properties: Any) -> dict[str, Any]:
    names = list(properties) if required is None else required.split()
    return {"type": "object", "properties": properties, "required": names}


def first(**properties: Any) -> dict[str, Any]:
    return candidates(schema(**properties), WORLD)[0]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"const": 7}, 7),
        ({"type": "string", "default": "as is"}, "as is"),
        ({"type": "string", "examples": ["this", "that"]}, "this"),
        ({"enum": ["New York", "Chicago"]}, "New York"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "number", "maximum": -2}, -2),
        ({"type": "number", "exclusiveMaximum": 1}, 0.5),
        ({"type": "integer", "minimum": 3, "multipleOf": 5}, 5),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True},
            [1, 2],
        ),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2}, ["a", "b"]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "string", "format": "email"}, "user@example.com"),
        ({"type": "string", "format": "date"}, "2026-01-02"),
        ({"type": "string", "pattern": r"^\d{4}-[A-F]{2}$"}, "1111-AA"),
        ({"type": "string", "minLength": 12}, "hellohellohe"),
        ({"type": "string", "maxLength": 2}, "he"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"oneOf": [{"const": "red", "title": "Red"}, {"const": "blue"}]}, "red"),
        ({"allOf": [{"type": "integer"}, {"minimum": 9}]}, 9),
        ({"$ref": "#/$defs/none"}, "hello"),
        ({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"x": 1}),
        ({}, "hello"),
        (True, "hello"),
    ],
)
def test_generated_value_fits_its_schema(kind: Any, value: Any) -> None:
    made = first(text=kind)

    assert made == {"text": value}
    if kind != {"$ref": "#/$defs/none"}:
        jsonschema.validate(made, schema(text=kind))


def test_only_required_arguments_are_generated() -> None:
    made = candidates(schema("a", a={"type": "string"}, b={"type": "string"}))

    assert made == [{"a": "hello"}]


@pytest.mark.parametrize("nothing", [{}, {"type": "object"}, {"type": "object", "required": 5}])
def test_tool_without_arguments_gets_an_empty_object(nothing: Any) -> None:
    assert candidates({"type": "object", **nothing}) == [{}]


@pytest.mark.parametrize("odd", [None, [], "x", {"type": "array"}])
def test_invalid_schema_gives_no_candidate(odd: Any) -> None:
    assert candidates(odd) == []


def test_recursive_definitions_are_resolved() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}
    whole = {
        "type": "object",
        "properties": {"op": {"$ref": "#/$defs/op"}, "tree": {"$ref": "#/$defs/tree"}},
        "required": ["op", "tree"],
        "$defs": {"op": {"enum": ["sum"]}, "tree": {**tree, "required": ["next"]}},
    }

    assert candidates(whole)[0]["op"] == "sum"


def test_path_candidates_are_distinct_paths_in_the_world() -> None:
    made = candidates(schema(path={"type": "string"}), WORLD)

    assert [one["path"] for one in made] == [
        "/world/root/notes/today.txt",
        "notes/today.txt",
        "/world/root",
        ".",
    ]


@pytest.mark.parametrize("name", ["repo_path", "rootDir", "directory", "cwd"])
def test_folder_argument_gets_a_folder_first(name: str) -> None:
    assert first(**{name: {"type": "string"}}) == {name: "/world/root"}


@pytest.mark.parametrize("name", ["path", "filePath", "file_name", "FILE"])
def test_file_argument_gets_a_file_first(name: str) -> None:
    assert first(**{name: {"type": "string"}})[name] == WORLD.absolute


def test_path_list_contains_one_path() -> None:
    paths = {"type": "array", "items": {"type": "string"}, "minItems": 1}

    assert first(paths=paths) == {"paths": [WORLD.absolute]}


def test_url_argument_gets_a_file_url_in_the_world() -> None:
    made = first(url={"type": "string", "format": "uri"})

    assert made == {"url": "file:///world/root/notes/today.txt"}


@cases(("timezone", "UTC"), ("source_timezone", "UTC"), ("userId", "1"))
def test_known_argument_names_get_fitting_values(name: str, value: str) -> None:
    assert first(**{name: {"type": "string"}}) == {name: value}


def test_duration_argument_is_short_unless_slowed() -> None:
    slow = schema("", duration={"type": "number", "default": 10}, steps={"type": "number"})

    assert candidates(slow) == [{"duration": 0.1}]
    assert from_schema.slowed(slow, {"a": 1}, 2.0) == {"a": 1, "duration": 2}


def test_duration_respects_its_unit_and_bounds() -> None:
    assert candidates(schema("", delay_ms={"type": "integer"})) == [{"delay_ms": 100}]
    longer = schema("", delayMs={"type": "integer", "maximum": 1500})
    assert from_schema.slowed(longer, {}, 2.0) == {"delayMs": 1500}
    assert from_schema.slowed(schema(a={"type": "string"}), {}, 2.0) is None


def test_form_fills_every_field_and_agrees() -> None:
    wanted = schema(
        "confirm",
        confirm={"type": "boolean", "default": False},
        age={"type": "integer", "minimum": 18, "maximum": 99},
        mail={"type": "string", "format": "email"},
        colours={
            "type": "array",
            "minItems": 2,
            "items": {"anyOf": [{"const": "r"}, {"const": "g"}]},
        },
        shade={"type": "string", "oneOf": [{"const": "dark", "title": "Dark"}]},
    )

    content = form(wanted)

    assert content == {
        "confirm": True,
        "age": 18,
        "mail": "user@example.com",
        "colours": ["r", "g"],
        "shade": "dark",
    }
    jsonschema.validate(content, wanted)
    assert form("nonsense") == {}


def test_incomplete_omits_a_required_member_without_default() -> None:
    both = schema(a={"type": "string", "default": "x"}, b={"type": "string"})

    assert from_schema.incomplete(both, {"a": "1", "b": "2"}) == ("b", {"a": "1"})
    assert from_schema.incomplete(schema(""), {}) is None


def test_mistyped_replaces_a_plain_value_with_an_object() -> None:
    mixed = schema(a={"type": "array"}, b={"type": "integer"})

    found = from_schema.mistyped(mixed, {"a": [], "b": 2})

    assert found == ("b", {"a": [], "b": {"touchstone": True}})
    assert from_schema.mistyped(schema(a={"type": "array"}), {"a": []}) is None


SCALARS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": st.integers(-50, 0),
            "maximum": st.integers(1, 50),
            "multipleOf": st.sampled_from([1, 0.5]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 3), "maxLength": st.integers(3, 9)},
    ),
    st.fixed_dictionaries({"enum": st.lists(st.text(), min_size=1, max_size=3)}),
    st.just({"type": "boolean"}),
)
NAMES = st.sampled_from(["path", "seconds", "text", "repoDir", "wait_ms", "id", "x"])
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda p: {"type": "object", "properties": p, "required": list(p)},
            st.dictionaries(NAMES, inner, max_size=3),
        ),
    ),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, SCHEMAS, max_size=4))
def test_generated_arguments_are_deterministic_and_valid(properties: dict[str, Any]) -> None:
    wanted = schema(**properties)
    places = Places("/r", "f", "t")

    made = candidates(wanted, places)

    assert made == candidates(wanted, places)
    assert 1 <= len(made) <= from_schema.CANDIDATES
    short = {"maxLength"} & set(re.findall(r"\w+", repr(wanted)))
    for one in [] if short else made:
        jsonschema.validate(one, wanted)


def found(pattern: str, text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the style of the pattern
        return re.search(pattern, text) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "abc",
        "^abc$",
        r"^\d{3}$",
        r"^[a-z][a-z0-9-]*$",
        r"^(foo|bar)+$",
        r"^[^a-z]{2}$",
        r"^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$",
        r"^\w+@\w+\.\w+$",
        r"^#[0-9A-Fa-f]{6}$",
        r"^a?b*c+$",
        r"^[\]\\]+$",
        r"^\x41\u0042$",
        r"^(?P<year>\d{4})-(?:0[1-9]|1[0-2])$",
        r"^\S+\.py$",
        r"^a{2,5}?$",
        r"^[^\\/]+$",
        r"^v\d+(\.\d+)*$",
        r"[[]",
    ],
)
def test_supported_pattern_gets_a_matching_text(pattern: str) -> None:
    text = text_for(pattern)

    assert text is not None
    assert found(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [r"(?=a)b", r"(a)\1", "(", "[", "*", r"a{9999}", r"^\p{L}+$", "[[", "[]a&&", "[^]a&&"],
)
def test_unsupported_pattern_gets_no_text(pattern: str) -> None:
    assert text_for(pattern) is None


@cases("(a+)+$", "(a|aa){40}9", "(a|a)*b", "a{1000}b*c*\\B9", ".*.*.*=.*", ".*=.*")
def test_pattern_that_may_need_many_steps_is_not_matched(
    monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """A match cannot be stopped; a search begins at each place of the text."""
    plain = from_regex._steps

    class Compiled:
        def __init__(self, pattern: str) -> None:
            self.pattern = pattern

        def search(self, text: str) -> object:
            return pytest.fail(f"{len(text)} characters were searched")

    monkeypatch.setattr(from_regex, "_compiled", Compiled)
    monkeypatch.setattr(from_regex, "_steps", lambda one, length: plain(one, max(length, 1000)))
    text_for.cache_clear()

    assert text_for(pattern) is not None
    text_for.cache_clear()


def test_deep_groups_are_not_compiled() -> None:
    assert text_for("(" * 200 + "a" + ")" * 200) is None


def test_references_that_multiply_are_followed_in_bounded_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A megabyte of schema took minutes."""
    plain, merged = from_schema._both, []

    def counted(first: Any, second: Any) -> Any:
        merged.append(len(first.get("properties", ())))
        return plain(first, second)

    monkeypatch.setattr(from_schema, "_both", counted)
    wide: list[Any] = [{"properties": {f"x{m}_{n}": {} for n in range(100)}} for m in range(100)]
    names = [f"p{n}" for n in range(1000)]
    given = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/wide"} for name in names},
        "required": names,
        "$defs": {"wide": {"allOf": wide}},
    }

    assert len(candidates(given)[0]) == 1000
    assert sum(merged) < 2_000_000


@given(st.text(alphabet="ab1[](){}|*+?.^$\\dw-,", max_size=12))
def test_any_pattern_gets_a_matching_text_or_none(pattern: str) -> None:
    text = text_for(pattern)

    assert text is None or found(pattern, text)


VALUES = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": "1024", "empty": ""}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"),
        ("X{#var}", "X#value"),
        ("{x,hello}", "1024,Hello%20World%21"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("X{.var,x}", "X.value.1024"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,empty}", ";x=1024;empty"),
        ("{?x,empty}", "?x=1024&empty="),
        ("{var:3}", "val"),
        ("{undef}", ""),
        ("{/var*}", "/value"),
        ("file:///{+path}", "file:////foo/bar"),
        ("demo://ü/{var}", "demo://ü/value"),
        ("plain:one", "plain:one"),
    ],
)
def test_uri_template_is_expanded_as_in_the_rfc(template: str, uri: str) -> None:
    assert uri_template.expand(template, VALUES) == uri


def test_template_variables_are_listed_once_in_order() -> None:
    assert uri_template.variables("a://{b}/{+c,b}{?d*}") == ["b", "c", "d"]


@pytest.mark.parametrize(
    "template",
    ["a{", "a}", "{}", "{a b}", "{=a}", "{a:0}", "{a:99999}", "{,a}", "a b", "a<b", "%zz"],
)
def test_invalid_uri_template_is_refused(template: str) -> None:
    assert uri_template.variables(template) == []
    with pytest.raises(ValueError, match=r"."):
        uri_template.parts(template)


ANY_SCALAR = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["null", "integer"])
)
ANY_JSON = st.recursive(
    ANY_SCALAR | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("needed", ["", "delay"])
@pytest.mark.parametrize(
    "kind",
    [
        ["integer", "null"],
        ["null", "number"],
        ["string", "null"],
        [],
        [[]],
        [{}],
        {},
        None,
        7,
        True,
        "integer",
        "no-such-type",
    ],
)
def test_any_type_of_a_duration_property_gives_arguments(kind: Any, needed: str) -> None:
    made = candidates(schema(needed, delay={"type": kind}), WORLD)
    assert made
    for good in made:
        from_schema.mistyped(schema(needed, delay={"type": kind}), good)
        from_schema.slowed(schema(needed, delay={"type": kind}), good, 2)


@given(
    st.dictionaries(
        st.sampled_from(
            ["type", "minimum", "exclusiveMaximum", "multipleOf", "enum", "minLength", "pattern"]
        ),
        ANY_JSON,
    ),
    st.sampled_from(["delay", "path", "text"]),
)
def test_any_json_in_a_property_schema_raises_nothing(kind: dict[str, Any], name: str) -> None:
    given_schema = schema(None, **{name: kind})
    for good in candidates(given_schema, WORLD):
        from_schema.mistyped(given_schema, good)
        from_schema.slowed(given_schema, good, 2)


@cases(
    ({"type": "number"}, {"wait": 0.5, "a": 1}, {"wait": 2.0, "a": 1}),
    ({"type": "number", "maximum": 2}, {"wait": 0.5}, {"wait": 2.0}),
    ({"type": "number", "maximum": 1}, {"wait": 0.5}, None),
    ({"type": "number"}, {}, None),
    ({"type": "string"}, {"wait": "1s"}, None),
)
def test_duration_is_multiplied_within_its_bounds(
    schema: dict[str, Any], given: dict[str, Any], longer: dict[str, Any] | None
) -> None:
    tool = {"type": "object", "properties": {"a": {"type": "integer"}, "wait": schema}}
    assert from_schema.prolonged(tool, given, 4) == longer
