"""Bytes to lines to messages: the stdio framing and strict JSON. Pure; no I/O.

Source: basic/transports#stdio of each revision (one JSON-RPC message per line, UTF-8, delimited by
line feeds) and RFC 8259 for the JSON itself.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

LINE_LIMIT: Final = 32 * 1024 * 1024
"""Longest line kept whole, in bytes; a longer one is counted and cut."""

CUT: Final = 4096
"""Bytes kept of a line over the limit."""

DEEPEST: Final = 128
"""Greatest depth of nested arrays and objects that is read, as in other parsers of JSON.

The recursive functions of this program and of its libraries are safe at this depth.
"""

MOST_VALUES: Final = 500_000
"""Greatest number of values in a line; an empty array of two bytes takes 64 bytes of memory."""

_DIGITS: Final = 4000  # int() rejects 4,301 digits and more; Decimal has no such limit
_BOM: Final = b"\xef\xbb\xbf"
REST_OF_A_LINE_FEED: Final = frozenset({b"\0", b"\0\0\0"})
"""The end of little-endian UTF-16 and UTF-32, split at 0x0A."""

_DECODER: Final = json.JSONDecoder()
_GLUED: Final = re.compile(r"\{|content-length:", re.IGNORECASE)
_STRING: Final = re.compile(r'"[^"]*"?')  # without escapes; closed or not
_STRING_OR_BRACKET: Final = re.compile(_STRING.pattern + r"|[\[\]{}]")
_UNLIKELY: Final = re.compile(r"[^ -\xff]")
_NO_SIGN: Final = re.compile(r"[^\[\]{},]+")


class Fault(StrEnum):
    """A fault of a line, apart from the message in it."""

    BLANK = "blank line"
    BYTE_ORDER_MARK = "starts with a byte order mark"
    NOT_UTF8 = "not UTF-8"
    NOT_JSON = "not JSON"
    CONSTANT = "NaN or Infinity, which JSON does not have"
    DUPLICATE_KEY = "an object names a member twice"
    LONE_SURROGATE = "an escaped lone surrogate"
    TOO_DEEP = f"nested deeper than {DEEPEST} levels"
    TOO_LONG = "longer than we read"
    TOO_MANY = f"more than {MOST_VALUES:,} values"
    UNTERMINATED = "no line feed at its end"
    SPREAD = "a message over several lines"


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen, it is made five times as slowly
class Line:
    """One line without its line feed.

    Attributes:
        raw: the bytes; only the first CUT of them if the line exceeds the limit.
        length: its real length in bytes.
        terminated: False for the bytes after the last line feed at end of file.
    """

    raw: bytes
    length: int
    terminated: bool = True

    @property
    def cut(self) -> bool:
        """Whether bytes are missing."""
        return self.length > len(self.raw)


class LineSplitter:
    """Splitter of a byte stream at 0x0A and nowhere else, in bounded memory."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._length = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """Add the next bytes; return the lines they complete."""
        *whole, rest = chunk.split(b"\n")
        lines = [self._finish(part, terminated=True) for part in whole]
        self._take(rest)
        return lines

    @property
    def overlong(self) -> bool:
        """Whether the bytes after the last line feed exceed the limit already."""
        return self._length > self._limit

    @property
    def closed(self) -> bool:
        """Whether the bytes after the last line feed end like a whole message."""
        return self._rest[-64:].rstrip().endswith((b"}", b"]"))

    def peek(self) -> bytes:
        """Return the bytes after the last line feed, at most CUT of them once cut."""
        return bytes(self._rest)

    def close(self) -> Line | None:
        """Return the bytes after the last line feed as a line, if there are any."""
        return self._finish(b"", terminated=False) if self._length else None

    def _take(self, part: bytes) -> None:
        self._length += len(part)
        self._rest += part
        if self._length > self._limit:
            del self._rest[min(CUT, self._limit) :]

    def _finish(self, part: bytes, *, terminated: bool) -> Line:
        self._take(part)
        line = Line(bytes(self._rest), self._length, terminated)
        self._rest.clear()
        self._length = 0
        return line


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen, it is made five times as slowly
class Reading:
    """The JSON content of a line.

    Attributes:
        value: the JSON value; None if it could not be read (see ``readable``).
        readable: whether ``value`` was read from the line. If it is TOO_DEEP, the arrays and
            objects of the deepest level that we read are empty there.
    """

    value: Any = None
    faults: frozenset[Fault] = field(default_factory=frozenset)
    readable: bool = True

    @property
    def messages(self) -> list[Any]:
        """The members of a batch, or the one value."""
        return self.value if isinstance(self.value, list) else [self.value]


def read(line: Line) -> Reading:
    """Read one line as strict JSON; never raise."""
    faults: set[Fault] = set()
    if not line.terminated:
        faults.add(Fault.UNTERMINATED)
    if line.cut:
        return Reading(None, frozenset({*faults, Fault.TOO_LONG}), readable=False)
    raw = line.raw
    if not raw.strip(b" \t\r\0"):
        empty = Fault.NOT_UTF8 if raw in REST_OF_A_LINE_FEED else Fault.BLANK
        return Reading(None, frozenset({*faults, empty}), readable=False)
    if raw.startswith(_BOM):
        faults.add(Fault.BYTE_ORDER_MARK)
        raw = raw.removeprefix(_BOM)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        faults.add(Fault.NOT_UTF8)
        text = raw.decode("latin-1")
    if beyond := excess(text):
        faults.add(beyond)
        text = _emptied(text) if beyond is Fault.TOO_DEEP else ""
    with contextlib.suppress(ValueError):
        return _parse(text, faults)
    for text in _wider(raw):
        with contextlib.suppress(ValueError):
            return _parse("" if excess(text) else text, faults | {Fault.NOT_UTF8})
    if not beyond:
        faults.add(Fault.NOT_JSON)
    return Reading(None, frozenset(faults), readable=False)


def excess(text: str, deepest: int = DEEPEST, most: int = MOST_VALUES) -> Fault | None:
    """Return the limit that the arrays and objects of a text exceed: TOO_MANY or TOO_DEEP."""
    opened = text.count("[") + text.count("{")
    if opened <= deepest and opened + text.count(",") <= most:
        return None
    plain = _without_escapes(text)
    if plain.count('"') > 4 * most:  # two for each text, which is a value or a name
        return Fault.TOO_MANY
    signs = _NO_SIGN.sub("", _STRING.sub("", plain)).replace("{", "[").replace("}", "]")
    if signs.count("[") + signs.count(",") > most:
        return Fault.TOO_MANY
    nested = signs.replace(",", "")
    for level in range(deepest):
        outer = nested.replace("[]", "")
        if len(outer) == len(nested):  # not balanced: no JSON
            return Fault.TOO_DEEP if nested.count("[") + level > deepest else None
        nested = outer
    return Fault.TOO_DEEP if nested else None


def _without_escapes(text: str) -> str:
    """Replace escaped backslashes and quotes; a pattern for strings needs much memory for them."""
    return text.replace("\\\\", "__").replace('\\"', "__")


def _emptied(text: str) -> str:
    """Return a text with the arrays and objects of the deepest level emptied."""
    kept = []
    depth = start = 0
    for found in _STRING_OR_BRACKET.finditer(_without_escapes(text)):
        if found[0] in {"[", "{"}:
            depth += 1
            if depth == DEEPEST:
                kept.append(text[start : found.end()])
        elif found[0] in {"]", "}"}:
            if depth == DEEPEST:
                start = found.start()
            depth -= 1
    return "".join([*kept, text[start:] if depth < DEEPEST else ""])


def loads(text: str | bytes | bytearray) -> Any:
    """Read JSON of a server that is not a line.

    Raises:
        ValueError: it is no JSON, nested too deep, or has too many values.
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    if beyond := excess(text):
        raise ValueError(beyond)
    return json.loads(text)


def _wider(raw: bytes) -> list[str]:
    """Return the possible readings of a line as UTF-16 or UTF-32, the likelier one first.

    Split at 0x0A, each little-endian line begins, and each big-endian line ends, with the other
    bytes of a line feed.
    """
    found = []
    if b"\0" in raw:
        for codec, rest in (
            ("utf-16-le", raw.removeprefix(b"\0")),
            ("utf-16-be", raw.removesuffix(b"\0")),
            ("utf-32-le", raw.removeprefix(b"\0\0\0")),
            ("utf-32-be", raw.removesuffix(b"\0\0\0")),
        ):
            with contextlib.suppress(UnicodeDecodeError):
                found.append(rest.decode(codec).removeprefix("\ufeff"))
    return sorted(found, key=lambda text: len(text) - len(_UNLIKELY.sub("", text)))


def _parse(text: str, faults: set[Fault]) -> Reading:
    found = set(faults)
    _noted.set(found)
    value = (_READER if len(text) < _DIGITS else _LONG_READER).decode(text)
    if "\\u" in text or "\\U" in text:
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            found.add(Fault.LONE_SURROGATE)
    return Reading(value, frozenset(found))


_noted: Final[ContextVar[set[Fault]]] = ContextVar("noted")
"""Faults of the current text. The decoders write them here, so that they can be created once."""


def _constant(_: str) -> None:
    _noted.get().add(Fault.CONSTANT)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        _noted.get().add(Fault.DUPLICATE_KEY)
    return table


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < _DIGITS else Decimal(digits)


_READER: Final = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_members)
_LONG_READER: Final = json.JSONDecoder(
    parse_constant=_constant, object_pairs_hook=_members, parse_int=_integer
)


def split_glued(line: Line) -> Iterator[Line]:
    """Yield the messages of one line, with a line feed missing between them.

    A message must be followed by the next one, or by the header of a framing with lengths; any
    other line is not split.
    """
    text = line.raw.decode("latin-1")  # one character per byte; the syntax of JSON is ASCII
    start = 0
    if excess(text):
        yield line
        return
    while text.startswith("{", start):
        try:
            _, end = _DECODER.raw_decode(text, start)
        except ValueError:
            break
        if not _GLUED.match(text, end):
            break
        yield Line(line.raw[start:end], end - start, terminated=False)
        start = end
    yield Line(line.raw[start:], line.length - start, line.terminated) if start else line


def is_whole(rest: bytes) -> bool:
    """Return whether bytes without a line feed are complete messages."""
    last = rest
    for part in split_glued(Line(rest, len(rest), terminated=False)):
        last = part.raw
    return joined([last]) is not None


def integral(value: Any) -> bool:
    """Return whether a JSON value is a whole number (true and false are not)."""
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def open_brackets(line: bytes) -> int:
    """Return the number of unclosed brackets of a line; no JSON string spans two lines."""
    bare = _STRING.sub("", _without_escapes(line.decode("latin-1")))
    return sum(map(bare.count, "{[")) - sum(map(bare.count, "}]"))


def joined(lines: Iterable[bytes]) -> Any:
    """Read several lines as one JSON text: a message broken over lines, or None."""
    try:
        return loads(b"\n".join(lines))
    except ValueError:
        return None


def encode(message: Any) -> bytes:
    """Encode a message as one line of UTF-8, line feed included.

    Every message of a server can be encoded again: a lone surrogate is escaped, and a number of
    thousands of digits becomes a string.
    """
    try:
        return _dumps(message, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return _dumps(message, ensure_ascii=True).encode() + b"\n"


def _dumps(message: Any, *, ensure_ascii: bool) -> str:
    return (_ASCII_WRITER if ensure_ascii else _WRITER).encode(message)


_WRITER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_ASCII_WRITER: Final = json.JSONEncoder(separators=(",", ":"), default=str)


class Kind(StrEnum):
    """The kinds of JSON-RPC message, by their members."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"
    ODD = "no message"


def kind_of(value: Any) -> Kind:
    """Return the kind of a JSON value by its members, whatever their types."""
    if not isinstance(value, dict):
        return Kind.ODD
    if "method" in value:
        if "result" in value or "error" in value:
            return Kind.ODD
        return Kind.REQUEST if "id" in value else Kind.NOTIFICATION
    if "result" in value:
        return Kind.RESULT
    return Kind.ERROR if "error" in value else Kind.ODD


type_names: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    type(None): "null",
    int: "number",
    float: "number",
    Decimal: "number",
}


def type_name(value: Any) -> str:
    """Return the name of the JSON type of a value."""
    return type_names.get(type(value), type(value).__name__)


IdKey = tuple[str, Any]


_IDS: Final = {kind: name for kind, name in type_names.items() if name in {"string", "number"}}


def id_key(value: Any) -> IdKey | None:
    """Return the typed identity of an id: 5 and "5" differ; None if it cannot be an id."""
    name = _IDS.get(type(value))
    return None if name is None else (name, value)


_plain: Final = json.JSONEncoder(ensure_ascii=False, default=str).encode


def value_in(value: Any, *members: str) -> Any:
    """Return the value below these members of a JSON value; None if there is none."""
    for member in members:
        value = value.get(member) if isinstance(value, dict) else None
    return value


def code_in(error: Any) -> Any:
    """Return the code of an error; None if there is none, or a list or an object in its place."""
    code = value_in(error, "code")
    return None if isinstance(code, list | dict) else code


def object_in(value: Any, *members: str) -> dict[str, Any]:
    """Return the object below these members of a JSON value; empty if there is none."""
    for member in members:  # as value_in, which would be called half a million times in a run
        value = value.get(member) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def list_in(value: Any, *members: str) -> list[Any]:
    """Return the list below these members of a JSON value; empty if there is none."""
    found = value_in(value, *members)
    return found if isinstance(found, list) else []


def brief(value: Any, limit: int = 120) -> str:
    """Return a JSON value on one line, cut to ``limit`` characters."""
    try:
        text = str(value) if type(value) is int else _plain(value)  # most are ids
    except (ValueError, RecursionError):
        text = "(unprintable)"
    return text if len(text) <= limit else text[: limit - 1] + "…"
