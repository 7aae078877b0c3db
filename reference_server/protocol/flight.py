"""Requests in flight: who is owed an answer, who has lost interest, when nothing is owed."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..operation.hooks import Outcome
    from .calls import Call
    from .messages import Id

    Finished: TypeAlias = Callable[[Call | None, Outcome, int], None]


class Calls:
    """The table of requests in flight on one connection, keyed by typed id.

    Args:
        send: Writes one encoded message to the client.

    Attributes:
        finished: Told of each request that is settled, see ``hooks.finished``; must not raise.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.send = send
        self.finished: Finished = _nobody_asks
        self._changed = threading.Condition()
        self._open: dict[Id, Call] = {}
        self._owed = 0

    def open(self, call: Call) -> bool:
        """Enter a request; False if its id is still in flight, and then nothing has changed."""
        with self._changed:
            if call.id in self._open:
                return False
            self._open[call.id] = call
            self._owed += not call.method.endless
            return True

    def find(self, request_id: Id) -> Call | None:
        """Give the request in flight with this id, if there is one."""
        with self._changed:
            return self._open.get(request_id)

    def settle(self, call: Call, line: bytes | None, outcome: Outcome = None) -> None:
        """Deliver the one answer of a request, or drop what comes after it.

        The id is free before the answer is on the wire: the client may use it again at once.

        Args:
            call: The request.
            line: Its encoded answer, or None if it gets none.
            outcome: The result or the error in it, for the operator.
        """
        with call.lock, self._changed:
            if self._open.get(call.id) is not call:
                return
            del self._open[call.id]
        try:
            call.deliver(line)
            self.finished(call, outcome, len(line or b""))
        finally:
            with self._changed:
                self._owed -= not call.method.endless
                self._changed.notify_all()

    def cancel_all(self) -> None:
        """Drop every request in flight, when there is nobody left to answer or no time."""
        with self._changed:
            calls = list(self._open.values())
        for call in calls:
            call.cancel()

    def wait(self, deadline: Callable[[], float]) -> bool:
        """Wait until no answer is owed; False if the deadline comes first.

        Args:
            deadline: Gives the ``time.monotonic()`` to wait for; a signal may bring it forward.
        """
        with self._changed:
            while self._owed:
                left = deadline() - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.2))
            return True


def _nobody_asks(_call: Call | None, _outcome: Outcome, _size: int) -> None:
    """Stand in until the server has named somebody to tell."""
