"""Walks are found again with the same seed, as short as they get, and shown again without us."""

import os
import subprocess
from pathlib import Path

import pytest

from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked, tripped

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


def test_a_walk_is_found_again_and_short_and_shown_by_itself(tmp_path: Path) -> None:
    run = attacked("RemembersWhatItChecked", ("sequences",))
    script = run.of(Outcome.FAIL)[0].gravest.reproduction

    calls = script.count('"method": "tools/call"')
    assert 1 < calls <= 4, script
    done = subprocess.run(
        ["sh", "-c", script.replace("sleep 5", "sleep 1")],
        capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert "FOUND:" in done.stdout, done.stdout + done.stderr + script
    assert list(tmp_path.iterdir()) == []


def test_what_one_call_does_is_left_to_the_attacks_on_links() -> None:
    assert tripped(attacked("FollowsLinks", ("sequences",))) == {}
