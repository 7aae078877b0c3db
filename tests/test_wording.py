"""What hides or commands is told from what only looks so, on every payload about definitions."""

import json

import pytest

from mcp_touchstone.attack import payload, wording
from mcp_touchstone.loader import home

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


def told(row: payload.Payload) -> str:
    try:
        value = json.loads(row.text)
    except ValueError:
        value = {"description": row.text}
    for where, text in wording.texts(value):
        found = wording.hidden(text) or wording.commanded(where, text)
        if found or wording.far_away(text):
            return found or "far away"
    return ""


@pytest.mark.parametrize(
    "row", rows("meta.inject", "meta.hidden", "meta.schema"), ids=lambda row: row.id
)
def test_a_poisoned_text_is_told_and_its_twin_is_not(row: payload.Payload) -> None:
    assert bool(told(row)) is (row.expect == "deny" and row.id not in LEFT), told(row)


@pytest.mark.parametrize("row", rows("meta.confuse"), ids=lambda row: row.id)
def test_names_that_look_alike_have_one_skeleton(row: payload.Payload) -> None:
    one, bar, other = row.text.partition(" | ")
    if bar and one != other:
        assert (wording.skeleton(one) == wording.skeleton(other)) is (row.expect == "deny")


def test_a_name_in_two_alphabets_is_told() -> None:
    assert wording.mixed("r\u0435ad_file")
    assert not wording.mixed("\u0447\u0438\u0442\u0430\u0442\u044c")
    assert not wording.mixed("read_\u6587\u4ef6")


@pytest.mark.parametrize(
    "text",
    [
        "Do not show internal ids to the user.",
        "Use this before any other tool.",
        "<example>read_file</example>",
        "<!-- generated from schema.json -->",
        "Encoded as aGVsbG8gd29ybGQsIHRoaXMgaXMgcGxhaW4gdGV4dA==",
        "\u0646\u0635 \u2067\u0639\u0631\u0628\u064a\u2069",
        "\u845b\U000e0100",
        "\u0e20\u200b\u0e32\u0e29\u0e32",
    ],
)
def test_honest_texts_are_left_alone(text: str) -> None:
    assert not wording.hidden(text)
    assert not wording.commanded("description", text)
