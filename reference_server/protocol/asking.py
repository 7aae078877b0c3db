"""Questions to the client while the server handles a request of that client.

In a session, the server sends a request and the worker waits for the answer (``questions``). In
2026-07-28, the server answers the client's request with the question, and the client sends the
request again (``rounds``). A handler calls ``Call.ask`` in both cases.

A waiting worker blocks only its own thread, because another job takes its place (``workers``). The
server therefore handles requests no matter how many questions are open. At most
``questions.MOST_OPEN`` questions can be open; further ones fail at once. A wait ends with the
answer, the deadline, the cancellation of the client's request, or the end of the input.
"""

from __future__ import annotations

from .answers import problem_with
from .errors import MISSING_CLIENT_CAPABILITY, ProtocolError
from .questions import Questions, UnansweredError
from .revisions import is_modern
from .workers import aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .calls import Call, Questioned
    from .messages import Params
    from .rounds import Round, Rounds


class Asking:
    """The questions of one connection to its client."""

    def __init__(
        self, send: Callable[[bytes], None], seconds: float, key: str | None = None
    ) -> None:
        self.questions = Questions(send)
        self.seconds = seconds
        self._key = key
        self._rounds: Rounds | None = None

    def brought(self, call: Call) -> Round | None:
        """Return the state and answers of a retry, or None for a first request."""
        if not is_modern(call.revision) or not call.params.keys() & {
            "requestState",
            "inputResponses",
        }:
            return None
        from .rounds import METHODS  # noqa: PLC0415 - few clients are ever asked something

        if call.method.name not in METHODS:
            return None
        return self._get_rounds().read(call.params, _identity(call))

    def ask(self, call: Call, questions: Questioned, bound_to: bytes) -> dict[str, Params]:
        for method, params in questions.values():
            capability, sub = _needed(method, params)
            if not call.can(capability, sub):
                raise _cannot(call, capability, sub)
        if not is_modern(call.revision):
            return {key: self._ask_one(call, *asked) for key, asked in questions.items()}
        asked = {
            key: {"method": method, "params": params} if params else {"method": method}
            for key, (method, params) in questions.items()
        }
        rounds = self._get_rounds()
        return rounds.ask(call.brought, asked, bound_to, _identity(call), call.revision)

    def _ask_one(self, call: Call, method: str, params: Params) -> Params:
        answer = self._ask_session(call, method, params)
        problem = problem_with(method, answer, call.revision)
        if problem:
            raise UnansweredError("CLIENT_CONFUSED", f"The client's answer {problem}.")
        return answer

    def _get_rounds(self) -> Rounds:
        if self._rounds is None:
            from .rounds import Rounds  # noqa: PLC0415 - few clients are ever asked something

            self._rounds = Rounds(self.seconds, self._key)
        return self._rounds

    def _ask_session(self, call: Call, method: str, params: Params) -> Params:
        if not call.method.slow:
            raise RuntimeError("a handler on the reading thread cannot wait for what it would read")
        call.check()
        question = self.questions.ask(method, call.related(params))
        call.on_cancel(lambda: question.end(None))

        def wait() -> None:
            question.wait(self.seconds)
            reason = f"no answer within {self.seconds:g} s"
            if call.cancelled:
                reason = "the request it was asked for was cancelled"
            self.questions.withdraw(question, reason)

        call.waiting(True)
        try:
            aside(wait)
        finally:
            call.waiting(False)
        call.check()
        return question.result()


def _identity(call: Call) -> str:
    from .rounds import identity_of  # noqa: PLC0415 - few clients are ever asked something

    return identity_of(call.method.name, call.params, call.revision)


def _needed(method: str, params: Params) -> tuple[str, str | None]:
    if method == "elicitation/create":
        return "elicitation", params.get("mode", "form")
    if method == "sampling/createMessage":
        return "sampling", "tools" if "tools" in params or "toolChoice" in params else None
    if method == "roots/list":
        return "roots", None
    raise ValueError(f"no client is asked {method}")


def _cannot(call: Call, capability: str, sub: str | None) -> Exception:
    """Build the error for a client that cannot be asked (2026-07-28 basic/index#meta)."""
    name = capability if sub is None else f"{capability} ({sub})"
    if is_modern(call.revision):
        return ProtocolError(
            MISSING_CLIENT_CAPABILITY,
            f"This request needs a client with the capability {name}",
            {"requiredCapabilities": {capability: {} if sub is None else {sub: {}}}},
        )
    return UnansweredError("CLIENT_CANNOT", f"This needs a client with the capability {name}.")
