"""The locks fit pyproject.toml, and the action, the image and the release install nothing else."""

import re
import tomllib
from importlib import metadata
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import locks
from tests.conftest import HERE

ROOT = HERE.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WANTED = locks.wanted(PROJECT)
HASH = r"    --hash=sha256:[0-9a-f]{64}(?: \\)?\n"
LINE = re.compile(rf"(?m)^([a-z0-9-]+)==(\S+)(?: ; [^\\\n]+)? \\\n(?:{HASH})+")


def locked(name: str) -> dict[str, str]:
    """Return the versions in a lock; nothing else may be there."""
    text = (ROOT / "locks" / f"{name}.txt").read_text("utf-8")
    assert re.sub(r"(?m)^#.*\n", "", LINE.sub("", text)) == ""
    return {found[1]: found[2] for found in LINE.finditer(text)}


@pytest.mark.parametrize("name", WANTED)
def test_lock_has_a_version_that_fits_each_requirement(name: str) -> None:
    versions = locked(name)
    for requirement in map(Requirement, WANTED[name]):
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("name", WANTED)
def test_lock_has_what_the_installed_versions_require(name: str) -> None:
    """Without the index only the requirements of what is installed here are known."""
    versions = locked(name)
    for package in versions:
        try:
            required = metadata.requires(package) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in map(Requirement, required):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert canonicalize_name(requirement.name) in versions, package


def test_folder_has_the_locks_of_the_script_only() -> None:
    assert {path.stem for path in (ROOT / "locks").iterdir()} == set(WANTED)


def test_release_and_image_install_from_a_lock_with_hashes() -> None:
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    build = [step["run"] for step in release["jobs"]["build"]["steps"] if "run" in step]
    hashed = "--require-hashes --only-binary :all: -r"

    assert build[:2] == [f"pip install {hashed} locks/build.txt", "python -m build --no-isolation"]
    image = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.findall(r"pip install (.*);", image) == [
        f'--no-cache-dir {hashed} "/tmp/locks/$EXTRA.txt"'
    ]
    checker = (ROOT / ".ci" / "install-checker").read_text("utf-8")
    assert re.findall(r"\$pip (.*)", checker) == [
        f"{hashed} locks/checker.txt",
        "--no-deps --no-build-isolation .",
    ]
