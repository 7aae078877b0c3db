"""Comparison of the lists of several connections."""

from mcp_touchstone.judging import listings

A, B, C, D = ["a"], ["b"], ["c"], ["d"]


def test_a_list_of_its_own_on_each_connection_differs_from_all_others() -> None:
    assert listings.all_differ((A, A), (B, B), (C, C), (D, D))


def test_a_list_that_two_connections_share_does_not_differ_from_all_others() -> None:
    assert not listings.all_differ((A, A), (B, B), (C, C), (B, B))


def test_a_list_that_changes_by_itself_does_not_vary_by_connection() -> None:
    assert listings.varies((A, A), (A, B)) == ""
    assert listings.varies((A, A), (B, B)) == listings.ELSEWHERE
