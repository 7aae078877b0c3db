"""Descriptions of commands, as JSON and as a sentence.

This module does not import the library. It finds out the kind of an object by its attributes.
"""

from __future__ import annotations

import dataclasses
import enum
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST_NAME = 60
_VERBS = {"DeleteClause": "delete", "ReplaceClause": "replace", "MoveClause": "move"}


def as_json(value: Any) -> Any:
    """Return a node of the library's tree as JSON: its class in ``node``, then its fields.

    ``dataclasses.asdict`` would lose two things. The class of a node distinguishes a replacement
    from a deletion. The ``qualifier``, the side of a marker for an insertion, is not a field.
    """
    if isinstance(value, enum.Enum):  # some of them are data classes too
        return value.value
    if isinstance(value, re.Pattern):
        return value.pattern
    if dataclasses.is_dataclass(value):
        described: dict[str, Any] = {"node": type(value).__name__}
        for field in dataclasses.fields(value):
            inside = as_json(getattr(value, field.name))
            if inside is not None:
                described[field.name] = inside
        if hasattr(value, "qualifier"):
            described["qualifier"] = as_json(value.qualifier)
        return described
    if isinstance(value, (list, tuple)):
        return [as_json(one) for one in value]
    return value


def describe(command: Any, line: int) -> dict[str, Any]:
    """Return a command as JSON, with its path, line and summary."""
    described = as_json(command)
    described.pop("node")
    return {
        **described,
        "type": type(command).__name__,
        "path": command.files_to_change[0],
        "line": line,
        "summary": summary(command),
    }


def summary(command: Any) -> str:
    path = command.files_to_change[0]
    if command.type == "create":
        return f"Create {path}"
    if command.type != "update":
        return f"Remove {path}"
    action = command.action
    target = command.target
    within = ""
    if hasattr(target, "name"):
        within = f" in {target.identifier_type} {target.name}"
    place = ""
    if hasattr(action, "insert_position"):
        position = action.insert_position
        place = f" {str(position.qualifier).replace('_', ' ')} {_marker(position)}"
    if not hasattr(action, "region"):
        return f"Update {path}: insert{place}{within}"
    verb = _VERBS[type(action).__name__]
    region = action.region
    if hasattr(region, "start") and hasattr(region, "end"):
        what = f"from {_marker(region.start)} to {_marker(region.end)}"
    elif hasattr(region, "marker_subtype"):
        what = _marker(region)
    else:
        what = f"the {region.value}"
    return f"Update {path}: {verb} {what}{within}{place}"


def _marker(marker: Any) -> str:
    """Return the name of a place, without the text of any line of the file."""
    if marker.type != "line":
        return f"{marker.type} {str(marker.value)[:_LONGEST_NAME]}"
    if marker.marker_subtype == "number":
        return f"line {marker.value}"
    return "a line"
