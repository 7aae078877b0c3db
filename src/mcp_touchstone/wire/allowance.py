"""The memory limit of the transcripts of one run. Pure; thread-safe."""

import contextlib
import hashlib
import re
import threading
import zlib
from dataclasses import dataclass, replace
from typing import Any, Final

LIMIT: Final = 160 * 1024 * 1024
"""Bytes of memory that the lines of all servers of one run may take."""

UNFINISHED: Final = 64 * 1024 * 1024
"""Bytes of unfinished lines of all servers together."""

BIG: Final = 64 * 1024
"""Least bytes of a line that is kept compressed, and whose equal contents are stored once."""

KEPT: Final = 64
"""Greatest number of stored big contents."""

_ID: Final = re.compile(rb'"id": ?(-?\d{1,18})\b')

_PER_LINE: Final = 700
"""Approximate bytes of memory of a line beside its text and its values."""

_PER_VALUE: Final = 90
"""Approximate bytes of memory of a value in a list or an object, beside its text."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The bytes of a long line.

    Attributes:
        data: the bytes, or those of an equal line with another id, compressed.
        begin: the place of the id.
        end: the end of the id.
        own: the id, which replaces the one in ``data``.
    """

    data: bytes
    begin: int = 0
    end: int = 0
    own: bytes = b""

    def beginning(self, size: int = 0) -> bytes:
        """Return the first bytes, at least ``size``; 0 means all."""
        found = zlib.decompressobj().decompress(self.data, size and size + self.end)
        return found[: self.begin] + self.own + found[self.end :] if self.end else found


class Allowance:
    """Memory for the output of servers, shared by all transcripts of a run.

    Args:
        limit: in bytes.

    Attributes:
        met: message that the limit was reached; empty until then.
        reading: held while a big line is read, which takes several times its length.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self.met = ""
        self.reading = threading.Lock()
        self._taken = 0
        self._unfinished: dict[int, int] = {}
        self._contents: dict[bytes, tuple[Any, Kept]] = {}
        self._lock = threading.Lock()

    def turn(self, length: int) -> contextlib.AbstractContextManager[object]:
        """Return what to hold while a line of some bytes is read."""
        return self.reading if length >= BIG else contextlib.nullcontext()

    def take(self, raw: bytes, value: Any) -> tuple[bytes | Kept, str]:
        """Count a line; return what to keep of its bytes, and the limit it reached, or nothing.

        A result, error or params equal to an earlier one, under another id, is replaced by it.

        Args:
            raw: the line.
            value: its JSON value; changed in place.
        """
        kept: bytes | Kept = raw
        if len(raw) < BIG:
            cost = len(raw) * (2 if raw.isascii() else 5)
            cost += _PER_VALUE * (raw.count(b",") + raw.count(b":"))
        elif equal := self._share(raw, value):
            kept, cost = equal, 0
        else:
            kept = stored = self._store(raw, value)
            cost = len(stored.data) + weight(value)
        with self._lock:
            self._taken += _PER_LINE + cost
            return kept, self._check(self._taken, self._limit)

    def unfinished(self, sender: int, length: int) -> str:
        """Count the bytes of an unfinished line; return the limit they reached, or nothing."""
        with self._lock:
            self._unfinished[sender] = length
            return self._check(sum(self._unfinished.values()), UNFINISHED)

    def _check(self, taken: int, limit: int) -> str:
        if taken > limit and not self.met:
            self.met = f"the server wrote more than {limit >> 20} MiB in all processes"
        return self.met

    def _share(self, raw: bytes, value: Any) -> Kept | None:
        member = _content(value)
        if not member:
            return None
        key, begin, end = _without_id(raw, value)
        with self._lock:
            known = self._contents.get(key)
        if known is None:
            return None
        value[member] = known[0]
        return replace(known[1], own=raw[begin:end])

    def _store(self, raw: bytes, value: Any) -> Kept:
        kept = Kept(zlib.compress(raw, 1))
        member = _content(value)
        if member:
            key, begin, end = _without_id(raw, value)
            kept = replace(kept, begin=begin, end=end, own=raw[begin:end])
            with self._lock:
                if len(self._contents) >= KEPT:
                    del self._contents[next(iter(self._contents))]
                self._contents[key] = value[member], kept
        return kept


def _content(value: Any) -> str:
    """Return the member of a message with its content; empty if equal ones are not known."""
    if not isinstance(value, dict) or not isinstance(value.get("id", 0), int):
        return ""
    return next((one for one in ("result", "error", "params") if one in value), "")


def _without_id(raw: bytes, value: Any) -> tuple[bytes, int, int]:
    """Return a digest of a line without its id, and the place of the id."""
    found = _ID.search(raw) if "id" in value else None
    begin, end = found.span() if found and int(found[1]) == value["id"] else (0, 0)
    same = hashlib.blake2b(memoryview(raw)[:begin], digest_size=16)
    same.update(memoryview(raw)[end:])
    return same.digest(), begin, end


def weight(value: Any) -> int:
    """Return the bytes of memory that a JSON value takes; a name counts each time it is used."""
    size: int = value.__sizeof__() + 16
    if isinstance(value, dict):
        size += sum(map(str.__sizeof__, value)) + sum(map(weight, value.values()))
    elif isinstance(value, list):
        size += sum(map(weight, value))
    return size
