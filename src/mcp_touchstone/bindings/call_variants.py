"""Find the ways to call a tool, from its definition alone; their effect is unknown. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import (
    FOLDERS,
    LINES,
    NAMES,
    ArgumentRole,
    ArgumentSlot,
    Pointer,
    described,
    dry_run,
    named_slots,
    slots,
    texts,
)
from mcp_touchstone.bindings.binding import Binding
from mcp_touchstone.bindings.file_naming import PATH
from mcp_touchstone.samples.from_schema import required, words
from mcp_touchstone.wire.framing import object_in, value_in

DANGER: Final = frozenset(
    {
        "exec",
        "execute",
        "run",
        "shell",
        "bash",
        "terminal",
        "process",
        "kill",
        "spawn",
        "eval",
        "fetch",
        "http",
        "url",
        "web",
        "browser",
        "download",
        "upload",
        "send",
        "email",
        "push",
        "pull",
        "clone",
        "deploy",
        "install",
        "publish",
        "delete",
        "remove",
        "unlink",
        "rm",
        "trash",
        "purge",
        "destroy",
        "drop",
        "reset",
        "restart",
        "shutdown",
        "config",
    }
)
"""A tool with one of these words in its name is called only if the user names it."""

HARMLESS: Final = frozenset(
    {
        "add",
        "append",
        "apply",
        "cat",
        "copy",
        "create",
        "dir",
        "edit",
        "find",
        "get",
        "glob",
        "grep",
        "insert",
        "list",
        "ls",
        "make",
        "mkdir",
        "modify",
        "move",
        "new",
        "open",
        "patch",
        "read",
        "rename",
        "replace",
        "restore",
        "revert",
        "rollback",
        "save",
        "search",
        "show",
        "stage",
        "stat",
        "tree",
        "undo",
        "update",
        "view",
        "write",
    }
)
"""A value of a switch is used only if it contains one of these words, or the user names the tool.

The effect of any other value cannot be guessed.
"""

SWITCHES: Final = frozenset({"command", "action", "operation", "op", "mode", "method"})
"""Names of a switch: an argument that selects one of several functions of a tool."""

OPTIONAL: Final[tuple[frozenset[ArgumentRole], ...]] = (
    frozenset(),
    frozenset({ArgumentRole.CONTENT}),
    frozenset({ArgumentRole.OLD, ArgumentRole.NEW}),
    frozenset({ArgumentRole.NEW}),
    frozenset({ArgumentRole.NEW, ArgumentRole.LINE}),
    frozenset({ArgumentRole.CONTENT, ArgumentRole.LINE}),
    frozenset({ArgumentRole.DIFF}),
)
"""Sets of roles of optional arguments; the roles of a set are filled together."""

_TEXT: Final = {"type": "string"}


def _guess(*names: str, **more: Any) -> dict[str, Any]:
    properties = {**dict.fromkeys(names, _TEXT), **more}
    return {"type": "object", "properties": properties, "required": list(properties)}


GUESSES: Final[tuple[tuple[frozenset[str], dict[str, Any]], ...]] = (
    (
        frozenset({"multiple", "many", "batch", "files", "notes", "documents"}),
        _guess(paths={"type": "array", "items": _TEXT}),
    ),
    (frozenset({"move", "rename", "copy"}), _guess("source", "destination")),
    (
        frozenset({"edit", "replace", "modify", "update"}),
        _guess("path", edits={"type": "array", "items": _guess("oldText", "newText")}),
    ),
    (frozenset({"edit", "replace"}), _guess("path", "old_string", "new_string")),
    (frozenset({"write", "create", "save", "append", "edit"}), _guess("path", "content")),
    (frozenset({"search", "find", "grep", "glob"}), _guess("path", "pattern")),
    (frozenset({"read", "view", "get", "open", "list", "tree", "create", "cat"}), _guess("path")),
    (frozenset({"read", "view", "get", "open", "cat"}), _guess("file_path")),
)
"""Words in the name of a tool -> schema of the arguments it probably takes.

Used for tools whose schema names no arguments.
"""


UNDOING: Final = frozenset({"undo", "revert", "restore", "rollback"})
"""Words in the name of a tool, or in the value of its switch, that may undo an edit."""

DELETING: Final = frozenset({"delete", "remove", "unlink", "rm", "trash"})
"""Words in the name of a tool that may delete files; it is called only if the user names it."""

STAGING: Final = frozenset({"add", "stage"})
"""Words in the name of a tool that may add files to a git repository."""

MAKING: Final = frozenset({"mkdir", "make", "create", "new", "add", "init"})
"""Words in the name of a tool that may create folders."""


@dataclass(frozen=True, slots=True)
class CallVariant:
    """One way to call a tool.

    Attributes:
        fixed: path -> value, for arguments that are the same in every call, such as a switch.
        slots: the arguments that are filled in each call.
        form: the text around the path.
        places: the fixed values that name a place such as a vault or a project.
    """

    tool: Mapping[str, Any]
    fixed: Mapping[Pointer, Any]
    slots: tuple[ArgumentSlot, ...]
    form: str = PATH
    places: Mapping[Pointer, Any] = field(default_factory=dict)

    @property
    def roles(self) -> set[ArgumentRole]:
        """The roles of the slots."""
        return {slot.role for slot in self.slots}

    @property
    def words(self) -> set[str]:
        """The words in the name of the tool and in the fixed values."""
        return {*words(self.tool["name"]), *(w for v in self.fixed.values() for w in words(str(v)))}


def ways(tool: Mapping[str, Any], named: Collection[str] = ()) -> Iterator[CallVariant]:
    """Yield the ways to call a tool that seems to take a path and to be harmless.

    Args:
        named: names of tools that the user allowed to be called, with any value of a switch.
    """
    name = tool["name"]
    if name not in named and {*words(name)} & DANGER:
        return
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and not schema.get("properties"):
        for words_, guess in GUESSES:
            if {*words(name)} & words_:
                guessed = {**tool, "inputSchema": guess}
                yield from _filled(guessed, named, _paths(guess))
        return
    yield from _filled(tool, named, _paths(schema))


FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    "file://{path}": re.compile(r"file:/|\bur[il]s?\b", re.IGNORECASE),
    "@{path}": re.compile(r"(?<![\w.])@[\w{<./]*(file|path|name|\.\w)", re.IGNORECASE),
}
"""Text around a path -> pattern that the name or the description of its argument matches."""

COMMANDS: Final = ("cat {path}", "ls {path}")
"""Command lines with a path, for an argument that takes such a line."""

MOST_NAMES: Final = 2
MOST_VALUES: Final = 3


def more_ways(
    tool: Mapping[str, Any], named: Collection[str] = (), listed: Collection[str] = ()
) -> Iterator[CallVariant]:
    """Yield further ways to call a tool, for servers that do not take a path in one argument.

    These are a folder and a name in two arguments, a title as a name, a listed name instead of a
    base folder, and a path inside a URI or a command line.
    """
    if tool["name"] not in named and {*words(tool["name"])} & DANGER:
        return
    schema = tool.get("inputSchema")
    for paths, form in _placements(schema):
        for fixed in _named_places(schema, paths, listed):
            yield from _filled(tool, named, paths, fixed, form)


def _placements(schema: Any) -> Iterator[tuple[list[ArgumentSlot], str]]:
    """Yield arguments that together may take a path, and the text around the path."""
    primary = _paths(schema)
    folders = named_slots(schema, FOLDERS, ArgumentRole.FOLDER)
    names = named_slots(schema, NAMES, ArgumentRole.NAME)[:MOST_NAMES]
    for name in names:
        beside = [one for one in folders if one.pointer != name.pointer]
        for folder in beside[:1]:
            yield [folder, name], PATH
    if primary:
        yield primary, PATH
    for name in names:
        if [one.pointer for one in primary] != [name.pointer]:
            yield [replace(name, role=ArgumentRole.PATH)], PATH
    for pointer in texts(schema)[:MOST_SLOTS]:
        leaf = described(schema, pointer)
        said = f"{pointer[-1]} {leaf.get('description', '')} {leaf.get('format', '')}"
        for form, pattern in FORMS.items():
            if pattern.search(said):
                yield [ArgumentSlot(pointer, ArgumentRole.PATH, needed=True)], form
    for line in named_slots(schema, LINES, ArgumentRole.PATH)[:1]:
        for form in COMMANDS:
            yield [line], form


MOST_SLOTS: Final = 20
MOST_FOLDERS: Final = 3


def beside(known: Binding, tool: Mapping[str, Any]) -> Iterator[CallVariant]:
    """Yield the call of a binding with its path in two arguments, the folder in an unused one."""
    paths = [slot for slot in known.slots if slot.role is ArgumentRole.PATH]
    if len(paths) != 1 or known.has(ArgumentRole.NAME):
        return
    schema = tool.get("inputSchema")
    bases = {one.pointer for one in slots(schema) if one.role is ArgumentRole.BASE}
    places = named_slots(schema, FOLDERS, ArgumentRole.FOLDER)
    used = {slot.pointer for slot in known.slots} | bases  # bases-argument attacks a base
    kept = [slot for slot in known.slots if slot.role not in {ArgumentRole.PATH, ArgumentRole.BASE}]
    fixed: dict[Pointer, Any] = {
        (name,): value for name, value in known.arguments.items() if name not in known.filled
    }
    for pointer in islice(
        dict.fromkeys(p.pointer for p in places if p.pointer not in used), MOST_FOLDERS
    ):
        folder = ArgumentSlot(pointer, ArgumentRole.FOLDER, needed=True)
        name = replace(paths[0], role=ArgumentRole.NAME)
        others = {p: value for p, value in fixed.items() if p != pointer}
        yield CallVariant(tool, others, (folder, name, *kept), known.naming.form)


def _named_places(
    schema: Any, paths: list[ArgumentSlot], listed: Collection[str]
) -> Iterator[dict[Pointer, Any]]:
    """Yield values for a required argument that names a place such as a vault or a project."""
    used = {one.pointer for one in paths}
    bases = [one for one in slots(schema) if one.role is ArgumentRole.BASE]
    others = [*bases, *named_slots(schema, FOLDERS, ArgumentRole.BASE)]
    open_ = [one for one in others if one.needed and one.pointer not in used]
    yield {}
    for one in open_[:1]:
        options = described(schema, one.pointer).get("enum")
        values = options[1:] if isinstance(options, list) else listed
        for value in list(values)[:MOST_VALUES]:
            yield {one.pointer: value}


_PATHS: Final = frozenset({ArgumentRole.PATH, ArgumentRole.FROM, ArgumentRole.TO})


def _paths(schema: Any) -> list[ArgumentSlot]:
    """Return the arguments that take a path: the required ones, else the first."""
    paths = [slot for slot in slots(schema) if slot.role in _PATHS]
    return [slot for slot in paths if slot.needed] or paths[:1]


def _filled(
    tool: Mapping[str, Any],
    named: Collection[str],
    needed: list[ArgumentSlot],
    places: Mapping[Pointer, Any] = MappingProxyType({}),
    form: str = PATH,
) -> Iterator[CallVariant]:
    """Yield the ways to fill the arguments of a tool, with the path in the needed ones."""
    schema = tool.get("inputSchema")
    used = {slot.pointer for slot in needed} | {*places}
    known = [slot for slot in slots(schema) if slot.pointer not in used]
    if not needed:
        return
    dry: dict[Pointer, Any] = {(name,): False} if (name := dry_run(schema)) else {}
    for switch in _switched(schema, is_named=tool["name"] in named):
        fixed = {**switch, **places, **dry}
        for wanted in OPTIONAL:
            extra = [s for s in known if not s.needed and s.role in wanted]
            if {s.role for s in extra} != wanted:
                continue
            if ArgumentRole.DIFF in wanted:
                extra += [s for s in known if s.role is ArgumentRole.HASH]
            given = [s for s in known if s.needed and s.role not in _PATHS]
            filled = tuple(dict.fromkeys([*needed, *given, *extra]))
            yield CallVariant(tool, fixed, filled, form, places)


def _switched(schema: Any, *, is_named: bool) -> Iterator[dict[Pointer, Any]]:
    """Yield the values of the switch, by path; one empty mapping if the tool has no switch."""
    for name, below in object_in(schema, "properties").items():
        values = value_in(below, "enum")
        if name in required(schema) and name.lower() in SWITCHES and isinstance(values, list):
            for value in values:
                said = {*words(value)} if isinstance(value, str) else set()
                if is_named or (said & HARMLESS and not said & DANGER):
                    yield {(name,): value}
            return
    yield {}
