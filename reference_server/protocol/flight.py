"""Requests in flight: who is owed an answer, who has lost interest, when nothing is owed."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from .calls import Call
    from .errors import ProtocolError
    from .messages import Id

    Outcome: TypeAlias = dict[str, Any] | ProtocolError | None

    Began: TypeAlias = Callable[[Call], None]
    Finished: TypeAlias = Callable[[Call | None, Outcome, int, str], None]


class Calls:
    """The table of requests in flight on one connection, keyed by typed id.

    Args:
        send: Writes one encoded message to the client.

    Attributes:
        began: Called with each request before its handler runs; must not raise.
        finished: Called after each answer, see ``hooks.Hooks.finished``; must not raise.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.send = send
        self.began: Began = _do_nothing
        self.finished: Finished = _do_nothing
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
            self.finished(call, outcome, len(line or b""), call.request_id)
        finally:
            with self._changed:
                self._owed -= not call.method.endless
                self._changed.notify_all()

    def cancel_all(self) -> None:
        """Drop every request in flight: the client has left or the time is over."""
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


def _do_nothing(*_facts: object) -> None:
    """Do nothing, until the server sets a function of its own."""
