"""The server's requests to the client of a session, and the answers (legacy revisions).

Ids are strings: ``ask-1``, ``ask-2`` and so on. An answer must have exactly the same string.
"""

from __future__ import annotations

import threading

from ..failure import ToolError
from .framing import encode
from .printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .messages import Params, Response

MOST_OPEN = 32
"""Maximum number of open questions, because each one blocks a thread."""


class UnansweredError(ToolError):
    """The client has not sent a usable answer to a question.

    The code is ``CLIENT_CANNOT`` (it has not declared the capability), ``CLIENT_BUSY`` (too many
    questions are open), ``CLIENT_SILENT`` (no answer in time), ``CLIENT_REFUSED`` (the answer is an
    error), ``CLIENT_CONFUSED`` (the answer does not fit the question) or ``CLIENT_LEFT``.
    """

    def __init__(self, code: str, message: str, details: str | None = None) -> None:
        super().__init__(message, code=code, type="ExecutionError", details=details)


class Question:
    def __init__(self, question_id: str, method: str) -> None:
        self.id = question_id
        self.method = method
        self._over = threading.Event()
        self._outcome: Params | UnansweredError | None = None

    def end(self, outcome: Params | UnansweredError | None) -> None:
        """Wake the waiting thread; the outcome is None if the answer is no longer wanted."""
        self._outcome = outcome
        self._over.set()

    def wait(self, seconds: float) -> bool:
        return self._over.wait(seconds)

    def result(self) -> Params:
        """Return the result in the client's answer; call it after ``wait``."""
        if isinstance(self._outcome, UnansweredError):
            raise self._outcome
        if self._outcome is None:
            raise UnansweredError("CLIENT_SILENT", "The client has not answered in time.")
        return self._outcome


class Questions:
    """The table of open questions, by id."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._open: dict[str, Question] = {}
        self._asked = 0
        self._client_left = False

    def ask(self, method: str, params: Params) -> Question:
        """Send a request."""
        with self._lock:
            if self._client_left:
                raise _left()
            if len(self._open) >= MOST_OPEN:
                raise UnansweredError(
                    "CLIENT_BUSY", "Too many questions to the client are open; call again later."
                )
            self._asked += 1
            question = Question(f"ask-{self._asked}", method)
            self._open[question.id] = question
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": question.id, "method": method}
        if params:
            message["params"] = params
        self._send(encode(message))
        return question

    def answered(self, response: Response) -> bool:
        question_id = response.body.get("id")
        with self._lock:
            if not isinstance(question_id, str) or question_id not in self._open:
                return False
            question = self._open.pop(question_id)
        question.end(_outcome(response))
        return True

    def withdraw(self, question: Question, reason: str) -> None:
        """Withdraw a question and notify the client, unless it is already answered.

        Source: basic/utilities/cancellation#cancellation-flow. A late answer is ignored.
        """
        with self._lock:
            if self._open.pop(question.id, None) is None:
                return
        params = {"requestId": question.id, "reason": reason}
        method = "notifications/cancelled"
        self._send(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def close(self) -> None:
        with self._lock:
            self._client_left = True
            questions = list(self._open.values())
            self._open.clear()
        for question in questions:
            question.end(_left())


def _left() -> UnansweredError:
    return UnansweredError("CLIENT_LEFT", "The client has left before it could answer.")


def _outcome(response: Response) -> Params | UnansweredError:
    body = response.body
    result, error = body.get("result"), body.get("error")
    sound = not response.flaw and body.get("jsonrpc") == "2.0"
    if sound and isinstance(result, dict) and "error" not in body:
        return result
    if sound and isinstance(error, dict) and "result" not in body:
        reason = f"{error.get('code')} {error.get('message')}"
        return UnansweredError(
            "CLIENT_REFUSED", "The client has answered with an error.", printable(reason, 200)
        )
    return UnansweredError("CLIENT_CONFUSED", "The client's answer is no JSON-RPC response.")
