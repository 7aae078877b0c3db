"""A unified diff of two texts. Pure functions.

The diff is made in the worker, because the comparison of long texts can take minutes.
"""

from __future__ import annotations

import re
from difflib import unified_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NOWHERE = "/dev/null"
_NO_NEWLINE = "\\ No newline at end of file"
_CONTEXT = 3


def unified(before: str | None, after: str | None, path: str) -> str:
    """Return the diff without timestamps, or an empty string if the texts are equal.

    Args:
        before: Old text, with LF newlines; None if the file did not exist.
        after: New text, with LF newlines; None if the file is removed.
    """
    old = NOWHERE if before is None else f"a/{path}"
    new = NOWHERE if after is None else f"b/{path}"
    lines = _diff(_lines(before), _lines(after), old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in lines)


def _diff(before: list[str], after: list[str], old: str, new: str) -> Iterator[str]:
    """Yield the lines of the diff. Only what lies between equal ends is compared: that is faster.

    difflib compares each line with all equal ones, which takes minutes in a long file.
    """
    pairs = zip(before, after, strict=False)
    shortest = min(len(before), len(after))
    head = next((at for at, (one, other) in enumerate(pairs) if one != other), shortest)
    pairs = zip(reversed(before[head:]), reversed(after[head:]), strict=False)
    tail = next((at for at, (one, other) in enumerate(pairs) if one != other), shortest - head)
    skipped, tail = max(head - _CONTEXT, 0), max(tail - _CONTEXT, 0)
    before, after = before[skipped : len(before) - tail], after[skipped : len(after) - tail]
    for line in unified_diff(before, after, old, new, n=_CONTEXT):
        yield _moved(line, skipped) if line.startswith("@@") else line


def _moved(header: str, lines: int) -> str:
    """Add a number of lines to both places in the header of a hunk."""
    return re.sub(r"(?<=[-+])[0-9]+", lambda found: str(int(found[0]) + lines), header)


def _lines(text: str | None) -> list[str]:
    """Split a text at LF only. Each line keeps its LF."""
    if not text:
        return []
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
