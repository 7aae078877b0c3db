"""Previews of an edit, for the person who confirms it. Pure.

A preview is for people and models, not for ``patch``. Control characters are escaped and long text
is cut, so that a file can neither control the screen nor hide a change. The user confirms the exact
bytes, not this text (``confirm``).
"""

from __future__ import annotations

import difflib
import re

from ...protocol.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...workspace import Change

MOST_FILES = 50
"""Maximum number of files in a summary."""

_LONGEST_LINE = 300
_MOST_COMPARED = 500
"""Maximum number of lines that are compared. In longer texts, all lines count as replaced."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def summary(changes: Sequence[Change]) -> str:
    lines = [f"- {_verb(change)} {printable(change.path, 200)}" for change in changes[:MOST_FILES]]
    if len(changes) > MOST_FILES:
        lines.append(f"- and {len(changes) - MOST_FILES} files more")
    return "\n".join(lines)


def diffs(changes: Sequence[Change], most: int) -> str:
    """Return the changes as unified diffs.

    Each file has its share of the length, so that a large one does not displace the others.
    """
    shown: list[str] = []
    left = most
    for number, change in enumerate(changes):
        if left <= 0:
            shown.append(f"… ({len(changes) - number} files more are not shown)")
            break
        share = left // (len(changes) - number)
        for line in _diff(change):
            if share <= 0:
                shown.append("… (the rest of this file is not shown)")
                break
            shown.append(line)
            share -= len(line) + 1
            left -= len(line) + 1
    return "\n".join(shown)


def _verb(change: Change) -> str:
    if change.before is None:
        return "create"
    return "delete" if change.after is None else "change"


def _diff(change: Change) -> Iterator[str]:
    name = printable(change.path, 200)
    yield "--- /dev/null" if change.before is None else f"--- a/{name}"
    yield "+++ /dev/null" if change.after is None else f"+++ b/{name}"
    before, after = _lines(change.before), _lines(change.after)
    if before is None or after is None:
        sizes = [f"{len(data or b'')} bytes" for data in (change.before, change.after)]
        yield f"(no UTF-8 text; {sizes[0]} before, {sizes[1]} after)"
        return
    newline = "\r\n" if all(line.endswith("\r\n") for line in before + after) else "\n"
    for mark, line in _hunks(before, after):
        if mark == "@":
            yield line
            continue
        ended = line.endswith(("\r", "\n"))
        yield mark + printable(line.removesuffix(newline), _LONGEST_LINE)
        if not ended:
            yield "\\ No newline at end of file"


def _lines(data: bytes | None) -> list[str] | None:
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else _LINE.findall(text)


def _hunks(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with its mark; the mark of a header is ``@``."""
    top = _alike(before, after)
    bottom = _alike(before[top:][::-1], after[top:][::-1])
    ends = len(before) - bottom, len(after) - bottom
    if max(ends[0] - top, ends[1] - top) <= _MOST_COMPARED:
        start = max(0, top - 3)
        matcher = difflib.SequenceMatcher(
            None, before[start : ends[0] + 3], after[start : ends[1] + 3], autojunk=False
        )
        groups = [
            [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]
            for group in matcher.get_grouped_opcodes(3)
        ]
    else:
        groups = [[("replace", top, ends[0], top, ends[1])]]
    for group in groups:
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        yield "@", f"@@ -{_range(a, b)} +{_range(c, d)} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from ((" ", line) for line in before[i:j])
                continue
            yield from (("-", line) for line in before[i:j])
            yield from (("+", line) for line in after[k:m])


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal lines at the start of both."""
    for count, (line, its) in enumerate(zip(one, other, strict=False)):
        if line != its:
            return count
    return min(len(one), len(other))


def _range(start: int, stop: int) -> str:
    length = stop - start
    return f"{start + 1 if length else start},{length}"
