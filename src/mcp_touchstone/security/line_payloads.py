"""Payloads that are lines for the input of a server, as bytes.

Names in braces stand for an id, a tool or its path argument. ``gen`` of a payload describes how to
build a long line. A line is kept as repeated parts, so that a script can print it without
containing it.
"""

import json
import re
import shlex
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.security.payload import Payload, named

PLAIN: Final = "".join(set(string.printable) - set("'\\%\t\n\r\v\f"))
"""Characters that need no escape in a printf format between single quotes."""

_NO_BYTE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that stand for no byte of a name."""

Parts = tuple[tuple[bytes, int], ...]
"""Consecutive parts of a line: bytes, and how many times they are repeated."""


@dataclass(frozen=True, slots=True)
class LinePayload:
    """One line for the input of a server.

    Attributes:
        id: the id of its payload, or a name.
        parts: its content, without the line feed at the end.
    """

    id: str
    note: str
    parts: Parts

    @property
    def data(self) -> bytes:
        """The bytes, without the line feed at the end."""
        return b"".join(unit * count for unit, count in self.parts)

    @property
    def size(self) -> int:
        """Its length in bytes, without the line feed at the end."""
        return sum(len(unit) * count for unit, count in self.parts)

    @property
    def opened(self) -> str:
        """Its parts as text, each once, with Unicode escapes decoded and invalid UTF-8 replaced."""
        text = b" ".join(unit for unit, _ in self.parts).decode("utf-8", "replace")
        return re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)

    def __str__(self) -> str:
        return f"{self.id}: {self.note}"


def plain(id: str, note: str, value: Any) -> LinePayload:  # noqa: A002  (as payloads call it)
    """Return a line with a JSON value or a text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return LinePayload(id, note, ((text.encode("utf-8", "surrogatepass"), 1),))


@dataclass(frozen=True, slots=True)
class Names:
    """Values of the names in braces of a line.

    Attributes:
        modern: ``_meta`` of a stateless request; None in a session.
        tool: name of a tool that may be called.
        path: name of its path argument.
        others: its other arguments.
        prefix: folder put before paths relative to the root; empty if the tool accepts those.
        known: further names, of the fixture tree.
    """

    modern: Mapping[str, Any] | None
    tool: str
    path: str
    others: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    known: Mapping[str, str] = field(default_factory=dict)

    def fill(self, text: str, ids: tuple[int, int]) -> str:
        """Replace the known names in braces; other braces are kept."""
        meta = "" if self.modern is None else json.dumps(dict(self.modern))
        inner = "" if not meta else "," + meta[1:-1]
        probe = "ping" if self.modern is None else "server/discover"
        if self.others:
            more = json.dumps(dict(self.others))[1:-1]
            text = text.replace('"arguments":{"', f'"arguments":{{{more},"')
        if self.prefix:
            for start in ("ok", "../", "..\\/", "\\u002e"):
                text = text.replace(f'":"{start}', f'":"{self.prefix}/{start}')
        names = {
            "id": str(ids[0]),
            "id2": str(ids[1]),
            "tool": self.tool,
            "path_arg": self.path,
            "PATH_ARG": self.path.upper(),
            "path_arg_esc": f"\\u{ord(self.path[0]):04x}{self.path[1:]}",
            "params_meta": "" if not meta else f',"params":{{"_meta":{meta}}}',
            "meta_inner": inner,
            "meta": "" if not meta else f',"_meta":{meta}',
            "ping": json.dumps({"jsonrpc": "2.0", "id": ids[0], "method": probe}),
            "ping_method": probe,
            **self.known,
        }
        return named(text, names)


def load(payload: Payload, names: Names, ids: tuple[int, int]) -> LinePayload:
    """Return the line of a payload, with its names filled in."""
    text = names.fill(payload.text, ids)
    kind, _, rest = payload.recipe.partition(":")
    parts: Parts
    if kind in {"line", "nest"}:
        parts = _nested(kind, rest, names, ids)
    elif kind in {"noline", "newlines", "junk", "open"}:
        parts = _raw(kind, rest)
    elif kind in {"big", "num"}:
        parts = _inside(kind, rest, text)
    elif kind == "batch":
        ping = names.fill("{ping}", ids).encode()
        parts = ((b"[", 1), (ping, 1), (b"," + ping, int(rest) - 1), (b"]", 1))
    elif payload.is_bytes:
        parts = ((text.encode("latin-1", "replace"), 1),)
    else:
        parts = ((text.encode("utf-8", "surrogatepass"), 1),)
    return LinePayload(payload.id, payload.note, tuple(filter(all, parts)))


def _nested(kind: str, rest: str, names: Names, ids: tuple[int, int]) -> Parts:
    """Return a well-formed call with a long string or deep nesting in it."""
    call = (
        '{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{"name":"{tool}",'
        '"arguments":{"{path_arg}":@}{meta}}}'
    )
    unit, _, count = rest.rpartition(":")
    if unit == "{":
        call = (
            '{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{"name":"{tool}",'
            '"arguments":{},"_meta":{"touchstone/deep":@{meta_inner}}}}'
        )
    head, _, tail = names.fill(call, ids).encode().partition(b"@")
    if kind == "line":
        middle: Parts = ((b'"', 1), (b"x", int(count or rest)), (b'"', 1))
    elif unit == "{":
        middle = ((b'{"a":', int(count)), (b"1", 1), (b"}", int(count)))
    else:
        middle = ((b"[", int(count)), (b"]", int(count)))
    return ((head, 1), *middle, (tail, 1))


def _raw(kind: str, rest: str) -> Parts:
    unit, _, count = rest.rpartition(":")
    units = {"noline": b"x", "newlines": b"\n", "junk": b"x\n", "open": unit.encode()}
    return ((units[kind], int(count)),)


def _inside(kind: str, rest: str, text: str) -> Parts:
    name, unit = (b"{num}", b"7") if kind == "num" else (b"{big}", b"x")
    before = b"0." if kind == "num" and rest.startswith("fraction") else b""
    head, _, tail = text.encode().partition(name)
    return ((head, 1), (before, 1), (unit, int(rest.rpartition(":")[2])), (tail, 1))


# --- as a script


def printed(shells: Iterable[LinePayload], place: tuple[str, str]) -> list[str]:
    """Return shell commands that print lines, with a placeholder for a folder: ``place``."""
    old, new = (word.encode() for word in place)
    commands = []
    for shell in shells:
        for unit, count in (*shell.parts, (b"\n", 1)):
            text = word(unit.replace(old, new))
            commands.append(f"printf '{text}'" if count == 1 else _often(text, count))
    return commands


def word(data: bytes) -> str:
    """Return bytes as a printf format for use between single quotes."""
    text = "".join(map(_octal, data))
    return f"\\055{text[1:]}" if text.startswith("-") else text  # it is no option


def quoted(text: str) -> str:
    """Return a text as one word of a shell, in characters that any terminal and file can hold."""
    if text.isprintable():
        return shlex.quote(text)
    kept = text.rstrip("\n")  # a substitution drops line feeds at its end
    data = _NO_BYTE.sub("?", kept).encode("utf-8", "surrogateescape")
    lines = text[len(kept) :]
    return f"\"$(printf '{word(data)}')\"" + (f"'{lines}'" if lines else "")


def placed(text: str, place: str, shown: str) -> str:
    """Return a text as one word of a shell, with the word ``shown`` in place of ``place``."""
    return shown.join(quoted(part) if part else "" for part in text.split(place)) or "''"


def _often(word: str, count: int) -> str:
    form = word.replace("%%", "%").replace('"', '\\"').replace("%", "%%")
    return f"awk 'BEGIN {{ for (i = 0; i < {count}; i++) printf \"{form}\" }}'"


def _octal(byte: int) -> str:
    if byte in b"%":
        return "%%"
    return chr(byte) if chr(byte) in PLAIN else f"\\{byte:03o}"
