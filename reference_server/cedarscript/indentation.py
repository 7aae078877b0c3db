"""The ``@n:`` prefix of CONTENT: a line's level relative to the place it goes to. Pure.

This stands in for the indentation of the library, which counts in the wrong unit where a file is
indented with tabs or with three blanks, and rounds where a line is between two levels.
"""

from __future__ import annotations

import re
from collections import Counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Self

DEEPEST = 64
"""Levels a prefix may ask for, in either direction."""

DEFAULT = "    "

_PREFIX = re.compile(r"\s*@(-?[0-9]+):(.*)", re.DOTALL)
_DIGITS = 4


class IndentationRefusedError(ValueError):
    """A prefix asks for what cannot be; the message says what.

    Attributes:
        code: For a program.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Indentation:
    """How a file is indented; has the two methods of the library's class that are used.

    Args:
        unit: One level: a tab, or some blanks.
    """

    def __init__(self, unit: str = DEFAULT) -> None:
        self.unit = unit

    @classmethod
    def from_content(cls, lines: Sequence[str], _finder: Any = None) -> Self:
        """Find out how lines are indented."""
        return cls(find_unit(lines))

    def apply_relative_indents(self, content: str, reference: int = 0) -> list[str]:
        """Give the lines of a CONTENT as they go into the file.

        A line without a prefix stays as it is. One newline after the opening quotes and one
        before the closing ones belong to the quotes; further ones are blank lines.

        Args:
            content: The text between the quotes.
            reference: White space before the line it is relative to, in characters.

        Raises:
            IndentationRefusedError: A level would be negative.
        """
        content = content.removeprefix("\n").removesuffix("\n")
        if not content:
            return []
        return [self._indent(line, reference) for line in content.split("\n")]

    def _indent(self, line: str, reference: int) -> str:
        found = _PREFIX.fullmatch(line)
        if not found:
            return line
        rest = found[2].lstrip()
        if not rest:
            return ""
        width = reference + int(found[1]) * len(self.unit)
        if width < 0:
            raise IndentationRefusedError(
                f"@{found[1]}: leads to the left of the first column.", "NEGATIVE_INDENTATION"
            )
        return self.unit[0] * width + rest


def check_prefixes(content: str) -> None:
    """See that no prefix asks for a level beyond all measure: eleven bytes would fill a disk.

    Raises:
        IndentationRefusedError: One does.
    """
    for line in content.split("\n"):
        found = _PREFIX.fullmatch(line)
        if found and (len(found[1]) > _DIGITS or abs(int(found[1])) > DEEPEST):
            raise IndentationRefusedError(
                f"A line asks for more than {DEEPEST} levels of indentation.",
                "INDENTATION_OUT_OF_RANGE",
            )


def find_unit(lines: Iterable[str]) -> str:
    """Give what one level of indentation is in a file; four blanks if nothing tells.

    The lines after one that ends in a colon or an opening bracket count most.
    """
    after_opening: Counter[str] = Counter()
    after_any: Counter[str] = Counter()
    previous = ""
    opening = False
    for line in lines:
        stripped = line.strip()
        if not stripped:
            continue
        white = line[: len(line) - len(line.lstrip())]
        if len(white) > len(previous) and white.startswith(previous):
            more = white[len(previous) :]
            unit = "\t" if more[0] == "\t" else more
            if not unit.strip(unit[0]):
                (after_opening if opening else after_any)[unit] += 1
        previous = white
        opening = stripped.endswith((":", "{", "(", "["))
    for counts in (after_opening, after_any):
        if counts:
            return max(counts, key=lambda unit: (counts[unit], -len(unit)))
    return DEFAULT
