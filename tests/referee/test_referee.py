"""The official conformance suite, over HTTP, on the reference server with its fixtures."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener
from tests.cases import cases
from tests.commands import touchstone
from tests.conftest import HERE
from tests.referee.suite import SUITE, SWITCH, VERSION, NotInstallableError, Suite, install, where

pytestmark = pytest.mark.slow

SERVER = (sys.executable, "-m", "tests.referee")

EXTENSION = "tasks-"
"""Scenarios about an extension that the reference server does not have; never scored."""

LEAST = {"2025-11-25": 69, "2026-07-28": 120}
"""Checks the scored scenarios pass. Some of the suite's checks also pass where nothing is served,
so that none failed is not enough."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Return the official suite, or skip and say why."""
    folder = where(tmp_path_factory.mktemp("referee"))
    if folder is None:
        pytest.skip(f"not judged by {SUITE} {VERSION}: set {SWITCH}=1 to let npm fetch it")
    try:
        return install(folder)
    except NotInstallableError as why:
        pytest.skip(f"not judged by {SUITE} {VERSION}: {why}")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Serve the reference server with the suite's fixtures over HTTP."""
    root = tmp_path / "root"
    root.mkdir()
    words = ("--http", "127.0.0.1:0", "--root", str(root), "--log-level", "off")
    env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen((*SERVER, *words), env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60.0)
        process.stdout.close()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_every_scored_scenario_passes(
    suite: Suite, url: str, tmp_path: Path, revision: str
) -> None:
    results = tmp_path / "results"
    results.mkdir()

    verdict = suite.judge(url, revision, results)
    scored = suite.scored(revision)
    wrong = [
        line for line in verdict.with_status("FAILURE", "WARNING") if not line.startswith(EXTENSION)
    ]

    assert wrong == []
    assert verdict.status == 0, verdict.output[-2000:]
    assert scored <= verdict.checks.keys()
    assert all(verdict.count(scenario) for scenario in scored)
    assert sum(map(verdict.count, scored)) >= LEAST[revision]


@cases(("enumeration", 32), ("manifest", 6), ("directory", 7))
def test_every_scenario_of_the_skills_extension_passes(
    suite: Suite, url: str, tmp_path: Path, part: str, checks: int
) -> None:
    results = tmp_path / "results"
    results.mkdir()

    verdict = suite.run(url, f"sep-2640-skills-{part}", results)

    assert verdict.with_status("FAILURE", "WARNING", "SKIPPED") == []
    assert verdict.count(f"sep-2640-skills-{part}") == checks


def test_official_suite_fails_a_server_that_exits_at_start(suite: Suite, tmp_path: Path) -> None:
    """This proves that the suite can fail."""
    launch = Launch(command=(sys.executable, "-c", ""))
    with Listener(launch, most=8, startup=5.0) as listener:
        verdict = suite.judge(listener.start(), "2025-11-25", tmp_path)

    assert verdict.status == 1
    assert len(verdict.with_status("FAILURE")) >= 30


def test_fixtures_pass_our_own_check() -> None:
    chapters = ("tools", "resources", "prompts", "completion", "mrtr")
    words = [word for chapter in chapters for word in ("--select", chapter)]
    revisions = ("--revision", "2025-11-25", "--revision", "2026-07-28")

    done = touchstone("check", *words, *revisions, "--", *SERVER, "--root", "{root}")

    assert done.returncode == 0, done.stdout
