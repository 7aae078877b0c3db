"""What a script may say: checked on its syntax tree and its commands before anything runs.

The grammar has more than the library does right, and more than a server can let a client do: an
``ED`` script runs shell commands. Everything that is not known to be right is refused by name.
Runs in the worker; knows the library's objects by their shape only.
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
"""Names of functions, methods and classes. The library puts them into a query unescaped."""

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
"""Type of a node -> what it is called, and what to do instead."""

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
"""Type of a node and of its child -> the same."""


class Refused(Exception):  # noqa: N818 - it is a decision, not a fault
    """Something in a script is not carried out.

    Attributes:
        facts: ``code``, ``type``, ``message``, and where known ``suggestions``, ``script_line``
            and ``script_column``, or ``file`` and ``line`` in it; for the client as it is.
    """

    def __init__(self, code: str, message: str, *suggestions: str, **facts: Any) -> None:
        super().__init__(message)
        kind = facts.pop("type", "PolicyError")
        self.facts = {"code": code, "type": kind, "message": message, **facts}
        if suggestions:
            self.facts["suggestions"] = list(suggestions)


def check_tree(root: Any, text: str) -> None:
    """Check the syntax tree of one script.

    A node that the parser has made up (``MISSING``) is an error here: the library takes such a
    tree, and cuts the last character off an unclosed string.

    Raises:
        Refused: ``SYNTAX_ERROR``, or ``UNSUPPORTED_CONSTRUCT``; lines count from 1 in the script,
            columns in characters.
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
    """Give the nodes in the order of the text, each with the types of the two above it.

    Inside a segment the second one is ``segment`` at every depth.
    """
    ahead = [(root, "", "")]
    while ahead:
        node, parent, grandparent = ahead.pop()
        yield node, parent, grandparent
        if node.type in _STRINGS and not node.has_error:
            continue  # a node for each character
        above = "segment" if "segment" in (parent, grandparent, node.type) else parent
        ahead.extend((child, node.type, above) for child in reversed(node.children))


def _syntax_error(root: Any, text: str) -> Refused:
    """Describe the first error in a tree, as narrowly as the tree does."""
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
    """Say whether the parser made no sense of this."""
    return node.type in ("ERROR", "error") or bool(node.is_missing)


def position(node: Any, text: str) -> tuple[int, int]:
    """Give the line and column a node begins at, in characters, both counted from 1."""
    row, column = node.start_point
    line = text.split("\n")[row]
    return row + 1, len(line.encode()[:column].decode(errors="replace")) + 1


def check_command(command: Any) -> None:
    """Check the values in one command.

    Raises:
        Refused: ``INVALID_NAME``, ``NUMBER_OUT_OF_RANGE``, ``INDENTATION_OUT_OF_RANGE``,
            ``INVALID_REGEX``, ``SYMBOLS_NEED_PYTHON``, ``UNSUPPORTED_CONSTRUCT``.
    """
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
    # The place is looked up in the whole file, and all other numbers count in the target.
    if from_definition and action.insert_position.marker_subtype == "number":
        raise Refused(
            "UNSUPPORTED_CONSTRUCT",
            f"Not carried out by this server: {_PLACE_NUMBER}.",
            "Name the line by its text, or write UPDATE FILE 'path' MOVE ...",
        )


def is_move(action: Any) -> bool:
    """Say whether what a command does is a MOVE."""
    return hasattr(action, "relative_indentation")


def is_python(path: str) -> bool:
    """Tell by its name whether a file is Python source."""
    return path.endswith((".py", ".pyi", ".pyw"))


def markers(action: Any) -> Iterator[Any]:
    """Give the markers of an action."""
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
        raise Refused(
            "NUMBER_OUT_OF_RANGE",
            "Lines are counted from 1 and OFFSET from 0.",
        )


def _check_regex(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise invalid_regex(error) from None


def invalid_regex(error: Exception) -> Refused:
    """Build the refusal of a regular expression or of its replacement."""
    return Refused(
        "INVALID_REGEX",
        f"The regular expression is not valid: {error}.",
        "Write it as a raw string, r'...', and escape the characters that mean something in it.",
        type="ParseError",
    )


def refused_constructs() -> list[str]:
    """Name what the language has and this server does not carry out."""
    names = [name for name, _ in (*REFUSED.values(), *_INSIDE.values())]
    more = (_CASE_NUMBER, _SYMBOL_SEGMENT, _MOVED_BODY, _PLACE_NUMBER, _PLACE_LEVEL)
    return list(dict.fromkeys([*names, *more]))
