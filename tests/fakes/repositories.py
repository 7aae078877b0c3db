"""Servers that open git repositories and no files, with one fault each; and a good one."""

import os
import zlib
from pathlib import Path
from typing import Any

from tests.fakes.server import STRING, Guard


class Keeper(Guard):
    """Opens the repository it was started with, and folders below it that are some themselves."""

    families = ("traversal", "links", "bases")
    tools: tuple[str, ...] = ("git_log", "git_init")

    def schema(self, tool: str) -> dict[str, Any]:
        del tool
        return {"type": "object", "properties": {"repo_path": STRING}, "required": ["repo_path"]}

    def git_log(self, repo_path: str) -> str:
        git = Path(self.place(repo_path, writing=False), ".git")
        name = (git / "refs/heads/main").read_text(encoding="ascii").strip()
        data = zlib.decompress((git / "objects" / name[:2] / name[2:]).read_bytes())
        return data.partition(b"\0")[2].decode()

    def git_init(self, repo_path: str) -> str:
        os.makedirs(Path(self.place(repo_path, writing=True), ".git"), exist_ok=True)
        return "initialised"


class OpensAnyRepository(Keeper):
    """Opens whatever repository a call names, as old git servers did."""

    trips = frozenset({"traversal-dotdot", "traversal-absolute", "traversal-sibling", "links-read"})
    tools = ("git_log",)

    def place(self, text: str, *, writing: bool) -> str:
        return os.path.join(self.root, text)


class MakesRepositoriesAnywhere(Keeper):
    """Opens only what lies below its root, and makes repositories wherever it is told to."""

    trips = frozenset(
        {"traversal-dotdot", "traversal-absolute", "traversal-sibling", "traversal-two-readings"}
        | {"links-write"}
    )

    def place(self, text: str, *, writing: bool) -> str:
        return os.path.join(self.root, text) if writing else self.strictly(text)
