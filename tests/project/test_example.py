"""The example project in docs/example runs as documented."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import Done, ran
from tests.conftest import HERE

pytestmark = pytest.mark.slow

EXAMPLE = HERE.parent / "docs" / "example"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLE, tmp_path / "project")


def run(project: Path, *words: str) -> Done:
    """Run pytest in the project with the interpreter of this test as ``python``."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return ran(command, cwd=project, env={**os.environ, "PATH": path, "COLUMNS": "100"})


def test_example_project_passes_with_its_own_tests(project: Path) -> None:
    done = run(project, "-W", "error")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "mcp-touchstone: notes 1.0" in done.stdout
    assert "no clause" in done.stdout
    assert "warn" not in done.stdout


def test_example_project_fails_with_a_breached_clause(project: Path) -> None:
    server = project / "src" / "notes_server.py"
    sound = server.read_text("utf-8")
    server.write_text(sound.replace('"ping"', '"pong"'), "utf-8")

    done = run(project, "--mcp-select", "ping", "tests/test_notes.py", "--mcp")

    assert done.returncode == 1
    assert "FAIL  ping-empty-response" in done.stdout
