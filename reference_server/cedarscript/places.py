"""The places in a file that a MOVE names, and what belongs to the definitions there. Pure.

Lines are counted from 0, and the end of something is the line after it.
"""

from __future__ import annotations

from tokenize import TokenError

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


class Move:
    """What goes where, as the library has found it.

    Args:
        lines: First line and end of what moves.
        definition: Whether that is a definition.
        place: Line that the script names, or the first one of the definition that it names.
        at_line: Whether it names a line.
        where: On which side of that, or in it.
        levels: ``RELATIVE INDENTATION``: how much deeper than the place.
    """

    def __init__(
        self,
        *,
        lines: tuple[int, int],
        definition: bool,
        place: int,
        at_line: bool,
        where: str,
        levels: int,
    ) -> None:
        self.first, self.end = lines
        self.definition = definition
        self.place = place
        self.at_line = at_line
        self.where = where
        self.levels = levels


class Place:
    """Where lines go.

    Attributes:
        index: They come to stand in front of this line.
        level: Line whose white space they take; None if it has none to give.
        following: First line of the statement that has to follow them, if one has to.
        preceding: First line of the statement that has to precede them, if one has to.
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
    """A Python file.

    Attributes:
        lines: Its lines.
        tree: Its tree.
        strings: Lines that begin inside of a string.

    Raises:
        Refused: ``UNSAFE_MOVE``, it is no Python.
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
        """Give the definition that begins on a line; the library and Python have to agree."""
        node = self._starts.get(line)
        if not isinstance(node, trees.DEFINITIONS):
            raise unsafe("the library and Python do not find the same definition")
        return node

    def with_comments_above(self, line: int) -> int:
        """Give the first line of a statement and the comments right above it.

        The definitions at the top of a file belong to the file.
        """
        first = line
        while first - 1 in self._comments and self._level(first - 1) == self._level(line):
            first -= 1
        return first or line

    def end(self, node: ast.stmt) -> int:
        """Give the end of a definition and of the comments below it that stand deeper than it."""
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
        """Find where the lines from the first to the end go."""
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
                "The body stands on the line of its definition.",
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
    """Give the white space a line begins with."""
    return line[: len(line) - len(line.lstrip(_WHITE))]


def unsafe(why: str, suggestion: str = _BY_HAND) -> Refused:
    """Build the refusal of a MOVE that is not known to be right, and say why."""
    return Refused(
        "UNSAFE_MOVE", f"This MOVE is not carried out: {why}.", suggestion, type="ExecutionError"
    )
