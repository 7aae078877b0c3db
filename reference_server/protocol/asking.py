"""Asking the client something while a request of its own is served.

A session is asked by a request of ours, and the worker waits for the answer (``questions``); in
2026-07-28 the request is answered with the question and comes again (``rounds``). A handler sees
neither: it calls ``Call.ask`` and goes on with the answer.

What a waiting worker costs: nothing but its thread. Another job takes its place (``workers``), so
requests are served however many questions are open; ``questions.MOST_OPEN`` is the limit, and a
question beyond it fails at once. Each wait ends with the answer, with the deadline, with the
cancellation of the request it is asked for, or with the end of the input.
"""

from __future__ import annotations

from .answers import problem_with
from .errors import MISSING_CLIENT_CAPABILITY, ProtocolError
from .questions import Questions, UnansweredError
from .revisions import is_modern
from .workers import aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from .calls import Call
    from .messages import Params
    from .rounds import Round, Rounds

    Questioned: TypeAlias = Mapping[str, tuple[str, Params]]

_SINCE = {"elicitation": "2025-06-18"}
_MODES_SINCE = "2025-11-25"


class Asking:
    """One connection's questions to its client.

    Args:
        send: Writes one encoded message to the client.
        seconds: How long the client may take to answer.
        key: The operator's secret, if several processes share one.

    Attributes:
        questions: Those to a session.
        seconds: As above.
    """

    def __init__(
        self, send: Callable[[bytes], None], seconds: float, key: str | None = None
    ) -> None:
        self.questions = Questions(send)
        self.seconds = seconds
        self._key = key
        self._rounds: Rounds | None = None

    def brought(self, call: Call) -> Round | None:
        """Give what a retry brings along; None for a first request.

        Raises:
            ProtocolError: -32602, it is not to be trusted.
        """
        if not is_modern(call.revision) or not call.params.keys() & {
            "requestState",
            "inputResponses",
        }:
            return None
        from .rounds import METHODS  # noqa: PLC0415 - few clients are ever asked something

        return self._get_rounds().read(call) if call.method.name in METHODS else None

    def ask(self, call: Call, questions: Questioned, bound_to: bytes) -> dict[str, Params]:
        """Put some questions; see ``Call.ask_together``."""
        for method, params in questions.values():
            capability, sub = _needed(method, params)
            if not can(call, capability, sub):
                raise _cannot(call, capability, sub)
        if not is_modern(call.revision):
            return {key: self._ask_one(call, *asked) for key, asked in questions.items()}
        asked = {
            key: {"method": method, "params": params} if params else {"method": method}
            for key, (method, params) in questions.items()
        }
        return self._get_rounds().ask(call, asked, bound_to)

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


def can(call: Call, capability: str, sub: str | None = None) -> bool:
    """Say whether the client of a call can be asked; see ``Call.can``."""
    if call.session is not None and not call.session.ready:
        return False
    if call.revision < _SINCE.get(capability, ""):
        return False
    declared = call.client_capabilities.get(capability)
    if not isinstance(declared, dict):
        return False
    if sub is None:
        return True
    if capability == "elicitation" and sub == "form":
        # Before there were modes there was this one, and no mode named means it as well.
        return call.revision < _MODES_SINCE or not declared or isinstance(declared.get(sub), dict)
    return isinstance(declared.get(sub), dict)


def _needed(method: str, params: Params) -> tuple[str, str | None]:
    """Give the capability that a client must have declared for a question."""
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
