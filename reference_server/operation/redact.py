"""Masks log entries. They show paths, numbers, booleans and words of an enumeration. Pure.

All other values of a client may be the content of a file or a secret. Only their length is shown.
The values to show are listed, because a list of all forms of secrets is impossible. The patterns
below only mask secrets within the values that are shown.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATHS = frozenset({"path", "paths", "cwd", "root", "file", "files", "uri"})
"""Arguments whose values are shown, unless they look like secrets."""

LONGEST = 200
"""Maximum number of characters of a text or a path that are shown."""

MOST = 8
"""Maximum length of a list whose members are shown. For longer ones, only the length is."""

_LARGEST = 2**53

_SECRETS = re.compile(
    r"""
      -----BEGIN [\s\S]*                                     # keys and certificates
    | \b(?:bearer|basic)\s+\S{6,}                            # authorization headers
    | \b(?:sk|pk|rk|gh[opsur]|github_pat|glpat|xox[a-z]|npm|pypi|hf)[-_][\w-]{8,}
    | \b(?:AKIA|ASIA|AIza|eyJ)[\w-]{8,}(?:\.[\w-]+)*         # cloud keys, signed tokens
    | (?<=:)//[^\s/@]+@                                      # user and password of an address
    | \b\w*(?:passw(?:or)?d|secret|token|api_?-?key|credential)\w*["']?\s*[=:]\s*\S+
    """,
    re.IGNORECASE | re.VERBOSE,
)
_RUNS = re.compile(r"[A-Za-z0-9+=_-]{20,}")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_WORD = re.compile(r"[\w.$/-]{1,40}")
_LONGEST_WORD = 32
_SHORT_PART = 4


def text(value: str) -> str:
    """Return a text with likely secrets masked, and cut if it is long."""
    # Search twice the length, to find secrets that begin in the part that is shown.
    shown = _SECRETS.sub(_masked, value[: 2 * LONGEST])
    shown = _RUNS.sub(lambda run: _masked(run) if _is_random(run[0]) else run[0], shown)
    return _cut(shown, value)


def name(value: str) -> str:
    """Return a name or id of the client; random runs are not masked, as names often have them."""
    return _cut(_SECRETS.sub(_masked, value[: 2 * LONGEST]), value)


def sentence(value: str) -> str:
    """Return a message of the server. Quoted words of the client are masked unless plain."""

    def quoted(found: re.Match[str]) -> str:
        inner = found[0][1:-1]
        plain = _WORD.fullmatch(inner) and text(inner) == inner
        return found[0] if plain else f"[{len(inner)} characters]"

    return text(_QUOTED.sub(quoted, value))


def facts(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {str(name): facts(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [facts(inner) for inner in value]
    return _number(value) if isinstance(value, int | float) else value


def arguments(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a tool, masked for a log."""
    known = schema.get("properties", {})
    shown: dict[str, Any] = {
        name: _argument(name, value, known[name]) for name, value in given.items() if name in known
    }
    if len(shown) < len(given):
        shown["unknown"] = len(given) - len(shown)  # their names are text of the client too
    return shown


def _argument(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    if value is None or isinstance(value, int | float):
        return value if value is None else _number(value)
    if isinstance(value, str):
        if value in schema.get("enum", ()):
            return value
        return text(value) if name in PATHS else f"[{len(value)} characters]"
    if isinstance(value, list):
        simple = all(isinstance(one, int | float | str) for one in value)
        if simple and len(value) <= MOST:
            return [_argument(name, one, schema.get("items", {})) for one in value]
        return f"[{len(value)} items]"
    return f"[{len(value)} members]"


def _number(value: float) -> Any:
    """Return a number that every JSON reader supports."""
    if abs(value) <= _LARGEST:  # false for NaN
        return value
    return "[a number out of range]"


def _cut(shown: str, value: str) -> str:
    if len(shown) <= LONGEST and len(value) <= 2 * LONGEST:
        return shown
    return f"{shown[:LONGEST]}[{len(value)} characters]"


def _masked(found: re.Match[str]) -> str:
    return f"[{len(found[0])} characters]"


def _is_random(run: str) -> bool:
    """Return whether a run looks like a key. A name consists of words and numbers."""
    if run.isalpha() or run.isdigit():
        return len(run) > _LONGEST_WORD
    parts = re.split(r"[-_+=]", run)
    return not all(one.isalpha() or one.isdigit() or len(one) <= _SHORT_PART for one in parts)
