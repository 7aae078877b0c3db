"""Find the ways to call a tool, from its definition alone; their effect is unknown. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import (
    ArgumentRole,
    ArgumentSlot,
    Pointer,
    dry_run,
    slots,
)
from mcp_touchstone.samples.from_schema import required, words

DANGER: Final = frozenset({
    "exec", "execute", "run", "shell", "bash", "terminal", "process", "kill", "spawn", "eval",
    "fetch", "http", "url", "web", "browser", "download", "upload", "send", "email", "push",
    "pull", "clone", "deploy", "install", "publish", "delete", "remove", "unlink", "rm", "trash",
    "purge", "destroy", "drop", "reset", "restart", "shutdown", "config",
})  # fmt: skip
"""A tool with one of these words in its name is called only if the user names it."""

HARMLESS: Final = frozenset({
    "add", "append", "apply", "cat", "copy", "create", "dir", "edit", "find", "get", "glob", "grep",
    "insert", "list", "ls", "make", "mkdir", "modify", "move", "new", "open", "patch", "read",
    "rename", "replace", "restore", "revert", "rollback", "save", "search", "show", "stage", "stat",
    "tree", "undo", "update", "view", "write",
})  # fmt: skip
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
)  # fmt: skip
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
        tool: the definition of the tool.
        fixed: path -> value, for arguments that are the same in every call, such as a switch.
        slots: the arguments that are filled in each call.
    """

    tool: Mapping[str, Any]
    fixed: Mapping[Pointer, Any]
    slots: tuple[ArgumentSlot, ...]

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
        tool: the definition of the tool.
        named: names of tools that the user allowed to be called, with any value of a switch.
    """
    name = tool["name"]
    if name not in named and {*words(name)} & DANGER:
        return
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and not schema.get("properties"):
        for words_, guess in GUESSES:
            if {*words(name)} & words_:
                yield from _filled({**tool, "inputSchema": guess}, named)
        return
    yield from _filled(tool, named)


def _filled(tool: Mapping[str, Any], named: Collection[str]) -> Iterator[CallVariant]:
    """Yield the ways to fill the arguments in the schema of a tool."""
    schema = tool.get("inputSchema")
    known = slots(schema)
    paths = [s for s in known if s.role in {ArgumentRole.PATH, ArgumentRole.FROM, ArgumentRole.TO}]
    needed = [s for s in paths if s.needed] or paths[:1]
    if not needed:
        return
    for fixed in _switched(schema, is_named=tool["name"] in named):
        if name := dry_run(schema):
            fixed |= {(name,): False}
        for wanted in OPTIONAL:
            extra = [s for s in known if not s.needed and s.role in wanted]
            if {s.role for s in extra} != wanted:
                continue
            hashes = (
                [s for s in known if s.role is ArgumentRole.HASH]
                if ArgumentRole.DIFF in wanted
                else []
            )
            given = [s for s in known if s.needed and s not in paths]
            yield CallVariant(tool, fixed, tuple(dict.fromkeys([*needed, *given, *extra, *hashes])))


def _switched(schema: Any, *, is_named: bool) -> Iterator[dict[Pointer, Any]]:
    """Yield the values of the switch, by path; one empty mapping if the tool has no switch."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, below in (properties or {}).items():
        values = below.get("enum") if isinstance(below, dict) else None
        if name in required(schema) and name.lower() in SWITCHES and isinstance(values, list):
            for value in values:
                said = {*words(value)} if isinstance(value, str) else set()
                if is_named or (said & HARMLESS and not said & DANGER):
                    yield {(name,): value}
            return
    yield {}
