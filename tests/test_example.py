"""The worked example in docs/example: a server, one line for pytest, tests of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HERE

EXAMPLE = HERE.parent / "docs" / "example"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLE, tmp_path / "project")


def run(project: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run pytest as its author does; ``python`` is the one this test runs under."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        cwd=project,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
    )


def test_one_line_judges_the_server_beside_its_own_tests(project: Path) -> None:
    done = run(project, "-W", "error")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "mcp-touchstone: notes 1.0" in done.stdout
    assert "conforming: no clause is broken" in done.stdout
    assert "warn" not in done.stdout


def test_a_server_that_gets_worse_is_red(project: Path) -> None:
    server = project / "src" / "notes_server.py"
    sound = server.read_text("utf-8")
    server.write_text(sound.replace('"ping"', '"pong"'), "utf-8")

    done = run(project, "--mcp-select", "ping", "tests/test_notes.py", "--mcp")

    assert done.returncode == 1
    assert "FAIL  ping-empty-response" in done.stdout
