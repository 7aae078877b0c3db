"""Arguments made from schemas: they fit, they never change, and paths point into the world."""

import re
import warnings
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_touchstone import arguments, uri_template
from mcp_touchstone.arguments import Places, candidates, form
from mcp_touchstone.patterns import text_for

WORLD = Places("/world/root", "notes/today.txt", "one\n")


def schema(required: str | None = None, **properties: Any) -> dict[str, Any]:
    names = list(properties) if required is None else required.split()
    return {"type": "object", "properties": properties, "required": names}


def first(**properties: Any) -> dict[str, Any]:
    return candidates(schema(**properties), WORLD)[0]


# --- one value


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
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True},
         [1, 2]),
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
)  # fmt: skip
def test_a_value_fits_its_schema(kind: Any, value: Any) -> None:
    made = first(text=kind)

    assert made == {"text": value}
    if kind != {"$ref": "#/$defs/none"}:
        jsonschema.validate(made, schema(text=kind))


def test_only_what_is_required_is_given() -> None:
    made = candidates(schema("a", a={"type": "string"}, b={"type": "string"}))

    assert made == [{"a": "hello"}]


@pytest.mark.parametrize("nothing", [{}, {"type": "object"}, {"type": "object", "required": 5}])
def test_a_tool_without_arguments_gets_none(nothing: Any) -> None:
    assert candidates({"type": "object", **nothing}) == [{}]


@pytest.mark.parametrize("odd", [None, [], "x", {"type": "array"}])
def test_a_schema_that_is_none_gives_no_candidate(odd: Any) -> None:
    assert candidates(odd) == []


def test_definitions_inside_the_schema_are_followed_round_circles_too() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}
    whole = {
        "type": "object",
        "properties": {"op": {"$ref": "#/$defs/op"}, "tree": {"$ref": "#/$defs/tree"}},
        "required": ["op", "tree"],
        "$defs": {"op": {"enum": ["sum"]}, "tree": {**tree, "required": ["next"]}},
    }

    assert candidates(whole)[0]["op"] == "sum"


# --- what a name says


def test_paths_point_into_the_world_and_every_candidate_at_another_place() -> None:
    made = candidates(schema(path={"type": "string"}), WORLD)

    assert [one["path"] for one in made] == [
        "/world/root/notes/today.txt", "notes/today.txt", "/world/root", ".",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["repo_path", "rootDir", "directory", "cwd"])
def test_a_folder_is_tried_first_where_one_is_asked_for(name: str) -> None:
    assert first(**{name: {"type": "string"}}) == {name: "/world/root"}


@pytest.mark.parametrize("name", ["path", "filePath", "file_name", "FILE"])
def test_a_file_is_tried_first_where_one_is_asked_for(name: str) -> None:
    assert first(**{name: {"type": "string"}})[name] == WORLD.absolute


def test_lists_of_paths_hold_one() -> None:
    paths = {"type": "array", "items": {"type": "string"}, "minItems": 1}

    assert first(paths=paths) == {"paths": [WORLD.absolute]}


def test_an_address_is_one_of_the_world_and_not_of_the_internet() -> None:
    made = first(url={"type": "string", "format": "uri"})

    assert made == {"url": "file:///world/root/notes/today.txt"}


@pytest.mark.parametrize(
    ("name", "value"), [("timezone", "UTC"), ("source_timezone", "UTC"), ("userId", "1")]
)
def test_a_few_names_are_known(name: str, value: str) -> None:
    assert first(**{name: {"type": "string"}}) == {name: value}


def test_a_tool_that_takes_a_duration_is_asked_for_a_short_one() -> None:
    slow = schema("", duration={"type": "number", "default": 10}, steps={"type": "number"})

    assert candidates(slow) == [{"duration": 0.1}]
    assert arguments.slowed(slow, {"a": 1}, 2.0) == {"a": 1, "duration": 2}


def test_a_duration_keeps_its_unit_and_its_bounds() -> None:
    assert candidates(schema("", delay_ms={"type": "integer"})) == [{"delay_ms": 100}]
    longer = schema("", delayMs={"type": "integer", "maximum": 1500})
    assert arguments.slowed(longer, {}, 2.0) == {"delayMs": 1500}
    assert arguments.slowed(schema(a={"type": "string"}), {}, 2.0) is None


# --- forms


def test_a_form_is_filled_in_whole_by_somebody_who_agrees() -> None:
    wanted = schema(
        "confirm",
        confirm={"type": "boolean", "default": False},
        age={"type": "integer", "minimum": 18, "maximum": 99},
        mail={"type": "string", "format": "email"},
        colours={
            "type": "array", "minItems": 2, "items": {"anyOf": [{"const": "r"}, {"const": "g"}]},
        },
        shade={"type": "string", "oneOf": [{"const": "dark", "title": "Dark"}]},
    )  # fmt: skip

    content = form(wanted)

    assert content == {
        "confirm": True, "age": 18, "mail": "user@example.com", "colours": ["r", "g"],
        "shade": "dark",
    }  # fmt: skip
    jsonschema.validate(content, wanted)
    assert form("nonsense") == {}


# --- arguments that do not fit


def test_one_required_member_is_left_out_unless_it_has_a_default() -> None:
    both = schema(a={"type": "string", "default": "x"}, b={"type": "string"})

    assert arguments.incomplete(both, {"a": "1", "b": "2"}) == ("b", {"a": "1"})
    assert arguments.incomplete(schema(""), {}) is None


def test_an_object_takes_the_place_of_a_plain_value() -> None:
    mixed = schema(a={"type": "array"}, b={"type": "integer"})

    found = arguments.mistyped(mixed, {"a": [], "b": 2})

    assert found == ("b", {"a": [], "b": {"touchstone": True}})
    assert arguments.mistyped(schema(a={"type": "array"}), {"a": []}) is None


# --- in general

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
def test_what_is_made_is_always_the_same_and_fits(properties: dict[str, Any]) -> None:
    wanted = schema(**properties)
    places = Places("/r", "f", "t")

    made = candidates(wanted, places)

    assert made == candidates(wanted, places)
    assert 1 <= len(made) <= arguments.CANDIDATES
    short = {"maxLength"} & set(re.findall(r"\w+", repr(wanted)))
    for one in [] if short else made:
        jsonschema.validate(one, wanted)


KEYWORDS = st.sampled_from(
    ["type", "properties", "required", "items", "$ref", "anyOf", "enum", "default", "pattern",
     "minItems", "minimum", "format", "a"]
)  # fmt: skip
NONSENSE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYWORDS, inner),
    max_leaves=12,
)


@given(NONSENSE)
def test_a_schema_from_a_stranger_never_raises(odd: Any) -> None:
    candidates(odd, WORLD)
    form(odd)
    arguments.slowed(odd, {}, 1.0)
    arguments.mistyped(odd, {"a": 1})
    arguments.incomplete(odd, {"a": 1})


# --- patterns


def found(pattern: str, text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a style that is a stranger's
        return re.search(pattern, text) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        "", "abc", "^abc$", r"^\d{3}$", r"^[a-z][a-z0-9-]*$", r"^(foo|bar)+$", r"^[^a-z]{2}$",
        r"^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$", r"^\w+@\w+\.\w+$", r"^#[0-9A-Fa-f]{6}$", r"^a?b*c+$",
        r"^[\]\\]+$", r"^\x41\u0042$", r"^(?P<year>\d{4})-(?:0[1-9]|1[0-2])$", r"^\S+\.py$",
        r"^a{2,5}?$", r"^[^\\/]+$", r"^v\d+(\.\d+)*$", r"[[]",
    ],
)  # fmt: skip
def test_a_pattern_gets_a_text(pattern: str) -> None:
    text = text_for(pattern)

    assert text is not None
    assert found(pattern, text)


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1", "(", "[", "*", r"a{9999}", r"^\p{L}+$"])
def test_a_pattern_beyond_us_gets_none(pattern: str) -> None:
    assert text_for(pattern) is None


@given(st.text(alphabet="ab1[](){}|*+?.^$\\dw-,", max_size=12))
def test_a_pattern_from_a_stranger_never_raises(pattern: str) -> None:
    text = text_for(pattern)

    assert text is None or found(pattern, text)


# --- templates of RFC 6570

VALUES = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": "1024", "empty": ""}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"), ("{hello}", "Hello%20World%21"), ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"), ("X{#var}", "X#value"),
        ("{x,hello}", "1024,Hello%20World%21"), ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("X{.var,x}", "X.value.1024"), ("{/var,x}/here", "/value/1024/here"),
        ("{;x,empty}", ";x=1024;empty"), ("{?x,empty}", "?x=1024&empty="),
        ("{var:3}", "val"), ("{undef}", ""), ("{/var*}", "/value"),
        ("file:///{+path}", "file:////foo/bar"),
        ("demo://ü/{var}", "demo://ü/value"), ("plain:one", "plain:one"),
    ],
)  # fmt: skip
def test_a_template_is_expanded_as_the_rfc_has_it(template: str, uri: str) -> None:
    assert uri_template.expand(template, VALUES) == uri


def test_variables_are_named_once_in_their_order() -> None:
    assert uri_template.variables("a://{b}/{+c,b}{?d*}") == ["b", "c", "d"]


@pytest.mark.parametrize(
    "template",
    ["a{", "a}", "{}", "{a b}", "{=a}", "{a:0}", "{a:99999}", "{,a}", "a b", "a<b", "%zz"],
)  # fmt: skip
def test_what_the_grammar_rejects_is_refused(template: str) -> None:
    assert uri_template.variables(template) == []
    with pytest.raises(ValueError, match=r"."):
        uri_template.parts(template)
