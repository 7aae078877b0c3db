"""The description, the input schema and the output schema of ``text_editor``. Pure."""

from __future__ import annotations

from ...failure import ToolError
from ...tools.schemas import CONFIRM, CWD, inputs, outputs
from ...tools.text import FACTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...protocol.toolbox import Arguments
    from ...settings import Settings

COMMANDS: dict[str, tuple[str, ...]] = {
    "view": (),
    "create": ("file_text",),
    "str_replace": ("old_str", "new_str"),
    "insert": ("insert_line", "new_str"),
    "undo_edit": (),
}
"""Command -> its required arguments besides ``path``."""

_OF_ALL = {"command", "path", "cwd", "confirm_token"}
_OPTIONAL = {"view": {"view_range"}}

_VIEWING = (
    "view: a file as numbered lines (number, tab, line; the numbers are not in the file), all of "
    "them or view_range [first, last] counted from 1, last -1 for the end; a directory as the "
    "names in it, two levels deep."
)
_DESCRIPTION = (
    "View, create and edit text files below the root. Commands:\n"
    f"- {_VIEWING}\n"
    "- create: make a new file with file_text. It refuses a file that exists.\n"
    "- str_replace: put new_str in the place of old_str, which must occur exactly once, white "
    "space included. Copy enough lines around the change to make it unique.\n"
    "- insert: put new_str (or insert_text) as whole lines after line insert_line; 0 puts it at "
    "the top.\n"
    "- undo_edit: take back the last edit this tool made to the file. It refuses a file that "
    "somebody else has changed since.\n"
    "View a file before editing it. Newlines in arguments are LF whatever the file has; newline "
    "style, encoding, byte order mark and permissions of the file are kept."
)
_DESCRIPTION_READ_ONLY = (
    f"View text files and directories below the root; nothing is written. Command {_VIEWING}"
)


def description(settings: Settings) -> str:
    return _DESCRIPTION_READ_ONLY if settings.read_only else _DESCRIPTION


def checked(command: str, arguments: Arguments) -> Arguments:
    """Check that the arguments belong to the command; the schema does not distinguish commands.

    Returns:
        The arguments, with ``insert_text`` as ``new_str``.
    """
    if command == "insert" and "insert_text" in arguments:
        arguments = {"new_str": arguments["insert_text"], **arguments}
        if arguments.pop("insert_text") != arguments["new_str"]:
            raise ToolError(
                "new_str and insert_text differ; send one of them. Nothing was done.",
                code="INVALID_ARGUMENTS",
                field="insert_text",
            )
    needed = COMMANDS[command]
    for name in needed:
        if name not in arguments:
            raise ToolError(f"{command} needs {name}.", code="INVALID_ARGUMENTS", field=name)
    strange = set(arguments) - _OF_ALL - set(needed) - _OPTIONAL.get(command, set())
    for name in sorted(strange):
        raise ToolError(
            f"{command} takes no {name}; nothing was done.", code="INVALID_ARGUMENTS", field=name
        )
    return arguments


def input_schema(settings: Settings) -> dict[str, Any]:
    commands = list(COMMANDS)[: 1 if settings.read_only else None]
    properties: dict[str, Any] = {
        "command": {
            "type": "string",
            "enum": commands,
            "description": (
                "What to do. The operator has made this server read-only, so it can only view."
                if settings.read_only
                else "What to do."
            ),
        },
        "path": {
            "type": "string",
            "minLength": 1,
            "description": (
                "File, or directory to view; relative to the root (or to cwd), with forward "
                "slashes. '.' is the root itself."
            ),
        },
        "cwd": CWD,
        "view_range": {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 2,
            "maxItems": 2,
            "description": "view of a file: first and last line, from 1; -1 as last is the end.",
        },
    }
    if settings.read_only:
        return inputs(("command", "path"), **properties)
    properties |= {
        "file_text": {"type": "string", "description": "create: all of the new file."},
        "old_str": {
            "type": "string",
            "minLength": 1,
            "description": "str_replace: text that occurs exactly once in the file.",
        },
        "new_str": {
            "type": "string",
            "description": "str_replace: the replacement; empty deletes. insert: the lines.",
        },
        "insert_text": {
            "type": "string",
            "description": "insert: the same as new_str; one of them is enough.",
        },
        "insert_line": {
            "type": "integer",
            "minimum": 0,
            "description": "insert: number of the line to insert after; 0 is the top.",
        },
    }
    if settings.confirm_writes:
        properties["confirm_token"] = CONFIRM
    return inputs(("command", "path"), **properties)


def output_schema(settings: Settings) -> dict[str, Any]:
    """Return the output schema: the members of every result, then those of each kind of result."""
    line = {"type": "integer", "minimum": 0}
    kinds = [("text", "first_line", "last_line"), ("entries", "truncated")]
    if not settings.read_only:
        kinds.append(("undo_steps",))
    schema = outputs(
        pending=settings.confirm_writes and not settings.read_only,
        command={"type": "string", "enum": list(COMMANDS)},
        path={"type": "string", "description": "Relative to the root."},
    )
    schema["properties"] |= {
        "text": {"type": "string", "description": "view: the lines, numbered."},
        "entries": {
            "type": "array",
            "description": "view of a directory: its entries; links are not followed.",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the root."},
                    "kind": {"enum": ["file", "directory", "link", "other"]},
                    "size": {"type": "integer", "description": "In bytes."},
                },
                "required": ["path", "kind"],
            },
        },
        "truncated": {"type": "boolean", "description": "Whether entries were left out."},
        "first_line": {**line, "description": "First line shown or inserted."},
        "last_line": {**line, "description": "Last line shown or inserted."},
        "snippet": {"type": "string", "description": "The edited lines and some around them."},
        "undo_steps": {**line, "description": "Number of edits that undo_edit can still revert."},
        "removed": {"type": "boolean", "description": "undo_edit: the file was removed again."},
        **FACTS,
    }
    success = schema["anyOf"].pop(0)["required"]
    schema["anyOf"] = [{"required": [*success, *kind]} for kind in kinds] + schema["anyOf"]
    return schema
