"""Servers that break a rule of basic/progress."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    controls,
    has,
    meta,
    mutant,
    mutants,
    params,
    puts,
    refusal,
)

OLD = "2024-11-05"
PROGRESS = "notifications/progress"


class _Reports(Fault):
    """Changes the progress of the reference server."""

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == PROGRESS:
            return self.report(message)
        return message  # type: ignore[no-any-return]

    def report(self, message: Json) -> Out:
        """Return what is written in place of a report."""
        return message

    reached = 1_000_000

    def more(self, token: Any, **more: Any) -> None:
        """Report something of our own, beyond all that was reported."""
        self.reached += 1
        body = {"progressToken": token, "progress": self.reached, **more}
        self.emit({"jsonrpc": "2.0", "method": PROGRESS, "params": body})


@mutant("progress-token-known")
class WritesTokensAsText(_Reports):
    """Returns an integer token as a string."""

    def report(self, message: Json) -> Out:
        message["params"]["progressToken"] = str(message["params"]["progressToken"])
        return message


@mutant("progress-token-known", revision=MODERN)
class ReportsUnderItsOwnToken(_Reports):
    """Reports progress under a token of its own."""

    def report(self, message: Json) -> Out:
        message["params"]["progressToken"] = f"job-{message['params']['progressToken']}"
        return message


@mutant("progress-token-known", revision=OLD)
class ReportsWithoutAToken(_Reports):
    """Reports progress under the id of a request without a token."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/call" and "progressToken" not in meta(request):
            self.more(request["id"])
        return super().said(message, request)


class _RefusesTokens(Fault):
    """Refuses some tokens of fast requests."""

    def said(self, message: Any, request: Json) -> Out:
        cheap = request.get("method") in {"ping", "tools/list", "server/discover"}
        if cheap and self.refuses(meta(request).get("progressToken")):
            return refusal(request, -32602, "Invalid progressToken")
        return message  # type: ignore[no-any-return]

    def refuses(self, token: Any) -> bool:
        """Whether it refuses a token."""
        raise NotImplementedError


mutants("progress-token-types-accepted", of=_RefusesTokens)(
    RefusesZeroTokens=has(
        "Refuses the token 0.", refuses=lambda self, token: isinstance(token, int) and not token
    ),
    RefusesTextTokens=has(
        "Refuses a token that is a string.",
        MODERN,
        refuses=lambda self, token: isinstance(token, str),
    ),
)


class _ReportsTheEnd(_Reports):
    """Reports progress after the response."""

    def said(self, message: Any, request: Json) -> Out:
        token = meta(request).get("progressToken")
        if request.get("method") == "tools/call" and "task" not in params(request) and token:
            self.emit(message)
            self.more(token)
            return None
        return super().said(message, request)


@mutant("progress-stops-after-completion", passes=("progress-token-known",))
class ReportsOnAnEarlierRequest(_Reports):
    """Reports progress of the first call during the later ones."""

    first: ClassVar[list[Any]] = []

    def said(self, message: Any, request: Json) -> Out:
        token = meta(request).get("progressToken")
        if request.get("method") == "tools/call" and "task" not in params(request) and token:
            self.first.append(token)
            if token != self.first[0]:
                self.more(self.first[0])
        return super().said(message, request)


mutants("progress-stops-after-completion", of=_ReportsTheEnd)(
    ReportsAfterTheResponse="Reports progress after the response.",
    ReportsAfterAStatelessResponse=has(
        "Reports progress after the response to a stateless request.", MODERN
    ),
)


@mutant("progress-task-stops-terminal")
class ReportsAfterTheEndOfATask(_Reports):
    """Reports progress after the answer with a completed task."""

    tokens: ClassVar[dict[Any, Any]] = {}

    def said(self, message: Any, request: Json) -> Out:
        result = message.get("result", {})
        if isinstance(result.get("task"), dict):
            self.tokens[result["task"]["taskId"]] = meta(request).get("progressToken")
        token = self.tokens.get(result.get("taskId"))
        if request.get("method") == "tasks/get" and result.get("status") == "completed" and token:
            self.emit(message)
            related = {"io.modelcontextprotocol/related-task": {"taskId": result["taskId"]}}
            self.more(token, _meta=related)
            return None
        return super().said(message, request)


@mutant("progress-increases")
class RepeatsEachValue(_Reports):
    """Reports each value twice."""

    def report(self, message: Json) -> Out:
        self.emit(message)
        return message


@mutant("progress-increases", revision=MODERN)
class CountsDown(_Reports):
    """Reports the remaining work."""

    def report(self, message: Json) -> Out:
        message["params"]["progress"] *= -0.5
        return message


mutants("progress-params-shape", of=_Reports)(
    ReportsANullTotal=has("Writes an unknown total as null.", report=puts("params", "total", None))
)


@mutant("progress-params-shape", revision=MODERN)
class ReportsProgressAsText(_Reports):
    """Writes progress as text."""

    def report(self, message: Json) -> Out:
        message["params"]["progress"] = f"{message['params']['progress']} %"
        return message


mutants("progress-message-useful", of=_Reports)(
    ReportsBlanks=has("Sends a message of one space.", report=puts("params", "message", " "))
)


class _AsksWithTokens(AskingTool):
    """Requests the roots twice at once with tokens, and waits for both."""

    TOKENS: ClassVar[tuple[Any, Any]] = ("first", 2)

    def on_ask(self, request: Json) -> None:
        if "roots" not in self.client:
            super().on_ask(request)
            return
        for token in self.TOKENS:
            self.ask(request, "roots/list", {"_meta": {"progressToken": token}})

    def on_answer(self, request: Json, message: Json) -> None:
        if request not in self.waiting.values():
            super().on_answer(request, message)


controls("progress-server-tokens", of=_AsksWithTokens)(
    RequestsWithTokens="Requests the roots twice at once, with two tokens."
)
mutants("progress-server-tokens", of=_AsksWithTokens)(
    RequestsWithOneToken=has(
        "Requests the roots twice at once, with one token.", TOKENS=("roots", "roots")
    ),
)
mutants("progress-server-tokens", of=_AsksWithTokens, passes=("elicitation-not-in-revision",))(
    RequestsWithANullToken=has("Writes a missing token as null.", OLD, TOKENS=("first", None)),
)
