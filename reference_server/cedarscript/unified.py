"""A unified diff of two texts. Pure functions.

The diff is made in the worker, because the comparison of long texts with many equal lines can take
minutes.
"""

from __future__ import annotations

from difflib import unified_diff

NOWHERE = "/dev/null"
_NO_NEWLINE = "\\ No newline at end of file"
_CONTEXT = 3


def unified(before: str | None, after: str | None, path: str) -> str:
    """Return the diff without timestamps, or an empty string if the texts are equal.

    Args:
        before: Old text, with LF newlines; None if the file did not exist.
        after: New text, with LF newlines; None if the file is removed.
        path: Path of the file, for the headers.
    """
    old = NOWHERE if before is None else f"a/{path}"
    new = NOWHERE if after is None else f"b/{path}"
    lines = unified_diff(_lines(before), _lines(after), old, new, n=_CONTEXT)
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in lines)


def _lines(text: str | None) -> list[str]:
    """Split a text at LF only. Each line keeps its LF."""
    if not text:
        return []
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
