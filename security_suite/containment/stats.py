"""Size, time and names of files outside, in answers that hold no content of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.security.suite import (
    BRIEF,
    FILE,
    Area,
    ArgumentRole,
    AttackCall,
    AttackSession,
    Binding,
    Call,
    FileFacts,
    Operation,
    Place,
    Places,
    Pointer,
    Reply,
    Style,
    TimeBudget,
    assemble,
    attack,
    attack_calls,
    fill,
    found_if,
    unique,
    ways,
)

TREES: Final = ("base", "siblings", "links", "dated")

DATED: Final = "dated.txt"
"""The file outside with a size and a time of its own."""

STEP: Final = "step"
"""The link outside, which leads to the file with a random name."""

LINKS: Final = "dated"
"""The folder of the root with links to the file outside."""

PATHS: Final = frozenset({ArgumentRole.PATH, ArgumentRole.BASE})

PURSE: Final = 20.0
"""Seconds that may be spent on one tool."""

EXPECTED: Final = "neither size nor time nor name of a file outside comes back"

UNDESCRIBED: Final = "no tool showed the size or the time of plain files"

ELSEWHERE: Final = "the tools that show sizes or times also read or list: see traversal"

UNCALLED: Final = "no tool takes a path and nothing else"


@attack("stats-links", fixtures=TREES, place=Place.REUSED)
def describes_nothing_behind_links(session: AttackSession) -> None:
    """Neither size nor time of the target of a link outside is returned."""
    _describe(session, "stats-links", "stat.link")


@attack("stats-paths", fixtures=TREES, place=Place.REUSED)
def describes_nothing_outside(session: AttackSession) -> None:
    """Neither size nor time of a file outside is returned."""
    _describe(session, "stats-paths", "stat.path")


@attack("stats-names", fixtures=TREES, place=Place.REUSED)
def names_nothing_behind_links(session: AttackSession) -> None:
    """The name of a file behind links outside is not returned."""
    session.begin()
    _plant(session)
    root = str(session.tree.root)
    tools = [
        tool
        for style in Style
        for tool in _tools(session, style)
        if not session.canaries.leaks_anyway(tool.call(FILE, root))
    ]
    if tools:
        _fire(session, "stats-names", "stat.name", tools)
    else:
        session.judge.unseen("stats-names", UNCALLED)


@dataclass(frozen=True)
class _PathTool:
    """A tool that takes a path and nothing else.

    Attributes:
        schema: its inputSchema.
        fixed: arguments that are the same in each call.
        paths: the arguments for the path.
        style: the form of the path.
    """

    name: str
    schema: Mapping[str, Any]
    fixed: Mapping[Pointer, Any]
    paths: tuple[Pointer, ...]
    style: Style

    def call(self, path: str, root: str) -> Call:
        """Return the call on a path."""
        absolute = self.style is Style.ABSOLUTE and not path.startswith("/")
        text = f"{root}/{path}" if absolute else path
        places = Places(folder=root, file=FILE, seconds=BRIEF)
        values = {**self.fixed, **dict.fromkeys(self.paths, text)}
        arguments = assemble(self.schema, values, places)
        return "tools/call", {"name": self.name, "arguments": arguments}


def _describe(session: AttackSession, threat: str, group: str) -> None:
    """Ask the tools that describe plain files for files outside."""
    session.begin()
    facts = _plant(session)
    tools = _describing(session)
    if tools:
        _fire(session, threat, group, tools, facts)
    else:
        session.judge.unseen(threat, UNDESCRIBED)


def _fire(
    session: AttackSession,
    threat: str,
    group: str,
    tools: list[_PathTool],
    facts: FileFacts | None = None,
) -> None:
    """Send the payloads to the tools, and look for the size and the time in the answers."""
    tree = session.tree
    root = str(tree.root)
    after: tuple[str, ...] = ()
    if facts is not None:
        grep = f"""grep -Eq '{facts.pattern}' "$D.said\""""
        after = (found_if(grep, "size or time came back"),)

    attacked = {one.tool for one in session.bindings.of(Operation.READ, Operation.LIST)}
    shots = []
    for row in session.payloads(group):
        text = fill(row.text, {**tree.names, "dated": DATED})
        for tool in tools:
            if facts is not None and text != LINKS and tool.name in attacked:
                continue  # the same path is a finding of traversal or links
            binding = Binding(Operation.CALL, tool.name, styles=(tool.style,))
            call = tool.call(text, root)
            shots.append(AttackCall(row, text, binding, call, live=True, after=after))
    if not shots:
        session.judge.unseen(threat, ELSEWHERE)
        return

    def look(_shot: AttackCall, reply: Reply) -> str:
        known = facts.shown_in(json.dumps(reply.value)) if facts is not None else ""
        return f"the {known} of {tree.outside.name}/{DATED} came back" if known else ""

    attack_calls(session, threat, shots, oracle=look, expected=EXPECTED, budget=TimeBudget(PURSE))


def _plant(session: AttackSession) -> FileFacts:
    """Make the file and the link outside; return the size and the time of the file."""
    tree, facts = session.tree, unique(2)
    dated, step = tree.outside / DATED, tree.outside / STEP
    name = next(
        one.token
        for one in tree.canaries.planted
        if one.is_name and one.area is Area.OUTSIDE and one.where.startswith(tree.outside.name)
    )
    tree.made += [
        f'truncate -s {facts.size} "{dated}"; TZ=UTC touch -t {facts.stamp} "{dated}"',
        f'ln -s "{tree.outside}/{name}" "{step}"',
    ]
    dated.write_bytes(bytes(facts.size), facts.time)
    step.symlink_to(tree.outside / name)
    tree.accept_outside()
    return facts


def _describing(session: AttackSession) -> list[_PathTool]:
    """Return the tools that showed the size or the time of two files, or of those in a folder.

    Each file has a size and a time of its own, so a number that occurs by chance is no match.
    """
    tree = session.tree
    names = ("plain0.txt", "plain1.txt")
    folder = tree.root / "described"
    folder.mkdir()
    files = {f"described/{name}": unique(number) for number, name in enumerate(names)}
    for path, facts in files.items():
        (tree.root / path).write_bytes(bytes(facts.size), facts.time)

    def shows(tool: _PathTool, path: str, facts: FileFacts) -> bool:
        reply = session.wire.request(*tool.call(path, str(tree.root)), required=False)
        if not reply.answered:
            session.renew()
        return bool(reply.answered and facts.shown_in(json.dumps(reply.value)))

    found: list[_PathTool] = []
    for style in Style:
        for tool in _tools(session, style):
            if any(tool.name == other.name and tool.fixed == other.fixed for other in found):
                continue
            one = all(shows(tool, path, facts) for path, facts in files.items())
            if one or all(shows(tool, "described", facts) for facts in files.values()):
                found.append(tool)
    return found


def _tools(session: AttackSession, style: Style) -> list[_PathTool]:
    """Return the ways to call tools that take a path and nothing else."""
    found = []
    for tool in session.spoken.named("tools"):
        if not session.claims.may_call(tool):
            continue
        for way in ways(tool, session.claims.callable_tools):
            if way.roles and way.roles <= PATHS:
                schema = way.tool.get("inputSchema") or {}
                paths = tuple(slot.pointer for slot in way.slots)
                found.append(_PathTool(tool["name"], schema, way.fixed, paths, style))
    return found
