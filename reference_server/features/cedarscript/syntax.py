"""Descriptions of syntax errors. Pure functions.

The parser only reports the place where it stopped. The messages and suggestions come from here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    Place = tuple[int, int]

COMMANDS = ("CREATE", "RM", "UPDATE")

_CLAUSES = {
    "DELETE": "DELETE is a clause: UPDATE FILE 'path' DELETE LINE 'text'. RM FILE 'path' removes "
    "a file.",
    "INSERT": "INSERT is a clause: UPDATE FILE 'path' INSERT AFTER LINE 'text' WITH CONTENT '...'.",
    "REPLACE": "REPLACE is a clause: UPDATE FILE 'path' REPLACE LINE 'text' WITH CONTENT '...'.",
    "MOVE": "MOVE is a clause: UPDATE CLASS 'A' FROM FILE 'path' MOVE METHOD 'f' INSERT AFTER "
    "METHOD 'g'.",
}
_FORMS = {
    "CREATE": "CREATE FILE 'path' WITH CONTENT '''...'''",
    "RM": "RM FILE 'path'",
    "MV": "CREATE the new file and RM the old one, in one script.",
    "UPDATE": "UPDATE FILE 'path' ..., or UPDATE FUNCTION 'name' FROM FILE 'path' ..., then "
    "INSERT, REPLACE, DELETE or MOVE.",
}
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"(?m)(?:#|(?<!\S)--).*$|/\*[\s\S]*?\*/")
_UNQUOTED = re.compile(r"\bFILE\s+(?![\"'\s]|r[\"'])(\S+)")
_SHOWN = 40


class Description(NamedTuple):
    message: str
    suggestions: list[str]
    place: tuple[int, int]


def describe(text: str, start: Place, at: Place, *, missing: str | None = None) -> Description:
    """Describe a syntax error.

    Args:
        start: Line and column of the start of the invalid part, counted from 1.
        at: Line and column inside of it at which the parser stopped, counted from 1.
        missing: Type of the node that the parser has inserted, if this is the only error.
    """
    if missing:
        return Description(*_missing(missing.strip("'"), text, start), start)
    statement = _from(text, start)
    word = _first(statement)
    if word in _CLAUSES:
        message = f"A command begins with CREATE, RM or UPDATE, not with {word}."
        return Description(message, [_CLAUSES[word]], start)
    if word.upper() in _FORMS and not word.isupper():
        form = _FORMS[word.upper()]
        message = f"Keywords are written in capitals: {word.upper()}, not {word}."
        return Description(message, [form], start)
    suggestions: list[str] = []
    unquoted = _UNQUOTED.search(statement.split("\n")[0])
    if unquoted:
        suggestions.append(f"Quote the path: FILE '{unquoted[1][:_SHOWN]}'.")
    head = _first(_from(text, (start[0], 1)))
    if word in _FORMS:
        suggestions.append(_FORMS[word])
    elif head in _FORMS:
        suggestions.append(_FORMS[head])
    elif word:
        return Description(*_unknown(word), start)
    if _from(text, (at[0], max(at[1] - 1, 1)))[:1] in "\"'" and at[1] > 1:
        at = (at[0], at[1] - 1)  # the misplaced part is the whole string
    near = _from(text, at).split("\n")[0][:_SHOWN].rstrip()
    suggestions.append("list_capabilities shows the forms that are understood, with examples.")
    return Description(f"This is not understood from here on: {near!r}.", suggestions, at)


def _missing(name: str, text: str, at: Place) -> tuple[str, list[str]]:
    if name == "EMPTY":  # the parser inserts the shortest valid part, seldom the intended one
        before = _COMMENT.sub("", _until(text, at)).split()
        last = before[-1] if before else ""
        return f"{last or 'This'} is not followed by what it is about.", [
            "DELETE WHOLE removes a definition, as in UPDATE FUNCTION 'name' FROM FILE 'path'.",
            "LINE 'text', LINE number and LINE EMPTY name a line.",
        ]
    if name == "END":
        return "END is missing here; the script ends too early.", ["Close each CASE with END."]
    return "Something is missing here; the script ends too early.", ["Close each string."]


def _unknown(word: str) -> tuple[str, list[str]]:
    from difflib import get_close_matches  # noqa: PLC0415 - only needed for errors

    shown = word[:_SHOWN]
    close = get_close_matches(word.upper(), COMMANDS, 1, 0.5)
    suggestions = [_FORMS[close[0]]] if close else [_FORMS[name] for name in COMMANDS]
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"A command begins with CREATE, RM or UPDATE, not with {shown!r}{hint}", suggestions


def _from(text: str, at: Place) -> str:
    lines = text.split("\n")[at[0] - 1 :]
    if lines:
        lines[0] = lines[0][at[1] - 1 :]
    return "\n".join(lines)


def _until(text: str, at: Place) -> str:
    lines = text.split("\n")[: at[0]]
    lines[-1:] = [line[: at[1] - 1] for line in lines[-1:]]
    return "\n".join(lines)


def _first(text: str) -> str:
    found = _WORD.match(text.lstrip())
    return found[0] if found else ""
