"""Questions without a session: the request ends, and comes again with the answer.

    request --> result "input_required", inputRequests, requestState
    request, inputResponses, requestState --> the result

Source: 2026-07-28 basic/patterns/mrtr. The state is sealed, so a client cannot invent an answer
it was never asked for, bring it to another request, bring it late, or bring it twice: what is
asked here mostly guards a write. Nothing is kept between the rounds but the list of spent states.
"""

from __future__ import annotations

from .answers import problem_with
from .errors import invalid_params
from .required import InputRequired
from .seal import Seal, UnsealedError, fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .calls import Call
    from .messages import Params

METHODS = ("prompts/get", "resources/read", "tools/call")
"""The requests that may be answered this way (basic/patterns/mrtr#supported-requests)."""

_ROUND_MEMBERS = ("_meta", "inputResponses", "requestState")


class Round:
    """What a retry brings along.

    Attributes:
        note: What we said of ourselves when we asked.
        answers: Answers by key: those of earlier rounds, and those of this one once taken.
        fresh: What the client sends for the questions of the last round, unchecked.
        spent: Whether the state is used up: whatever its answers allow has begun.
    """

    def __init__(self, note: dict[str, Any], fresh: Params) -> None:
        self.note = note
        self.answers: Params = dict(note["answers"])
        self.fresh = fresh
        self.spent = False


class Rounds:
    """Asks the client and reads the answers.

    Args:
        seconds: How long the client may take to come back.
        key: The operator's secret, if several processes share one.
    """

    def __init__(self, seconds: float, key: str | None) -> None:
        self._seal = Seal(seconds, "rounds", key)

    def read(self, call: Call) -> Round | None:
        """Give what the request brings along, None if it is no retry.

        Answers without a state answer nothing we asked; they are passed over.

        Raises:
            ProtocolError: -32602, for a state that is not one of ours for this very request, and
                for responses that are no map of objects.
        """
        state = call.params.get("requestState")
        fresh = call.params.get("inputResponses", {})
        if not isinstance(fresh, dict) or not all(isinstance(one, dict) for one in fresh.values()):
            raise invalid_params("inputResponses must be an object of results")
        if state is None:
            return None
        if not isinstance(state, str):
            raise invalid_params("requestState must be a string")
        try:
            note = self._seal.open(state)
        except UnsealedError as why:
            raise _bad_state(str(why)) from None
        if note["request"] != _request(call):
            raise _bad_state("it belongs to another request")
        return Round(note, fresh)

    def ask(
        self, call: Call, questions: Mapping[str, Params], bound_to: bytes
    ) -> dict[str, Params]:
        """Give the answers to some questions, or raise those that have none.

        An answer counts if the question is still the same, down to ``bound_to``; if not, the new
        one is asked, as it is when the answer is missing (basic/patterns/mrtr#error-handling).

        Args:
            call: The request.
            questions: ``{"method", "params"}`` by a key that is unique within the request.
            bound_to: What else must be as it was when the questions were asked.

        Raises:
            InputRequired: There is no answer yet.
            ProtocolError: -32602, an answer does not fit, or was used already.
        """
        brought = call.brought
        identities = {
            key: fingerprint([key, question], bound_to) for key, question in questions.items()
        }
        found: dict[str, Params] = {}
        for key, question in questions.items():
            if brought is not None and brought.note["asked"].get(key) == identities[key]:
                answer = brought.answers.get(key, brought.fresh.get(key))
                if answer is not None:
                    self._accept(brought, key, question, answer, call.revision)
                    found[key] = answer
        missing = {key: question for key, question in questions.items() if key not in found}
        if not missing:
            return found
        before = brought.note["asked"] if brought else {}
        answers = brought.answers if brought else {}
        note = {
            "request": _request(call),
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
        """Use the state up, the first time something hangs on it."""
        if brought.spent:
            return
        try:
            self._seal.spend(brought.note)
        except UnsealedError as why:
            raise _bad_state(str(why)) from None
        brought.spent = True


def _request(call: Call) -> str:
    """Identify a request by all it says, except what may differ from round to round."""
    salient = {name: value for name, value in call.params.items() if name not in _ROUND_MEMBERS}
    return fingerprint([call.revision, call.method.name, salient])


def _bad_state(why: str) -> Exception:
    return invalid_params(f"requestState is of no use: {why}; send the request without it")
