"""A server killed while it writes: failures, notes, and cases that are not judged."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.catalog.attack_level import tiers
from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.run import Verdict
from mcp_touchstone.results.verdict import Outcome
from tests.fakes.matrix import target_of
from tests.reproduction import shows_it_again

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]

CHOICE = Choice(select=("storage-killed",), jobs=2, tiers=tiers(("race",)))


def judged(name: str, *, promised: bool = True) -> Verdict:
    target = target_of(name)
    (verdict,) = judge(
        target if promised else replace(target, promise={}), load(SECURITY), CHOICE
    ).verdicts
    return verdict


def test_torn_file_finding_states_the_byte_counts() -> None:
    verdict = judged("CopiesIntoTheFile")

    assert verdict.outcome is Outcome.FAIL
    actual = verdict.gravest.actual
    found = re.fullmatch(
        r"write_file: (\d+) bytes where (\d+) bytes were and (\d+) were to be", actual
    )
    assert found is not None, actual
    held, were, _ = found.groups()
    assert int(held) < int(were)


@pytest.mark.parametrize("name", ["CopiesIntoTheFile", "RemovesTheOldFirst"])
def test_reproduction_script_shows_the_torn_file(name: str, tmp_path: Path) -> None:
    script = judged(name).gravest.reproduction

    assert len(script) < 25_000
    shows_it_again(script, "FOUND: neither the old file nor the new one", tmp_path)


def test_torn_file_is_a_note_without_promises() -> None:
    assert judged("CopiesIntoTheFile", promised=False).outcome is Outcome.NOTE


def test_leftover_file_beside_the_target_is_a_note() -> None:
    verdict = judged("WritesANewFileSlowly")

    assert verdict.outcome is Outcome.NOTE
    assert "left beside" in verdict.gravest.actual


def test_server_limited_to_small_files_is_killed_while_writing_a_small_file() -> None:
    verdict = judged("TakesSmallFilesOnly")

    assert verdict.outcome is Outcome.FAIL
    assert int(verdict.gravest.actual.split()[-4]) < 100_000


def test_server_that_writes_different_bytes_each_time_is_not_judged() -> None:
    verdict = judged("StampsFiles")

    assert verdict.outcome is Outcome.UNSEEN
    assert "same twice" in verdict.gravest.actual
