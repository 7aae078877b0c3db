"""The wheel, built through the sdist: one import name and the same suites everywhere."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import HERE

pytestmark = pytest.mark.slow

ROOT = HERE.parent


def run(*command: str, cwd: Path) -> str:
    """Run a command and return its output; fail with the end of its errors."""
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def environment(folder: Path, *packages: str) -> str:
    """Make a virtual environment with packages, and return its interpreter.

    The pip of this environment installs them: to install another one takes longer.
    """
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "env"), cwd=folder)
    below = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    python = str(folder / "env" / below)
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile")
    run(*pip, *packages, cwd=folder)
    return python


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, then the wheel from it, in an environment with what the build requires."""
    folder = tmp_path_factory.mktemp("dist")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    python = environment(folder, "build", *project["build-system"]["requires"])
    words = ("--no-isolation", "--outdir", str(folder / "out"), str(ROOT))
    run(python, "-m", "build", *words, cwd=folder)
    return folder / "out"


@pytest.fixture(scope="session")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the wheel into an empty environment; give its interpreter."""
    folder = tmp_path_factory.mktemp("wheel")
    return environment(folder, str(next(dist.glob("*.whl"))))


def test_wheel_has_one_import_name_and_every_suite_file(dist: Path) -> None:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    shipped = {n.split("_suites/", 1)[1] for n in names if "_suites/" in n}
    ours = {
        path.relative_to(ROOT).as_posix()
        for suite in ("conformance", "security_suite", "reference_server")
        for pattern in ("*.py", "*.toml", "*.json")
        for path in (ROOT / suite).rglob(pattern)
    }

    assert tops == {"mcp_touchstone"}
    assert shipped == ours
    assert "mcp_touchstone/py.typed" in names
    assert "mcp_touchstone/report/schema.json" in names


def test_sdist_contains_the_files_its_tests_need(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}

    for needed in ("tests/conftest.py", "tests/mutants/kit.py", "tox.ini", "hatch_build.py"):
        assert needed in names


def test_installed_wheel_checks_the_reference_server(installed: str, tmp_path: Path) -> None:
    words = ("-m", "mcp_touchstone", "check", "--self", "--revision", "2025-11-25")
    out = " ".join(run(installed, *words, cwd=tmp_path).split())

    assert "no clause" in out
    assert " warn" not in out


def test_node_ids_of_the_wheel_equal_those_of_the_checkout(installed: str, tmp_path: Path) -> None:
    words = ("--collect-only", "-q", "--mcp-server", "true")
    wheel = run(installed, "-m", "pytest", *words, cwd=tmp_path)
    here = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, cwd=tmp_path)

    ids = [line for line in wheel.splitlines() if "::" in line]
    assert ids == [line for line in here.splitlines() if "::" in line]
    assert "conformance/basic/ping.py::answers_a_ping" in ids


def test_editable_install_uses_the_checkout(tmp_path: Path) -> None:
    python = environment(tmp_path, "-e", str(ROOT))

    where = "from mcp_touchstone.catalog.loader import home; print(home())"
    assert run(python, "-c", where, cwd=tmp_path).strip() == str(ROOT)
    assert "passed" in run(
        python, "-m", "mcp_touchstone", "check", "--self", "-q", "--select", "ping", cwd=tmp_path
    )
