"""The client's roots: asked when a session is ready, and again when they change.

They narrow the workspace and never widen it. In 2026-07-28 they are not asked for: roots are
deprecated there and new implementations should not adopt them (2026-07-28 client/roots), they are
guidance and no boundary, and asking would cost every first request a round.
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
"""Seconds that requests wait for the answer; it counts from then on even if it comes later."""

MOST_HELD = 1000
"""Requests that wait for it."""

MOST_ROOTS = 1000

_METHOD = "roots/list"


def build(surface: Surface) -> Roots:
    """Give the part."""
    return Roots(surface)


class Roots:
    """Asks the session for its roots and keeps the workspace within them.

    A client that answers an error, nonsense or nothing has changed nothing: what held before holds
    on. An empty list names no boundary.

    Args:
        surface: Has the workspace and the connection.
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
        """Ask, now that the list is new to us; runs on the reading thread.

        Requests read after this one wait for the answer, for ``PATIENCE`` at most. Changes that
        come before the answer lead to one more question, however many they are.
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
            session.hold = self._hold
        self._connection.workers.submit(self._run)

    def _hold(self, call: Call) -> bool:
        """Keep a request back until the answer comes.

        It is kept in a list and not by a worker: the answer may follow any number of
        requests, and the reader must get to it.
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
        """Ask until the answer is the newest; never raises."""
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
        """Note the end of a question; True if there is another to be asked at once."""
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
        named = [uri for uri in uris if _can_name_a_place(uri)]
        self._surface.workspace.policy.narrow(named if uris else None)
        self._surface.log.info("roots", count=len(uris))


def _can_name_a_place(uri: str) -> bool:
    """Say whether a URI can be taken apart at all; if not, it is a root without any file."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - the workspace needs it in a moment, too

    try:
        urlsplit(uri)
    except ValueError:
        return False
    return "%00" not in uri and "\0" not in uri
