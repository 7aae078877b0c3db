"""Checks tool arguments against the tool's ``inputSchema``. Pure.

Only the keywords listed below are supported. Their meaning is that of JSON Schema 2020-12, the
default dialect (basic/index#schema-dialect). A ``pattern`` must be anchored at both ends, and mean
the same in every dialect of regular expressions. ``check_schema`` rejects all other keywords when a
tool is registered, so no keyword is ignored.
"""

from __future__ import annotations

import math

from .errors import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CHECKED = {
    *("type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
}
_DESCRIBING = {"title", "description", "default"}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and value == int(value)


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("an integer", _is_integer),
    "number": ("a number", _is_number),
}


def check_schema(schema: dict[str, Any]) -> None:
    """Check that this module supports every keyword of an input schema."""
    unknown = set(schema) - _CHECKED - _DESCRIBING
    if unknown:
        raise ValueError(f"keywords without a check: {sorted(unknown)}")
    if str(schema.get("type")) not in _TYPES:
        raise ValueError("a schema without a type, or with one that is not checked")
    pattern = schema.get("pattern", "^$")
    if not (pattern.startswith("^") and pattern.endswith("$")):
        raise ValueError("a pattern that is not anchored at both ends")
    for part in schema.get("properties", {}).values():
        check_schema(part)
    if "items" in schema:
        check_schema(schema["items"])


def problem_with(value: Any, schema: dict[str, Any], name: str = "arguments") -> str | None:
    """Return one sentence about the problem with a value, or None if it fits the schema."""
    expected, fits = _TYPES[schema["type"]]
    if not fits(value):
        return f"{name} must be {expected}."
    if "const" in schema and value != schema["const"]:
        return f"{name} must be {schema['const']}."
    if "enum" in schema and value not in schema["enum"]:
        return f"{name} must be one of {', '.join(map(str, schema['enum']))}."
    further = _FURTHER.get(schema["type"])
    return further(value, schema, name) if further else None


def _problem_with_number(value: float, schema: dict[str, Any], name: str) -> str | None:
    if value < schema.get("minimum", -math.inf):
        return f"{name} must be at least {schema['minimum']}."
    if value > schema.get("maximum", math.inf):
        return f"{name} must be at most {schema['maximum']}."
    return None


def _problem_with_text(value: str, schema: dict[str, Any], name: str) -> str | None:
    if len(value) < schema.get("minLength", 0):
        return f"{name} must not be empty." if not value else f"{name} is too short."
    if len(value) > schema.get("maxLength", math.inf):
        return f"{name} must have at most {schema['maxLength']} characters."
    if "pattern" in schema:
        import re  # noqa: PLC0415 - this module is loaded at start-up

        # In Python $ also matches before a last newline.
        if not re.search(schema["pattern"][:-1] + r"\Z", value):
            return f"{name} must match {schema['pattern']}."
    return None


def _problem_in_items(value: list[Any], schema: dict[str, Any], name: str) -> str | None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        limit = f"at least {least}" if len(value) < least else f"at most {most}"
        return f"{name} must have {limit} items."
    problems = (
        problem_with(item, schema["items"], f"{name}[{index}]")
        for index, item in enumerate(value)
        if "items" in schema
    )
    return next((problem for problem in problems if problem), None)


def fault_in(given: dict[str, Any], schema: dict[str, Any]) -> tuple[str, str] | None:
    """Return the first invalid argument and its problem, or None if all fit."""
    parts = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in given:
            return name, f"{name} is missing."
    for name, part in given.items():
        if name in parts:
            problem = problem_with(part, parts[name], name)
            if problem:
                return name, problem
        elif schema.get("additionalProperties") is False:
            return name, f"{quote(name)} is not an argument of this tool."
    return None


def _problem_inside(value: dict[str, Any], schema: dict[str, Any], _name: str) -> str | None:
    fault = fault_in(value, schema)
    return fault[1] if fault else None


_FURTHER: dict[str, Callable[[Any, dict[str, Any], str], str | None]] = {
    "string": _problem_with_text,
    "integer": _problem_with_number,
    "number": _problem_with_number,
    "array": _problem_in_items,
    "object": _problem_inside,
}
