"""Servers of which only one process can run get the verdicts of the same server without a lock."""

import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.discovery.recon import SINGLE
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import survey
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target
from tests.hostile_cases import hostile
from tests.runs import learning

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX"),
    pytest.mark.slow,
]

SELECTED = ("jsonrpc", "lifecycle", "ping", "tools", "stdio")
REVISIONS = (rev.ALL[0], rev.LATEST_LEGACY)
"""Two are enough for two processes at a time; all are in the test of recon."""


def target(folder: Path, kind: str) -> Target:
    folder.mkdir()
    command = hostile("runs_only_once", ROOT, str(folder), kind)
    return Target(command=command, timeout=20.0 if kind == "shares" else 4.0)


def judged(folder: Path, kind: str, *, jobs: int = 0) -> tuple[Run, ServerProfile]:
    choice = Choice(select=SELECTED, revisions=REVISIONS, examples=0, jobs=jobs)
    return learning(target(folder, kind), load(), choice)


def outcomes(run: Run) -> set[tuple[str, str, Outcome]]:
    return {(v.clause.id, v.revision, v.outcome) for v in run.verdicts}


@pytest.fixture(scope="module")
def unrestricted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ServerProfile]:
    return judged(tmp_path_factory.mktemp("shares") / "folder", "shares")


@pytest.mark.parametrize("kind", ["leaves", "waits", "kills"])
def test_verdicts_are_those_of_the_unrestricted_server(
    tmp_path: Path, kind: str, unrestricted: tuple[Run, ServerProfile]
) -> None:
    run, profile = judged(tmp_path / "folder", kind)

    assert SINGLE in profile.remarks
    assert outcomes(run) == outcomes(unrestricted[0])


def test_unrestricted_server_is_judged_in_parallel(
    unrestricted: tuple[Run, ServerProfile],
) -> None:
    assert not unrestricted[1].is_single
    assert SINGLE not in unrestricted[1].remarks


def test_recon_reports_a_single_instance(tmp_path: Path) -> None:
    profile, _ = survey(target(tmp_path / "folder", "leaves"))

    assert len(profile.spoken) == 4
    assert profile.remarks.count(SINGLE) == 1
