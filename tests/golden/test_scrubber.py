"""Values that vary between runs are replaced by names; similar constant values are kept."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_touchstone.results.scrubber import Scrubber, lined, pretty
from tests.cases import cases

NOW = datetime(2026, 11, 21, 22, 24, 46, 123456, tzinfo=UTC)


def scrub(value: Any, places: dict[str, str] | None = None, **more: Any) -> Any:
    return Scrubber(places or {}, NOW, **more).scrub(value)


@cases(
    "2026-11-21T22:24:46Z",
    "2026-11-21T22:24:46.123456+00:00",
    "2026-11-21 22:24:46,123",
    "2026-11-22T06:24+0800",
    "Sat Nov 21 2026 22:24:46 GMT+0000 (Coordinated Universal Time)",
    "Sat Nov 21 22:24:46 2026 +0000",
    "Sat, 21 Nov 2026 22:24:46 GMT",
    "11/21/2026, 10:24:46 PM",
)
def test_run_time_is_replaced_in_common_formats(moment: str) -> None:
    assert scrub(f"created: {moment}; size: 3") == "created: <time>; size: 3"


@cases("2024-11-05T10:00:00Z", "2026-07-28", "22:24:46", "Mon Feb 30 2026 10:00:00", "v1.2.3")
def test_other_times_are_kept(text: str) -> None:
    assert scrub(text) == text


@pytest.mark.parametrize("number", [10**400, -(10**400), 1, 0, -1, True, 4096, 1.5, 1_500_000_000])
def test_numbers_are_kept_unless_they_are_the_run_time(number: float) -> None:
    assert scrub(number) == number
    assert scrub(NOW.timestamp() + 60) == "<time>"
    assert scrub(int(NOW.timestamp() * 1000)) == "<time>"


def test_weekday_is_replaced_only_beside_the_run_time() -> None:
    assert scrub({"at": NOW.isoformat(), "day": "Saturday"}) == {"at": "<time>", "day": "<weekday>"}
    assert scrub({"enum": "x", "day": "Saturday"}) == {"enum": "x", "day": "Saturday"}


def test_longest_matching_path_is_replaced_first() -> None:
    places = {"/w": "{world}", "/w/root": "{root}"}

    assert scrub("/w/root/a /w/tmp", places) == "{root}/a {world}/tmp"


def test_copy_of_the_environment_is_replaced() -> None:
    ours = {"PATH": "/bin", "HOME": "/w/home", "USER": "somebody", "API_KEY": "x"}

    assert scrub({**ours, "MORE": "y"}, environment=ours) == "<environment>"
    assert scrub({"PATH": "/bin", "HOME": "/else"}, environment=ours)["PATH"] == "/bin"


def test_equal_random_values_get_the_same_name() -> None:
    scrubber = Scrubber({}, NOW)

    assert scrubber.scrub({"nextCursor": "x9"}) == {"nextCursor": "<cursor 1>"}
    assert scrubber.scrub([{"cursor": "x9"}, {"cursor": "z"}]) == [
        {"cursor": "<cursor 1>"},
        {"cursor": "<cursor 2>"},
    ]


def test_repeated_server_info_is_replaced() -> None:
    scrubber = Scrubber({}, NOW)
    info = {"serverInfo": {"name": "a", "version": "1"}}

    assert scrubber.scrub(info) == info
    assert scrubber.scrub(info) == {"serverInfo": "<as before>"}
    assert scrubber.scrub({"serverInfo": {"name": "b"}}) == {"serverInfo": {"name": "b"}}


@given(st.integers(-47, 47))
def test_run_time_is_replaced_in_every_time_zone(hours: int) -> None:
    written = (NOW + timedelta(hours=hours / 2)).strftime("%Y-%m-%dT%H:%M:%S")

    assert scrub(written) == "<time>"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_layout_is_json_of_the_same_value(value: Any) -> None:
    shown = lined(value)

    assert json.loads(pretty(shown)) == shown
