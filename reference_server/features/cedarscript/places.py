"""The places in a file that a MOVE names, and the lines of definitions. Pure functions.

Line numbers start from 0. The end of a range is the line after its last line.
"""

from __future__ import annotations

from tokenize import TokenError
from typing import NamedTuple

from . import trees
from .policy import Refused
from .trees import first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence
    from typing import Any

BEFORE, AFTER, INTO_BOTTOM = "before", "after", "into_bottom"

_WHITE = " \t\f"
_BY_HAND = "INSERT it there and DELETE it here, in one script."


class Move(NamedTuple):
    """The lines to move and their new place, as located by the library.

    Attributes:
        first: First of the lines to move.
        end: The line after them.
        definition: Whether the lines are a definition.
        place: Line that the script names as the place, or first line of the definition that it
            names.
        at_line: Whether the script names a line as the place.
        where: Relation to the place: ``before``, ``after``, ``into_top`` or ``into_bottom``.
        levels: ``RELATIVE INDENTATION``: levels to add to the indentation of the place.
    """

    first: int
    end: int
    definition: bool
    place: int
    at_line: bool
    where: str
    levels: int


class Place:
    """The new place of moved lines.

    Attributes:
        index: Line in front of which they are inserted.
        level: Line whose indentation they get; None if the place is a blank line.
        following: First line of the statement that must follow them; None if any may.
        preceding: First line of the statement that must precede them; None if any may.
    """

    def __init__(
        self,
        index: int,
        level: int | None,
        *,
        following: int | None = None,
        preceding: int | None = None,
    ) -> None:
        self.index = index
        self.level = level
        self.following = following
        self.preceding = preceding


class Source:
    """A parsed Python file.

    Attributes:
        strings: Numbers of the lines that begin inside of a string.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        try:
            self.tree = trees.parse(lines)
            self.strings, self._comments = trees.read_tokens(lines)
        except (SyntaxError, ValueError, TokenError):
            raise unsafe("as it is, the file is no valid Python") from None
        self._starts: dict[int, ast.stmt] = {}
        self._ends: dict[int, ast.stmt] = {}
        for node in trees.statements(self.tree):
            self._starts.setdefault(first_line(node), node)
            if not any(trees.bodies(node)):
                self._ends[trees.end(node)] = node  # the last one, if several share a line

    def definition(self, line: int) -> Any:
        """Return the definition that begins on a line."""
        node = self._starts.get(line)
        if not isinstance(node, trees.DEFINITIONS):
            raise unsafe("the library and Python do not find the same definition")
        return node

    def with_comments_above(self, line: int) -> int:
        """Return the first line of a statement together with the comments directly above it.

        Comments that begin on the first line of the file belong to the file and are left out.
        """
        first = line
        while first - 1 in self._comments and self._level(first - 1) == self._level(line):
            first -= 1
        return first or line

    def end(self, node: ast.stmt) -> int:
        """Return the end of a definition, including the deeper indented comments below it."""
        level = self._level(first_line(node))
        end = ahead = trees.end(node)
        while ahead < len(self.lines):
            if ahead in self._comments and self._level(ahead) > level:
                end = ahead + 1
            elif self.lines[ahead].strip():
                break
            ahead += 1
        return end

    def place(self, move: Move, first: int, end: int) -> Place:
        """Return the place to which the lines from ``first`` to ``end`` are moved."""
        line, where = move.place, move.where
        if move.at_line:
            return self._beside_line(line, where)
        node = self.definition(line)
        if where == BEFORE:
            return Place(self.with_comments_above(line), line, following=line)
        if where == AFTER:
            return Place(self.end(node), line, preceding=line)
        top = first_line(node.body[0])
        if self.lines[top].encode()[: node.body[0].col_offset].strip(b" \t\f"):
            raise Refused(
                "ONE_LINE_BODY",
                "The body is on the line of its definition.",
                "Replace the definition as a WHOLE.",
                type="ExecutionError",
            )
        if where == INTO_BOTTOM:
            staying = [one for one in map(first_line, node.body) if not first <= one < end]
            return Place(self.end(node), top, preceding=staying[-1] if staying else None)
        if trees.is_docstring(node.body[0]):
            return Place(trees.end(node.body[0]), top, preceding=top)
        return Place(self.with_comments_above(top), top, following=top)

    def _beside_line(self, line: int, where: str) -> Place:
        index = line + (where == AFTER)
        if not self.lines[line].strip():
            return Place(index, None)
        if line in self._comments:
            return Place(index, line)
        if where == BEFORE and line in self._starts:
            return Place(index, line, following=line)
        if where == AFTER and index in self._ends:
            start = first_line(self._ends[index])
            return Place(index, start, preceding=start)
        side = "first" if where == BEFORE else "last"
        raise unsafe(f"the line it is to go {where} is not the {side} one of a statement")

    def _level(self, line: int) -> int:
        return len(white_before(self.lines[line]).expandtabs())


def white_before(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_WHITE))]


def unsafe(why: str, suggestion: str = _BY_HAND) -> Refused:
    return Refused(
        "UNSAFE_MOVE", f"This MOVE is not carried out: {why}.", suggestion, type="ExecutionError"
    )
