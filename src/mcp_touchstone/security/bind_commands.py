"""Find the tools that run programs or code, by running harmless ones.

A program shows a file of the root. A line of code joins the two halves of a random word: only its
result has the whole word, so a tool that sends its input back runs nothing.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole, ArgumentSlot, assemble
from mcp_touchstone.bindings.binding import ROOT, Binding, Operation, Style, rooted
from mcp_touchstone.bindings.canary import Area, strings
from mcp_touchstone.bindings.command_line import code_slots, filled, folder_slots, ways_to_run
from mcp_touchstone.samples.from_schema import Places
from mcp_touchstone.security.fixture_tree import CONTROL, FixtureTree
from mcp_touchstone.wire.reply import Reply

SHOWING: Final = (
    "cat {file}",
    "head {file}",
    "tail {file}",
    "grep line {file}",
    "sort {file}",
    "nl {file}",
    "sed -n p {file}",
    "awk 1 {file}",
    "find {folder}",
    "ls {folder}",
    "tree {folder}",
    "git diff --no-index /dev/null {file}",
    """python3 -c 'print(open("{file}").read())'""",
    """node -e 'console.log(fs.readFileSync("{file}","utf8"))'""",
)
"""Command lines whose output contains the content of a file, or the names in a folder."""

CODE: Final = {
    "Python": (
        'print("{a}" + "{b}")',
        '"".join(("{a}", "{b}"))',
        'return "".join(("{a}", "{b}"))',
    ),
    "JavaScript": (
        'console.log("{a}" + "{b}")',
        '[..."{a}", "{b}"].join("")',
        'return [..."{a}", "{b}"].join("")',
    ),
    "SQL": ("SELECT '{a}' || '{b}'", "SELECT CONCAT('{a}', '{b}')"),
    "shell": ("echo {a}''{b}",),
}
"""Language -> lines that join ``{a}`` and ``{b}``, as none of the other languages does."""

PROBE: Final = "probe"
"""The folder of the root with a file that has a random name."""

SECONDS: Final = 10.0
"""Time limit for a command, in seconds, if a tool requires one."""

Ask = Callable[[str, dict[str, Any]], Reply]
"""Sends a request and returns its reply."""


def find(tools: Iterable[Mapping[str, Any]], ask: Ask, tree: FixtureTree) -> Iterator[Binding]:
    """Yield the tools that ran one of the programs, each with the commands that worked."""
    for tool in tools:
        trial = _Trial(tool, ask, tree)
        yield from islice(filter(None, map(trial.binding, ways_to_run(tool))), 1)


def languages(
    tools: Iterable[Mapping[str, Any]], ask: Ask, tree: FixtureTree
) -> dict[str, tuple[str, ...]]:
    """Return the tools that ran a line of code, each with the languages of these lines."""
    found = {tool["name"]: tuple(_run_by(tool, ask, tree)) for tool in tools}
    return {name: ran for name, ran in found.items() if ran}


def _run_by(tool: Mapping[str, Any], ask: Ask, tree: FixtureTree) -> Iterator[str]:
    """Yield the languages of which a tool runs a line."""
    schema = tool.get("inputSchema")
    places = Places(folder=str(tree.root), file=CONTROL, seconds=SECONDS)
    for language, lines in CODE.items():
        for slot, line in ((slot, line) for slot in code_slots(tool) for line in lines):
            first, second = secrets.token_hex(5), secrets.token_hex(5)
            text = line.replace("{a}", first).replace("{b}", second)
            arguments = assemble(schema, {slot.pointer: text}, places)
            reply = ask("tools/call", {"name": tool["name"], "arguments": arguments})
            if any(first + second in one for one in strings(reply.value or {})):
                yield language
                break


@dataclass(frozen=True)
class _Trial:
    """Runs the harmless programs through one tool."""

    tool: Mapping[str, Any]
    ask: Ask
    tree: FixtureTree

    def binding(self, way: tuple[ArgumentSlot, ...]) -> Binding | None:
        """Return the binding with the arguments that take the command; None if nothing ran."""
        schema = self.tool.get("inputSchema") or {}
        for style in Style:
            for known in dict.fromkeys([(*way, *folder_slots(schema, way)), way]):
                tried = {line: self._shown(known, line, style) for line in SHOWING}
                worked = {line: given for line, given in tried.items() if given is not None}
                if worked:
                    return Binding(
                        Operation.RUN,
                        self.tool["name"],
                        rooted(next(iter(worked.values())), str(self.tree.root), ROOT),
                        known,
                        (style,),
                        schema=schema,
                        commands=tuple(worked),
                    )
        return None

    def _shown(
        self, known: tuple[ArgumentSlot, ...], line: str, style: Style
    ) -> dict[str, Any] | None:
        """Run a command; return the arguments if its answer shows a file of the root."""
        root = str(self.tree.root)
        before = f"{root}/" if style is Style.ABSOLUTE else ""
        line = line.replace("{file}", before + CONTROL).replace("{folder}", f"{before}{PROBE}")
        values = {slot.pointer: root for slot in known if slot.role is ArgumentRole.BASE}
        places = Places(folder=root, file=CONTROL, seconds=SECONDS)
        schema = self.tool.get("inputSchema")
        arguments = assemble(schema, {**values, **filled(known, line)}, places)
        reply = self.ask("tools/call", {"name": self.tool["name"], "arguments": arguments})
        shown = self.tree.canaries.found_in_message(reply.value or {}, {Area.INSIDE})
        return arguments if shown else None
