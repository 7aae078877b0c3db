"""Attacks that share a process: what they found counts only on an unused one."""

import os

import pytest

from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.results.verdict import Outcome
from tests.fakes.matrix import attacked, target_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")

SHARING = ("traversal-dotdot", "traversal-absolute", "links-walk", "links-read")


def test_attacks_that_find_nothing_share_processes() -> None:
    run = attacked("FollowsNoLink", ("deny-near-miss", "traversal-*", "links-*"))
    attacks = {one.planned.case.id for one in run.results}
    used = {c.transcript.label for c in run.connections} - {"recon", "bindings"}

    assert {verdict.outcome for verdict in run.verdicts} <= {Outcome.PASS, Outcome.UNSEEN}
    assert len(attacks) > 10
    assert len(used) <= 6


def test_finding_comes_from_a_process_of_its_own() -> None:
    run = attacked("FollowsLinksToRead", SHARING)

    (found,) = run.of(Outcome.FAIL)
    assert found.clause.id == "links-read"
    assert found.gravest.process == "reads_through_no_link_outwards"
    (one,) = [c for c in run.connections if c.transcript.label == found.gravest.process]
    assert one.transcript.scenario.endswith("::reads_through_no_link_outwards")
    assert {v.outcome for v in run.verdicts if v is not found} == {Outcome.PASS}


def test_attacks_of_a_recording_have_processes_of_their_own() -> None:
    choice = Choice(select=("traversal-*", "links-*"), jobs=4, separate=True)
    run = judge(target_of("FollowsLinksToRead"), load(SECURITY), choice)
    attacks = {one.planned.case.id for one in run.results}

    scenarios = [{e.scenario for e in c.transcript if e.scenario} for c in run.connections]
    assert all(len(each) <= 1 for each in scenarios)
    assert {one for each in scenarios for one in each} >= attacks - {""}
