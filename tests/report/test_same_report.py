"""Two runs of one target give equal reports, except for the declared fields."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.report.machine import VOLATILE
from tests.conftest import mutant_command

pytestmark = pytest.mark.slow

KINDS = ("json", "junit", "sarif", "markdown")
TIME = re.compile(r' time="[0-9.]+"')
FOLDER = re.compile(r"mcp-touchstone-(held_)?[a-z0-9_]{8}\b|\bcanary-[0-9a-f]{12}\b")
TALLY = re.compile(r"[0-9]+ processes, [0-9.]+ s")


def reports(folder: Path, *words: str) -> dict[str, Any]:
    """Run a check and return its reports without the declared fields."""
    folder.mkdir()
    asked = [word for kind in KINDS for word in ("--report", f"{kind}:{folder / kind}")]
    subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", "check", "-q", *asked, *words],
        capture_output=True,
        timeout=300,
        check=False,
    )
    found: dict[str, Any] = {
        kind: FOLDER.sub("ROOT", (folder / kind).read_text("utf-8")) for kind in KINDS
    }
    found["json"] = json.loads(found["json"])
    for name in VOLATILE:
        del found["json"]["summary"][name]
    found["junit"] = TIME.sub("", found["junit"])
    found["markdown"] = TALLY.sub("", found["markdown"])
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("--select", "ping", "--select", "resources", "--revision", "2025-11-25", "--self"),
        ("--select", "ping", "--revision", "2025-11-25", "--", *mutant_command("RefusesPings")),
    ],
    ids=["the reference server", "a server with a finding"],
)
def test_two_runs_give_equal_reports(tmp_path: Path, words: tuple[str, ...]) -> None:
    one, two = reports(tmp_path / "one", *words), reports(tmp_path / "two", *words)

    for kind in KINDS:
        assert one[kind] == two[kind]
