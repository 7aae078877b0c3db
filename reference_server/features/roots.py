"""The client's roots, requested when a session is ready and when they change.

They narrow the workspace and never widen it. In 2026-07-28 the server does not request them. Roots
are deprecated there and new implementations should not adopt them (2026-07-28 client/roots). They
are only guidance, and a question would delay every first request by a round.
"""

from __future__ import annotations

import threading
import time

from ..protocol.answers import problem_with
from ..protocol.errors import INTERNAL_ERROR, ProtocolError
from ..protocol.questions import UnansweredError
from ..protocol.workers import aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..protocol.calls import Call
    from ..surface import Surface

PATIENCE = 2.0
"""Seconds that requests wait for the answer. A later answer is applied too."""

MOST_HELD = 1000
"""Maximum number of requests that wait for the answer."""

MOST_ROOTS = 1000

_METHOD = "roots/list"


def build(surface: Surface) -> Roots:
    """Build the part ``roots``."""
    return Roots(surface)


class Roots:
    """Asks the session for its roots and restricts the workspace to them.

    An error, an invalid answer or no answer changes nothing. An empty list removes the restriction.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._connection = surface.connection
        self._lock = threading.Lock()
        self._asking = False
        self._again = False
        self._holding_until = 0.0
        self._held: list[Call] | None = None

    def refresh(self) -> None:
        """Ask for the changed roots; runs on the reading thread.

        Later requests wait for the answer, for at most ``PATIENCE`` seconds. All changes before the
        answer lead to one more question.
        """
        session = self._connection.session
        if not session.ready or "roots" not in session.client_capabilities:
            return
        with self._lock:
            if self._asking:
                self._again = True
                return
            self._asking = True
            self._holding_until = time.monotonic() + PATIENCE
            self._held = []
            self._connection.hold = self._hold
        self._connection.workers.submit(self._run)

    def _hold(self, call: Call) -> bool:
        """Delay a request until the answer arrives.

        The request waits in a list and not on a worker. The answer may follow any number of
        requests, and the reader must not block before it.
        """
        with self._lock:
            if self._held is None:
                return False
            room = len(self._held) < MOST_HELD
            if room:
                self._held.append(call)
        if not room:
            call.fail(ProtocolError(INTERNAL_ERROR, f"Too many requests before {_METHOD} came"))
        return True

    def _run(self) -> None:
        aside(self._ask)

    def _ask(self) -> None:
        """Ask until the answer is up to date; never raises."""
        asking = True
        while asking:
            try:
                self._take(self._answer())
            except (UnansweredError, ValueError) as why:
                self._surface.log.info("roots unchanged", reason=str(why))
            except Exception as defect:  # noqa: BLE001 - no caller could catch it
                self._surface.log.error("defect", type=type(defect).__name__)  # noqa: TRY400
            asking = self._settle()

    def _settle(self) -> bool:
        """Record the end of a question; return True if the next one must be asked at once."""
        with self._lock:
            if self._again:
                self._again = False
                return True
            self._asking = False
            held, self._held = self._held, None
        self._serve(held)
        return False

    def _lose_patience(self) -> None:
        with self._lock:
            held, self._held = self._held, None
        self._serve(held)

    def _serve(self, held: list[Call] | None) -> None:
        for call in held or []:
            self._connection.workers.submit(lambda call=call: self._connection.run(call))  # type: ignore[misc]

    def _answer(self) -> list[str]:
        questions = self._connection.asking.questions
        question = questions.ask(_METHOD, {})
        if not question.wait(max(0.0, self._holding_until - time.monotonic())):
            self._lose_patience()
            question.wait(self._connection.asking.seconds)
        questions.withdraw(question, "no answer in time")
        answer = question.result()
        problem = problem_with(_METHOD, answer, "")
        if problem is None and len(answer["roots"]) > MOST_ROOTS:
            problem = "has too many roots"
        if problem:
            raise ValueError(f"the answer {problem}")
        return [root["uri"] for root in answer["roots"]]

    def _take(self, uris: list[str]) -> None:
        self._surface.workspace.policy.narrow(uris or None)
        self._surface.log.info("roots", count=len(uris))
