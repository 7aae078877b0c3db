"""Random call sequences: shrinking and reproduction."""

import os
import subprocess
from pathlib import Path

import pytest

from mcp_touchstone.results.verdict import Outcome
from tests.fakes.matrix import attacked, tripped

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]


def test_failing_sequence_is_short_and_reproduced_by_a_script(tmp_path: Path) -> None:
    run = attacked("RemembersChecks", ("sequences",))
    script = run.of(Outcome.FAIL)[0].gravest.reproduction

    calls = script.count('"method": "tools/call"')
    assert 1 < calls <= 4, script
    done = subprocess.run(
        ["sh", "-c", script.replace("sleep 5", "sleep 1")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
    )
    assert "FOUND:" in done.stdout, done.stdout + done.stderr + script
    assert list(tmp_path.iterdir()) == []


def test_single_call_faults_are_not_reported_as_sequences() -> None:
    assert tripped(attacked("FollowsLinks", ("sequences",))) == {}
