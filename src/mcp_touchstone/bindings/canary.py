"""Canaries: random tokens in places that a server must not access, and the search for them. Pure.

Each file has its own token on every line, so any line identifies the file. A token cannot be
derived from a path, so an error message that repeats the requested path is no match.
"""

import base64
import contextlib
import functools
import json
import secrets
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Any, Final

MARK: Final = "MCPCANARY-"
NAME_MARK: Final = "mcpname-"
LINES: Final = 4

UNIQUE: Final = len(MARK) + 16
"""Characters at the start of a token that identify it; a reply may be truncated after them."""

INFLATED: Final = 1 << 20
"""Maximum number of bytes that are decompressed."""


class Area(StrEnum):
    """The kind of place that holds a canary."""

    OUTSIDE = "outside the root"
    DENIED = "on the deny list"
    INSIDE = "inside the root"
    ENVIRONMENT = "in the environment of the server"


@dataclass(frozen=True, slots=True)
class Canary:
    """One token.

    Attributes:
        where: path of its file relative to the parent, with forward slashes; or the name of an
            environment variable.
        is_name: whether the token is the name of a file instead of its content.
    """

    token: str
    where: str
    area: Area
    is_name: bool = False

    @property
    def needle(self) -> str:
        """The part of the token that is searched for."""
        return self.token if self.is_name else self.token[:UNIQUE]

    @property
    def content(self) -> str:
        """The content of its file."""
        return "".join(f"{self.token} line {n}\n" for n in range(1, LINES + 1))


@dataclass(slots=True)
class Canaries:
    """All canaries of one world."""

    planted: list[Canary] = field(default_factory=list)

    def plant(self, where: str, area: Area) -> Canary:
        """Create the token for the content of a file."""
        return self._keep(Canary(MARK + secrets.token_hex(16), where, area))

    def name(self, folder: str, area: Area) -> Canary:
        """Create a unique file name for a folder that must not be listed."""
        token = NAME_MARK + secrets.token_hex(12)
        return self._keep(Canary(token, f"{folder}/{token}", area, is_name=True))

    def _keep(self, canary: Canary) -> Canary:
        self.planted.append(canary)
        return canary

    def at(self, where: str) -> Canary | None:
        """Return the canary in the content of a file; None if there is none."""
        return next((c for c in self.planted if c.where == where and not c.is_name), None)

    def found(self, data: bytes, areas: Iterable[Area]) -> list[Canary]:
        """Find canaries in bytes: as plain text, hexadecimal, base64 or UTF-16, or compressed."""
        wanted = set(areas)
        seen: dict[str, Canary] = {}
        for view in _views(data):
            for canary in self.planted:
                unseen = canary.area in wanted and canary.token not in seen
                if unseen and any(form in view for form in _forms(canary.needle)):
                    seen[canary.token] = canary
        return list(seen.values())

    def found_in_message(self, message: Any, areas: Iterable[Area]) -> list[Canary]:
        """Find canaries in the strings of a JSON value, including strings with Unicode escapes."""
        return self.found("\n".join(strings(message)).encode("utf-8", "surrogatepass"), areas)


def strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value; a string with Unicode escapes is also yielded decoded."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
            if "\\u" in one:
                with contextlib.suppress(ValueError):
                    yield str(json.loads(f'"{one}"'))
        elif isinstance(one, dict):
            waiting += reversed([*chain.from_iterable(one.items())])
        elif isinstance(one, list):
            waiting += reversed(one)


def _views(data: bytes) -> Iterator[bytes]:
    """Yield the bytes and, if they are a zlib stream such as a git object, the decompressed bytes.

    The bytes themselves are yielded only if they contain the start of a token.
    """
    if any(mark in data for mark in _MARKS):
        yield data
    if data[:1] == b"\x78":
        try:
            yield zlib.decompressobj().decompress(data, INFLATED)
        except zlib.error:
            return


@functools.lru_cache(maxsize=4096)
def _forms(text: str) -> tuple[bytes, ...]:
    """Return a text in UTF-8, in hexadecimal, in UTF-16 and in base64 at each alignment."""
    raw = text.encode()
    found = [raw, raw.hex().encode(), raw.hex().upper().encode()]
    found += [text.encode("utf-16-le"), text.encode("utf-16-be")]
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        found.append(whole[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6])
    return tuple(found)


_MARKS: Final = tuple(form for mark in (MARK, NAME_MARK) for form in _forms(mark))
"""The start of every form of every token. Most replies contain none and are skipped early."""
