"""The package of npm: it runs the program of its own version, and downloads nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from mcp_touchstone.version import __version__
from tests.commands import CHECKOUT
from tests.conftest import eventually

PACKAGE: Final = CHECKOUT / "npm" / "mcp-touchstone"
WANTED: Final = f"mcp-touchstone=={__version__}"
NODE: Final = shutil.which("node")
NPM: Final = shutil.which("npm")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (NODE and NPM), reason="node and npm are not installed"),
]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack the package, and install it in an empty folder without a network."""
    folder = tmp_path_factory.mktemp("npm")
    env = {
        **os.environ,
        "npm_config_cache": str(folder / "cache"),
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
    }
    for words in (
        ["pack", str(PACKAGE), "--silent"],
        ["install", "--no-audit", "--no-fund", f"./mcp-touchstone-{__version__}.tgz"],
    ):
        subprocess.run([str(NPM), *words], cwd=folder, env=env, check=True, capture_output=True)
    return folder / "node_modules" / ".bin" / "mcp-touchstone"


def program(folder: Path, name: str, body: str) -> None:
    """Write a program in place of uvx or pipx."""
    (folder / name).write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
    (folder / name).chmod(0o755)


def start(script: Path, path: Path, *words: str) -> "subprocess.Popen[str]":
    """Start the package with one folder as PATH."""
    command = [str(NODE), str(script.resolve()), *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env={**os.environ, "PATH": str(path)}, stdout=pipe, stderr=pipe, text=True
    )


def test_it_has_the_version_of_the_program() -> None:
    assert json.loads((PACKAGE / "package.json").read_text("utf-8"))["version"] == __version__


MOUNTED: Final = ["--user", f"{os.getuid()}:{os.getgid()}", "-v", f"{Path.cwd()}:/work"]
REPOSITORY: Final = json.loads((PACKAGE / "package.json").read_text("utf-8"))["repository"]
IMAGE: Final = f"ghcr.io/{REPOSITORY.removeprefix('github:').lower()}:{__version__}"


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("uvx", [WANTED]),
        ("pipx", ["run", WANTED]),
        ("docker", ["run", "--rm", "-i", *MOUNTED, IMAGE]),
    ],
)
def test_it_runs_the_program_and_returns_its_status(
    script: Path, tmp_path: Path, name: str, before: list[str]
) -> None:
    program(tmp_path, name, "print(sys.argv[1:]); sys.exit(3)")
    with start(script, tmp_path, "check", "--", "a b") as process:
        said, error = process.communicate(timeout=60)

    assert (process.returncode, error) == (3, "")
    assert said == f"{[*before, 'check', '--', 'a b']}\n"


def test_without_a_program_to_run_it_says_what_it_needs(script: Path, tmp_path: Path) -> None:
    with start(script, tmp_path) as process:
        said, error = process.communicate(timeout=60)

    assert (process.returncode, said, error.count("\n")) == (2, "", 1)
    assert "uvx, pipx or docker" in error


def test_it_ends_the_program_when_it_is_ended(script: Path, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    program(tmp_path, "uvx", f"open({str(mark)!r}, 'w').close(); time.sleep(60)")
    with start(script, tmp_path) as process:
        eventually(mark.exists)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert process.returncode == 128 + signal.SIGTERM
