"""A server killed while it writes: what is counted, what is a note, what is left alone."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.gate import judge
from mcp_touchstone.loader import SECURITY, load
from mcp_touchstone.plan import Choice
from mcp_touchstone.results import Verdict
from mcp_touchstone.tier import tiers
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import target_of
from tests.rerun import shows_it_again

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")

CHOICE = Choice(select=("storage-killed",), jobs=2, tiers=tiers(("race",)))


def judged(name: str, *, promised: bool = True) -> Verdict:
    target = target_of(name)
    (verdict,) = judge(
        target if promised else replace(target, promises=frozenset()), load(SECURITY), CHOICE
    ).verdicts
    return verdict


def test_a_torn_file_is_told_by_its_bytes() -> None:
    verdict = judged("CopiesIntoTheFile")

    assert verdict.outcome is Outcome.FAIL
    told = verdict.gravest.actual
    found = re.fullmatch(
        r"write_file: (\d+) bytes where (\d+) bytes were and (\d+) were to be", told
    )
    assert found is not None, told
    held, were, _ = found.groups()
    assert int(held) < int(were)


@pytest.mark.parametrize("name", ["CopiesIntoTheFile", "RemovesTheOldFirst"])
def test_a_torn_file_is_shown_again_by_a_script(name: str, tmp_path: Path) -> None:
    script = judged(name).gravest.reproduction

    assert len(script) < 25_000
    shows_it_again(script, "FOUND: neither the old file nor the new one", tmp_path)


def test_a_torn_file_is_a_note_where_nobody_promised_whole_ones() -> None:
    assert judged("CopiesIntoTheFile", promised=False).outcome is Outcome.NOTE


def test_what_is_left_beside_the_file_is_a_note() -> None:
    verdict = judged("WritesBesideSlowly")

    assert verdict.outcome is Outcome.NOTE
    assert "is left beside the file" in verdict.gravest.actual


def test_a_server_that_takes_small_files_only_is_killed_over_those() -> None:
    verdict = judged("TakesSmallFilesOnly")

    assert verdict.outcome is Outcome.FAIL
    assert int(verdict.gravest.actual.split()[-4]) < 100_000


def test_who_never_writes_the_same_is_not_judged() -> None:
    verdict = judged("StampsWhatItWrites")

    assert verdict.outcome is Outcome.UNSEEN
    assert "the same twice" in verdict.gravest.actual
