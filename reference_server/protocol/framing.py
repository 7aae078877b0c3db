r"""Splits bytes into lines, decodes lines to JSON values, and encodes values. Pure.

stdio framing (basic/transports#stdio): one JSON-RPC message per line, in UTF-8, without a raw
newline. Only the byte 0x0A ends a line. A carriage return is JSON whitespace, and U+2028 is an
ordinary character.

Decoding is strict, so that two readers cannot read a message differently. Bad UTF-8, a byte order
mark, NaN, Infinity and deep nesting are parse errors. A message with a duplicate member name or a
lone surrogate escape is invalid. A number out of range becomes infinity, which no schema here
accepts. A request with a 5000-digit argument is therefore answered under its id.
"""

from __future__ import annotations

import json
import re  # free, because json imports it too

from .errors import PARSE_ERROR, ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

DEEPEST_NESTING = 512
"""Levels of arrays and objects. Far fewer than the stack of a thread allows."""

_LONGEST_INTEGER = 308
"""Digits. Longer integers exceed an IEEE double, and parsing them takes quadratic time."""

_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class Lines:
    """Splits a stream of chunks into lines, with memory bounded by the line limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Yield the lines that this chunk completes, without their newline.

        ``None`` stands for a line beyond the limit. It is yielded as soon as the limit is exceeded,
        and the rest of that line is dropped.
        """
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            overlong = self._add(end)
            if overlong:
                yield None
            if not self._skipping:
                yield b"".join(self._parts)
            self._start_line()
        if self._add(rest):
            yield None

    def rest(self) -> bytes:
        """Return the text after the last newline, once the input has ended."""
        return b"" if self._skipping else b"".join(self._parts)

    def _add(self, part: bytes) -> bool:
        """Add a part of the current line; return True if this part exceeds the limit."""
        if self._skipping or not part:
            return False
        self._size += len(part)
        if self._size > self._limit:
            self._skipping = True
            self._parts.clear()
            return True
        self._parts.append(part)
        return False

    def _start_line(self) -> None:
        self._parts.clear()
        self._size = 0
        self._skipping = False


class Decoded:
    """A JSON value, and its flaw if readers may read it differently.

    Attributes:
        value: The value as Python's json reads it.
        flaw: Why it cannot be a message although it parses, or None.
        id_is_clear: False if the flaw is in the ``id`` of the outermost object.
    """

    __slots__ = ("flaw", "id_is_clear", "value")

    def __init__(self, value: Any, flaw: str | None = None, *, id_is_clear: bool = True) -> None:
        self.value = value
        self.flaw = flaw
        self.id_is_clear = id_is_clear


def decode(line: bytes) -> Decoded:
    """Decode one line as one JSON text (RFC 8259).

    Raises:
        ProtocolError: -32700, the line is not JSON in UTF-8.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError(PARSE_ERROR, "Parse error: the line is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise ProtocolError(PARSE_ERROR, "Parse error: the line begins with a byte order mark")
    if _too_deep(text):
        raise ProtocolError(
            PARSE_ERROR, f"Parse error: nested deeper than {DEEPEST_NESTING} levels"
        )
    doubles = _Doubles()
    try:
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            object_pairs_hook=doubles.build,
        )
    except (ValueError, RecursionError):
        # The message of the parser would quote the client's bytes.
        raise ProtocolError(PARSE_ERROR, "Parse error: the line is not JSON") from None
    if doubles.found:
        clear = not doubles.id_in_outermost
        return Decoded(value, "a member name occurs twice in one object", id_is_clear=clear)
    if ("\\ud" in text or "\\uD" in text) and not _is_unicode(value):
        clear = not isinstance(value, dict) or _is_unicode(value.get("id"))
        return Decoded(value, "a lone surrogate is not a Unicode character", id_is_clear=clear)
    return Decoded(value)


def encode(message: Any) -> bytes:
    """Encode one JSON value as ASCII bytes without a newline.

    ASCII, because some clients also split lines at U+2028 or U+0085. A lone surrogate, for example
    from a file name, becomes a question mark, because no client could decode it.
    """
    text = _dump(message)
    if "\\ud" in text and not _is_unicode(message):
        raw = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        text = _dump(json.loads(raw))
    return text.encode("ascii")


# Shared, because ``json.dumps`` builds an encoder for each call.
_dump = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _too_deep(text: str) -> bool:
    """Check the nesting before the parser recurses, so that the limit is the same everywhere."""
    if text.count("[") + text.count("{") <= DEEPEST_NESTING:
        return False
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > DEEPEST_NESTING:
                return True
        elif mark in "]}":
            depth -= 1
    return False


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


class _Doubles:
    """Builds objects and detects duplicate member names.

    Attributes:
        found: True once any object had a duplicate name.
        id_in_outermost: True if the last object, the outermost one, had ``id`` twice.
    """

    __slots__ = ("found", "id_in_outermost")

    def __init__(self) -> None:
        self.found = False
        self.id_in_outermost = False

    def build(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        self.id_in_outermost = False
        if len(built) != len(pairs):
            self.found = True
            self.id_in_outermost = sum(name == "id" for name, _ in pairs) > 1
        return built
