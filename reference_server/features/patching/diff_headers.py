"""The lines of a unified diff and the headers before its hunks. Pure."""

from __future__ import annotations

import re

from ...failure import ToolError
from ...tools.text import newline_at, next_newline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MORE_FILES = ("diff ", "--- ", "+++ ", "Index: ", "*** ")
"""Starts of a section for another file."""

_INDEX = re.compile(r"index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: 100(?:644|755))?")
# No slash: the text after a name must not look like another name.
_STAMP = re.compile(r"[0-9A-Za-z :.,+-]*")
_SPECIAL = (
    *("old mode ", "new mode ", "new file mode ", "deleted file mode ", "similarity index "),
    *("dissimilarity index ", "rename ", "copy ", "GIT binary patch", "Binary files "),
)
_SUGGESTIONS = {
    "INVALID_DIFF": (
        "Send nothing but '--- a/PATH', '+++ b/PATH' and hunks.",
        "Every line of a hunk begins with ' ', '-' or '+', an empty context line too.",
    ),
    "WRONG_FILE": ("Name the file in both headers as in path: '--- a/PATH' and '+++ b/PATH'.",),
    "MULTIPLE_FILES": ("Send one call for each file.",),
    "UNSUPPORTED_DIFF": ("Send only changes of lines; modes, names and links stay as they are.",),
}


class Lines:
    """Reads the lines of a diff one at a time, without their newlines.

    Attributes:
        line: The current line; None at the end.
        number: Its number, counted from 1.
    """

    def __init__(self, diff: str) -> None:
        self._rest = self._cut(diff)
        self.number = 0
        self.line: str | None = None
        self.advance()

    @staticmethod
    def _cut(diff: str) -> Iterator[str]:
        position = 0
        while position < len(diff):
            end = next_newline(diff, position)
            yield diff[position:end]
            position = end + len(newline_at(diff, end))

    def advance(self) -> None:
        self.line = next(self._rest, None)
        self.number += 1

    def wrong(self, message: str, code: str = "INVALID_DIFF") -> ToolError:
        where = "The end" if self.line is None else f"Line {self.number}"
        return ToolError(
            f"{where} of the diff: {message} Nothing was written.",
            code=code,
            type="ParseError",
            field="diffText",
            context={"line": self.number},
            suggestions=_SUGGESTIONS.get(code, ()),
        )


def read_headers(lines: Lines, names: Iterable[str]) -> None:
    permitted = [pair for name in dict.fromkeys(names) for pair in _spellings(name)]
    git = None
    if lines.line is not None and lines.line.startswith("diff --git "):
        git = lines.line
        if git not in (f"diff --git {old} {new}" for old, new in permitted):
            raise lines.wrong("it names another file than path does.", "WRONG_FILE")
        lines.advance()
        if lines.line is not None and _INDEX.fullmatch(lines.line):
            lines.advance()
    old = _read_name(lines, "--- ")
    new = _read_name(lines, "+++ ")
    if (old, new) not in permitted or git not in (None, f"diff --git {old} {new}"):
        if "/dev/null" in (old, new):
            raise lines.wrong("files are neither created nor deleted.", "UNSUPPORTED_DIFF")
        raise lines.wrong("the headers name another file than path does.", "WRONG_FILE")


def _read_name(lines: Lines, mark: str) -> str:
    line = lines.line
    if line is not None and line.startswith(_SPECIAL):
        raise lines.wrong("only lines of text are changed.", "UNSUPPORTED_DIFF")
    if line is None or not line.startswith(mark):
        raise lines.wrong(f"a header that begins with {mark!r} must stand here.")
    name, _, stamp = line[len(mark) :].partition("\t")
    if not _STAMP.fullmatch(stamp):
        raise lines.wrong("what follows the name is no time.")
    lines.advance()
    return name


def _spellings(name: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of names that the two headers of one file may contain."""
    for old, new in ((name, name), (f"a/{name}", f"b/{name}")):
        yield old, new
        yield _quoted(old), _quoted(new)


def _quoted(name: str) -> str:
    """Quote a name that is not plain ASCII as git does; paths contain no control characters here.

    Source: https://git-scm.com/docs/git-config#Documentation/git-config.txt-corequotePath
    """
    letters = (chr(byte) for byte in name.replace('"', '\\"').encode())
    inside = "".join(each if each.isascii() else f"\\{ord(each):03o}" for each in letters)
    return f'"{inside}"'


def no_change(message: str) -> ToolError:
    return ToolError(f"{message} Nothing was written.", code="NO_CHANGE", field="diffText")
