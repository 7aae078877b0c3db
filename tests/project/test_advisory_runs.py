"""The runs that prove the rows of advisories: what they expect, and what they showed."""

from mcp_touchstone.advisories.known import State
from mcp_touchstone.advisories.table import by_name
from scripts.advisory_runs import ABSENT, cases, kept, page


def test_every_run_is_of_a_known_advisory_that_a_rule_shows() -> None:
    known = by_name()
    assert all(known[case.advisory].shown_by for case in cases(""))
    assert {case.shows for case in cases("")} <= {*map(str, State), ""}


def test_runs_of_one_advisory_are_chosen_by_its_id() -> None:
    every = list(cases(""))
    name = every[0].advisory
    assert list(cases(name)) == [one for one in every if one.advisory == name]


def test_each_run_showed_what_was_expected() -> None:
    expected = {
        (one.advisory, one.release, " ".join(one.words)): one.shows or ABSENT for one in cases("")
    }
    assert {(one.advisory, one.release, one.words): one.state for one in kept()} == expected


def test_page_has_a_row_for_each_run() -> None:
    text = "\n".join(page())
    assert all(f"| {one.advisory} | {one.package} {one.release} |" in text for one in kept())
