"""Types of the examples of properties; ``strategies`` draws them. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.samples.from_schema import is_path, is_time, words
from mcp_touchstone.wire.framing import object_in

_ASCII: Final = 0x7F


@dataclass(frozen=True, slots=True)
class Spelling:
    r"""One way to encode a JSON value.

    Attributes:
        gap: white space around each structural character.
        escape: which characters are written as ``\u`` escapes: ``none``, ``beyond`` (non-ASCII
            ones) or ``all``.
        slash: whether a solidus is escaped.
        upper: whether the digits of an escape are upper case.
        turn: number of places by which the members of each object are rotated.
    """

    gap: str = ""
    escape: str = "none"
    slash: bool = False
    upper: bool = False
    turn: int = 0

    def write(self, message: Any) -> bytes:
        """Return the line for a message."""
        return self._value(message).encode() + b"\n"

    def _value(self, value: Any) -> str:
        if isinstance(value, dict):
            members = list(value.items())
            turn = self.turn % max(1, len(members))
            turned = members[turn:] + members[:turn]
            parts = [f"{self._text(k)}{self.gap}:{self.gap}{self._value(v)}" for k, v in turned]
            return self._joined("{", parts, "}")
        if isinstance(value, list):
            return self._joined("[", [self._value(one) for one in value], "]")
        return self._text(value) if isinstance(value, str) else json.dumps(value)

    def _joined(self, first: str, parts: list[str], last: str) -> str:
        gap = self.gap
        return f"{first}{gap}{f'{gap},{gap}'.join(parts)}{gap}{last}"

    def _text(self, text: str) -> str:
        return f'"{"".join(map(self._character, text))}"'

    def _character(self, char: str) -> str:
        escaped = self.escape == "all" or (self.escape == "beyond" and ord(char) > _ASCII)
        if escaped:
            units = char.encode("utf-16-be").hex(" ", 2).split()
            return "".join(f"\\u{unit.upper() if self.upper else unit}" for unit in units)
        if char == "/" and self.slash:
            return "\\/"
        return json.dumps(char, ensure_ascii=False)[1:-1]


@dataclass(frozen=True, slots=True)
class Extra:
    """A member that no specification defines.

    Attributes:
        place: where it is sent: ``_meta``, ``params`` or ``message``.
    """

    place: str
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Edit:
    """One changed argument of a call.

    Attributes:
        value: its new value; ignored if the argument is removed.
        gone: whether the argument is removed.
    """

    tool: int
    name: str
    value: Any = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class InterleavingStep:
    """One line of an interleaving.

    Attributes:
        kind: ``request``, ``notification`` or ``cancel``.
        which: index of the request; for ``cancel``, how many requests ago the cancelled one was.
        text: whether the id is a string of digits.
    """

    kind: str
    which: int = 0
    text: bool = False


_FETCHED: Final = frozenset({"url", "uri", "host", "address"})
_BOUND: Final = frozenset({"pattern", "format", "const", "anyOf", "oneOf", "allOf", "not", "$ref"})
"""Keywords of a schema whose constraints random texts would not meet."""
SHORTEST: Final = 4
"""Texts with a minimum length of this or more are not drawn: most would be too short."""
LARGEST: Final = 10
"""Largest number drawn for an argument; it may be a count or a duration."""


def replaceable(schema: Mapping[str, Any], good: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties whose value may be replaced by one that is drawn from their schema.

    These are texts, enums, booleans and small integers. Names of files, pages and times are kept.

    Args:
        good: arguments that worked.
    """
    if any(word in schema for word in ("anyOf", "oneOf", "allOf", "if", "not", "$ref")):
        return {}
    return {
        name: kind
        for name, kind in object_in(schema, "properties").items()
        if isinstance(kind, dict)
        and not (is_path(name) or is_time(name) or {*words(name)} & _FETCHED)
        and _is_replaceable(kind, good.get(name))
    }


def _is_replaceable(kind: Mapping[str, Any], good: Any) -> bool:
    if "enum" in kind:
        return isinstance(kind["enum"], list) and bool(kind["enum"])
    if _BOUND & set(kind):
        return False
    if kind.get("type") == "integer":
        least, most = kind.get("minimum", 0), kind.get("maximum", LARGEST)
        plain = type(least) is int and type(most) is int and "multipleOf" not in kind
        return plain and max(least, -LARGEST) <= min(most, LARGEST)
    return kind.get("type") == "boolean" or (
        kind.get("type") == "string"
        and isinstance(good, str | None)
        and type(kind.get("maxLength", LARGEST)) is int
        and kind.get("minLength", 0) in range(SHORTEST)
    )
