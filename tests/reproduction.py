"""Run the reproduction script of a finding in a plain shell."""

import os
import subprocess
from pathlib import Path

from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome


def script_of(run: Run) -> str:
    """Return the script of the first failure."""
    return run.of(Outcome.FAIL)[0].gravest.reproduction


def shows_it_again(script: str, said: str, place: Path, **env: str) -> None:
    """Run a reproduction and assert that it reports the finding and leaves no file."""
    done = subprocess.run(
        ["sh", "-c", script.replace("-ge 50", "-ge 10").replace("sleep 5", "sleep 1")],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(place), **env},
    )

    assert said in done.stdout, done.stdout + done.stderr + script
    assert done.returncode == 1
    assert list(place.iterdir()) == []
