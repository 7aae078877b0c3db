"""Find the scripts in a text, and check their fences, comments and strings. Pure functions.

A text is one script, or prose with scripts in code fences of the language ``CEDARScript``. The
published parser accepts only fenced scripts. It ends a script at the first three backticks, even
inside a string. Here, strings are read first. Only a line of backticks outside of strings closes a
fence.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...failure import ToolError
from .syntax import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 256 * 1024
"""Limit for the size of a text with scripts, in bytes of UTF-8.

The limit is needed because the parser creates a node for each character of a string.
"""

NOTHING_TO_DO = "<NOCEDARSCRIPT/>"

_KNOWN = {*COMMANDS, "MV", "SELECT", "CALL"}
_LANGUAGE = "cedarscript"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[ \t]*")
_TOKEN = re.compile(
    r"(?P<string>(?:(?<!\w)r)?(?:\"\"\"|'''|\"|'))"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<dashes>(?<!\S)--[^\n]*)"
    r"|(?P<block>/\*)"
    r"|(?P<fence>^ {0,3}(?:`{3,}|~{3,})[ \t]*$)",
    re.MULTILINE,
)
_BODY = {
    '"': re.compile(r'(?:[^"\\]|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]|\\.)*+", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*+", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# The escapes of the grammar. It reports a syntax error for any other character after a backslash.
_TAKEN = re.compile(
    r"\\(?:[abfnrtv\\\"']|\d{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]+\})"
)
_ESCAPED_DELIMITER = re.compile(r"\\\"\\?\"\\?\"|\\'\\?'\\?'")
_MEANINGS = {"'": "'", '"': '"', "t": "\t", "\\": "\\"}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]|\r")


class Block(NamedTuple):
    """One script.

    Attributes:
        text: The commands. Newlines are LF. Comments that began with ``--`` begin with ``#``.
        line: Line of the input on which the script begins, counted from 1.
    """

    text: str
    line: int


class ScriptError(ToolError):
    """A script cannot be read. The error has the place of the fault."""

    def __init__(
        self, message: str, code: str, line: int, column: int = 1, suggestion: str | None = None
    ) -> None:
        super().__init__(
            message,
            code=code,
            type="ParseError",
            context={"script_line": line, "script_column": column},
            suggestions=[suggestion] if suggestion else (),
            related_tools=("list_capabilities",),
        )


def find_blocks(content: str) -> list[Block]:
    """Return the scripts of a text in order.

    The list is empty if the text ends with ``<NOCEDARSCRIPT/>`` and has no fenced script.
    """
    size = len(content.encode(errors="replace"))
    if size > LARGEST:
        raise ToolError(
            f"The script has {size} bytes; the limit is {LARGEST}.",
            code="SCRIPT_TOO_LARGE",
            suggestions=["Send fewer commands at a time.", "Write large new files another way."],
        )
    content = content.replace("\r\n", "\n")
    control = _CONTROL.search(content)
    if control:
        raise _at(content, control.start(), "A control character is here.", "CONTROL_CHARACTER")
    if any(_is_ours(line) for line in content.split("\n")):
        return list(_fenced(content))
    if content.rstrip().endswith(NOTHING_TO_DO):
        return []
    if not content.strip():
        raise ToolError(
            "The script is empty.",
            code="EMPTY_SCRIPT",
            type="ParseError",
            related_tools=("list_capabilities",),
        )
    text, _ = _read(content, 0, None)
    return [Block(text, 1)]


def _is_ours(line: str) -> bool:
    found = _FENCE.fullmatch(line)
    return bool(found) and found[2].casefold() == _LANGUAGE  # type: ignore[index]


def _fenced(content: str) -> Iterator[Block]:
    position = 0
    while position < len(content):
        end = content.find("\n", position)
        end = len(content) if end < 0 else end
        opening = _FENCE.fullmatch(content[position:end])
        start, position = position, end + 1
        if not opening:
            continue
        if opening[2].casefold() == _LANGUAGE:
            text, closing = _read(content, position, opening[1])
            if closing is not None:
                yield Block(text, content.count("\n", 0, position) + 1)
        else:
            closing = _skip(content, position, opening[1])
        if closing is None:
            raise _at(
                content,
                start,
                "The code fence that opens here is not closed.",
                "UNCLOSED_FENCE",
                f"Put {opening[1]} on a line of its own after the last command, outside of any "
                "string.",
            )
        position = closing


def _closes(line: str, fence: str) -> bool:
    """Return whether a line closes a fence: as many or more of the same marks, and nothing else."""
    line = line.strip()
    return line.startswith(fence) and not line.strip(fence[0])


def _skip(content: str, position: int, fence: str) -> int | None:
    """Return the position after a fenced part in another language, or None if it has no end."""
    while position < len(content):
        end = content.find("\n", position)
        end = len(content) if end < 0 else end
        if _closes(content[position:end], fence):
            return end + 1
        position = end + 1
    return None


def _read(content: str, start: int, fence: str | None) -> tuple[str, int | None]:
    """Read a script from a position to its closing fence, or to the end of the text.

    Args:
        start: Position of the first character of the script.
        fence: Marks of the opening fence; None if the script is not fenced.

    Returns:
        The script and the position after its closing fence. The position is None if no fence closes
        the script.
    """
    pieces: list[str] = []
    kept = position = start
    # An apostrophe in prose does not begin a string. If the text does not begin with a command,
    # nothing is refused here, and the grammar reports the error.
    strict = _first_word(content, start) in _KNOWN
    while token := _TOKEN.search(content, position):
        position = token.end()
        kind = token.lastgroup
        if kind == "string":
            position = _read_string(content, token.start(), token[0], strict=strict)
        elif kind == "block":
            end = content.find("*/", position)
            if end < 0 and strict:
                raise _at(content, token.start(), "The comment is not closed.", "UNCLOSED_COMMENT")
            position = len(content) if end < 0 else end + 2
        elif kind == "dashes":
            pieces += [content[kept : token.start()], "# "]
            kept = token.start() + 2
        elif kind == "fence" and fence and _closes(token[0], fence):
            pieces.append(content[kept : token.start()])
            return "".join(pieces), position + 1
    pieces.append(content[kept:])
    return "".join(pieces), None


def _first_word(content: str, start: int) -> str:
    word = re.compile(r"(?:\s+|#[^\n]*|--[^\n]*|/\*.*?\*/)*+(\w*)", re.DOTALL).match(content, start)
    return word[1] if word else ""


def _read_string(content: str, start: int, opening: str, *, strict: bool) -> int:
    """Return the position after a string that begins at a position.

    Args:
        start: Position of the opening quotes, including the ``r`` of a raw string.
        opening: The opening quotes, including the ``r``.
        strict: Whether to refuse an unclosed string and unsupported escapes.
    """
    quote = opening.removeprefix("r")
    body = start + len(opening)
    if opening != quote:
        end = content.find(quote, body)
    else:
        found = _BODY[quote].match(content, body)
        end = found.end() if found and content.startswith(quote, found.end()) else -1
    if not strict:
        return len(content) if end < 0 else end + len(quote)
    several_lines = len(quote) > 1
    if end < 0 or (not several_lines and "\n" in content[body:end]):
        raise _at(
            content,
            start,
            "The string that begins here is not closed"
            + (", or a triple quote after it is." if several_lines else " on its line."),
            "UNCLOSED_STRING",
            f"Close it with {quote}"
            + ("." if several_lines else ", or use triple quotes for several lines."),
        )
    if opening == quote:
        _check_escapes(content, body, end, several_lines=several_lines)
    return end + len(quote)


def _check_escapes(content: str, start: int, end: int, *, several_lines: bool) -> None:
    """Refuse escapes that the library would silently replace by an unexpected text."""
    text = content[start:end]
    if several_lines:
        # The library does not unescape these strings. It inserts the text as written.
        odd = (m.start() for m in _ESCAPE.finditer(text) if not _TAKEN.match(text, m.start()))
        escaped = _ESCAPED_DELIMITER.search(text)
        found = (next(odd, None), escaped.start() if escaped else None)
        bad = min((each for each in found if each is not None), default=None)
    else:
        bad = next((m.start() for m in _ESCAPE.finditer(text) if m[1] not in _MEANINGS), None)
        plain = _ESCAPE.sub(lambda one: _MEANINGS.get(one[1], one[0]), text)
        # The library replaces one kind of escape after the other: "\\t" becomes a backslash and a
        # tab.
        theirs = text.replace(r"\'", "'").replace(r"\"", '"').replace(r"\t", "\t")
        if bad is None and plain != theirs.replace("\\\\", "\\"):
            bad = text.index("\\")
    if bad is not None:
        raise _at(
            content,
            start + bad,
            f"The escape {text[bad : bad + 2]} does not mean here what it looks like.",
            "UNSUPPORTED_ESCAPE",
            "Write a raw string (r\"...\" or r'''...''') for text with backslashes, and triple "
            "quotes for text of several lines.",
        )


def _at(
    content: str, position: int, message: str, code: str, suggestion: str | None = None
) -> ScriptError:
    line = content.count("\n", 0, position) + 1
    column = position - (content.rfind("\n", 0, position) + 1) + 1
    return ScriptError(message, code, line, column, suggestion)
