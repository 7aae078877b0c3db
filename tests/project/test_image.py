"""The image of the checker, without an engine of containers."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.commands import CHECKOUT, ran

DOCKERFILE: Final = CHECKOUT / "checker.Dockerfile"
PAGE: Final = CHECKOUT / "docs" / "guides" / "ci.md"
SCRIPT: Final = CHECKOUT / ".ci" / "image"
BASH: Final = shutil.which("bash")


def test_image_has_its_own_user_and_what_starts_servers() -> None:
    steps = re.sub(r"\\\n", " ", DOCKERFILE.read_text("utf-8"))

    assert re.findall(r"(?m)^USER (.*)", steps) == ["10001:10001"]
    assert steps.index("\nUSER ") > max(steps.rindex("\nRUN "), steps.rindex("\nCOPY "))
    assert "apt-get install -y --no-install-recommends bubblewrap" in steps
    assert "ARG BASE=node:" in steps
    assert re.search(r"(?m)^uv==", (CHECKOUT / "locks" / "checker.txt").read_text("utf-8"))
    assert re.findall(r"(?m)^ENTRYPOINT (.*)", steps) == ['["mcp-touchstone"]']


def test_context_of_the_image_has_what_builds_the_wheel() -> None:
    lines = (CHECKOUT / f"{DOCKERFILE.name}.dockerignore").read_text("utf-8").split()
    given = {line[1:] for line in lines if line.startswith("!")}

    assert lines[0] == "*"
    assert all((CHECKOUT / one).exists() for one in given)
    hook = (CHECKOUT / "hatch_build.py").read_text("utf-8")
    (suites,) = re.findall(r"SUITES = \((.*)\)", hook)
    built = {"README.md", "LICENSE", "hatch_build.py", "pyproject.toml", "src"}
    assert given == {*built, *re.findall(r'"(\w+)"', suites), "locks", ".ci/install-checker"}


def test_page_builds_the_image_that_it_runs() -> None:
    text = PAGE.read_text("utf-8")
    runs = [line for line in text.splitlines() if line.startswith("docker run")]

    assert f"docker build -f {DOCKERFILE.name} -t mcp-touchstone ." in text
    assert len(runs) == 6
    assert all("mcp-touchstone check" in one or one.endswith("\\") for one in runs)


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_script_says_in_one_line_what_is_missing(tmp_path: Path) -> None:
    for name in ("dirname", "mktemp", "mkdir", "rm"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))

    done = ran([str(BASH), SCRIPT], env={"PATH": str(tmp_path), "TMPDIR": str(tmp_path)})

    said = "image: no docker or podman runs here, and these are missing: python3, node, npx\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert subprocess.run([str(BASH), "-n", str(SCRIPT)], check=False).returncode == 0
