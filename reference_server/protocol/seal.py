"""Sealed notes, which the server sends to the client and gets back unchanged.

A seal proves that this server wrote the note. It is an HMAC-SHA-256 with a key of this process or a
key that several processes share. A note expires, and each process can spend it once. Notes are not
encrypted, because none contains a secret.
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
    """The text is not a valid note; the message is the reason, for the client."""


class Seal:
    """Seals notes and opens them.

    Args:
        purpose: Use of the notes; notes with another purpose cannot be opened.
        key: The operator's secret; servers that share it can open each other's notes. By default,
            a random key that is valid in this process only.
    """

    def __init__(self, seconds: float, purpose: str, key: str | None = None) -> None:
        secret = os.urandom(32) if key is None else key.encode()
        self._key = hmac.digest(secret, purpose.encode(), "sha256")
        self._seconds = seconds
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}

    def close(self, note: Note) -> str:
        """Return a note as opaque text: letters, digits, ``-``, ``_`` and one dot."""
        dated = {
            **note,
            # Monotonic, because the expiry must not depend on changes of the clock.
            _UNTIL: time.monotonic() + self._seconds,
            _NUMBER: base64.urlsafe_b64encode(os.urandom(12)).decode(),
        }
        body = base64.urlsafe_b64encode(json.dumps(dated).encode()).decode()
        return f"{body}.{self._mark(body)}"

    def open(self, text: str) -> Note:
        """Return the note in a text; call ``spend`` if it may be used only once."""
        body, _, mark = text.rpartition(".")
        # Compared as text, because in base64 several texts decode to the same bytes.
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
        """Use up an opened note. If two threads try, only one succeeds."""
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
    """Return the SHA-256, in hex, of a JSON value and additional bytes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    head = hashlib.sha256(text.encode()).digest()
    return hashlib.sha256(head + more).hexdigest()
