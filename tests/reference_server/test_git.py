"""Edits in git repositories: git sees exactly the changes that the tools write."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from reference_server.settings import Settings
from tests.reference_client import InProcess
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY, WHY_NOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
    pytest.mark.skipif(os.name == "nt", reason="needs executable bits and links"),
]

PYTHON = b'def greet(name):\n    return "Hello " + name\n\n\ndef leave():\n    return "Bye"\n'
DOS = b"first line\r\nsecond line\r\nthird line\r\n"
SCRIPT = b"#!/bin/sh\necho one\necho two"
FILES = {"src/app.py": PYTHON, "docs/dos.txt": DOS, "tools/run.sh": SCRIPT, "README.md": b"# R\n"}
PRIVATE = (".git/config", ".git/HEAD", ".git/hooks/post-commit", ".git")


ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "nobody",
    "GIT_AUTHOR_EMAIL": "nobody@example.invalid",
    "GIT_COMMITTER_NAME": "nobody",
    "GIT_COMMITTER_EMAIL": "nobody@example.invalid",
}
"""git runs without any configuration of the user."""


class Repository:
    """A repository that is used with the git program."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def git(self, *words: str) -> list[str]:
        """Return the output of a command that must succeed."""
        done = subprocess.run(
            ("git", "-c", "core.autocrlf=false", "-c", "core.fileMode=true", *words),
            cwd=self.place,
            env=ENVIRONMENT,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.decode().splitlines()

    def status(self) -> list[str]:
        return self.git("status", "--porcelain", "--ignored", "--untracked-files=all")

    def numbers(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of added and removed lines of each changed file."""
        lines = (line.split("\t") for line in self.git("diff", "--numstat", "HEAD"))
        return {path: (int(added), int(removed)) for added, removed, path in lines}

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a commit")


def with_text_editor(client: InProcess, path: str, old: str, new: str) -> None:
    """Replace a line by another one."""
    assert f"\t{old}" in client.call("text_editor", command="view", path=path)["text"]
    client.call("text_editor", command="str_replace", path=path, old_str=old, new_str=new)


def with_patch(client: InProcess, path: str, old: str, new: str) -> None:
    """Replace a line by another one."""
    found = client.call("file_read", path=path)
    before = found["text"].replace("\r\n", "\n")
    after = before.replace(old, new)
    lines = difflib.unified_diff(
        *(before.splitlines(keepends=True), after.splitlines(keepends=True)),
        *(f"a/{path}", f"b/{path}"),
    )
    # difflib does not mark a missing newline at the end of a file.
    whole = [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    ]
    patch = {"expectedHash": found["sha256"], "diffText": "".join(whole)}
    client.call("file_apply_patch_only", path=path, **patch)


def with_cedarscript(client: InProcess, path: str, old: str, new: str) -> None:
    """Replace a line by another one."""
    quoted = (text.strip().replace('"', '\\"') for text in (old, new))
    script = 'UPDATE FILE "{}" REPLACE LINE "{}" WITH CONTENT "@0:{}"'.format(path, *quoted)
    if old.startswith("    "):
        script = script.replace("FILE", "FUNCTION 'greet' FROM FILE", 1)
    client.call("apply_cedarscript", commands=script, dry_run=False)


FAMILIES = [
    pytest.param(with_text_editor, id="text_editor"),
    pytest.param(with_patch, id="apply_patch_only"),
    pytest.param(
        with_cedarscript,
        id="cedarscript",
        marks=NEEDS_LIBRARY,
    ),
]


@pytest.fixture
def ours(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.git("init", "--quiet", "--initial-branch=main")
    for path, data in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "tools/run.sh").chmod(0o755)
    (tmp_path / "link.py").symlink_to("src/app.py")
    made.commit()
    return made


@pytest.fixture
def client(ours: Repository) -> Iterator[InProcess]:
    with InProcess(Settings([str(ours.place)], log_level="off")) as client:
        yield client


def assert_git_is_denied(client: InProcess) -> None:
    """Assert that every way to the files of git is denied."""
    uris = [f"workspace:///{path}" for path in PRIVATE]
    listed = client.ask("resources/list")["result"]["resources"]
    assert not any(".git" in resource["uri"] for resource in listed)
    assert all("error" in client.ask("resources/read", uri=uri) for uri in uris)
    view = client.call("text_editor", command="view", path=".")
    assert not any(".git" in entry["path"].lower() for entry in view["entries"])
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    for path in PRIVATE:
        for tool, arguments in (
            ("file_read", {"path": path}),
            ("file_read_range", {"path": path, "startLine": 1, "endLine": 1}),
            ("file_read", {"path": path.partition("/")[2] or ".", "cwd": path.partition("/")[0]}),
            ("file_apply_patch_only", {"path": path, "expectedHash": "0" * 64, "diffText": diff}),
            ("text_editor", {"path": path, "command": "view"}),
            ("text_editor", {"path": path, "command": "create", "file_text": "#!/bin/sh\n"}),
            ("text_editor", {"path": path, "command": "undo_edit"}),
            ("workspace_digest", {"path": path}),
        ):
            assert client.fail(tool, **arguments)["code"] == "DENIED", (tool, arguments)
        for script in (f"CREATE FILE '{path}' WITH CONTENT '@0:x'", f"RM FILE '{path}'"):
            if WHY_NOT is None:
                arguments = {"commands": script, "dry_run": False}
                assert client.fail("apply_cedarscript", **arguments)["code"] == "DENIED", script


@pytest.mark.parametrize("edit", FAMILIES)
def test_git_sees_the_edited_lines_and_nothing_else(
    ours: Repository, client: InProcess, edit: Callable[[InProcess, str, str, str], None]
) -> None:
    assert_git_is_denied(client)
    assert ours.status() == []

    edit(client, "src/app.py", '    return "Hello " + name', '    return "Hello, " + name')
    edit(client, "docs/dos.txt", "second line", "line two")
    edit(client, "tools/run.sh", "echo two", "echo three")

    assert ours.numbers() == {"src/app.py": (1, 1), "docs/dos.txt": (1, 1), "tools/run.sh": (1, 1)}
    assert ours.status() == [" M docs/dos.txt", " M src/app.py", " M tools/run.sh"]
    assert ours.git("diff", "--summary", "HEAD") == [], "no mode has changed"
    assert (ours.place / "docs/dos.txt").read_bytes() == DOS.replace(b"second line", b"line two")
    assert (ours.place / "tools/run.sh").read_bytes() == SCRIPT.replace(b"two", b"three")


def test_conflict_of_a_rebase_is_resolved_with_the_editor(
    ours: Repository, client: InProcess
) -> None:
    dos = ours.place / "docs/dos.txt"
    ours.git("checkout", "--quiet", "-b", "theirs")
    dos.write_bytes(DOS.replace(b"second line", b"2nd line"))
    ours.commit()
    ours.git("checkout", "--quiet", "main")
    with_text_editor(client, "docs/dos.txt", "second line", "line two")
    ours.commit()
    with pytest.raises(AssertionError, match="CONFLICT"):
        ours.git("rebase", "theirs")
    assert ours.status() == ["UU docs/dos.txt"]
    assert_git_is_denied(client)  # with a rebase under way in there

    for mark in ("<<<<<<< ", "=======", ">>>>>>> "):
        line = next(one for one in dos.read_text().splitlines() if one.startswith(mark))
        removed = {"command": "str_replace", "old_str": f"{line}\n", "new_str": ""}
        client.call("text_editor", path="docs/dos.txt", **removed)
    ours.git("add", "--all")
    ours.git("-c", "core.editor=true", "rebase", "--continue")

    assert ours.status() == []
    assert dos.read_bytes() == DOS.replace(b"second line", b"2nd line\r\nline two")
