"""The requests in flight: those with a pending answer."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .calls import Call, Outcome
    from .messages import Id

    Began: TypeAlias = Callable[[Call], None]
    Finished: TypeAlias = Callable[[Call | None, Outcome, int, str], None]


class Calls:
    """The table of requests in flight on one connection, by typed id.

    Attributes:
        began: Called with each request before its handler runs; must not raise.
        finished: Called after each answer, see ``hooks.Hooks.finished``; must not raise.
    """

    def __init__(self) -> None:
        self.began: Began = lambda _call: None
        self.finished: Finished = lambda *_facts: None
        self._changed = threading.Condition()
        self._open: dict[Id, Call] = {}
        self._owed = 0

    def open(self, call: Call) -> bool:
        """Add a request and return True; return False if its id is still in flight."""
        with self._changed:
            if call.id in self._open:
                return False
            self._open[call.id] = call
            self._owed += not call.method.endless
            return True

    def find(self, request_id: Id) -> Call | None:
        with self._changed:
            return self._open.get(request_id)

    def settle(self, call: Call, line: bytes | None, outcome: Outcome = None) -> None:
        """Deliver the answer to a request; do nothing if the request is already settled.

        The id is removed before the answer is sent, because the client may then reuse it at once.

        Args:
            outcome: The result or the error in the answer, for the operator.
        """
        with call.lock, self._changed:
            if self._open.get(call.id) is not call:
                return
            del self._open[call.id]
        try:
            call.deliver(line)
            self.finished(call, outcome, len(line or b""), call.request_id)
        finally:
            with self._changed:
                self._owed -= not call.method.endless
                self._changed.notify_all()

    def cancel_all(self) -> None:
        with self._changed:
            calls = list(self._open.values())
        for call in calls:
            call.cancel()

    def wait(self, deadline: Callable[[], float]) -> bool:
        """Wait until no answer is pending; return False if the deadline passes first.

        Args:
            deadline: Returns the deadline as ``time.monotonic()``; a signal may advance it.
        """
        with self._changed:
            while self._owed:
                left = deadline() - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.2))
            return True
