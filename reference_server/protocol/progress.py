"""Progress notifications of one request, at a limited rate."""

from __future__ import annotations

import math
import threading
import time

from .printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Notify: TypeAlias = Callable[[str, dict[str, Any]], None]

SHORTEST_GAP = 0.1
"""Seconds between two notifications. The last one is not delayed."""

_LONGEST_MESSAGE = 200
_MESSAGES_SINCE = "2025-03-26"


class Progress:
    """Sends ``notifications/progress`` for one call, if it has a progress token.

    Source: basic/utilities/progress; 2026-07-28 basic/patterns/progress. The value grows from one
    notification to the next, and no notification follows the answer.
    """

    def __init__(
        self, meta: dict[str, Any], revision: str, notify: Notify, sent: float = -math.inf
    ) -> None:
        self._meta = meta
        self._has_messages = revision >= _MESSAGES_SINCE
        self._notify = notify
        self._lock = threading.Lock()
        self.sent = sent
        self._next = -math.inf

    def report(self, done: float, total: float | None, message: str | None) -> None:
        """Send one notification, if it is wanted, the value has grown, and it is not too soon."""
        if "progressToken" not in self._meta:
            return
        with self._lock:  # held until it is sent, to keep the values of threads in order
            now = time.monotonic()
            soon = now < self._next and done != total
            if soon or not math.isfinite(done) or done <= self.sent:
                return
            self.sent = done
            self._next = now + SHORTEST_GAP
            params = {"progressToken": self._meta["progressToken"], "progress": done}
            if total is not None and math.isfinite(total):
                params["total"] = total
            if message and self._has_messages:
                params["message"] = printable(message, _LONGEST_MESSAGE)
            self._notify("notifications/progress", params)
