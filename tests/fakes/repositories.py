"""Servers that open git repositories and no files, with one fault each; and a good one."""

import hashlib
import os
import zlib
from pathlib import Path
from typing import Any

from tests.fakes.server import STRING, Guard


class Keeper(Guard):
    """Opens its own repository, and repositories below it."""

    families: tuple[str, ...] = ("traversal", "links", "bases")
    tools: tuple[str, ...] = ("git_log", "git_init", "git_add")

    def schema(self, tool: str) -> dict[str, Any]:
        names: dict[str, Any] = {"repo_path": STRING}
        if tool == "git_add":
            names["files"] = {"type": "array", "items": STRING}
        return {"type": "object", "properties": names, "required": list(names)}

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
        del folder
        return self.strictly(path)


class AddsToAnyRepository(Keeper):
    """Adds files of a repository to any repository that a call names."""

    trips = frozenset({"bases-argument"})

    def base(self, repo_path: str) -> str:
        return os.path.join(self.root, repo_path)

    def added(self, folder: str, path: str) -> str:
        return AddsToAnyRepository(folder).strictly(path)


class AddsFilesOfOthers(Keeper):
    """Opens only its own repositories, and adds any file to them."""

    trips = frozenset(
        {"traversal-dotdot", "traversal-absolute", "traversal-sibling", "traversal-two-readings"}
        | {"traversal-separators", "links-write", "bases-argument"}
    )

    def added(self, folder: str, path: str) -> str:
        del folder
        return path


class OpensAnyRepository(Keeper):
    """Opens any repository that a call names, like old git servers."""

    trips = frozenset({"traversal-dotdot", "traversal-absolute", "traversal-sibling", "links-read"})
    tools: tuple[str, ...] = ("git_log",)

    def place(self, text: str, *, writing: bool) -> str:
        return os.path.join(self.root, text)


class MakesRepositoriesAnywhere(Keeper):
    """Opens only paths below its root, and creates repositories anywhere."""

    trips = frozenset(
        {"traversal-dotdot", "traversal-absolute", "traversal-sibling", "traversal-two-readings"}
        | {"links-write"}
    )
    tools: tuple[str, ...] = ("git_log", "git_init")

    def place(self, text: str, *, writing: bool) -> str:
        return os.path.join(self.root, text) if writing else self.strictly(text)


class UpdatesTheIndex(Keeper):
    """Updates the file times in the index when it reads, like git status."""

    families = ("annotations",)
    tools: tuple[str, ...] = ("git_log",)
    changed = 12  # seconds of the first entry

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "annotations": {"readOnlyHint": True}}

    def git_log(self, repo_path: str) -> str:
        index = Path(self.strictly(repo_path), ".git/index")
        data = bytearray(index.read_bytes())
        data[self.changed] ^= 1
        index.write_bytes(data)
        return super().git_log(repo_path)


class StagesWhileReading(UpdatesTheIndex):
    """Claims to read only, and puts another blob into the index."""

    trips = frozenset({"annotations-read-only"})
    changed = 12 + 40
