"""Hidden and commanding texts are distinguished from harmless ones in definitions."""

import json

import pytest

from mcp_touchstone.catalog.loader import home
from mcp_touchstone.security import payload
from tests.cases import cases
from tests.fakes.matrix import attack_file

definitions = attack_file("metadata.definitions")
LIBRARY = payload.load(home() / "security_suite" / "payloads")

LEFT = {
    "meta.inject-04": "precedence: honest tools ask to be called first",
    "meta.inject-11": "a tool may really be deprecated",
    "meta.hidden-12": "one letter as a word: text may quote another alphabet",
    "meta.schema-01": "a parameter may be for the content of a file",
    "meta.schema-07": "remote references are of conformance",
    "meta.schema-09": "a name says nothing",
    "meta.schema-10": "a pattern is no order",
}
"""What is left to people, and why."""


def rows(*groups: str) -> list[payload.Payload]:
    return [row for group in groups for row in LIBRARY[group]]


def detected(row: payload.Payload) -> str:
    try:
        value = json.loads(row.text)
    except ValueError:
        value = {"description": row.text}
    for where, text in definitions.texts(value):
        found = definitions.hidden(text) or definitions.commanded(where, text)
        if found or definitions.far_away(text):
            return found or "far away"
    return ""


@pytest.mark.parametrize(
    "row", rows("meta.inject", "meta.hidden", "meta.schema"), ids=lambda row: row.id
)
def test_poisoned_text_is_detected_and_its_harmless_twin_is_not(row: payload.Payload) -> None:
    assert bool(detected(row)) is (row.expect == "deny" and row.id not in LEFT), detected(row)


@pytest.mark.parametrize("row", rows("meta.confuse"), ids=lambda row: row.id)
def test_similar_looking_names_have_one_skeleton(row: payload.Payload) -> None:
    one, bar, other = row.text.partition(" | ")
    if bar and one != other:
        assert (definitions.skeleton(one) == definitions.skeleton(other)) is (row.expect == "deny")


def test_name_mixing_alphabets_is_detected() -> None:
    assert definitions.mixed("r\u0435ad_file")
    assert not definitions.mixed("\u0447\u0438\u0442\u0430\u0442\u044c")
    assert not definitions.mixed("read_\u6587\u4ef6")


@cases(
    "Do not show internal ids to the user.",
    "Use this before any other tool.",
    "<example>read_file</example>",
    "<!-- generated from schema.json -->",
    "Encoded as aGVsbG8gd29ybGQsIHRoaXMgaXMgcGxhaW4gdGV4dA==",
    "\u0646\u0635 \u2067\u0639\u0631\u0628\u064a\u2069",
    "\u845b\U000e0100",
    "\u0e20\u200b\u0e32\u0e29\u0e32",
)
def test_honest_texts_are_not_detected(text: str) -> None:
    assert not definitions.hidden(text)
    assert not definitions.commanded("description", text)


def test_ordinary_indentation_is_not_hidden_text() -> None:
    text = "Read a file.\n\n" + " " * 60 + "path: where it is\n"

    assert not definitions.far_away(text)
    assert definitions.far_away("Read a file." + "\n" * 40 + "and more")


def test_definitions_with_reordered_sets_are_equal() -> None:
    one = {"description": "one of {'a', 'b'}", "inputSchema": {"required": ["a", "b"]}}
    other = {"description": "one of {'b', 'a'}", "inputSchema": {"required": ["b", "a"]}}

    assert definitions.canonical(one) == definitions.canonical(other)
    assert definitions.canonical({"d": "a, b"}) != definitions.canonical({"d": "b, a"})
    assert definitions.unordered({"d": "a, b"}) == definitions.unordered({"d": "b; a"})
    assert definitions.unordered({"d": "a b"}) != definitions.unordered({"d": "a c"})
    assert definitions.unordered({"d": 1}) != definitions.unordered({"d": 2})
