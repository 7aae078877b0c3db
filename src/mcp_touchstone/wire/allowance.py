"""The memory limit of the transcripts of one run. Pure; thread-safe."""

import contextlib
import hashlib
import threading
from typing import Any, Final

LIMIT: Final = 128 * 1024 * 1024
"""Bytes of memory that the lines of all servers of one run may take."""

UNFINISHED: Final = 48 * 1024 * 1024
"""Bytes of unfinished lines of all servers together."""

BIG: Final = 64 * 1024
"""Least bytes of a line that is kept compressed, and whose equal contents are stored once."""

KEPT: Final = 64
"""Greatest number of stored big contents."""

_PER_LINE: Final = 700
"""Approximate bytes of memory of a line beside its text and its values."""

_PER_VALUE: Final = 90
"""Approximate bytes of memory of a value in a list or an object, beside its text."""


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
        self._contents: dict[bytes, Any] = {}
        self._lock = threading.Lock()

    def turn(self, length: int) -> contextlib.AbstractContextManager[object]:
        """Return what to hold while a line of some bytes is read."""
        return self.reading if length >= BIG else contextlib.nullcontext()

    def take(self, raw: bytes, kept: int, value: Any) -> str:
        """Count a line; return the limit it reached, or nothing.

        A result, error or params equal to an earlier one, under another id, is replaced by it.

        Args:
            raw: the line.
            kept: number of the bytes that are kept of it.
            value: its JSON value; changed in place.
        """
        cost = _PER_LINE + kept
        if len(raw) >= BIG:
            cost += 0 if self._share(raw, value) else weight(value)
        else:
            cost += len(raw) * (1 if raw.isascii() else 4)
            cost += _PER_VALUE * (raw.count(b",") + raw.count(b":"))
        with self._lock:
            self._taken += cost
            return self._check(self._taken, self._limit)

    def unfinished(self, sender: int, length: int) -> str:
        """Count the bytes of an unfinished line; return the limit they reached, or nothing."""
        with self._lock:
            self._unfinished[sender] = length
            return self._check(sum(self._unfinished.values()), UNFINISHED)

    def _check(self, taken: int, limit: int) -> str:
        if taken > limit and not self.met:
            self.met = f"the server wrote more than {limit >> 20} MiB in all processes"
        return self.met

    def _share(self, raw: bytes, value: Any) -> bool:
        if not isinstance(value, dict) or not isinstance(value.get("id", 0), int):
            return False
        member = next((one for one in ("result", "error", "params") if one in value), None)
        if member is None:
            return False
        same = raw
        for separator in (b"", b" ") if "id" in value else ():
            same = same.replace(b'"id":%s%d' % (separator, value["id"]), b'"id":', 1)
        key = hashlib.blake2b(same, digest_size=16).digest()
        with self._lock:
            known = self._contents.setdefault(key, value[member])
            if known is value[member]:
                if len(self._contents) > KEPT:
                    del self._contents[next(iter(self._contents))]
                return False
            value[member] = known
        return True


def weight(value: Any) -> int:
    """Return the bytes of memory that a JSON value takes; a name counts each time it is used."""
    size: int = value.__sizeof__() + 16
    if isinstance(value, dict):
        size += sum(map(str.__sizeof__, value)) + sum(map(weight, value.values()))
    elif isinstance(value, list):
        size += sum(map(weight, value))
    return size
