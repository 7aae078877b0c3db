"""URI templates (RFC 6570): parsing, variables, expansion. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

_NAME: Final = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*"
_VARIABLE: Final = re.compile(rf"(?P<name>{_NAME})(?P<modifier>\*|:[1-9][0-9]{{0,3}})?")
_LITERAL: Final = re.compile(
    r"(?:[!#$&()*+,\-./0-9:;=?@A-Z\[\]_a-z~]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*"
)
_NO_BRACE: Final = re.compile(r"[^{}]*")
_OPERATORS: Final = "+#./;?&"
_RESERVED: Final = "=,!@|"
"""Operators that the RFC reserves for extensions."""

_FIRST: Final = {"#": "#", ".": ".", "/": "/", ";": ";", "?": "?", "&": "&"}
_BETWEEN: Final = {".": ".", "/": "/", ";": ";", "?": "&", "&": "&"}
_NAMED: Final = ";?&"
_RESERVED_TOO: Final = ":/?#[]@!$&'()*+,;=%"
"""Characters that the operators + and # do not encode, beside the unreserved ones."""
_PATH: Final = "/:@!$&'()*+,;="
"""Characters that a path contains unencoded (RFC 3986, section 3.3), beside the unreserved ones."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One pair of braces: its operator, and its variables with their modifiers."""

    operator: str
    variables: tuple[tuple[str, str], ...]


def parts(template: str, *, any_literal: bool = False) -> list[str | Expression]:
    """Split a template into literals and expressions.

    ``any_literal`` accepts characters in literals that have to be percent-encoded, except braces.

    Raises:
        ValueError: the grammar of RFC 6570 rejects it; the message names the fault and its place.
    """
    found: list[str | Expression] = []
    at = 0
    while at < len(template):
        if template[at] == "{":
            end = template.find("}", at)
            if end < 0:
                raise ValueError(f"the brace at {at} is never closed")
            found.append(_expression(template[at + 1 : end]))
            at = end + 1
            continue
        end = template.find("{", at)
        literal = template[at:] if end < 0 else template[at:end]
        good = (_NO_BRACE if any_literal else _LITERAL).match(literal)
        if good is None or good.end() < len(literal):
            place = at + (good.end() if good else 0)
            raise ValueError(f"{template[place]!r} at {place} may not stand in a literal")
        found.append(literal)
        at += len(literal)
    return found


def _expression(text: str) -> Expression:
    operator = text[:1] if text[:1] and text[:1] in _OPERATORS else ""
    if text[:1] and text[:1] in _RESERVED:
        raise ValueError(f"the operator {text[0]!r} is reserved")
    variables = []
    for word in text.removeprefix(operator).split(","):
        read = _VARIABLE.fullmatch(word)
        if read is None:
            raise ValueError(f"{{{text}}} names no variable" if not word else f"bad {word!r}")
        variables.append((read["name"], read["modifier"] or ""))
    return Expression(operator, tuple(variables))


def is_template(text: str) -> bool:
    """Return whether the grammar of RFC 6570 accepts a text."""
    try:
        parts(text)
    except ValueError:
        return False
    return True


def variables(template: str) -> list[str]:
    """Return the variables in order, each once; empty if the template cannot be parsed."""
    try:
        read = parts(template)
    except ValueError:
        return []
    names = [
        name for part in read if isinstance(part, Expression) for name, _modifier in part.variables
    ]
    return list(dict.fromkeys(names))


def expand(template: str, values: Mapping[str, str], *, encoded: bool = False) -> str:
    """Replace the variables by texts; a variable without a value is left out.

    Args:
        encoded: whether the texts are inserted as they are.

    Raises:
        ValueError: the template cannot be parsed.
    """
    return "".join(
        part if isinstance(part, str) else _expanded(part, values, encoded=encoded)
        for part in parts(template)
    )


def path(text: str) -> str:
    """Return a text as the path of a URI; slashes stay, and a percent sign is encoded."""
    return quote(text, _PATH)


def _expanded(expression: Expression, values: Mapping[str, str], *, encoded: bool) -> str:
    operator = expression.operator
    kept = _RESERVED_TOO if operator in {"+", "#"} else ""
    words = []
    for name, modifier in expression.variables:
        if name not in values:
            continue
        value = values[name]
        if modifier.startswith(":"):
            value = value[: int(modifier[1:])]
        text = value if encoded else quote(value, kept)
        if operator and operator in _NAMED:
            bare = operator == ";" and not text
            text = name if bare else f"{name}={text}"
        words.append(text)
    if not words:
        return ""
    return _FIRST.get(operator, "") + _BETWEEN.get(operator, ",").join(words)
