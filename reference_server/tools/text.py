"""The text of files, with its encoding, byte order mark and newlines.

In every tool a line ends at LF, CRLF or CR. Form feeds and U+2028, which ``str.splitlines`` also
splits at, do not end a line in a source file.
"""

from __future__ import annotations

from ..failure import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..workspace import Snapshot

ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "iso-8859-1", "windows-1252")
"""Encodings that a client may name. Encoding a decoded text returns the original bytes."""

_MARKS = (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"))
_UTF_32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
"""Marks of files that are never read as text: an edit in any encoding above would damage them."""

LONGEST_TEXT = 500_000
"""Maximum characters (code points) of a file in one answer, including newlines.

The limit applies to tools, resources, prompts and diffs. Longer files are read in line ranges."""

_FEW_LINES = 32
_STEP = 256

ENCODING: dict[str, Any] = {
    "type": "string",
    "enum": list(ENCODINGS),
    "description": "How to decode the file. Default: its byte order mark, else utf-8.",
}
FACTS: dict[str, dict[str, Any]] = {
    "sha256": {"type": "string", "description": "SHA-256 of all bytes of the file, in hex."},
    "sha256_normalized": {
        "type": "string",
        "description": "SHA-256 of the text in UTF-8 without byte order mark, newlines as LF.",
    },
    "encoding": {"type": "string", "enum": list(ENCODINGS)},
    "bom": {"type": "boolean", "description": "Whether the file has a byte order mark."},
    "newline": {"type": "string", "enum": ["lf", "crlf", "cr", "mixed", "none"]},
    "final_newline": {"type": "boolean", "description": "Whether its last line ends in one."},
    "lines": {"type": "integer", "minimum": 0, "description": "Lines of the whole file."},
}
"""Output schemas of the members that ``Text.facts`` returns."""


class Text:
    """The text of a file.

    Args:
        encoding: One of ``ENCODINGS``. None selects the encoding of the byte order mark, else
            UTF-8. It is never guessed from the contents.

    Attributes:
        text: The text without the byte order mark, with the newlines of the file.
        encoding: One of ``ENCODINGS``.
        mark: The bytes of its byte order mark; empty if it has none.
        newline: ``lf``, ``crlf``, ``cr``, ``mixed``, or ``none`` if there is no newline.
        line_count: Number of lines, including a last line without newline.

    Raises:
        ToolError: ``NOT_TEXT``: the bytes are invalid in that encoding, or are UTF-32.
    """

    def __init__(self, data: bytes, encoding: str | None = None) -> None:
        if data.startswith(_UTF_32):
            raise ToolError(
                "Text that begins as UTF-32 does is neither shown nor edited here.",
                code="NOT_TEXT",
                suggestions=["Convert the file to UTF-8 with another program."],
            )
        marked = next((each for each in _MARKS if data.startswith(each[1])), None)
        self.data = data
        self._hashes: dict[str, str] | None = None
        self.encoding = encoding or (marked[0] if marked else "utf-8")
        self.mark = marked[1] if marked and marked[0] == self.encoding else b""
        try:
            self.text = str(memoryview(data)[len(self.mark) :], self.encoding)
        except UnicodeDecodeError:
            raise ToolError(
                f"The file is not {self.encoding} text.",
                code="NOT_TEXT",
                field="encoding",
                suggestions=["Name the encoding of the file, if it is text and you know it."],
            ) from None
        crlf = self.text.count("\r\n")
        counts = {
            "lf": self.text.count("\n") - crlf,
            "crlf": crlf,
            "cr": self.text.count("\r") - crlf,
        }
        used = [name for name, count in counts.items() if count]
        self.newline = "mixed" if len(used) > 1 else "".join(used) or "none"
        self.final_newline = self.text.endswith(("\n", "\r"))
        self.line_count = sum(counts.values())
        self.line_count += bool(self.text) and not self.final_newline

    def hashes(self) -> dict[str, str]:
        if self._hashes is None:
            strict = _sha256(self.data)
            plain = self.data
            if self.encoding != "utf-8":
                plain = self.text.encode()
            elif self.mark:
                plain = plain[len(self.mark) :]
            if b"\r" in plain:
                plain = plain.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            normalized = strict if plain is self.data else _sha256(plain)
            self._hashes = {"sha256": strict, "sha256_normalized": normalized}
        return self._hashes

    def facts(self) -> dict[str, Any]:
        return {
            **self.hashes(),
            "encoding": self.encoding,
            "bom": bool(self.mark),
            "newline": self.newline,
            "final_newline": self.final_newline,
            "lines": self.line_count,
        }

    def lines(self) -> list[str]:
        import io  # noqa: PLC0415 - part of every interpreter, but nothing else here needs it

        return list(io.StringIO(self.text, newline=""))

    def part(self, first: int, last: int) -> str:
        """Return the lines ``first`` to ``last``, both included and counted from 1."""
        start = skip_lines(self.text, 0, first - 1)
        return self.text[start : skip_lines(self.text, start, last - first + 1)]

    def fitting(self, first: int, extra: int = 0) -> int:
        """Return the number of the last line that fits into an answer that starts at ``first``.

        Args:
            first: Number of a line, counted from 1.
            extra: Characters that the answer adds to each line.

        Returns:
            ``first - 1`` if that line alone does not fit.
        """
        left, last = LONGEST_TEXT, first - 1
        for line in self.lines()[last:]:
            left -= len(line) + extra
            if left < 0:
                break
            last += 1
        return last

    def encode(self, text: str) -> bytes:
        """Encode another text with the encoding and the byte order mark of this one."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"The file is {self.encoding}, which has no character "
                f"U+{ord(text[error.start]):04X}; nothing was written.",
                code="CANNOT_ENCODE",
            ) from None


def read_text(snapshot: Snapshot, encoding: str | None = None) -> Text:
    """Return the text of a file that was read."""
    try:
        return Text(snapshot.data, encoding)
    except ToolError as error:
        error.context = {"file": snapshot.path}
        raise


def advice(text: Text, first: int, way: str, extra: int = 0) -> str:
    """Return advice for reading lines that do not fit into one answer.

    Args:
        way: The advice for reading the lines ``{first}`` to ``{last}``.
    """
    last = text.fitting(first, extra)
    if last < first:
        return (
            f"Line {first} alone does not fit into one answer, and no tool here reads a part of a "
            "line."
        )
    return way.format(first=first, last=last)


def newline_at(text: str, position: int) -> str:
    """Return the newline at a position: LF, CRLF, CR, or ``""`` for none."""
    if text.startswith("\n", position):
        return "\n"
    if not text.startswith("\r", position):
        return ""
    return "\r\n" if text.startswith("\n", position + 1) else "\r"


def newline_before(text: str, position: int) -> str:
    """Return the newline that ends at a position: LF, CRLF, CR, or ``""`` for none."""
    last = text[max(position - 2, 0) : position]
    return last if last == "\r\n" else last[-1:] if last.endswith(("\n", "\r")) else ""


def next_newline(text: str, position: int) -> int:
    """Return the position of the first newline from a position on, or the length of the text."""
    step = _STEP
    while position < len(text):
        # Search in steps: a text without LF would be searched to its end for each CR.
        end = position + step
        lf = text.find("\n", position, end)
        cr = text.find("\r", position, end if lf < 0 else lf)
        if cr >= 0 or lf >= 0:
            return cr if cr >= 0 else lf
        position, step = end, 2 * step
    return len(text)


def skip_lines(text: str, position: int, count: int) -> int:
    """Return the position after ``count`` lines, or the length of the text if it has fewer.

    The time is linear in the skipped text, and no text is copied.
    """
    while count > _FEW_LINES and position < len(text):
        # N characters contain at most N line ends, so this never skips too many.
        end = position + count
        if text.startswith("\r\n", end - 1):
            end += 1
        count -= text.count("\n", position, end) + text.count("\r", position, end)
        count += text.count("\r\n", position, end)
        position = end
    while count > 0 and position < len(text):
        position = next_newline(text, position)
        position += len(newline_at(text, position))
        count -= 1
    return min(position, len(text))


def _sha256(data: bytes) -> str:
    import hashlib  # noqa: PLC0415 - loading OpenSSL takes as long as starting this server

    return hashlib.sha256(data).hexdigest()
