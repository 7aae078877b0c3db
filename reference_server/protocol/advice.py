"""Recovery steps and related tools by error code. Pure.

Most errors come from the workspace, which does not know the tools.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ..failure import ToolError

_READ = ("file_read", "file_read_range")
_LIST = ("text_editor", "workspace_digest")
_EDIT = ("text_editor", "file_apply_patch_only")
_ANOTHER = "Work with another file; no tool of this server opens this one."

_ADVICE: dict[str, tuple[Any, ...]] = {
    # code: recovery steps, then related tools
    # the call
    "INVALID_ARGUMENTS": ("Send the arguments as the inputSchema of the tool has them.", ()),
    "INVALID_INPUT": ("Change the argument that field names.", ()),
    "LINE_OUT_OF_RANGE": ("Read the file and use a line number that it has.", _READ),
    "TEXT_TOO_LONG": ("Ask for fewer lines at a time.", ()),
    # the path
    "INVALID_PATH": ("Write the path with forward slashes, relative to a root.", _LIST),
    "OUTSIDE_ROOT": ("Use a path below a root, without '..'.", _LIST),
    "OUTSIDE_CLIENT_ROOTS": ("Use a path below a root that the client has named.", _LIST),
    "SPANS_ROOTS": ("Send one call for each root.", ()),
    "LINK": ("Use the path the link points to, if that is below the root.", _LIST),
    "DENIED": (_ANOTHER, _LIST),
    "NOT_ALLOWED": (_ANOTHER, _LIST),
    "NOT_REGULAR": (_ANOTHER, _LIST),
    "NOT_PERMITTED": (_ANOTHER, _LIST),
    "NOT_FOUND": (
        "Look for the file: text_editor views a directory, resources/list names every file.",
        "Call again with the path that you found.",
        _LIST,
    ),
    "IS_DIRECTORY": ("Use the path of a file in this directory.", _LIST),
    "NOT_DIRECTORY": ("Use a path whose directories exist.", _LIST),
    "TOO_LARGE": ("Work with a smaller file; the operator sets the limit.", ()),
    # the text
    "NOT_TEXT": ("Name the encoding of the file, if it is text.", ("file_read",)),
    "CANNOT_ENCODE": ("Write the text with characters that the encoding of the file has.", _READ),
    "MIXED_NEWLINES": ("Use a tool that keeps the newlines of each line.", _EDIT),
    "NO_MATCH": ("Read the file and copy the text exactly.", _READ),
    "AMBIGUOUS": ("Add lines before or after the text until only one place has it.", _READ),
    "NO_CHANGE": ("Read the file and compare it with what you sent.", _READ),
    "CONTEXT_MISMATCH": (
        "Read the file again.",
        "Make the diff from that text: every line as it is, at its exact line number.",
        _READ,
    ),
    "HASH_MISMATCH": (
        "Read the file again.",
        "Make the diff from that text.",
        "Send it with the hash that came with that text.",
        _READ,
    ),
    "INVALID_DIFF": ("Send nothing but two headers and hunks.", _READ),
    # the write
    "READ_ONLY": ("Show the change to the user; this server does not make it.", _READ),
    "WRITE_DENIED": ("Read the file only, or write to another directory.", _READ),
    "EXISTS": ("Use another path, or edit the file that is there.", _EDIT),
    "CHANGED": ("Read the file again.", "Make the edit on what it holds now.", _READ),
    "NOTHING_TO_UNDO": ("Read the file and write the text that you want back.", _EDIT),
    "BUSY": ("Call again in a moment.", ()),
    "WRITE_FAILED": ("Tell the user: the disk of the server does not take the file.", ()),
    "REFUSED": (_ANOTHER, _LIST),
    "NOT_CONFIRMED": ("Ask the user what to change before you call again.", ()),
    "CONFIRMATION_STALE": (
        "Call again without confirm_token to see what would happen now.",
        "Send the new token if that is what you want.",
        (),
    ),
    # the client
    "CLIENT_CANNOT": ("Use a client that can answer questions of a server.", ()),
    "CLIENT_BUSY": ("Call again when the open questions are answered.", ()),
    "CLIENT_SILENT": ("Call again when the user can answer.", ()),
    "CLIENT_REFUSED": ("Tell the user that the client refuses questions of this server.", ()),
    "CLIENT_CONFUSED": ("Tell the user that the client answers in a wrong form.", ()),
    "CLIENT_LEFT": ("Start a new session and call again.", ()),
}


def advised(error: ToolError, offered: Collection[str]) -> dict[str, Any]:
    """Return the body of an error, with recovery steps and related tools.

    Args:
        error: The error. Its own suggestions, steps and tools take precedence.
        offered: Names of the listed tools. Only these are named as related.
    """
    *steps, tools = _ADVICE.get(error.code, ((),))
    if not (error.suggestions or error.recovery_steps):
        error.recovery_steps = steps
    error.related_tools = [one for one in error.related_tools or tools if one in offered]
    return error.body()
