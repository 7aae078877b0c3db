"""Git repositories in the root that an attacker made, and tools that open a repository by its path.

Git trusts the repository it works on: its configuration names programs, and its files lead to
other repositories. Each payload is a difference from a plain repository, as JSON.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.security.suite import (
    CANDIDATES,
    DANGER,
    Area,
    ArgumentRole,
    AttackCall,
    AttackSession,
    Binding,
    Call,
    Operation,
    Places,
    Pointer,
    SafePath,
    Style,
    TimeBudget,
    assemble,
    attack,
    attack_calls,
    commit_name,
    fill,
    git_repo,
    recreated,
    slots,
    texts,
    words,
)

TREES: Final = ("base", "siblings")

GIT: Final = frozenset({"git", "repo", "repository"})
"""Words in the name of a tool, or of an argument, that works on repositories."""

REMOTE: Final = frozenset({"fetch", "pull", "push", "clone", "reset"})
"""Words of commands that are harmless for a repository of ours without a network."""

REVISIONS: Final = frozenset({"target", "ref", "revision", "rev", "commit", "branch", "head"})
"""Words in the name of an argument that takes a revision."""

CHANGES: Final = frozenset(
    {
        "add",
        "commit",
        "checkout",
        "create",
        "init",
        "merge",
        "reset",
        "stash",
        "switch",
        "rebase",
    }
)
"""Words of commands that change the repository; their tools are called last."""

PATHS: Final = frozenset({ArgumentRole.PATH, ArgumentRole.BASE})

TOTAL: Final = 200.0
"""Seconds that may be spent on a threat, shared by the tools."""

PLAIN: Final = "plain"
"""The folder of the plain repository."""

EXPECTED: Final = "no program of the repository runs, nothing from outside comes back"

UNOPENED: Final = "no tool showed a commit, a change or a file of a plain repository below the root"


@attack("repositories-programs", fixtures=TREES, lasts=True)
def runs_no_program_of_a_repository(session: AttackSession) -> None:
    """Configuration and attributes of a repository below the root run no program."""
    _open_all(session, "repositories-programs", "git.program")


@attack("repositories-hooks", fixtures=TREES, lasts=True)
def runs_no_hook_of_a_repository(session: AttackSession) -> None:
    """Hooks of a repository below the root are not run."""
    _open_all(session, "repositories-hooks", "git.hook")


@attack("repositories-outside", fixtures=TREES, lasts=True)
def opens_no_repository_outside(session: AttackSession) -> None:
    """A repository below the root shows nothing of a repository or folder outside."""
    _open_all(session, "repositories-outside", "git.outside")


@dataclass(frozen=True, eq=False)
class _Tool:
    """A tool that opens a repository by its path.

    Attributes:
        schema: its inputSchema.
        repository: the argument for the path of the repository.
        files: the arguments for paths of files in it.
        style: the form of the path.
    """

    name: str
    schema: Mapping[str, Any]
    repository: Pointer
    files: tuple[Pointer, ...]
    style: Style

    def call(self, repository: SafePath, root: SafePath, turn: int = 0) -> Call:
        """Return the call on a repository, with its first file and its newest commit."""
        relative = repository.relative_to(root).as_posix()
        place = str(repository) if self.style is Style.ABSOLUTE else relative
        file = next(path.name for path in repository.iterdir() if path.is_file())
        values: dict[Pointer, Any] = dict.fromkeys(self.files, file)
        for pointer in texts(self.schema):
            if pointer not in values and REVISIONS & {*words(str(pointer[-1]))}:
                values[pointer] = "HEAD"
        places = Places(folder=str(repository), file=file)
        arguments = assemble(self.schema, {**values, self.repository: place}, places, turn)
        return "tools/call", {"name": self.name, "arguments": arguments}


def _open_all(session: AttackSession, threat: str, group: str) -> None:
    """Call each tool on each repository of a class of payloads."""
    session.begin()
    tree = session.tree
    tree.commit_all()
    tools = _opening(session)
    if not tools:
        session.judge.unseen(threat, UNOPENED)
        return
    names = {**tree.names, "outside_head": git_repo.newest(tree.outside)}

    def shots() -> Iterator[AttackCall]:
        for number, row in enumerate(session.payloads(group, via="repository")):
            repository = tree.root / f"repo{number}"
            _plant(session, repository, _filled(json.loads(row.text), names))
            before = (recreated(repository, tree.path),)
            for tool, turn in tools.items():
                binding = Binding(Operation.CALL, tool.name, styles=(tool.style,))
                call = tool.call(repository, tree.root, turn)
                yield AttackCall(row, repository.name, binding, call, True, before)
            repository.remove()

    attack_calls(session, threat, shots(), expected=EXPECTED, budget=TimeBudget(TOTAL / len(tools)))


def _opening(session: AttackSession) -> dict[_Tool, int]:
    """Return the tools that take a repository, each with the candidate arguments that worked.

    Empty if none of them showed the name in the commit of a plain repository.
    """
    tree = session.tree
    plain = tree.root / PLAIN
    _plant(session, plain, {})
    for style in Style:
        found, shows = {}, False
        for tool in _tools(session, style):
            for turn in range(CANDIDATES):
                call = tool.call(plain, tree.root, turn)
                reply = session.wire.request(*call, required=False)
                if not reply.answered:
                    session.renew()
                shows = shows or bool(session.canaries.found(reply, {Area.INSIDE}))
                if reply.result is not None and not reply.result.get("isError"):
                    found[tool] = turn
                    break
            found.setdefault(tool, 0)
        if shows:
            return found
    return {}


def _tools(session: AttackSession, style: Style) -> list[_Tool]:
    """Return the tools that take the path of a repository; those that change it come last."""
    is_offline = session.wire.process.sandbox is not None and not session.scene.target.online
    refused = DANGER - REMOTE if is_offline else DANGER
    found = []
    for tool in session.spoken.named("tools"):
        schema = tool.get("inputSchema") or {}
        paths = [slot for slot in slots(schema) if slot.role in PATHS]
        said = {*words(tool["name"]), *(w for slot in paths for w in words(str(slot.pointer[0])))}
        if not (paths and said & GIT) or said & refused or not session.claims.may_call(tool):
            continue
        first = min(paths, key=lambda slot: (slot.role is not ArgumentRole.BASE, not slot.needed))
        files = tuple(slot.pointer for slot in paths if slot is not first and slot.needed)
        found.append(_Tool(tool["name"], schema, first.pointer, files, style))
    return sorted(found, key=lambda tool: bool({*words(tool.name)} & CHANGES))


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Fill the names in braces into all strings of a JSON value."""
    if isinstance(value, dict):
        return {key: _filled(below, names) for key, below in value.items()}
    return fill(str(value), names)


def _plant(session: AttackSession, folder: SafePath, given: Mapping[str, Any]) -> None:
    """Make a repository with a file that was changed after its commit, and with differences."""
    where = session.tree.shown(folder)
    folder.mkdir()
    commit_name(folder, session.tree.canaries.name(where, Area.INSIDE))
    git = folder / git_repo.FOLDER
    (git / "config").append(str(given.get("config", "")).encode())
    texts_of = {".gitattributes": given.get("attributes", ""), **given.get("files", {})}
    hooks = {
        f"{git_repo.FOLDER}/hooks/{name}": text for name, text in given.get("hooks", {}).items()
    }
    for name, text in {**texts_of, **hooks}.items():
        path = folder / name
        if text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if "hooks/" in name else 0o644)
    if "moved" in given and given["moved"] != ".":
        git.rename(folder / given["moved"])
        git.write_text(f"gitdir: {given['moved']}\n")
    elif "moved" in given:
        for path in list(git.iterdir()):
            path.rename(folder / path.name)
        git.rmdir()
    if {"instead", "linked"} & {*given}:
        git.remove()
    if "instead" in given:
        git.write_text(given["instead"])
    if "linked" in given:
        git.symlink_to(given["linked"])
