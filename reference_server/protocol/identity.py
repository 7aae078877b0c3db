"""Name, version and instructions of this server, in the form of each revision."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NAME = "mcp-touchstone-reference"
TITLE = "MCP Touchstone reference server"
# A constant, because importing importlib.metadata takes longer than the whole server.
VERSION = "0.1.0"


def instructions(*, roots: Sequence[str], read_only: bool) -> list[str]:
    """Return what a model must know of reading, without any directory of this host.

    Returns:
        Sentences. The first three are about reading; features add theirs.
    """
    several = f"There are {len(roots)} roots, named {', '.join(roots[:-1])} and {roots[-1]}. "
    sentences = [
        "Reads text files below a root directory."
        if read_only
        else "Reads and edits text files below a root directory.",
        several + "A path begins with the name of its root and has forward slashes."
        if len(roots) > 1
        else "Paths are relative to the root, with forward slashes.",
        "Read with file_read, or file_read_range for part of a large file.",
    ]
    if read_only:
        sentences.append("Nothing is written: the operator has made this server read-only.")
    return sentences


def implementation(revision: str) -> dict[str, Any]:
    """Return the ``Implementation`` object (schema.ts#Implementation) of one revision.

    An older session would tolerate newer members, but a reference server follows each revision
    exactly: ``title`` since 2025-06-18, ``description`` since 2025-11-25.
    """
    about: dict[str, Any] = {"name": NAME, "version": VERSION}
    if revision >= "2025-06-18":
        about["title"] = TITLE
    if revision >= "2025-11-25":
        about["description"] = "A small MCP server that keeps every clause of the protocol."
    return about
