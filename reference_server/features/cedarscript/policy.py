"""The checks of a script: its syntax tree and its commands, before any command runs.

The grammar has constructs that the library handles wrongly. It also has constructs that a server
cannot allow: an ``ED`` script runs shell commands. All these constructs are refused by name.

The checks run in the worker. This module does not import the library. It finds out the kind of an
object by its attributes.
"""

from __future__ import annotations

import re

from .indentation import DEEPEST, IndentationRefusedError, check_prefixes
from .syntax import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

NAME = re.compile(r"\w+(?:\.\w+)*")
"""Pattern of the names of functions, methods and classes.

Other names are refused, because the library inserts names into a query without escaping them.
"""

_CASE_NUMBER = "WHEN LINE with a number"
_SYMBOL_SEGMENT = "SEGMENT between definitions"
_MOVED_BODY = "MOVE BODY"
_PLACE_NUMBER = "MOVE out of a definition to a LINE number"
_PLACE_LEVEL = "RELATIVE INDENTATION in Python files"
_LARGEST_NUMBER = 10_000_000
_STRINGS = {"string", "raw_string", "single_quoted_string", "multi_line_string"}

_BY_LINES = "Use REPLACE, INSERT, DELETE and MOVE of lines, segments or whole definitions."
_BY_CASE = "In CASE use WHEN EMPTY, REGEX, PREFIX, SUFFIX or LINE 'text', THEN SUB or REMOVE."
_NO_COMMANDS = "No program is run by this server. " + _BY_LINES
_READ = "Read files with the reading tools of this server."
_MOVED = "INSERT it there and DELETE it here, in one script."

REFUSED = {
    "ed_stmt": ("ED", _NO_COMMANDS),
    "call_command": ("CALL", _NO_COMMANDS),
    "select_command": ("SELECT", _READ),
    "update_project_clause": ("UPDATE PROJECT", "Name each file: UPDATE FILE 'path' ..."),
    "where_clause": ("WHERE", "Name the definition, with OFFSET if there are several."),
    "content_from_segment": ("content taken from code", "Write the text: WITH CONTENT '''...'''"),
    "mv_file_command": ("MV FILE", "CREATE the new file and RM the old one, in one script."),
    "loop_control": ("BREAK and CONTINUE in CASE", _BY_CASE),
}
"""Name of a refused construct and the suggested alternative, by type of its node."""

_INSIDE = {
    ("case_action", "INDENT"): ("INDENT in CASE", _BY_CASE),
    ("case_action", "content_literal"): ("CONTENT in CASE", _BY_CASE),
    ("case_stmt", "ELSE"): ("ELSE in CASE", _BY_CASE),
    ("identifier_matcher", "VARIABLE"): ("VARIABLE", "Name the line: LINE 'text'."),
    ("update_move_clause_destination", "TO"): ("MOVE TO FILE", _MOVED),
    ("line_base", "INDENT"): ("INDENT LEVEL", "Name the line by its text or its number."),
    **{
        ("region_field", word): (word, "Replace BODY, WHOLE, a LINE or a SEGMENT.")
        for word in ("DOC", "DECORATORS", "TYPE", "PARAMETERS")
    },
}
"""The same, by type of the parent node and of the node."""


class Refused(Exception):  # noqa: N818 - it is a decision, not a fault
    """The server refuses to carry out a part of a script.

    Attributes:
        facts: Members of the error that the client gets: ``code``, ``type``, ``message``. If known,
            also ``suggestions``, ``script_line`` and ``script_column``, or ``file`` and its
            ``line``.
    """

    def __init__(self, code: str, message: str, *suggestions: str, **facts: Any) -> None:
        super().__init__(message)
        kind = facts.pop("type", "PolicyError")
        self.facts = {"code": code, "type": kind, "message": message, **facts}
        if suggestions:
            self.facts["suggestions"] = list(suggestions)


def check_tree(root: Any, text: str) -> None:
    """Check the syntax tree of one script.

    A node that the parser has inserted (``MISSING``) is an error too. The library accepts such a
    tree, and drops the last character of an unclosed string.
    """
    for node, parent, grandparent in _walk(root):
        if _is_error(node):
            raise _syntax_error(root, text)
        refused = REFUSED.get(node.type) or _INSIDE.get((parent, node.type))
        if node.type == "number" and parent == "line_base" and grandparent == "case_stmt":
            refused = (_CASE_NUMBER, _BY_CASE)
        if node.type == "BODY" and grandparent == "update_move_region_clause":
            refused = (_MOVED_BODY, "MOVE the definition as a WHOLE, or a SEGMENT of its lines.")
        if node.type == "identifier_matcher" and grandparent in ("relpos_at", "segment"):
            refused = (_SYMBOL_SEGMENT, "Name the first and the last line.")
        if refused:
            line, column = position(node, text)
            raise Refused(
                "UNSUPPORTED_CONSTRUCT",
                f"Not carried out by this server: {refused[0]}.",
                refused[1],
                script_line=line,
                script_column=column,
            )


def _walk(root: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield each node in the order of the text, with the types of its parent and grandparent.

    At any depth inside of a segment, the type of the grandparent is replaced by ``segment``.
    The nodes inside of a valid string are left out.
    """
    ahead = [(root, "", "")]
    while ahead:
        node, parent, grandparent = ahead.pop()
        yield node, parent, grandparent
        if node.type in _STRINGS and not node.has_error:
            continue  # it has one node for each character
        above = "segment" if "segment" in (parent, grandparent, node.type) else parent
        ahead.extend((child, node.type, above) for child in reversed(node.children))


def _syntax_error(root: Any, text: str) -> Refused:
    """Build the refusal for the first error in a tree, with the innermost error node as place."""
    outer = next(node for node, _, _ in _walk(root) if _is_error(node))
    inner = outer
    while deeper := next((child for child in inner.children if child.type == "ERROR"), None):
        inner = deeper
    missing = outer.type if outer.is_missing else None
    found = describe(text, position(outer, text), position(inner, text), missing=missing)
    line, column = found.place
    return Refused(
        "SYNTAX_ERROR",
        found.message,
        *found.suggestions,
        type="ParseError",
        script_line=line,
        script_column=column,
    )


def _is_error(node: Any) -> bool:
    return node.type in ("ERROR", "error") or bool(node.is_missing)


def position(node: Any, text: str) -> tuple[int, int]:
    """Return the line and the column, in characters, of the start of a node, counted from 1."""
    row, column = node.start_point
    line = text.split("\n")[row]
    return row + 1, len(line.encode()[:column].decode(errors="replace")) + 1


def check_command(command: Any) -> None:
    """Check the values in one command."""
    target: Any = getattr(command, "target", None)
    symbols = False
    if getattr(target, "identifier_type", None):
        _check_name(target.name)
        _check_number(target.offset, 0)
        symbols = True
    for marker in markers(getattr(command, "action", None)):
        _check_number(marker.offset, 0)
        if marker.type != "line":
            _check_name(marker.value)
            symbols = True
        elif marker.marker_subtype == "number":
            _check_number(marker.value, 1)
        elif marker.marker_subtype == "regex":
            _check_regex(marker.value)
    if is_move(getattr(command, "action", None)):
        _check_move(command, from_definition=hasattr(target, "identifier_type"))
    path = command.files_to_change[0]
    if symbols and not is_python(path):
        raise Refused(
            "SYMBOLS_NEED_PYTHON",
            "FUNCTION, METHOD and CLASS are found in Python files only.",
            "In other files name lines: LINE 'text', LINE number, or a SEGMENT between two lines.",
        )
    content = getattr(command, "content", None)
    if isinstance(content, str):
        try:
            check_prefixes(content)
        except IndentationRefusedError as error:
            raise Refused(error.code, str(error)) from None


def _check_move(command: Any, *, from_definition: bool) -> None:
    action = command.action
    if abs(action.relative_indentation or 0) > DEEPEST:
        raise Refused(
            "INDENTATION_OUT_OF_RANGE",
            f"RELATIVE INDENTATION asks for more than {DEEPEST} levels of indentation.",
        )
    # The library would count this number in the whole file, but all others in the target.
    if from_definition and action.insert_position.marker_subtype == "number":
        raise Refused(
            "UNSUPPORTED_CONSTRUCT",
            f"Not carried out by this server: {_PLACE_NUMBER}.",
            "Name the line by its text, or write UPDATE FILE 'path' MOVE ...",
        )


def is_move(action: Any) -> bool:
    return hasattr(action, "relative_indentation")


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi", ".pyw"))


def markers(action: Any) -> Iterator[Any]:
    for name in ("region", "insert_position"):
        region: Any = getattr(action, name, None)
        if hasattr(region, "start") and hasattr(region, "end"):
            yield from (region.start, region.end)
        elif hasattr(region, "marker_subtype"):
            yield region


def _check_name(name: Any) -> None:
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        raise Refused(
            "INVALID_NAME",
            "A name is made of letters, digits and _; dots stand between nested names.",
            "Write FUNCTION 'name', METHOD 'Class.name' or CLASS 'Name'; it is no pattern.",
        )


def _check_number(number: Any, least: int) -> None:
    if number is not None and not least <= number <= _LARGEST_NUMBER:
        raise Refused("NUMBER_OUT_OF_RANGE", "Lines are counted from 1 and OFFSET from 0.")


def _check_regex(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise invalid_regex(error) from None


def invalid_regex(error: Exception) -> Refused:
    return Refused(
        "INVALID_REGEX",
        f"The regular expression is not valid: {error}.",
        "Write it as a raw string, r'...', and escape the characters that mean something in it.",
        type="ParseError",
    )


def refused_constructs() -> list[str]:
    names = [name for name, _ in (*REFUSED.values(), *_INSIDE.values())]
    more = (_CASE_NUMBER, _SYMBOL_SEGMENT, _MOVED_BODY, _PLACE_NUMBER, _PLACE_LEVEL)
    return list(dict.fromkeys([*names, *more]))
