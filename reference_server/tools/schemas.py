"""JSON Schemas for several tools. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

PATH = {
    "type": "string",
    "minLength": 1,
    "description": "Path with forward slashes, relative to a root (or to cwd).",
}
CWD = {
    "type": "string",
    "description": "Directory below the root that path is relative to. Default: the root.",
}
CONFIRM = {"type": "string", "description": "Token of the preview that is to be applied."}

_PENDING: dict[str, Any] = {
    "confirmed": {"type": "boolean", "description": "False: nothing was written yet."},
    "confirm_token": {"type": "string", "description": "Send it back to apply the preview."},
    "preview": {"type": "string", "description": "The changes, as unified diffs."},
}


READS = {"readOnlyHint": True, "openWorldHint": False}
"""Hints of a tool that reads."""


def hints(*, read_only: bool) -> dict[str, bool]:
    """Return the hints of a tool that writes, unless the server is read-only."""
    return {
        "readOnlyHint": read_only,
        "destructiveHint": not read_only,
        "idempotentHint": read_only,
        "openWorldHint": False,
    }


def inputs(required: tuple[str, ...], **properties: Schema) -> Schema:
    """Return the input schema of a tool; it rejects unknown arguments."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def outputs(*, pending: bool = False, **properties: Schema) -> Schema:
    """Return the output schema of a tool: all properties, or an error instead.

    Some clients validate error results against the output schema too, so it accepts them
    (``failure.ToolError.body``).

    Args:
        pending: Whether the tool may also return a preview that waits for confirmation.
        properties: The members of a successful result; all are required.
    """
    alternatives = [{"required": list(properties)}, {"required": ["type", "code", "message"]}]
    if pending:
        alternatives.insert(1, {"required": list(_PENDING)})
        properties = {**properties, **_PENDING}
    return {"type": "object", "properties": properties, "anyOf": alternatives}
