"""Log messages for the client: ``notifications/message``, filtered by the client's level.

These messages are for the person at the client. Messages for the operator are written to standard
error (``log``). No message contains the content of a file.
"""

from __future__ import annotations

import json
import threading
import time

from ..protocol.errors import invalid_params
from ..protocol.identity import NAME
from ..protocol.modern import LOG_LEVEL, LOG_LEVELS
from ..protocol.printable import printable
from ..protocol.revisions import is_modern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.calls import Call
    from ..surface import Surface

UNASKED = "warning"
"""Lowest level that a session receives until the client sets one."""

BURST = 50
"""Maximum number of messages at once."""

RATE = 10.0
"""Messages a second after that; further ones are dropped."""

_LONGEST = 4000


def build(surface: Surface) -> ClientLog:
    """Build the part ``client_log``."""
    return ClientLog(surface)


class ClientLog:
    def __init__(self, surface: Surface) -> None:
        self._log = surface.log
        self._lock = threading.Lock()
        self._threshold = LOG_LEVELS.index(UNASKED)
        self._left = float(BURST)
        self._at = time.monotonic()

    def set_level(self, call: Call) -> dict[str, Any]:
        """Answer ``logging/setLevel`` (server/utilities/logging#setting-log-level)."""
        level = call.params.get("level")
        if level not in LOG_LEVELS:
            raise invalid_params(f"level must be one of {', '.join(LOG_LEVELS)}")
        self._threshold = LOG_LEVELS.index(level)
        return {}

    def write(self, call: Call, level: str, data: Any, logger: str | None) -> None:
        """Send one message that belongs to a request, if the client wants it.

        A request of 2026-07-28 sets the level in its own ``_meta``. Without a level, no message is
        sent (2026-07-28 server/utilities/logging#per-request-log-level).
        """
        threshold = self._threshold
        if is_modern(call.revision):
            if LOG_LEVEL not in call.meta:
                return
            threshold = LOG_LEVELS.index(call.meta[LOG_LEVEL])
        if LOG_LEVELS.index(level) < threshold:
            return
        if not self._has_room():
            self._log.debug("client log full", logger=logger)
            return
        text = json.dumps(data)
        if len(text) > _LONGEST:
            data = printable(text, _LONGEST)
        params = {"level": level, "logger": logger or NAME, "data": data}
        call.notify("notifications/message", params)

    def _has_room(self) -> bool:
        with self._lock:
            now = time.monotonic()
            self._left = min(BURST, self._left + (now - self._at) * RATE)
            self._at = now
            if self._left < 1:
                return False
            self._left -= 1
            return True
