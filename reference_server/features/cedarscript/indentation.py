"""The ``@n:`` prefix of CONTENT: the level of a line relative to its new place. Pure functions.

This module replaces the indentation code of the library, which has two faults. It counts in the
wrong unit if a file is indented with tabs or with three spaces. It rounds the indentation of a line
that is between two levels.
"""

from __future__ import annotations

import re
from collections import Counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Self

DEEPEST = 64
"""Largest number of levels in a prefix, in either direction."""

DEFAULT = "    "

_PREFIX = re.compile(r"\s*@(-?[0-9]+):(.*)", re.DOTALL)
_DIGITS = 4


class IndentationRefusedError(ValueError):
    """A prefix asks for an impossible level. The message gives the reason."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Indentation:
    """The indentation of a file. It has the two methods of the library's class that are used.

    Args:
        unit: White space of one level: a tab, or one or more spaces.
    """

    def __init__(self, unit: str = DEFAULT) -> None:
        self.unit = unit

    @classmethod
    def from_content(cls, lines: Sequence[str], _finder: Any = None) -> Self:
        return cls(find_unit(lines))

    def apply_relative_indents(self, content: str, reference: int = 0) -> list[str]:
        """Return the lines of a CONTENT with their prefixes replaced by indentation.

        A line without a prefix is not changed. One newline after the opening quotes and one
        before the closing quotes are ignored. Further newlines are blank lines.

        Args:
            content: The text between the quotes.
            reference: Width of the indentation that levels are relative to, in characters.
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
    """Check that no prefix asks for more than ``DEEPEST`` levels.

    Without this limit, a prefix of eleven bytes could fill the disk.
    """
    for line in content.split("\n"):
        found = _PREFIX.fullmatch(line)
        if found and (len(found[1]) > _DIGITS or abs(int(found[1])) > DEEPEST):
            raise IndentationRefusedError(
                f"A line asks for more than {DEEPEST} levels of indentation.",
                "INDENTATION_OUT_OF_RANGE",
            )


def find_unit(lines: Iterable[str]) -> str:
    """Return the white space of one level of indentation in a file.

    The unit is the most frequent increase of the indentation from one line to the next. If some
    lines with an increase follow a line that ends with a colon or an opening bracket, all others
    are ignored. The default is four spaces.
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
