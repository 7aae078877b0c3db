"""MOVE: carried out here, for the library moves to wrong levels and eats lines. Pure.

Lines are taken out and put in. In a Python file the syntax trees before and after then have to
show that it was a move and nothing else: what has moved is whole statements, unchanged; all the
rest is unchanged, docstrings included; and it stands beside or in what the script names. What
cannot be shown is refused. In other files there is nothing to show: lines are all they have.

Lines are counted from 0, and the end of something is the line after it.
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
    """Give the lines of a file after a MOVE.

    Args:
        lines: The file, without its newlines.
        move: What goes where.
        python: Whether it is a Python file.

    Raises:
        Refused: ``MOVE_INTO_ITSELF``, ``NO_CHANGE``, ``UNSAFE_MOVE``, ``NEGATIVE_INDENTATION``; in
            a Python file also ``BREAKS_SYNTAX``, ``ONE_LINE_BODY``, ``UNSUPPORTED_CONSTRUCT``.
    """
    after = (_move_python if python else _move_lines)(lines, move)
    if after == lines:
        raise Refused(
            "NO_CHANGE",
            "The MOVE would change nothing: it stands there already.",
            "Look at the file; perhaps an earlier command has moved it.",
            type="ExecutionError",
        )
    return after


def _move_lines(lines: Sequence[str], move: Move) -> list[str]:
    """Move lines of any text; they take the level of the line they come to stand beside."""
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
    """Move a definition, or lines that are whole statements, of a Python file."""
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
    """Compare the trees before and after; the one before is used up.

    Raises:
        Refused: They differ in more than the place of some statements, or it is another place.
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
    """Give the statements in some lines, as ``trees.find_runs``; they have to be neighbours."""
    runs = trees.find_runs(tree, first, end)
    if len(runs) > 1:
        raise unsafe("what is to move is not made of whole statements")
    return runs[0] if runs else None


def _line_after(line: int, first: int, end: int, index: int) -> int:
    """Give the number that a line has after others, from the first to the end, have moved."""
    if index <= line < first:
        return line + end - first
    if end <= line < index:
        return line - (end - first)
    return line


def _rearrange(
    lines: Sequence[str], first: int, end: int, index: int, block: list[str]
) -> list[str]:
    """Give all lines, with a block in front of another line than it was."""
    if index <= first:
        return [*lines[:index], *block, *lines[index:first], *lines[end:]]
    return [*lines[:first], *lines[end:index], *block, *lines[index:]]


def _shift(
    block: Sequence[str], old: str, new: str, fixed: Collection[int] = frozenset()
) -> list[str]:
    """Give lines with other white space in front; blank lines and the fixed ones stay."""
    return [
        new + line[len(old) :]
        if line.strip() and at not in fixed and line.startswith(old)
        else line
        for at, line in enumerate(block)
    ]


def _common(whites: list[str]) -> str:
    """Give what all of them begin with."""
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
    """Take one level more than there is, only where the library by itself comes out right.

    It counts as if everything had stood one level deep, so what stands at the top is written with
    ``RELATIVE INDENTATION 1``. In front of a definition nothing else can be meant.
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
