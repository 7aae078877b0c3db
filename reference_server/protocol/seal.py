"""Notes to ourselves that pass through the client's hands and come back unaltered, or not at all.

A seal proves that we wrote the note (HMAC-SHA-256 under a key of this process, or one that the
operator has given to several of them), says until when it counts, and can be spent once by each
process. It hides nothing: no note holds a secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Note = dict[str, Any]

_UNTIL = "until"
_NUMBER = "number"
_PRUNE_ABOVE = 1000


class UnsealedError(Exception):
    """The text is no note of ours that still counts; the message says why, for the client."""


class Seal:
    """Seals notes and opens them.

    Args:
        seconds: How long a note counts.
        purpose: What the notes are for; those for something else do not open.
        key: A secret of the operator's; servers that share it can open each other's notes.
            None makes one that never leaves this process.
    """

    def __init__(self, seconds: float, purpose: str, key: str | None = None) -> None:
        secret = os.urandom(32) if key is None else key.encode()
        self._key = hmac.digest(secret, purpose.encode(), "sha256")
        self._seconds = seconds
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}

    def close(self, note: Note) -> str:
        """Give a note as opaque text: letters, digits, ``-``, ``_`` and one dot."""
        dated = {
            **note,
            # Monotonic: setting the clock neither shortens nor lengthens anything.
            _UNTIL: time.monotonic() + self._seconds,
            _NUMBER: base64.urlsafe_b64encode(os.urandom(12)).decode(),
        }
        body = base64.urlsafe_b64encode(json.dumps(dated).encode()).decode()
        return f"{body}.{self._mark(body)}"

    def open(self, text: str) -> Note:
        """Give the note back; ``spend`` it where it may count only once.

        Raises:
            UnsealedError: It was altered, never sealed here, has expired or was spent.
        """
        body, _, mark = text.rpartition(".")
        # The marks are compared as text: in base64 two texts may stand for the same bytes.
        if not hmac.compare_digest(mark.encode(), self._mark(body).encode()):
            raise UnsealedError("it was not issued by this server, or was altered")
        note: Note = json.loads(base64.urlsafe_b64decode(body))
        if note[_UNTIL] < time.monotonic():
            raise UnsealedError("it has expired")
        with self._lock:
            if note[_NUMBER] in self._spent:
                raise UnsealedError("it was used already")
        return note

    def spend(self, note: Note) -> None:
        """Use up a note that was opened; of two threads only one succeeds.

        Raises:
            UnsealedError: It was spent before.
        """
        with self._lock:
            if note[_NUMBER] in self._spent:
                raise UnsealedError("it was used already")
            self._spent[note[_NUMBER]] = note[_UNTIL]
            if len(self._spent) > _PRUNE_ABOVE:
                now = time.monotonic()
                self._spent = {key: until for key, until in self._spent.items() if until >= now}

    def _mark(self, body: str) -> str:
        mark = hmac.digest(self._key, body.encode("utf-8", "replace"), "sha256")
        return base64.urlsafe_b64encode(mark).decode().rstrip("=")


def fingerprint(value: Any, more: bytes = b"") -> str:
    """Give the SHA-256, in hex, of a JSON value and of bytes that go with it."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    head = hashlib.sha256(text.encode()).digest()
    return hashlib.sha256(head + more).hexdigest()
