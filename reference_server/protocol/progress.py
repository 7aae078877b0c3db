"""Progress notifications of one request, at a limited rate."""

from __future__ import annotations

import math
import threading
import time

from .printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .calls import Call
    from .messages import Params

SHORTEST_GAP = 0.1
"""Seconds between two notifications. The last one is not delayed."""

_LONGEST_MESSAGE = 200
_MESSAGES_SINCE = "2025-03-26"


class Progress:
    """Sends ``notifications/progress`` for one call, if it has a progress token.

    Source: basic/utilities/progress; 2026-07-28 basic/patterns/progress. The value grows from one
    notification to the next, and no notification follows the answer.

    Args:
        call: The request.
        sent: The last value that was sent.
    """

    def __init__(self, call: Call, sent: float = -math.inf) -> None:
        self._call = call
        self._lock = threading.Lock()
        self.sent = sent
        self._next = -math.inf

    def report(self, done: float, total: float | None, message: str | None) -> None:
        """Send one notification, if it is wanted, the value has grown, and it is not too soon."""
        call = self._call
        if "progressToken" not in call.meta:
            return
        with self._lock:  # held until it is sent, to keep the values of threads in order
            now = time.monotonic()
            soon = now < self._next and done != total
            if soon or not math.isfinite(done) or done <= self.sent:
                return
            self.sent = done
            self._next = now + SHORTEST_GAP
            params: Params = {"progressToken": call.meta["progressToken"], "progress": done}
            if total is not None and math.isfinite(total):
                params["total"] = total
            if message and call.revision >= _MESSAGES_SINCE:
                params["message"] = printable(message, _LONGEST_MESSAGE)
            call.notify("notifications/progress", params)
