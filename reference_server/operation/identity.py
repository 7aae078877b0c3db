"""Who this server says it is, in the form each revision knows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "mcp-touchstone-reference"
TITLE = "MCP Touchstone reference server"
# Written out: importlib.metadata would take longer to import than the whole server.
VERSION = "0.1.0"

INSTRUCTIONS = (
    "Reads and edits text files below one or more root directories. Paths are relative to a root, "
    "with forward slashes. Read with file.read, or file.read_range for part of a large file. "
    "Change with file.apply_patch_only (a unified diff and the hash of what you read), text_editor "
    "(view, create, str_replace, insert, undo_edit) or apply_cedarscript (a preview unless dry_run "
    "is false). A tool that is not listed is not available here. An error says what to do next."
)
"""For the model on the other side: how to use this server. Names no directory of this host."""


def implementation(revision: str) -> dict[str, Any]:
    """Give the ``Implementation`` object (schema.ts#Implementation) of one revision.

    Objects are open, so a newer member would be tolerated in an older session. A reference shows
    each revision as it was written: ``title`` since 2025-06-18, ``description`` since 2025-11-25.
    """
    about: dict[str, Any] = {"name": NAME, "version": VERSION}
    if revision >= "2025-06-18":
        about["title"] = TITLE
    if revision >= "2025-11-25":
        about["description"] = "A small MCP server that keeps every clause of the protocol."
    return about
