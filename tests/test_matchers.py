"""Small comparisons that chapters share."""

import pytest

from mcp_touchstone.matchers import base64_fault, object_in


@pytest.mark.parametrize("text", ["", "aGVsbG8=", "aGVsbG8h", "+/+/"])
def test_base64_is_taken(text: str) -> None:
    assert base64_fault(text) == ("", True)


@pytest.mark.parametrize(
    ("text", "slip"),
    [
        ("aGVs\r\nbG8h", "white space"),
        ("aGVsbG8", "missing padding"),
        ("-_-_", "the URL-safe alphabet"),
        ("-_-_-_8", "the URL-safe alphabet and missing padding"),
    ],
)
def test_a_slip_of_base64_is_no_breach(text: str, slip: str) -> None:
    assert base64_fault(text) == (f"base64 with {slip}", True)


@pytest.mark.parametrize("text", ["data:image/png;base64,aGVsbG8=", "hello!", "aGVsb", "a=bc"])
def test_what_no_reader_copes_with_is_no_base64(text: str) -> None:
    what, slight = base64_fault(text)

    assert what
    assert not slight


def test_an_object_is_found_behind_its_members_or_an_empty_one() -> None:
    value = {"params": {"_meta": {"progressToken": 7}, "list": [1]}}

    assert object_in(value, "params", "_meta") == {"progressToken": 7}
    assert object_in(value, "params", "list") == {}
    assert object_in(value, "params", "other", "deeper") == {}
    assert object_in(None, "params") == {}
