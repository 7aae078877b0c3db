"""Progress of one request, sent as often as is useful and no oftener."""

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
"""Seconds between two notifications; the one that says "done" may come sooner."""

_LONGEST_MESSAGE = 200
_MESSAGES_SINCE = "2025-03-26"


class Progress:
    """Sends ``notifications/progress`` for one call, if it came with a token.

    Source: basic/utilities/progress; 2026-07-28 basic/patterns/progress. The value grows from one
    notification to the next, and none follows the answer.

    Args:
        call: The request.
        sent: The value that its notifications have reached already.
    """

    def __init__(self, call: Call, sent: float = -math.inf) -> None:
        self._call = call
        self._lock = threading.Lock()
        self.sent = sent
        self._next = -math.inf

    def report(self, done: float, total: float | None, message: str | None) -> None:
        """Send one notification, unless it is not wanted, not news or too soon."""
        call = self._call
        if "progressToken" not in call.meta:
            return
        with self._lock:  # held until it is sent, so that two threads cannot swap values
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
