"""The script that changes functions, and counts which changes the tests notice."""

import re
import sys
from pathlib import Path

import pytest

from tests.commands import ran

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutation.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_changes_of_functions_that_are_imported_early_are_noticed() -> None:
    words = ("--each", "2", "mcp_touchstone.gate", "tests/gate/test_baseline.py")

    done = ran([sys.executable, SCRIPT, *words], cwd=SCRIPT.parents[1])

    noticed, changes = re.findall(r"(?m)^(\d+) of (\d+) changes were noticed", done.stdout)[0]
    assert 0 < int(noticed) <= int(changes), done.stdout + done.stderr
