"""The MOVE action. Pure functions.

The library is not used for it, because it moves to wrong levels and loses lines.

A MOVE removes lines and inserts them elsewhere. In a Python file, the syntax trees before and after
are then compared. The MOVE is refused unless all of these are true:

- The moved lines are comments or whole statements, and the statements are unchanged.
- The rest of the file is unchanged, including the docstrings.
- The statements are now beside or in the place that the script names.

Other files have no syntax tree, so nothing is compared.

Line numbers start from 0. The end of a range is the line after its last line.
"""

from __future__ import annotations

from . import trees
from .indentation import find_unit
from .places import AFTER, BEFORE, Move, Place, Source, unsafe, white_before
from .policy import Refused
from .trees import first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Collection, Sequence


def carry_out(lines: Sequence[str], move: Move, *, python: bool) -> list[str]:
    """Return the lines of a file after a MOVE.

    Args:
        lines: Lines of the file, without newlines.
    """
    after = (_move_python if python else _move_lines)(lines, move)
    if after == lines:
        raise Refused(
            "NO_CHANGE",
            "The MOVE would change nothing: it is there already.",
            "Look at the file; perhaps an earlier command has moved it.",
            type="ExecutionError",
        )
    return after


def _move_lines(lines: Sequence[str], move: Move) -> list[str]:
    """Move lines of any text file. They get the indentation of the line next to their new place."""
    block = lines[move.first : move.end]
    old = _common([white_before(line) for line in block if line.strip()])
    _check_outside(move.place, move.first, move.end)
    reference = lines[move.place]
    if not reference.strip() and (old or move.levels):
        raise _no_level()
    new = _deeper(white_before(reference) if reference.strip() else "", move.levels, lines)
    index = move.place + (move.where == AFTER)
    return _rearrange(lines, move.first, move.end, index, _shift(block, old, new))


def _move_python(lines: Sequence[str], move: Move) -> list[str]:
    source = Source(lines)
    first, end = move.first, move.end
    level = next((at for at in range(first, end) if lines[at].strip()), first)
    if move.definition:
        node = source.definition(first)
        first, end = source.with_comments_above(first), source.end(node)
    else:
        run = _find_run(source.tree, first, end)
        if run:
            level = first_line(run[0][run[1]])
    _check_outside(move.place, first, end)
    place = source.place(move, first, end)
    if place.index > first:
        _check_outside(place.index, first, end)
    old = white_before(lines[level])
    if move.levels:
        _check_levels(move, old)
    if place.level is None and old:
        raise _no_level()
    new = "" if place.level is None else white_before(lines[place.level])
    fixed = {at - first for at in source.strings}
    block = _shift(lines[first:end], old, new, fixed)
    after = _rearrange(lines, first, end, place.index, block)
    if after != lines:
        _prove(source, after, (first, end), place)
    return after


def _prove(source: Source, after: list[str], moved: tuple[int, int], place: Place) -> None:
    """Check that the trees before and after differ only in the place of the moved statements.

    The tree of ``source`` is changed and must not be used afterwards.

    Args:
        moved: First line and end of the moved lines, in the file before the MOVE.
    """
    first, end = moved
    size = end - first
    try:
        tree = trees.parse(after)
    except (SyntaxError, ValueError) as error:
        raise _breaks(getattr(error, "msg", "it is no source")) from None
    start = place.index if place.index <= first else place.index - size
    was, now = _find_run(source.tree, first, end), _find_run(tree, start, start + size)
    if was and now:
        (old, old_first, old_end), (new, new_first, new_end) = was, now
        for wanted, found in (
            (place.following, new[new_end : new_end + 1]),
            (place.preceding, new[:new_first][-1:]),
        ):
            if wanted is not None:
                line = _line_after(wanted, first, end, place.index)
                if [first_line(one) for one in found] != [line]:
                    raise unsafe("it would not come to stand where the script says")
        if any(map(trees.is_marked, old[old_first:old_end])):
            raise unsafe("a docstring stays with what it describes")
        if not trees.same(old[old_first:old_end], new[new_first:new_end]):
            raise unsafe("what is to move would not be the same any more")
        del old[old_first:old_end], new[new_first:new_end]
    if not trees.same(source.tree, tree):
        raise unsafe("more of the file would change than the place of some statements")


def _find_run(tree: ast.AST, first: int, end: int) -> tuple[list[ast.stmt], int, int] | None:
    """Return the statements in some lines as one run of ``trees.find_runs``, or None."""
    runs = trees.find_runs(tree, first, end)
    if len(runs) > 1:
        raise unsafe("what is to move is not made of whole statements")
    return runs[0] if runs else None


def _line_after(line: int, first: int, end: int, index: int) -> int:
    """Return the number of a line after other lines were moved.

    Args:
        index: Line in front of which they were moved.
    """
    if index <= line < first:
        return line + end - first
    if end <= line < index:
        return line - (end - first)
    return line


def _rearrange(
    lines: Sequence[str], first: int, end: int, index: int, block: list[str]
) -> list[str]:
    """Return all lines, with ``first`` to ``end`` removed and a block put in front of ``index``."""
    if index <= first:
        return [*lines[:index], *block, *lines[index:first], *lines[end:]]
    return [*lines[:first], *lines[end:index], *block, *lines[index:]]


def _shift(
    block: Sequence[str], old: str, new: str, fixed: Collection[int] = frozenset()
) -> list[str]:
    """Return lines with the leading white space ``old`` replaced by ``new``.

    Blank lines, and lines whose index in the block is in ``fixed``, are not changed.
    """
    return [
        new + line[len(old) :]
        if line.strip() and at not in fixed and line.startswith(old)
        else line
        for at, line in enumerate(block)
    ]


def _common(whites: list[str]) -> str:
    least, most = min(whites, default=""), max(whites, default="")
    length = 0
    while length < len(least) and least[length] == most[length]:
        length += 1
    return least[:length]


def _deeper(white: str, levels: int, lines: Sequence[str]) -> str:
    unit = find_unit(lines) * abs(levels)
    if levels >= 0:
        return white + unit
    if not white.endswith(unit):
        raise Refused(
            "NEGATIVE_INDENTATION",
            f"RELATIVE INDENTATION {levels} leads to the left of the first column.",
            type="ExecutionError",
        )
    return white.removesuffix(unit)


def _check_outside(line: int, first: int, end: int) -> None:
    if first <= line < end:
        raise Refused(
            "MOVE_INTO_ITSELF",
            "The place to move to lies in what is to be moved.",
            "Name a place outside of it.",
            type="ExecutionError",
        )


def _check_levels(move: Move, white: str) -> None:
    """Refuse RELATIVE INDENTATION in a Python file, with one exception.

    The library assumes that moved lines were one level deep. Scripts for the library therefore use
    ``RELATIVE INDENTATION 1`` to move a definition from the top level. This is accepted, without
    any effect, if the definition is moved in front of another one, because there it can have no
    other meaning.
    """
    beside = move.definition and not move.at_line and move.where == BEFORE
    if not (beside and not white and move.levels == 1):
        raise Refused(
            "UNSUPPORTED_CONSTRUCT",
            f"Not carried out by this server: RELATIVE INDENTATION {move.levels} in a Python file.",
            "Leave it out: what moves takes the level of its new place.",
        )


def _no_level() -> Refused:
    return unsafe("a blank line has no level of indentation", "Name a line with text in it.")


def _breaks(what: str) -> Refused:
    return Refused(
        "BREAKS_SYNTAX",
        f"The file would not be valid Python any more after the MOVE: {what}.",
        "Leave no class or function empty: INSERT a line with pass first.",
        type="ExecutionError",
    )
