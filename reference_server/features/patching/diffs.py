"""Parse unified diffs strictly and apply them exactly. Pure.

A diff changes one existing file. Everything in it must match the file: the names, the line numbers
of both sides, the counts, every kept or removed line, and whether the file ends in a newline. Lines
outside headers and hunks are rejected. So are changes of anything but text: other files, creation
and deletion, renames, copies, modes, links, binaries, ``ed`` scripts.

Lines are compared without their newlines. Kept lines do not change by a byte. An added line gets
the newline of the line it replaces, else of the line before it. The diff itself may use LF, CRLF
or CR.

Why not a library: unidiff 1.0.1 does not apply diffs. It accepts counts that are too small,
overlapping or unordered hunks, prose around the hunks and a newline marker in the middle.
whatthepatch 1.0.7 accepts all of these, counts that are too large and plain ``ed`` commands, and
splits lines at U+2028. Neither checks the line numbers of the new side.

Format: https://www.gnu.org/software/diffutils/manual/html_node/Detailed-Unified.html
"""

from __future__ import annotations

import io
import re
from collections import deque
from typing import NamedTuple

from ...failure import ToolError
from ...tools.text import newline_at, newline_before, next_newline, skip_lines
from .diff_headers import MORE_FILES, Lines, no_change, read_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NO_NEWLINE = "\\ No newline at end of file"

# Nine digits exceed the lines of any file and keep the integers small.
_RANGE = r"(0|[1-9][0-9]{0,8})(?:,(0|[1-9][0-9]{0,8}))?"
_HUNK = re.compile(rf"@@ -{_RANGE} \+{_RANGE} @@(?: .*)?", re.DOTALL)


class Patched(NamedTuple):
    text: str
    hunks: int
    added: int
    removed: int


def apply(old: str, diff: str, names: Sequence[str]) -> Patched:
    """Apply a unified diff of one file.

    Time and memory are linear in the two texts, whatever numbers the diff contains.

    Args:
        diff: The diff, with headers that name the file: ``--- a/NAME`` and ``+++ b/NAME``, or
            both without prefix. The first lines of git (``diff --git``, ``index``) may precede.
        names: The accepted names of the file; the first is its path.
    """
    lines = Lines(diff)
    if lines.line is None:
        raise no_change("The diff is empty.")
    read_headers(lines, names)
    target = _Target(old, names[0])
    hunks = added = removed = 0
    while lines.line is not None:
        hunks += 1
        more_added, more_removed = _apply_hunk(lines, target, hunks, added - removed)
        added += more_added
        removed += more_removed
    if not hunks:
        raise no_change("The diff has headers and no hunks.")
    new = target.finish()
    if new == old:
        raise no_change(
            "The diff removes and adds the same lines. Newlines always stay as the file has them."
        )
    return Patched(new, hunks, added, removed)


def _apply_hunk(lines: Lines, target: _Target, number: int, shift: int) -> tuple[int, int]:
    """Read and apply one hunk; return the numbers of added and removed lines."""
    old_left, new_left = _read_range(lines, target, number, shift)
    added = removed = 0
    while old_left or new_left:
        line, at = lines.line, lines.number
        mark = line[:1] if line is not None else ""
        if line is None or mark not in (" ", "-", "+"):
            raise lines.wrong(f"hunk {number} must go on here with ' ', '-' or '+'.")
        old_left -= mark != "+"
        new_left -= mark != "-"
        if old_left < 0 or new_left < 0:
            raise lines.wrong(f"hunk {number} has more lines than its header says.")
        content = line[1:]
        lines.advance()
        unfinished = lines.line == NO_NEWLINE
        if unfinished:
            if not content or (mark != "+" and old_left) or (mark != "-" and new_left):
                raise lines.wrong("this can only stand after the last line of a file.")
            lines.advance()
        added += mark == "+"
        removed += mark == "-"
        if mark == "+":
            target.add(content, unfinished=unfinished, at=at)
        else:
            target.match(content, unfinished=unfinished, keep=mark == " ", at=at)
    _check_what_follows(lines, number)
    if not added and not removed:
        raise no_change(f"Hunk {number} of the diff changes nothing.")
    return added, removed


def _read_range(lines: Lines, target: _Target, number: int, shift: int) -> tuple[int, int]:
    """Read the header of a hunk and go to its first line; return the old and the new count."""
    found = _HUNK.fullmatch(lines.line or "")
    if not found:
        raise lines.wrong(f"the header of hunk {number}, '@@ -LINE,COUNT +LINE,COUNT @@', is bad.")
    old_start, new_start = int(found[1]), int(found[3])
    old_count, new_count = (int(found[n]) if found[n] else 1 for n in (2, 4))
    # A side with a count of 0 names the line before the hunk.
    old_index, new_index = old_start - bool(old_count), new_start - bool(new_count)
    if old_index < 0 or new_index < 0:
        raise lines.wrong("lines are counted from 1.")
    if old_index < target.line:
        raise lines.wrong(f"hunk {number} overlaps the hunk before it or should stand before it.")
    if new_index != old_index + shift:
        must = old_index + shift + bool(new_count)
        raise lines.wrong(f"after the hunks before it, the new side of hunk {number} is at {must}.")
    target.go_to(old_index, at=lines.number)
    lines.advance()
    return old_count, new_count


def _check_what_follows(lines: Lines, number: int) -> None:
    line = lines.line
    if line is None or line.startswith("@@"):
        return
    if line.startswith(MORE_FILES):
        raise lines.wrong(
            f"another file begins, or hunk {number} has more lines than its header says.",
            "MULTIPLE_FILES",
        )
    if line.startswith((" ", "+", "-", "\\")):
        raise lines.wrong(f"hunk {number} has more lines than its header says.")
    raise lines.wrong(f"hunk {number} is complete, and this is no hunk.")


class _Target:
    """Reads the old text from the top and writes the new text.

    Attributes:
        line: Number of old lines that were processed.
    """

    def __init__(self, text: str, path: str) -> None:
        self.line = 0
        self._text = text
        self._path = path
        self._position = 0
        self._written = io.StringIO()
        self._unfinished = False
        self._newline = ""
        self._removed: deque[str] = deque()

    def go_to(self, index: int, *, at: int) -> None:
        """Keep the lines before an index."""
        self._removed.clear()
        if index == self.line:
            return
        end = skip_lines(self._text, self._position, index - self.line - 1)
        if end == len(self._text):  # the last of them does not exist
            raise self._mismatch("the file has fewer lines.", at, line=index)
        end = skip_lines(self._text, end, 1)
        self._write(self._text[self._position : end], at)
        self._newline = newline_before(self._text, end) or self._newline
        self._position = end
        self.line = index

    def match(self, content: str, *, unfinished: bool, keep: bool, at: int) -> None:
        """Compare a line with the next line of the text, and keep or remove the latter."""
        text, start = self._text, self._position
        if start == len(text):
            raise self._mismatch("the file has fewer lines.", at)
        end = start + len(content)
        newline = newline_at(text, end)
        if not text.startswith(content, start) or not (newline or end == len(text)):
            raise self._mismatch("the file has another line there.", at)
        if unfinished and newline:
            raise self._mismatch("that line of the file ends in a newline.", at)
        if not unfinished and not newline:
            raise self._mismatch(
                "that line of the file ends in no newline, so the diff must say "
                f"'{NO_NEWLINE}' after it.",
                at,
            )
        if keep:
            self._removed.clear()
            self._write(content + newline, at)
        else:
            self._removed.append(newline)
        self._position = end + len(newline)
        self.line += 1
        self._newline = newline or self._newline

    def add(self, content: str, *, unfinished: bool, at: int) -> None:
        """Write a new line with the newline of the replaced line or of a neighbour."""
        replaced = self._removed.popleft() if self._removed else ""
        newline = replaced or self._newline
        if not newline:
            newline = newline_at(self._text, next_newline(self._text, self._position)) or "\n"
        self._write(content if unfinished else content + newline, at)

    def finish(self) -> str:
        """Keep the remaining lines and return the new text."""
        self._write(self._text[self._position :], None)
        return self._written.getvalue()

    def _write(self, piece: str, at: int | None) -> None:
        if not piece:
            return
        if self._unfinished:
            raise self._mismatch("what would stand before it ends in no newline.", at)
        self._unfinished = not piece.endswith(("\n", "\r"))
        self._written.write(piece)

    def _mismatch(self, what: str, at: int | None, line: int = 0) -> ToolError:
        where = f"line {at} of the diff" if at else "the end of the diff"
        line = line or self.line + 1
        return ToolError(
            f"Line {line} of the file, {where}: {what} Nothing was written.",
            code="CONTEXT_MISMATCH",
            type="ConflictError",
            field="diffText",
            context={"file": self._path, "line": line},
        )
