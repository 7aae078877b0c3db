"""Servers that open git repositories and no files, with one fault each; and a good one."""

import hashlib
import os
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fakes.server import STRING, STRINGS, Guard, Refused, fakes, has, takes


class Keeper(Guard, families=("traversal", "links", "bases")):
    """Opens its own repository, and repositories below it."""

    tools: tuple[str, ...] = ("git_log", "git_init", "git_add")

    schemas = MappingProxyType(
        {
            "git_log": takes(repo_path=STRING),
            "git_init": takes(repo_path=STRING),
            "git_add": takes(repo_path=STRING, files=STRINGS),
        }
    )

    def git_log(self, repo_path: str) -> str:
        git = Path(self.place(repo_path, writing=False), ".git")
        name = (git / "refs/heads/main").read_text(encoding="ascii").strip()
        data = zlib.decompress((git / "objects" / name[:2] / name[2:]).read_bytes())
        return data.partition(b"\0")[2].decode()

    def git_init(self, repo_path: str) -> str:
        os.makedirs(Path(self.place(repo_path, writing=True), ".git"), exist_ok=True)
        return "initialised"

    def git_add(self, repo_path: str, files: list[str]) -> str:
        folder = self.base(repo_path)
        for name in files:
            data = Path(self.added(folder, os.path.join(folder, name))).read_bytes()
            whole = b"blob %d\0" % len(data) + data
            digest = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
            place = Path(folder, ".git/objects", digest[:2], digest[2:])
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(zlib.compress(whole))
        return "staged"

    def base(self, repo_path: str) -> str:
        return self.strictly(repo_path)

    def added(self, folder: str, path: str) -> str:
        return self.strictly(path)


class AddsToAnyRepository(Keeper, trips={"bases-argument"}):
    """Adds files of a repository to any repository that a call names."""

    def base(self, repo_path: str) -> str:
        return os.path.join(self.root, repo_path)

    def added(self, folder: str, path: str) -> str:
        return AddsToAnyRepository(folder).strictly(path)


class UpdatesTheIndex(Keeper, families=("annotations",), tools=("git_log",)):
    """Updates the file times in the index when it reads, like git status."""

    changed = 12  # seconds of the first entry

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "annotations": {"readOnlyHint": True}}

    def git_log(self, repo_path: str) -> str:
        index = Path(self.strictly(repo_path), ".git/index")
        data = bytearray(index.read_bytes())
        data[self.changed] ^= 1
        index.write_bytes(data)
        return super().git_log(repo_path)


SAFE: Mapping[str, str] = MappingProxyType(
    {
        "core.fsmonitor": "false",
        "core.hooksPath": "/dev/null",
        "diff.external": "",
        "core.pager": "cat",
        "core.editor": "true",
    }
)


class RunsGit(Guard, families=("repositories",), tools=("git_status", "git_log", "git_diff")):
    """Runs git without programs of the repository, on real folders of repositories only."""

    safe: Mapping[str, str] = SAFE
    options_of_diff: tuple[str, ...] = ("--no-ext-diff", "--no-textconv")

    def schema(self, tool: str) -> dict[str, Any]:
        return takes(repo_path=STRING)

    def git_status(self, repo_path: str) -> str:
        return self.git(repo_path, "status", "--short")

    def git_log(self, repo_path: str) -> str:
        return self.git(repo_path, "log")

    def git_diff(self, repo_path: str) -> str:
        return self.git(repo_path, "diff", *self.options_of_diff)

    def git_commit(self, repo_path: str) -> str:
        return self.git(repo_path, "commit", "--all", "--message", "changed")

    def git(self, repo_path: str, *words: str) -> str:
        """Run git in a repository and return its output."""
        folder = self.strictly(repo_path)
        self.check(Path(folder))
        settings = [part for item in self.safe.items() for part in ("-c", "=".join(item))]
        done = subprocess.run(
            ["git", "-C", folder, "--no-optional-locks", *settings, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=5,
            check=False,
            env={"PATH": os.environ["PATH"], "HOME": self.root, "GIT_CONFIG_NOSYSTEM": "1"},
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def check(self, folder: Path) -> None:
        """Refuse a repository with filters, a .git that is no folder, and ways that lead out."""
        self.check_ways(folder)
        config = (folder / ".git/config").read_text(encoding="utf-8").lower()
        if any(word in config for word in ("filter", "include", "extensions")):
            raise Refused("that configuration is not safe")

    def check_ways(self, folder: Path) -> None:
        git = folder / ".git"
        if git.is_symlink() or not git.is_dir():
            raise Refused("only a plain repository")
        config = (git / "config").read_text(encoding="utf-8").lower()
        if "worktree" in config or (git / "commondir").exists():
            raise Refused("only a plain repository")
        if (git / "objects/info/alternates").exists():
            raise Refused("only a plain repository")


class TrustsTheConfiguration(RunsGit, trips={"repositories-programs"}, options_of_diff=()):
    """Runs git with the whole configuration of the repository, but without hooks."""

    safe: Mapping[str, str] = MappingProxyType({"core.hooksPath": "/dev/null"})

    def check(self, folder: Path) -> None:
        self.check_ways(folder)


class RunsHooks(RunsGit, trips={"repositories-hooks"}):
    """Commits with the hooks of the repository."""

    tools = ("git_status", "git_log", "git_diff", "git_commit")
    safe: Mapping[str, str] = MappingProxyType({**SAFE, "core.hooksPath": ".git/hooks"})

    def check(self, folder: Path) -> None:
        super().check(folder)
        config = (folder / ".git/config").read_text(encoding="utf-8").lower()
        if any(word in config for word in ("program", "trailer", "driver")):
            raise Refused("that configuration is not safe")


class FollowsGitFiles(RunsGit, trips={"repositories-outside"}):
    """Follows a .git file and a work tree wherever they lead."""

    def check_ways(self, folder: Path) -> None:
        pass

    def check(self, folder: Path) -> None:
        git = folder / ".git"
        if git.is_dir() and not git.is_symlink():
            super().check(folder)
        elif not git.exists() or "kept" in (git.read_text() if git.is_file() else ""):
            raise Refused("no repository")


fakes(__name__)(
    AddsFilesOfOthers=has(
        Keeper,
        "Opens only its own repositories, and adds any file to them.",
        "traversal-dotdot",
        "traversal-absolute",
        "traversal-sibling",
        "traversal-two-readings",
        "traversal-separators",
        "links-write",
        "bases-argument",
        added=lambda self, folder, path: path,
    ),
    OpensAnyRepository=has(
        Keeper,
        "Opens any repository that a call names, like old git servers.",
        "traversal-dotdot",
        "traversal-absolute",
        "traversal-sibling",
        "links-read",
        tools=("git_log",),
        place=lambda self, text, *, writing: os.path.join(self.root, text),
    ),
    MakesRepositoriesAnywhere=has(
        Keeper,
        "Opens only paths below its root, and creates repositories anywhere.",
        "traversal-dotdot",
        "traversal-absolute",
        "traversal-sibling",
        "traversal-two-readings",
        "links-write",
        tools=("git_log", "git_init"),
        place=lambda self, text, *, writing: (
            os.path.join(self.root, text) if writing else self.strictly(text)
        ),
    ),
    StagesWhileReading=has(
        UpdatesTheIndex,
        "Claims to read only, and puts another blob into the index.",
        "annotations-read-only",
        changed=12 + 40,
    ),
    RunsGitSafely=has(RunsGit, "Runs no program of the repository and follows nothing outside."),
)
