"""Random bytes planted where a server must not look, and finding them again. Pure.

One token per file and on every line of it: a hit names its file, and a part of a file is enough.
A token is never derivable from a path, so an error that repeats what was asked for is no hit.
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
from typing import Any, Final

MARK: Final = "MCPCANARY-"
NAME_MARK: Final = "mcpname-"
LINES: Final = 4

UNIQUE: Final = len(MARK) + 16
"""Characters of a token that tell it from all others; a reply may be cut behind them."""

INFLATED: Final = 1 << 20
"""Bytes read of a compressed file at most."""


class Area(StrEnum):
    """Where a canary stands."""

    OUTSIDE = "outside the root"
    DENIED = "on the deny list"
    INSIDE = "inside the root"
    ENVIRONMENT = "in the environment of the server"


@dataclass(frozen=True, slots=True)
class Canary:
    """One token.

    Attributes:
        token: the random text.
        where: its file below the parent, with forward slashes; or the name of a variable.
        area: what kind of place that is.
        is_name: whether the token is the name of a file, not its content.
    """

    token: str
    where: str
    area: Area
    is_name: bool = False

    @property
    def needle(self) -> str:
        """The part that is looked for."""
        return self.token if self.is_name else self.token[:UNIQUE]

    @property
    def content(self) -> str:
        """What its file holds."""
        return "".join(f"{self.token} line {n}\n" for n in range(1, LINES + 1))


@dataclass(slots=True)
class Canaries:
    """All that were planted in one world."""

    planted: list[Canary] = field(default_factory=list)

    def plant(self, where: str, area: Area) -> Canary:
        """Make the token of a file."""
        return self._keep(Canary(MARK + secrets.token_hex(16), where, area))

    def name(self, folder: str, area: Area) -> Canary:
        """Make a file name that stands nowhere else, for a folder that must not be listed."""
        token = NAME_MARK + secrets.token_hex(12)
        return self._keep(Canary(token, f"{folder}/{token}", area, is_name=True))

    def _keep(self, canary: Canary) -> Canary:
        self.planted.append(canary)
        return canary

    def at(self, where: str) -> Canary | None:
        """Give the canary whose content a file holds."""
        return next((c for c in self.planted if c.where == where and not c.is_name), None)

    def found(self, data: bytes, areas: Iterable[Area]) -> list[Canary]:
        """Find canaries in bytes: as they are, in hexadecimal, base64 or UTF-16, compressed."""
        wanted = set(areas)
        seen: dict[str, Canary] = {}
        for view in _views(data):
            for canary in self.planted:
                unseen = canary.area in wanted and canary.token not in seen
                if unseen and any(form in view for form in _forms(canary.needle)):
                    seen[canary.token] = canary
        return list(seen.values())

    def found_in_message(self, message: Any, areas: Iterable[Area]) -> list[Canary]:
        """Find canaries in a JSON value, however its strings were escaped on the wire."""
        return self.found("\n".join(_strings(message)).encode("utf-8", "surrogatepass"), areas)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if "\\u" in value:
            with contextlib.suppress(ValueError):
                yield str(json.loads(f'"{value}"'))
    elif isinstance(value, dict):
        for key, one in value.items():
            yield str(key)
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _views(data: bytes) -> Iterator[bytes]:
    """Give the bytes and, where they are a zlib stream (an object of git is), what they hold."""
    if any(mark in data for mark in _MARKS):
        yield data
    if data[:1] == b"\x78":
        try:
            yield zlib.decompressobj().decompress(data, INFLATED)
        except zlib.error:
            return


@functools.lru_cache(maxsize=4096)
def _forms(text: str) -> tuple[bytes, ...]:
    """Give a text as it stands in bytes, in hexadecimal, in UTF-16 and in base64."""
    raw = text.encode()
    found = [raw, raw.hex().encode(), raw.hex().upper().encode()]
    found += [text.encode("utf-16-le"), text.encode("utf-16-be")]
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        found.append(whole[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6])
    return tuple(found)


_MARKS: Final = tuple(form for mark in (MARK, NAME_MARK) for form in _forms(mark))
"""What every form of every token begins with: most replies hold none of them."""
