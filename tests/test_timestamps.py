"""What is a timestamp, and which of two says the same instant."""

import pytest

from mcp_touchstone.timestamps import instant, is_earlier, is_rfc3339, same_instant

MORNING = "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    "text",
    [
        MORNING,
        "2026-01-02t03:04:05z",
        "2026-01-02 03:04:05+01:00",
        "2026-01-02T03:04:05.123456789-11:30",
        "2016-12-31T23:59:60Z",
    ],
)
def test_rfc_3339_is_read(text: str) -> None:
    assert is_rfc3339(text)


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05", "20260102T030405Z", "2026-01-02"])
def test_iso_8601_is_wider(text: str) -> None:
    assert not is_rfc3339(text)
    assert instant(text) is not None


@pytest.mark.parametrize(
    "text",
    ["", "now", "1767323045", "1767323045.123", "2026-13-02T03:04:05Z", "2026-01-02T25:04:05Z",
     "Fri, 02 Jan 2026 03:04:05 GMT"],
)  # fmt: skip
def test_anything_else_is_no_timestamp(text: str) -> None:
    assert not is_rfc3339(text)
    assert instant(text) is None


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("2026-01-02T04:04:05+01:00", True),
        ("2026-01-02T03:04:05.900Z", True),
        ("2026-01-02T03:04:06Z", False),
        ("2026-01-02T03:04:04.999Z", True),
        ("2026-01-02T03:04:03.999Z", False),
        ("2026-01-02T03:04:05", True),
        ("yesterday", True),
    ],
)
def test_an_instant_is_as_exact_as_the_coarser_of_two(other: str, same: bool) -> None:
    assert same_instant(MORNING, other) is same
    assert same_instant(other, MORNING) is same


def test_a_precision_of_nanoseconds_is_compared_as_far_as_it_is_read() -> None:
    assert same_instant("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456788Z")
    assert not same_instant("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123457Z")


def test_earlier_is_what_can_be_said_to_be() -> None:
    assert is_earlier("2026-01-02T03:04:04Z", MORNING)
    assert not is_earlier("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z")
    assert not is_earlier("2026-01-02T03:04:04", MORNING)
    assert not is_earlier(MORNING, "soon")
