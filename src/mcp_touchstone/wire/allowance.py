"""The memory limit of the transcripts of one run. Pure."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

LIMIT: Final = 168 * 1024 * 1024
"""Bytes of memory that the lines of all servers of one run may take, as estimated."""

PER_REQUEST: Final = 2 * 1024
"""Bytes more for each request of ours: a run of all attacks sends forty thousand."""

BIG: Final = 4 * 1024
"""Least bytes of a line whose equal results are stored once: long lists are often repeated."""

KEPT: Final = 1024
"""Greatest number of stored big results."""

_PER_LINE: Final = 480
"""Approximate bytes of memory of a line beside its text: its entry and its reading."""

_PER_MESSAGE: Final = 160
"""Approximate bytes more of a line with a message, beside its values."""

_PER_VALUE: Final = 90
"""Approximate bytes of memory of a value in a list or an object, beside its text."""


class Allowance:
    """Memory for the output of servers, shared by all transcripts of a run.

    Args:
        limit: in bytes.
        lock: held at each change, if threads share it.

    Attributes:
        met: message that the limit was reached; empty until then.
    """

    def __init__(
        self, limit: int = LIMIT, lock: AbstractContextManager[object] | None = None
    ) -> None:
        self._limit = limit
        self.met = ""
        self._taken = 0
        self._asked = 0
        self._results: dict[bytes, dict[str, Any]] = {}
        self._lock = lock or nullcontext()

    def ask(self) -> None:
        """Count a request of ours."""
        with self._lock:
            self._asked += 1

    def take(self, raw: bytes, value: Any = None, more: int = 0) -> str:
        """Count a line; return the limit it reached, or nothing.

        A result equal to an earlier one, under another id, is replaced by the earlier object.

        Args:
            raw: the line.
            value: its JSON value; changed in place.
            more: further bytes that are kept for it.
        """
        cost = _PER_LINE + more + len(raw) + (0 if value is None else _PER_MESSAGE)
        shared = len(raw) >= BIG and self._share(raw, value)
        if not shared:
            cost += len(raw) + _PER_VALUE * (raw.count(b",") + raw.count(b":"))
        with self._lock:
            self._taken += cost
            if self._taken > self._limit + self._asked * PER_REQUEST and not self.met:
                self.met = f"the server wrote more than {self._limit >> 20} MiB in all processes"
            return self.met

    def _share(self, raw: bytes, value: Any) -> bool:
        result = value.get("result") if isinstance(value, dict) else None
        if not isinstance(result, dict) or not isinstance(value.get("id"), int):
            return False
        same = raw
        for separator in (b"", b" "):
            same = same.replace(b'"id":%s%d' % (separator, value["id"]), b'"id":', 1)
        key = hashlib.blake2b(same, digest_size=16).digest()
        with self._lock:
            known = self._results.get(key)
            if known is None:
                if len(self._results) >= KEPT:
                    del self._results[next(iter(self._results))]
                self._results[key] = result
                return False
            value["result"] = known
        return True
