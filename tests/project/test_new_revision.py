"""A new revision of the protocol needs few changes before it is judged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog import revision as rev
from tests.commands import CHECKOUT

NEW = "2099-01-01"
SAME = f'{{"changes": "{rev.ALL[-1]}", "$comment": "MCP {NEW}."}}\n'
MODERN = f'("{rev.LATEST_MODERN}",)'
FOLDERS = ("src", "conformance", "security_suite", "reference_server")


@pytest.mark.slow
def test_reference_server_passes_a_revision_that_four_files_add(tmp_path: Path) -> None:
    for folder in FOLDERS:
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / folder, tmp_path / folder, ignore=skipped)
    for name in (
        "src/mcp_touchstone/catalog/revision.py",
        "reference_server/protocol/revisions.py",
    ):
        path = tmp_path / name
        text = path.read_text("utf-8")
        assert text.count(MODERN) == 1, name
        added = MODERN.replace(",)", f', "{NEW}")')
        path.write_text(text.replace(MODERN, added), encoding="utf-8")
    for name in ("conformance/schemas", "conformance/clients/schemas"):
        (tmp_path / name / f"{NEW}.json").write_text(SAME, encoding="utf-8")

    command = [sys.executable, "-m", "mcp_touchstone", "check", "--self", "--revision", NEW]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{rev.ALL[-1]}, {NEW}" in " ".join(done.stdout.split())
