"""Small comparisons that chapters share."""

import pytest

from mcp_touchstone.wire.framing import object_in
from mcp_touchstone.wire.matchers import base64_fault, covers
from tests.cases import cases


@pytest.mark.parametrize("text", ["", "aGVsbG8=", "aGVsbG8h", "+/+/"])
def test_valid_base64_has_no_fault(text: str) -> None:
    assert base64_fault(text) == ("", True)


@cases(
    ("aGVs\r\nbG8h", "white space"),
    ("aGVsbG8", "missing padding"),
    ("-_-_", "the URL-safe alphabet"),
    ("-_-_-_8", "the URL-safe alphabet and missing padding"),
)
def test_small_base64_error_is_a_slight_fault(text: str, slip: str) -> None:
    assert base64_fault(text) == (f"base64 with {slip}", True)


@pytest.mark.parametrize("text", ["data:image/png;base64,aGVsbG8=", "hello!", "aGVsb", "a=bc"])
def test_undecodable_text_is_a_serious_base64_fault(text: str) -> None:
    what, slight = base64_fault(text)

    assert what
    assert not slight


def test_object_in_returns_the_nested_object_or_an_empty_one() -> None:
    value = {"params": {"_meta": {"progressToken": 7}, "list": [1]}}

    assert object_in(value, "params", "_meta") == {"progressToken": 7}
    assert object_in(value, "params", "list") == {}
    assert object_in(value, "params", "other", "deeper") == {}
    assert object_in(None, "params") == {}


@cases(
    ({"roots": {"listChanged": True}}, {"roots": {}}, True),
    ({"roots": {}}, {"sampling": {}}, False),
    ({"sampling": {}}, {"sampling": {"tools": {}}}, False),
    ({"elicitation": {}}, {"elicitation": {"form": {}}}, True),
    ({"elicitation": {"form": {}, "url": {}}}, {"elicitation": {}}, True),
    ({"elicitation": {"url": {}}}, {"elicitation": {}}, False),
    ({"elicitation": {}}, {"elicitation": {"url": {}}}, False),
)
def test_capability_coverage_treats_elicitation_without_mode_as_form(
    declared: dict[str, object], required: dict[str, object], held: bool
) -> None:
    assert covers(declared, required) is held
