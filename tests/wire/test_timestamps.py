"""Recognition and comparison of timestamps."""

import pytest

from mcp_touchstone.wire.timestamps import instant, is_earlier, is_rfc3339, same_instant
from tests.cases import cases

MORNING = "2026-01-02T03:04:05Z"


@cases(
    MORNING,
    "2026-01-02t03:04:05z",
    "2026-01-02 03:04:05+01:00",
    "2026-01-02T03:04:05.123456789-11:30",
    "2016-12-31T23:59:60Z",
)
def test_rfc_3339_timestamps_are_recognized(text: str) -> None:
    assert is_rfc3339(text)


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05", "20260102T030405Z", "2026-01-02"])
def test_other_iso_8601_forms_are_instants_but_not_rfc_3339(text: str) -> None:
    assert not is_rfc3339(text)
    assert instant(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1767323045",
        "1767323045.123",
        "2026-13-02T03:04:05Z",
        "2026-01-02T25:04:05Z",
        "Fri, 02 Jan 2026 03:04:05 GMT",
    ],
)
def test_other_text_is_not_a_timestamp(text: str) -> None:
    assert not is_rfc3339(text)
    assert instant(text) is None


@cases(
    ("2026-01-02T04:04:05+01:00", True),
    ("2026-01-02T03:04:05.900Z", True),
    ("2026-01-02T03:04:06Z", False),
    ("2026-01-02T03:04:04.999Z", True),
    ("2026-01-02T03:04:03.999Z", False),
    ("2026-01-02T03:04:05", True),
    ("yesterday", True),
)
def test_instants_are_compared_at_the_coarser_precision(other: str, same: bool) -> None:
    assert same_instant(MORNING, other) is same
    assert same_instant(other, MORNING) is same


def test_nanoseconds_are_compared_at_microsecond_precision() -> None:
    assert same_instant("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456788Z")
    assert not same_instant("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123457Z")


def test_is_earlier_is_false_when_undecidable() -> None:
    assert is_earlier("2026-01-02T03:04:04Z", MORNING)
    assert not is_earlier("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z")
    assert not is_earlier("2026-01-02T03:04:04", MORNING)
    assert not is_earlier(MORNING, "soon")
