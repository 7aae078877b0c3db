"""Files as text, and what a text editor would lose: encoding, byte order mark, newlines.

A line ends at LF, CRLF or CR, here and in every tool. Not at what ``str.splitlines`` adds to
these: form feeds and U+2028 end no line in a source file.
"""

from __future__ import annotations

from ..failure import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..workspace import Snapshot

ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "iso-8859-1", "windows-1252")
"""What a client may name. Each gives back exactly the bytes it was decoded from."""

_MARKS = (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"))

LONGEST_TEXT = 500_000
"""Characters (code points) of a file in one answer, newlines counted. This holds at every way out:
tools, resources, prompts and diffs. What is longer is read in ranges of lines."""

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
"""Output schemas of what ``Text.facts`` gives."""


class Text:
    """The text of a file.

    Args:
        data: All bytes of the file.
        encoding: One of ``ENCODINGS``; None for its byte order mark, else UTF-8. It is never
            guessed from the contents.

    Attributes:
        data: All bytes of the file.
        text: Without the byte order mark, newlines as the file has them.
        encoding: One of ``ENCODINGS``.
        mark: The bytes of its byte order mark, or none.
        newline: ``lf``, ``crlf``, ``cr``, ``mixed``, or ``none`` if there is no newline.
        final_newline: Whether the last line ends in one.
        line_count: How many lines there are, an unfinished last one counted.

    Raises:
        ToolError: ``NOT_TEXT``: these bytes are nothing in that encoding.
    """

    def __init__(self, data: bytes, encoding: str | None = None) -> None:
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

    @property
    def bom(self) -> bool:
        """Whether the file has a byte order mark."""
        return bool(self.mark)

    def hashes(self) -> dict[str, str]:
        """Give both hashes, as ``FACTS`` describes them."""
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
        """Give the members of ``structuredContent`` that ``FACTS`` describes."""
        return {
            **self.hashes(),
            "encoding": self.encoding,
            "bom": self.bom,
            "newline": self.newline,
            "final_newline": self.final_newline,
            "lines": self.line_count,
        }

    def lines(self) -> list[str]:
        """Give the lines, each with its newline as the file has it."""
        import io  # noqa: PLC0415 - part of every interpreter, but nothing else here needs it

        return list(io.StringIO(self.text, newline=""))

    def part(self, first: int, last: int) -> str:
        """Give the lines ``first`` to ``last``, both included and counted from 1."""
        start = skip_lines(self.text, 0, first - 1)
        return self.text[start : skip_lines(self.text, start, last - first + 1)]

    def fitting(self, first: int, extra: int = 0) -> int:
        """Give the last of the lines from ``first`` on that fit into one answer together.

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
        """Give the bytes of the file with another text in the same encoding, its mark kept.

        Raises:
            ToolError: ``CANNOT_ENCODE``: the encoding has no bytes for a character.
        """
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"The file is {self.encoding}, which has no character "
                f"U+{ord(text[error.start]):04X}; nothing was written.",
                code="CANNOT_ENCODE",
            ) from None


def read_text(snapshot: Snapshot, encoding: str | None = None) -> Text:
    """Give the text of a file that was read.

    Raises:
        ToolError: As ``Text``.
    """
    try:
        return Text(snapshot.data, encoding)
    except ToolError as error:
        error.context = {"file": snapshot.path}
        raise


def advice(text: Text, first: int, way: str, extra: int = 0) -> str:
    """Say how lines are read that do not fit into one answer.

    Args:
        text: The text.
        first: The first line that was asked for.
        way: What to do for the lines ``{first}`` to ``{last}``.
        extra: As for ``Text.fitting``.
    """
    last = text.fitting(first, extra)
    if last < first:
        return (
            f"Line {first} alone does not fit into one answer, and no tool here reads a part of a "
            "line."
        )
    return way.format(first=first, last=last)


def newline_at(text: str, position: int) -> str:
    """Give the newline at a position: LF, CRLF, CR, or ``""`` for none."""
    if text.startswith("\n", position):
        return "\n"
    if not text.startswith("\r", position):
        return ""
    return "\r\n" if text.startswith("\n", position + 1) else "\r"


def newline_before(text: str, position: int) -> str:
    """Give the newline that ends at a position: LF, CRLF, CR, or ``""`` for none."""
    last = text[max(position - 2, 0) : position]
    return last if last == "\r\n" else last[-1:] if last.endswith(("\n", "\r")) else ""


def next_newline(text: str, position: int) -> int:
    """Give the position of the first newline from a position on, or the length of the text."""
    step = _STEP
    while position < len(text):
        # In steps: a text without any LF is not searched to its end for each CR.
        end = position + step
        lf = text.find("\n", position, end)
        cr = text.find("\r", position, end if lf < 0 else lf)
        if cr >= 0 or lf >= 0:
            return cr if cr >= 0 else lf
        position, step = end, 2 * step
    return len(text)


def skip_lines(text: str, position: int, count: int) -> int:
    """Give the position after so many lines, or the length of the text if it has fewer.

    Takes time linear in the text passed over and no memory.
    """
    while count > _FEW_LINES and position < len(text):
        # So many characters hold no more than so many line ends: this never goes too far.
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
