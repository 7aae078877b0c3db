"""Edits in git repositories: git sees exactly the changes that the tools write.

A bare remote and two clones. One clone is edited through the server and nothing else; the other
gets ahead of it with another change of the same lines. git checks the result of every step.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from reference_server.settings import Settings
from tests.reference_client import MODERN, InProcess, Message, ask
from tests.reference_server.cedarscript.client import WHY_NOT

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
MODES = {
    "README.md": "100644",
    "docs/dos.txt": "100644",
    "link.py": "120000",
    "src/app.py": "100644",
    "tools/run.sh": "100755",
}
PRIVATE = (".git/config", ".git/HEAD", ".git/hooks/post-commit", ".git")
CONFLICT = re.compile(r"<{7} [^\n]*\n(.*?)={7}\n(.*?)>{7} [^\n]*(\n|$)", re.DOTALL)


class Repository:
    """A repository that is used with the git program, without any user configuration."""

    def __init__(self, place: Path, who: str = "nobody") -> None:
        self.place = place
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(place.parent),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
            "GIT_AUTHOR_NAME": who,
            "GIT_AUTHOR_EMAIL": f"{who}@example.invalid",
            "GIT_COMMITTER_NAME": who,
            "GIT_COMMITTER_EMAIL": f"{who}@example.invalid",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        words = ("git", "-c", "core.autocrlf=false", "-c", "core.fileMode=true", *words)
        return subprocess.run(
            words,
            cwd=self.place,
            env=self._environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )

    def git(self, *words: str) -> str:
        """Return the output of a command that must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.decode()

    def status(self) -> list[str]:
        return self.git("status", "--porcelain", "--ignored", "--untracked-files=all").splitlines()

    def numbers(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of added and removed lines of each changed file."""
        lines = (line.split("\t") for line in self.git("diff", "--numstat", "HEAD").splitlines())
        return {path: (int(added), int(removed)) for added, removed, path in lines}

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def tree(self, revision: str = "HEAD") -> str:
        return self.git("rev-parse", f"{revision}^{{tree}}").strip()

    def modes(self) -> dict[str, str]:
        lines = self.git("ls-tree", "-r", "HEAD").splitlines()
        return {line.partition("\t")[2]: line[:6] for line in lines}

    def files_match_the_commit(self) -> bool:
        """Return whether the files are, byte for byte, those of the last commit."""
        paths = [path for path, mode in self.modes().items() if mode != "120000"]
        return all(
            (self.place / path).read_bytes() == self.run("cat-file", "blob", f"HEAD:{path}").stdout
            for path in paths
        )


class World:
    """A bare remote, a clone that is edited through the server, and another one."""

    def __init__(self, place: Path) -> None:
        Repository(place).git("init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
        self.remote = Repository(place / "remote.git")
        self.theirs = self._clone(place, "theirs")
        for path, data in FILES.items():
            file = self.theirs.place / path
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
        (self.theirs.place / "tools/run.sh").chmod(0o755)
        (self.theirs.place / "link.py").symlink_to("src/app.py")
        self.theirs.commit("begin")
        self.theirs.git("push", "--quiet", "origin", "HEAD:main")
        self.ours = self._clone(place, "ours")

    @staticmethod
    def _clone(place: Path, name: str) -> Repository:
        Repository(place).git("clone", "--quiet", "remote.git", name)
        return Repository(place / name, name)


class Client(InProcess):
    """A client of a server whose root is a clone."""

    def __init__(self, root: Path) -> None:
        self._number = 0
        super().__init__(Settings([str(root)], log_level="off"))

    def ask(self, method: str, **params: Any) -> Message:
        self._number += 1
        self.send(ask(MODERN, self._number, method, **params))
        heard: Message = self.hear(60)
        assert heard["id"] == self._number
        return heard

    def call(self, tool: str, **arguments: Any) -> Message:
        """Return the structured content of a call that must succeed."""
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert not result.get("isError"), result
        found: Message = result["structuredContent"]
        return found

    def fail(self, tool: str, **arguments: Any) -> str:
        """Return the error code of a call that must fail."""
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert result["isError"] is True, result
        return str(result["structuredContent"]["code"])


def with_text_editor(client: Client, path: str, old: str, new: str) -> None:
    """Replace a line by another one."""
    assert f"\t{old}" in client.call("text_editor", command="view", path=path)["text"]
    client.call("text_editor", command="str_replace", path=path, old_str=old, new_str=new)


def with_patch(client: Client, path: str, old: str, new: str) -> None:
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


def with_cedarscript(client: Client, path: str, old: str, new: str) -> None:
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
        marks=pytest.mark.skipif(WHY_NOT is not None, reason=f"CEDARScript: {WHY_NOT}"),
    ),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def client(world: World) -> Iterator[Client]:
    with Client(world.ours.place) as client:
        yield client


def assert_git_is_denied(client: Client) -> None:
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
            assert client.fail(tool, **arguments) == "DENIED", (tool, arguments)
        for script in (f"CREATE FILE '{path}' WITH CONTENT '@0:x'", f"RM FILE '{path}'"):
            if WHY_NOT is None:
                arguments = {"commands": script, "dry_run": False}
                assert client.fail("apply_cedarscript", **arguments) == "DENIED", script


def resolve(client: Client, path: str, keep: Callable[[str, str], str]) -> None:
    """Resolve the one conflict in a file: view it, and replace it from marker to marker."""
    view = client.call("text_editor", command="view", path=path)
    lines = re.sub(r"^ *\d+\t", "", view["text"], flags=re.MULTILINE).replace("\r\n", "\n")
    (conflict,) = CONFLICT.finditer(lines)
    # A view does not show the newline of its last line.
    new = keep(conflict[1], conflict[2]).removesuffix("" if conflict[3] else "\n")
    client.call("text_editor", command="str_replace", path=path, old_str=conflict[0], new_str=new)


@pytest.mark.parametrize("edit", FAMILIES)
def test_an_edit_is_pushed_after_a_conflict(
    world: World, client: Client, edit: Callable[[Client, str, str, str], None]
) -> None:
    ours, theirs, remote = world.ours, world.theirs, world.remote
    assert_git_is_denied(client)
    assert ours.status() == []

    # Both clones change the same lines; theirs pushes first.
    app, dos = theirs.place / "src/app.py", theirs.place / "docs/dos.txt"
    app.write_bytes(PYTHON.replace(b'"Hello " + name', b'"Hi " + name'))
    dos.write_bytes(DOS.replace(b"second line", b"2nd line"))
    theirs.commit("theirs")
    theirs.git("push", "--quiet", "origin", "main")
    edit(client, "src/app.py", '    return "Hello " + name', '    return "Hello, " + name')
    edit(client, "docs/dos.txt", "second line", "line two")
    edit(client, "tools/run.sh", "echo two", "echo three")

    # git sees these three lines and nothing else, and so does the file system.
    assert ours.numbers() == {"src/app.py": (1, 1), "docs/dos.txt": (1, 1), "tools/run.sh": (1, 1)}
    assert ours.status() == [" M docs/dos.txt", " M src/app.py", " M tools/run.sh"]
    assert (ours.place / "docs/dos.txt").read_bytes() == DOS.replace(b"second line", b"line two")
    assert (ours.place / "tools/run.sh").read_bytes() == SCRIPT.replace(b"two", b"three")
    ours.commit("ours")

    rejected = ours.run("push", "--quiet", "origin", "main")
    assert rejected.returncode != 0
    assert b"rejected" in rejected.stderr
    assert ours.run("pull", "--quiet", "--rebase", "origin", "main").returncode != 0
    assert ours.status() == ["UU docs/dos.txt", "UU src/app.py", "M  tools/run.sh"]
    assert_git_is_denied(client)  # with a rebase under way in there

    resolve(client, "src/app.py", lambda _theirs, ours: ours.replace("Hello,", "Hi,"))
    resolve(client, "docs/dos.txt", lambda theirs, ours: theirs + ours)
    ours.git("-c", "core.whitespace=cr-at-eol", "diff", "--check")  # markers that were left
    ours.git("add", "--all")
    ours.git("rebase", "--continue")
    ours.git("push", "--quiet", "origin", "main")
    theirs.git("pull", "--quiet", "--rebase", "origin", "main")

    assert ours.tree() == theirs.tree() == remote.tree("main")
    assert ours.git("rev-parse", "HEAD") == remote.git("rev-parse", "main")
    assert ours.git("log", "--format=%s").split() == ["ours", "theirs", "begin"]
    for clone in (ours, theirs):
        assert clone.status() == []
        assert clone.modes() == MODES
        assert clone.files_match_the_commit()
        assert (clone.place / "tools/run.sh").stat().st_mode & 0o777 == 0o755
        assert (clone.place / "link.py").is_symlink()
        app, dos = clone.place / "src/app.py", clone.place / "docs/dos.txt"
        assert app.read_bytes() == PYTHON.replace(b"Hello ", b"Hi, ")
        assert dos.read_bytes() == DOS.replace(b"second line", b"2nd line\r\nline two")
    remote.git("fsck", "--strict")
    assert_git_is_denied(client)


def test_undone_edits_leave_no_git_change(world: World, client: Client) -> None:
    ours = world.ours
    for path in ("src/app.py", "docs/dos.txt", "tools/run.sh"):
        edit = {"command": "insert", "path": path, "insert_line": 1, "new_str": "more\n"}
        client.call("text_editor", **edit)
    create = {"command": "create", "path": "new/deep/file.txt", "file_text": "x\n"}
    client.call("text_editor", **create)
    assert ours.status()[-1] == "?? new/deep/file.txt"
    assert ours.numbers()["docs/dos.txt"] == (1, 0)
    for path in ("src/app.py", "docs/dos.txt", "tools/run.sh", "new/deep/file.txt"):
        client.call("text_editor", command="undo_edit", path=path)
    assert ours.status() == []
    assert ours.run("diff", "--quiet", "HEAD").returncode == 0
    assert ours.files_match_the_commit()


def test_file_added_by_both_sides_is_resolved(world: World, client: Client) -> None:
    ours, theirs = world.ours, world.theirs
    (theirs.place / "src/new.py").write_bytes(b"x = 1\n")
    theirs.commit("theirs")
    theirs.git("push", "--quiet", "origin", "main")
    create = {"command": "create", "path": "src/new.py", "file_text": "x = 2\n"}
    client.call("text_editor", **create)
    ours.commit("ours")
    assert ours.run("pull", "--quiet", "--rebase", "origin", "main").returncode != 0
    assert ours.status() == ["AA src/new.py"]
    resolve(client, "src/new.py", lambda _theirs, ours: ours)
    ours.git("add", "--all")
    ours.git("rebase", "--continue")
    ours.git("push", "--quiet", "origin", "main")
    theirs.git("pull", "--quiet", "--rebase", "origin", "main")
    assert ours.tree() == theirs.tree() == world.remote.tree("main")
    assert (theirs.place / "src/new.py").read_bytes() == b"x = 2\n"
    assert ours.modes() == {**MODES, "src/new.py": "100644"}


def test_checkout_between_read_and_write_is_detected(world: World, client: Client) -> None:
    """A file that git changed is never overwritten by an edit of its old text."""
    ours = world.ours
    found = client.call("file_read", path="src/app.py")
    edit = {"path": "src/app.py", "old_str": '"Hello " + name', "new_str": "name"}
    client.call("text_editor", command="str_replace", **edit)
    ours.git("checkout", "--quiet", "-b", "other")
    ours.commit("other")
    ours.git("checkout", "--quiet", "main")
    ours.git("merge", "--quiet", "--ff-only", "other")
    diff = "--- a/src/app.py\n+++ b/src/app.py\n@@ -5,1 +5,1 @@\n-def leave():\n+def go():\n"
    arguments = {"path": "src/app.py", "expectedHash": found["sha256"], "diffText": diff}
    assert client.fail("file_apply_patch_only", **arguments) == "HASH_MISMATCH"
    ours.git("checkout", "--quiet", "HEAD~1", "--", "src/app.py")
    assert client.fail("text_editor", command="undo_edit", path="src/app.py") == "CHANGED"
    assert (ours.place / "src/app.py").read_bytes() == PYTHON
