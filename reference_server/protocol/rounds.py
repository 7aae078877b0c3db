"""Questions without a session: the client repeats the request with the answer.

    request --> result "input_required", inputRequests, requestState
    request, inputResponses, requestState --> the result

Source: 2026-07-28 basic/patterns/mrtr. Most questions protect a write. The state is therefore
sealed. A client cannot answer a question that was not asked, use the answer for another request,
send it late, or use it twice. Between the rounds, the server only keeps the list of spent states.
"""

from __future__ import annotations

from .answers import problem_with
from .envelope import string_of
from .errors import InputRequired, invalid_params
from .seal import Seal, UnsealedError, fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .messages import Params

METHODS = ("prompts/get", "resources/read", "tools/call")
"""The requests that can be answered with questions (basic/patterns/mrtr#supported-requests)."""

_ROUND_MEMBERS = ("_meta", "inputResponses", "requestState")


class Round:
    """The state and the answers in a retry.

    Attributes:
        note: The server's note from the previous round.
        answers: Answers by key: those of earlier rounds, and the accepted ones of this round.
        fresh: The client's answers to the questions of the previous round, unchecked.
        spent: Whether the state is used up, because an answer was accepted.
    """

    def __init__(self, note: dict[str, Any], fresh: Params) -> None:
        self.note = note
        self.answers: Params = dict(note["answers"])
        self.fresh = fresh
        self.spent = False


class Rounds:
    """Asks the client and reads the answers."""

    def __init__(self, seconds: float, key: str | None) -> None:
        self._seal = Seal(seconds, "rounds", key)

    def read(self, params: Params, identity: str) -> Round | None:
        """Return the state and answers in a request, or None for a first request.

        Answers without a state are ignored.
        """
        fresh = params.get("inputResponses", {})
        if not isinstance(fresh, dict) or not all(isinstance(one, dict) for one in fresh.values()):
            raise invalid_params("inputResponses must be an object of results")
        if params.get("requestState") is None:
            return None
        try:
            note = self._seal.open(string_of(params, "requestState"))
        except UnsealedError as why:
            raise _bad_state(str(why)) from None
        if note["request"] != identity:
            raise _bad_state("it belongs to another request")
        return Round(note, fresh)

    def ask(
        self,
        brought: Round | None,
        questions: Mapping[str, Params],
        bound_to: bytes,
        identity: str,
        revision: str,
    ) -> dict[str, Params]:
        """Return the answers to some questions, or raise the unanswered ones.

        An answer is accepted only if the question and ``bound_to`` have not changed. Otherwise the
        question is asked again (basic/patterns/mrtr#error-handling).

        Args:
            questions: ``{"method", "params"}`` by a key that is unique within the request.

        Raises:
            InputRequired: An answer is missing.
            ProtocolError: -32602, an answer does not fit, or was used already.
        """
        identities = {
            key: fingerprint([key, question], bound_to) for key, question in questions.items()
        }
        found: dict[str, Params] = {}
        for key, question in questions.items():
            if brought is not None and brought.note["asked"].get(key) == identities[key]:
                answer = brought.answers.get(key, brought.fresh.get(key))
                if answer is not None:
                    self._accept(brought, key, question, answer, revision)
                    found[key] = answer
        missing = {key: question for key, question in questions.items() if key not in found}
        if not missing:
            return found
        before = brought.note["asked"] if brought else {}
        answers = brought.answers if brought else {}
        note = {
            "request": identity,
            "asked": {**before, **identities},
            "answers": {name: answer for name, answer in answers.items() if name not in missing},
        }
        raise InputRequired(
            {
                "resultType": "input_required",
                "inputRequests": missing,
                "requestState": self._seal.close(note),
            }
        )

    def _accept(
        self, brought: Round, key: str, question: Params, answer: Params, revision: str
    ) -> None:
        problem = problem_with(question["method"], answer, revision)
        if problem:
            raise invalid_params(f"inputResponses: {key} {problem}")
        self._spend(brought)
        brought.answers[key] = answer

    def _spend(self, brought: Round) -> None:
        """Use up the state, when its first answer is accepted."""
        if brought.spent:
            return
        try:
            self._seal.spend(brought.note)
        except UnsealedError as why:
            raise _bad_state(str(why)) from None
        brought.spent = True


def identity_of(method: str, params: Params, revision: str) -> str:
    """Return the hash of a request, without the members that differ between rounds."""
    salient = {name: value for name, value in params.items() if name not in _ROUND_MEMBERS}
    return fingerprint([revision, method, salient])


def _bad_state(why: str) -> Exception:
    return invalid_params(f"requestState is of no use: {why}; send the request without it")
