"""Views and edits of a text: numbered lines, one replacement, one insertion. Pure.

A client writes newlines as LF; a file may have others. So strings are matched with all newlines
read as LF, and inserted text gets the newlines of the lines around it. The text outside the edited
place is kept, including its newlines.
"""

from __future__ import annotations

from ...failure import ToolError
from ...tools.text import newline_at, newline_before, next_newline, skip_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...tools.text import Text

NUMBER = 7
"""Characters of a line number and its tab in a view, up to line 999999."""

MOST_PLACES = 20
"""Maximum number of line numbers in the error for a string that occurs more than once."""

_CONTEXT = 3
_LONGEST_SNIPPET = 4_000


class Edited:
    """A text after an edit.

    Attributes:
        first_line: First edited line, counted from 1.
        last_line: Last line of the inserted text; ``first_line`` if the edit only removed text.
    """

    __slots__ = ("first_line", "last_line", "text")

    def __init__(self, text: str, first_line: int, put_in: str) -> None:
        self.text = text
        self.first_line = first_line
        self.last_line = first_line + max(0, len(_lines(put_in)) - 1)


def numbered(text: str, first: int) -> str:
    """Format lines as ``cat -n`` does: a number, a tab and the line, separated by LF."""
    lines = enumerate(_lines(text), first)
    return "\n".join(f"{number:{NUMBER - 1}}\t{line}" for number, line in lines)


def snippet(text: Text, first: int, last: int) -> str:
    """Return numbered lines with a few lines around them; long output is truncated."""
    first = max(1, first - _CONTEXT)
    shown = numbered(text.part(first, last + _CONTEXT), first)
    return shown if len(shown) <= _LONGEST_SNIPPET else shown[:_LONGEST_SNIPPET] + "…"


def replace(text: str, old: str, new: str) -> Edited:
    """Replace a string that must occur exactly once.

    Overlapping occurrences are counted separately: ``aa`` occurs twice in ``aaa``.
    """
    view, wanted = _as_lf(text), _as_lf(old)
    places = _places(view, wanted)
    if not places:
        raise _no_match(view, wanted)
    if len(places) > 1:
        raise _ambiguous(view, places)
    number = view.count("\n", 0, places[0])
    start = _offset(text, view, places[0])
    end = _offset(text, view, places[0] + len(wanted))
    put_in = _with_newlines(new, _newline_near(text, number))
    if text[start:end] == put_in:
        raise ToolError(
            "new_str equals the text in the file; nothing was written.",
            code="NO_CHANGE",
            field="new_str",
        )
    return Edited(text[:start] + put_in + text[end:], number + 1, put_in)


def insert(text: Text, after: int, new: str) -> Edited:
    """Insert lines after a line.

    A missing newline at their end is added, except at the end of a file whose last line had none.

    Args:
        after: Number of the line before them; 0 inserts at the top.
    """
    if not 0 <= after <= text.line_count:
        raise ToolError(
            f"The file has {text.line_count} lines; "
            f"insert_line is from 0 (at the top) to {text.line_count}.",
            code="LINE_OUT_OF_RANGE",
            field="insert_line",
        )
    if not new:
        raise ToolError(
            "new_str is empty. An empty line is one newline.", code="NO_CHANGE", field="new_str"
        )
    newline = _newline_near(text.text, max(0, after - 1))
    put_in = _with_newlines(new, newline)
    newline = newline or newline_at(put_in, next_newline(put_in, 0)) or "\n"
    at = skip_lines(text.text, 0, after)
    head, tail = text.text[:at], text.text[at:]
    if head and not newline_before(head, at):
        head += newline
    elif text.text and not newline_before(put_in, len(put_in)):
        put_in += newline
    return Edited(head + put_in + tail, after + 1, put_in)


def _as_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _lines(text: str) -> list[str]:
    """Split a text into lines without their newlines."""
    return _as_lf(text).removesuffix("\n").split("\n") if text else []


def _newline_near(text: str, number: int) -> str:
    """Return the newline of a line counted from 0; if it has none, that of the line before."""
    start = skip_lines(text, 0, number)
    return newline_at(text, next_newline(text, start)) or newline_before(text, start)


def _with_newlines(text: str, newline: str) -> str:
    """Return a text with every newline replaced by ``newline``; an empty one changes nothing."""
    return _as_lf(text).replace("\n", newline) if newline else text


def _offset(text: str, view: str, offset: int) -> int:
    """Convert an offset in the LF view of a text to an offset in the text."""
    if len(view) == len(text):
        return offset
    start = view.rfind("\n", 0, offset) + 1
    return skip_lines(text, 0, view.count("\n", 0, offset)) + offset - start


def _places(view: str, wanted: str) -> list[int]:
    """Return the offsets of a string, at most one more than an error lists."""
    places: list[int] = []
    at = view.find(wanted)
    while at >= 0 and len(places) <= MOST_PLACES:
        places.append(at)
        at = view.find(wanted, at + 1)
    return places


def _ambiguous(view: str, places: Sequence[int]) -> ToolError:
    found = (view.count("\n", 0, place) + 1 for place in places[:MOST_PLACES])
    numbers = list(dict.fromkeys(found))
    many = f"more than {MOST_PLACES}" if len(places) > MOST_PLACES else str(len(places))
    where = "lines" if len(numbers) > 1 else "line"
    return ToolError(
        f"old_str occurs {many} times, at the {where} {', '.join(map(str, numbers))}; "
        "it must occur once. Nothing was written.",
        code="AMBIGUOUS",
        field="old_str",
        context={"line": numbers[0]},
        suggestions=["Add lines before or after to old_str until only one place has it."],
    )


def _no_match(view: str, wanted: str) -> ToolError:
    hint, line = _near_miss(view, wanted)
    return ToolError(
        f"old_str does not occur in the file; nothing was written.{hint and ' '}{hint}",
        code="NO_MATCH",
        field="old_str",
        context={"line": line} if line else None,
        suggestions=["View the file and copy the text exactly, without the line numbers."],
    )


def _near_miss(view: str, wanted: str) -> tuple[str, int | None]:
    """Return a hint about a similar text in the file and its line number, if there is one."""
    plain = _without_numbers(wanted)
    if plain is not None and (at := view.find(plain)) >= 0:
        line = view.count("\n", 0, at) + 1
        return f"Without the line numbers of a view it is at line {line}.", line
    squeezed = "".join(wanted.split())
    if not squeezed:
        return "It is white space only.", None
    lines = view.split("\n")
    at = "".join(view.split()).find(squeezed)
    if at >= 0:
        for line, each in enumerate(lines, 1):
            at -= len("".join(each.split()))
            if at < 0:
                return f"At line {line} is a match that differs only in white space.", line
    opening = next(line.strip() for line in wanted.split("\n") if line.strip())
    for line, each in enumerate(lines, 1):
        if each.strip() == opening:
            return f"Its first line is at line {line}; the text after it differs.", line
    return "", None


def _without_numbers(text: str) -> str | None:
    """Remove the line numbers of a view; return None if a line has no number."""
    plain = []
    for line in text.removesuffix("\n").split("\n"):
        number, tab, rest = line.partition("\t")
        if not (tab and number.strip().isdecimal()):
            return None
        plain.append(rest)
    return "\n".join(plain)
