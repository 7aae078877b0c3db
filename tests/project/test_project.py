"""Files of the project itself: workflows, forms, line endings, the checks before a release."""

import datetime as dt
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_touchstone.advisories.table import advisories
from scripts.release import old_advisories, outdated, prepare, problems
from tests.conftest import HERE

ROOT = HERE.parent
GITHUB = ROOT / ".github"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SCHEMAS = {
    "dependabot.yml": "dependabot",
    "ISSUE_TEMPLATE/bug.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/config.yml": "github-issue-config",
    "ISSUE_TEMPLATE/wrong-verdict.yml": "github-issue-forms",
}
USES = re.compile(r"^\s*(?:- )?uses: (\S+)(.*)$", re.MULTILINE)


@pytest.mark.parametrize("name", SCHEMAS)
def test_forms_and_dependabot_follow_their_schemas(name: str) -> None:
    words = ["check_jsonschema", "--builtin-schema", f"vendor.{SCHEMAS[name]}", str(GITHUB / name)]

    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, check=False)

    assert done.returncode == 0, done.stdout.decode()


def test_every_form_is_checked() -> None:
    found = {path.relative_to(GITHUB).as_posix() for path in GITHUB.rglob("*.yml")}

    assert {name for name in found if not name.startswith("workflows/")} == set(SCHEMAS)


@pytest.mark.parametrize("path", [ROOT / "action.yml", *sorted((GITHUB / "workflows").glob("*"))])
def test_actions_are_pinned_by_commit(path: Path) -> None:
    for name, comment in USES.findall(path.read_text("utf-8")):
        if not name.startswith("./"):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_every_action_is_pinned_to_one_commit() -> None:
    pins: dict[str, set[str]] = {}
    for path in (ROOT / "action.yml", *(GITHUB / "workflows").glob("*")):
        for name, _ in USES.findall(path.read_text("utf-8")):
            action, _, commit = name.partition("@")
            pins.setdefault(action, set()).add(commit)

    assert {action: found for action, found in pins.items() if len(found) > 1} == {}
    assert "actions/checkout" in pins


def test_git_converts_no_line_endings(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        convert = ["-c", "core.autocrlf=true", "-c", "core.eol=crlf"]
        subprocess.run(["git", *identity, *convert, *words], cwd=tmp_path, check=True, timeout=60)

    contents = {"golden/lf.txt": b"one\ntwo\n", "payloads/mixed.toml": b"one\r\ntwo\n"}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
    shutil.copy(ROOT / ".gitattributes", tmp_path)
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "files")
    for name in contents:
        (tmp_path / name).unlink()
    git("checkout", "-q", ".")

    assert {name: (tmp_path / name).read_bytes() for name in contents} == contents


def test_ruff_has_one_version() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]

    assert {tuple(hook["additional_dependencies"]) for hook in hooks} == {
        tuple(PYPROJECT["dependency-groups"]["lint"])
    }


def test_classifiers_name_the_systems_that_the_tests_run_on() -> None:
    systems = [c for c in PYPROJECT["project"]["classifiers"] if c.startswith("Operating System")]

    assert systems == ["Operating System :: POSIX :: Linux"]


@pytest.fixture
def build(tmp_path: Path) -> dict[str, Any]:
    """Make a checkout and a build of version 1.2.3 that can be published."""
    dist, checkout = tmp_path / "dist", tmp_path / "checkout"
    dist.mkdir()
    (checkout / "docs" / "guides").mkdir(parents=True)
    (checkout / "README.md").write_text("# A project\n")
    (checkout / "docs" / "guides" / "ci.md").write_text("uses: example/mcp-touchstone@v1\n")
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-01-01\n")
    (dist / "mcp_touchstone-1.2.3.tar.gz").touch()
    wheel(dist, "Project-URL: Repository, https://example.org")
    return {"dist": dist, "checkout": checkout}


def wheel(dist: Path, *lines: str) -> None:
    with zipfile.ZipFile(dist / "mcp_touchstone-1.2.3-py3-none-any.whl", "w") as archive:
        text = "\n".join(("Metadata-Version: 2.4", "Name: mcp-touchstone", *lines, "", "text"))
        archive.writestr("mcp_touchstone-1.2.3.dist-info/METADATA", text)


def test_a_complete_build_can_be_published(build: dict[str, Any]) -> None:
    assert list(problems("v1.2.3", **build)) == []


def test_a_tag_of_another_version_cannot_be_published(build: dict[str, Any]) -> None:
    files, section = problems("v1.2.4", **build)

    assert files == (
        "the tag v1.2.4 needs mcp_touchstone-1.2.4-py3-none-any.whl and "
        "mcp_touchstone-1.2.4.tar.gz; dist has mcp_touchstone-1.2.3-py3-none-any.whl, "
        "mcp_touchstone-1.2.3.tar.gz"
    )
    assert section == "CHANGELOG.md has no section for 1.2.4"


def test_a_release_is_prepared_by_one_name(build: dict[str, Any]) -> None:
    page = build["checkout"] / "docs" / "guides" / "ci.md"
    page.write_text("uses: OWNER/mcp-touchstone@v1, not OWNERS/x; ghcr.io/OWNER/x\n")

    assert prepare("A-name", build["checkout"]) == [page]
    assert page.read_text() == "uses: A-name/mcp-touchstone@v1, not OWNERS/x; ghcr.io/a-name/x\n"
    assert list(problems("v1.2.3", **build)) == []


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a--b", "a" * 40, "a b"])
def test_a_name_that_github_refuses_changes_no_file(build: dict[str, Any], name: str) -> None:
    page = build["checkout"] / "docs" / "guides" / "ci.md"
    page.write_text("uses: OWNER/mcp-touchstone@v1\n")

    with pytest.raises(ValueError, match="is no name of an account"):
        prepare(name, build["checkout"])
    assert "OWNER/" in page.read_text()


def test_an_old_package_of_npm_cannot_be_published(build: dict[str, Any]) -> None:
    package = build["checkout"] / "npm" / "mcp-touchstone" / "package.json"
    package.parent.mkdir(parents=True)
    package.write_text('{"version": "1.2.2"}')

    assert list(problems("v1.2.3", **build)) == [
        "npm/mcp-touchstone/package.json has the version 1.2.2"
    ]


def test_rules_of_profiles_are_read_again_each_year() -> None:
    profiles = ROOT / "src" / "mcp_touchstone" / "profiles"
    read = [one["read"] for path in profiles.glob("*.toml") for one in rows_of(path)]
    later = max(read) + dt.timedelta(days=366)

    assert list(outdated(ROOT, max(read))) == []
    assert len(list(outdated(ROOT, later))) == len(read)
    assert any(one.startswith("vscode/array-items: read https://") for one in outdated(ROOT, later))


def test_table_of_advisories_is_read_again_each_month() -> None:
    newest = max(advisory.read for advisory in advisories())

    assert list(old_advisories(ROOT, newest + dt.timedelta(days=31))) == []
    (said,) = old_advisories(ROOT, newest + dt.timedelta(days=32))
    assert said.startswith(f"src/mcp_touchstone/advisories: read on {newest}; ")


def rows_of(profile: Path) -> list[dict[str, Any]]:
    table = tomllib.loads(profile.read_text("utf-8"))
    return [*table.get("rule", ()), *table.get("box", ())]


def test_a_build_without_addresses_cannot_be_published(build: dict[str, Any]) -> None:
    wheel(build["dist"])
    (build["checkout"] / "docs" / "guides" / "ci.md").write_text("uses: OWNER/mcp-touchstone@v1\n")

    assert list(problems("v1.2.3", **build)) == [
        "pyproject.toml has no [project.urls]",
        "docs/guides/ci.md names OWNER; run release.py --prepare",
    ]
