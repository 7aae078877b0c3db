"""Find the arguments of a tool that take a command line, and write commands into them. Pure."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import (
    ArgumentRole,
    ArgumentSlot,
    Pointer,
    slots,
    texts,
)
from mcp_touchstone.samples.from_schema import required, words
from mcp_touchstone.wire.framing import object_in

RUNNING: Final = frozenset(
    {
        "exec",
        "execute",
        "run",
        "shell",
        "bash",
        "terminal",
        "process",
        "spawn",
        "command",
        "cmd",
    }
)
"""Words in the name of a tool that runs programs."""

COMMANDS: Final = frozenset({"command", "cmd", "commandline", "program", "executable", "argv"})
"""Words in the name of an argument that takes a command."""

OTHERS: Final = frozenset({"args", "arguments", "argv", "parameters", "params"})
"""Words in the name of an argument that takes the arguments of the program."""

FOLDERS: Final = frozenset({ArgumentRole.BASE, ArgumentRole.PATH})

CODE: Final = frozenset({"code", "script", "snippet", "sql", "python", "javascript", "js"})
"""Words in the name of an argument that takes a program text, or in the name of its tool."""

QUERIES: Final = frozenset({"query", "statement", "expression", "expr", "formula"})
"""Words in the name of an argument that may take a program text, too."""

EVALUATING: Final = frozenset({"eval", "evaluate", "repl", "shell", "bash", "terminal", "exec"})
"""Words in the name of a tool that runs what it is given, whatever its arguments are called."""


def ways_to_run(tool: Mapping[str, Any]) -> Iterator[tuple[ArgumentSlot, ...]]:
    """Yield the arguments that may take a command: one, or two for the program and its arguments.

    They may be members of other arguments, as ``steps[0].cmd``. If the name of a tool suggests that
    it runs programs, any argument may take the command.
    """
    schema = tool.get("inputSchema")
    known = {_argument(pointer): pointer for pointer in texts(schema)}
    commands = [name for name in known if COMMANDS & _last_words(name)]
    if not commands and RUNNING & {*words(tool["name"])}:
        folders = {slot.pointer for slot in slots(schema) if slot.role in FOLDERS}
        needed = [(name,) for name in required(schema)]
        commands = [n for n in known if n in needed and known[n] not in folders]
    for name in commands:
        command = ArgumentSlot(known[name], ArgumentRole.COMMAND, needed=True)
        if not _is_list(known[name]):
            for other, pointer in known.items():
                is_beside = other != name and other[:-1] == name[:-1]
                if is_beside and OTHERS & _last_words(other):
                    yield command, ArgumentSlot(pointer, ArgumentRole.WORDS, needed=True)
        yield (command,)


def code_slots(tool: Mapping[str, Any]) -> Iterator[ArgumentSlot]:
    """Yield the arguments that may take a program text, those with the plainest names first."""
    schema = tool.get("inputSchema")
    known = [pointer for pointer in texts(schema) if not _is_list(pointer)]
    plain = [pointer for pointer in known if len(pointer) == 1]
    named = [p for p in known if (COMMANDS | CODE) & _last_words(p)]
    named += [p for p in plain if p not in named and QUERIES & _last_words(p)]
    if not named and (RUNNING | EVALUATING | CODE) & {*words(tool["name"])}:
        named = [p for p in plain if p[0] in required(schema)]
    for pointer in named:
        yield ArgumentSlot(pointer, ArgumentRole.COMMAND, needed=True)


def says_it_runs(tool: Mapping[str, Any]) -> bool:
    """Return whether the name and arguments of a tool say that it runs programs or code.

    A tool that takes a command of a fixed list, or code to be formatted, does not.
    """
    name = {*words(tool["name"])}
    if name & EVALUATING:
        return True
    schema = tool.get("inputSchema")
    leaves = [(pointer, leaf_of(schema, pointer)) for pointer in texts(schema)]
    free = {
        word
        for pointer, leaf in leaves
        if not {"enum", "const", "oneOf"} & {*leaf}
        for part in pointer
        for word in words(str(part))
    }
    takes = bool(free & (COMMANDS | CODE))
    return bool(free & {"sql"}) or (
        bool(name & RUNNING) and (takes or bool(name & (CODE | COMMANDS | QUERIES)))
    )


def leaf_of(schema: Any, pointer: Pointer) -> Mapping[str, Any]:
    """Return the schema of a top-level argument; empty if there is none, or a reference."""
    return object_in(schema, "properties", str(pointer[0]))


def folder_slots(schema: Any, taken: Sequence[ArgumentSlot]) -> tuple[ArgumentSlot, ...]:
    """Return the arguments for the folder in which a command runs."""
    names = {slot.pointer[0] for slot in taken}
    return tuple(
        ArgumentSlot(slot.pointer, ArgumentRole.BASE, slot.needed)
        for slot in slots(schema)
        if slot.role in FOLDERS and slot.pointer[0] not in names
    )


def filled(known: Sequence[ArgumentSlot], line: str) -> dict[Pointer, Any]:
    """Return the values of the arguments for a command line."""
    by_role = {slot.role: slot.pointer for slot in known}
    command, others = by_role[ArgumentRole.COMMAND], by_role.get(ArgumentRole.WORDS)
    if others is None:
        return {command[:-1]: split(line)} if _is_list(command) else {command: line}
    if _is_list(others):
        program, *rest = split(line) or [""]
        return {command: program, others[:-1]: rest}
    program, _, text = line.partition(" ")
    return {command: program, others: text}


def split(line: str) -> list[str]:
    """Split a command line at spaces, as a shell does; line feeds are kept."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " ", True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote without an end
        return line.split(" ")


def _argument(pointer: Pointer) -> Pointer:
    """Return the path of an argument: that of the list, for one of its elements."""
    return pointer[:-1] if _is_list(pointer) else pointer


def _last_words(pointer: Pointer) -> set[str]:
    return {*words(str(pointer[-1]))}


def _is_list(pointer: Pointer) -> bool:
    return isinstance(pointer[-1], int)
