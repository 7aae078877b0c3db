"""Tools that run programs from a list or inside a folder.

Plain commands show which programs a tool permits and which it refuses. An attack is a command that
has the effect of a refused one: a file appears, or bytes from outside are returned.
"""

import itertools
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mcp_touchstone.security.suite import (
    CANARY,
    FILE,
    FOLDER,
    PATIENCE,
    SECRET,
    ArgumentRole,
    AttackCall,
    AttackSession,
    Binding,
    Breach,
    Call,
    Canary,
    Operation,
    Payload,
    Reply,
    SafePath,
    TimeBudget,
    attack,
    attack_calls,
    command_line,
    fill,
    found_if,
    scripted_calls,
    shown,
    whose,
)

TREES: Final = ("base", "siblings", "links")

MAKING: Final = (
    "touch {mark}",
    "mkdir {mark}",
    "mkfifo {mark}",
    "cp {file} {mark}",
    "ln {file} {mark}",
    "link {file} {mark}",
    "install {file} {mark}",
)
"""Plain commands that make a file of the root; none has an option."""

BINARIES: Final = "/usr/bin"

PURSE: Final = 40.0
"""Seconds that may be spent on one tool."""

EXPECTED: Final = "no refused program runs, nothing appears outside, no byte from there comes back"

PRIVATE: Final = "no file and no name from outside comes back"

NO_LIST: Final = "each plain command was run: the tool has no list of programs"

NO_READER: Final = "no program that showed a file or a folder takes its path as the last word"

NO_FOLDER: Final = "plain paths outside are read in any form, so the tool may promise no folder"


@attack("commands-unlisted", fixtures=TREES, lasts=True)
def runs_no_refused_program_by_another_name(session: AttackSession) -> None:
    """A program that is refused by its plain name is not run by another name either."""
    _past_the_list(session, "commands-unlisted", "cmd.unlisted")


@attack("commands-shell", fixtures=TREES, lasts=True)
def reads_no_shell_text_in_a_command(session: AttackSession) -> None:
    """Text of a shell in a command line starts no refused program and writes nothing outside."""
    _past_the_list(session, "commands-shell", "cmd.shell")


@attack("commands-options", fixtures=TREES, lasts=True)
def permits_no_option_that_writes_or_runs(session: AttackSession) -> None:
    """Options of a listed program run no refused program and write nothing outside."""
    _past_the_list(session, "commands-options", "cmd.option")


@attack("commands-folder", fixtures=TREES, lasts=True)
def keeps_programs_in_the_folder(session: AttackSession) -> None:
    """Programs return no file and no name from outside the root."""
    threat = "commands-folder"
    session.begin()
    plain = {tool: _plain_reads(session, tool) for tool in _tools(session)}
    reads = [read for some in plain.values() for read in some]
    kept = [tool for tool, some in plain.items() if not all(read.leaks for read in some)]
    if kept:
        rows = session.payloads("cmd.folder", via="command")
        _fire(session, threat, rows, {tool: tool.names() for tool in kept}, PRIVATE)
    elif reads:
        first = reads[0]
        session.judge.conclude(
            threat,
            f"{whose(first.leaks[0])} came back: {shown(first.call)}",
            expected=PRIVATE,
            at=first.reply,
            mild=Breach.NOTE,
            because=NO_FOLDER,
            script=scripted_calls(session.scene, CANARY, first.call),
        )
    else:
        session.judge.unseen(threat, NO_READER)


@dataclass(frozen=True)
class _CommandTool:
    """A tool that runs programs.

    Attributes:
        binding: the tool, and the commands that it has run.
    """

    binding: Binding

    def __hash__(self) -> int:
        return hash(self.binding.tool)

    def call(self, line: str, root: str) -> Call:
        """Return the call that runs a command line in the root."""
        slots = self.binding.slots
        folders = {slot.pointer: root for slot in slots if slot.role is ArgumentRole.BASE}
        return self.binding.calls_with({**folders, **command_line.filled(slots, line)}, root)

    def names(self) -> dict[str, str]:
        """Return the values of the names in braces that follow from the listed commands."""
        lines = self.binding.commands
        found = {"file": FILE, "file_name": FILE}
        for name, end in (("reader", " {file}"), ("lister", " {folder}")):
            fitting = [line.removesuffix(end) for line in lines if line.endswith(end)]
            found |= {name: fitting[0]} if fitting else {}
        found["listed"] = lines[0].replace("{file}", FILE).replace("{folder}", FOLDER)
        found["listed_program"] = lines[0].split(" ")[0]
        return found


@dataclass(frozen=True)
class _PlainRead:
    """A call that reads outside by a plain path, and the canaries in its answer."""

    call: Call
    reply: Reply
    leaks: list[Canary]


def _tools(session: AttackSession) -> list[_CommandTool]:
    return [_CommandTool(binding) for binding in session.bindings.of(Operation.RUN)]


def _asked(session: AttackSession, call: Call) -> Reply:
    """Send a call; continue with another process if it gets no answer."""
    reply = session.wire.request(*call, required=False, seconds=PATIENCE)
    if not reply.answered:
        session.renew()
    return reply


def _plain_reads(session: AttackSession, tool: _CommandTool) -> list[_PlainRead]:
    """Read a file outside, or names, by an absolute path and by a climb."""
    tree, names = session.tree, tool.names()
    begin, end = names.get("reader", names.get("lister")), f"/{CANARY}" * ("reader" in names)
    found = []
    for folder in (tree.outside, f"../{tree.outside.name}") if begin else ():
        call = tool.call(f"{begin} {folder}{end}", str(tree.root))
        reply = _asked(session, call)
        found.append(_PlainRead(call, reply, session.canaries.found(reply, SECRET)))
    return found


def _refused(session: AttackSession, tool: _CommandTool) -> dict[str, str]:
    """Return the names in braces for a program that the tool refuses; empty if it runs all.

    A program counts as refused if a plain command of it does not make its file.
    """
    root = session.tree.root
    for line in MAKING:
        mark = f"mark-{secrets.token_hex(4)}"
        plain = fill(line, {"mark": mark, "file": FILE})
        _asked(session, tool.call(plain, str(root)))
        made = (root / mark).exists()
        (root / mark).remove()
        if not made:
            return {
                "mark": mark,
                "unlisted": plain,
                "unlisted_path": f"{BINARIES}/{plain}",
                "planted": f"run-{mark}",
            }
    return {}


def _past_the_list(session: AttackSession, threat: str, group: str) -> None:
    """Send commands to the tools that have a list, each with a program that is not on it."""
    session.begin()
    refused = {tool: _refused(session, tool) for tool in _tools(session)}
    names = {tool: tool.names() | own for tool, own in refused.items() if own}
    if names:
        _fire(session, threat, session.payloads(group, via="command"), names, EXPECTED)
    else:
        session.judge.unseen(threat, NO_LIST)


def _fire(
    session: AttackSession,
    threat: str,
    rows: Iterable[Payload],
    names: Mapping[_CommandTool, Mapping[str, str]],
    expected: str,
) -> None:
    """Send the payloads to the tools, and look for the files that they would make."""
    root = session.tree.root
    known = {path.name for path in root.iterdir()}

    def shots() -> Iterator[AttackCall]:
        for (tool, own), row in itertools.product(names.items(), rows):
            text = fill(row.text, {**session.tree.names, **own})
            if "{reader}" in text or "{lister}" in text:
                continue
            before = [
                _plant(root, own[name], own["mark"])
                for name in ("planted", "listed_program")
                if f"/{{{name}}}" in row.text or row.text.startswith("PATH=")
            ]
            mark = own.get("mark", "")
            after = [found_if(f'[ -e "{root}/{mark}" ]', "a refused program ran")] * bool(mark)
            call = tool.call(text, str(root))
            yield AttackCall(
                row, text, tool.binding, call, True, before=(*before,), after=(*after,)
            )

    def look(_shot: AttackCall, _reply: Reply) -> str:
        new = [path for path in root.iterdir() if path.name not in known]
        made = {path.name for path in new} & {own.get("mark") for own in names.values()}
        for path in new:
            path.remove()
        return "".join(f"{root.name}/{name} was made" for name in made)

    attack_calls(session, threat, shots(), oracle=look, expected=expected, budget=TimeBudget(PURSE))


def _plant(root: SafePath, name: str, mark: str) -> str:
    """Write a program that makes the mark into the root; return the shell line that does so."""
    program = root / name
    text = f"#!/bin/sh\n: > {root}/{mark}\n"
    program.write_text(text)
    program.chmod(0o755)
    shell = text.replace("\n", "\\n")
    return f'printf "{shell}" > "{program}"; chmod +x "{program}"'
