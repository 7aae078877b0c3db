"""Servers that break a rule of basic/lifecycle on what a session has agreed."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    AskingTool,
    Fault,
    Json,
    Out,
    control,
    controls,
    encode,
    has,
    mutant,
    mutants,
)

OLD = "2025-03-26"
MIDDLE = "2025-06-18"
TASK: Json = {
    "taskId": "1",
    "status": "working",
    "createdAt": "2025-11-25T10:00:00Z",
    "lastUpdatedAt": "2025-11-25T10:00:00Z",
    "ttl": 60_000,
    "pollInterval": 5_000,
}


@mutant("lifecycle-no-requests-before-initialized")
class RequestsRootsTooEarly(AskingTool):
    """Sends roots/list directly after its initialize result."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") != "initialize" or "roots" not in self.client:
            return super().said(message, request)
        return encode(message) + encode({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"})


@mutant("lifecycle-no-requests-before-initialized", revision=MIDDLE)
class RequestsRootsBeforeItsResult(AskingTool):
    """Sends roots/list before its initialize result, and waits for the roots."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        handshake = isinstance(message, dict) and message.get("method") == "initialize"
        if handshake and "roots" in self.client:
            self.ask(message, "roots/list")
            self.later(0.2, lambda: self._forward(line))
            return None
        return super().heard(line, message)

    def on_answer(self, request: Json, message: Json) -> None:
        pass


class Notifies(Fault):
    """The reference server with one additional notification after initialized."""

    method = "notifications/tools/list_changed"
    params: ClassVar[Json] = {}
    capability: ClassVar[Json] = {}

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "notifications/initialized":
            self.emit({"jsonrpc": "2.0", "method": self.method, "params": self.params})
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and self.capability and "result" in message:
            message["result"]["capabilities"] |= self.capability
        return message  # type: ignore[no-any-return]


@mutant("lifecycle-declared-server-capabilities")
class NotifiesUndeclared(Notifies, capability={"tools": {}}):
    """Sends tools/list_changed without having declared tools.listChanged."""


@mutant("lifecycle-declared-server-capabilities")
class ReportsTasksUndeclared(Notifies, method="notifications/tasks/status", params=TASK):
    """Sends a task status without having declared tasks."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and "task" in (message.get("params") or {}):
            del message["params"]["task"]
            self.pass_on(message)
            return None
        return super().heard(line, message)

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and "result" in message:
            del message["result"]["capabilities"]["tasks"]
        return super().said(message, request)


mutants("lifecycle-declared-server-capabilities", of=Notifies, revision=MIDDLE)(
    NotifiesDeclaredFalse=has(
        "Sends tools/list_changed although it declared tools.listChanged false.",
        capability={"tools": {"listChanged": False}},
    )
)
mutants("lifecycle-declared-server-capabilities-advisory", of=NotifiesUndeclared, revision=OLD)(
    NotifiesUndeclaredEarly=has(
        "Sends tools/list_changed undeclared, in a revision that only advises against it."
    )
)


@control("lifecycle-declared-server-capabilities", "lifecycle-respect-version")
class NotifiesDeclared(Notifies, capability={"tools": {"listChanged": True}}):
    """Declares tools.listChanged and sends tools/list_changed."""


controls(
    "lifecycle-declared-server-capabilities-advisory",
    "lifecycle-respect-version-advisory",
    of=NotifiesDeclared,
    revision=OLD,
)(
    NotifiesDeclaredEarly=(
        "Declares tools.listChanged and sends tools/list_changed, in an old revision."
    )
)
mutants("lifecycle-respect-version", of=Notifies)(
    NotifiesFromALaterRevision=has(
        "Sends a notification of 2026-07-28 in a session of 2025-11-25.",
        method="notifications/subscriptions/acknowledged",
    ),
    CompletesFromALaterRevision=has(
        "Sends a notification of 2025-11-25 in a session of 2025-06-18.",
        MIDDLE,
        method="notifications/elicitation/complete",
    ),
)
mutants("lifecycle-respect-version-advisory", of=Notifies, revision=OLD)(
    ReportsTasksFromALaterRevision=has(
        "Sends a task status in a session of 2025-03-26.",
        method="notifications/tasks/status",
        params=TASK,
    )
)
mutants("lifecycle-respect-version-advisory", of=AskingTool, revision="2024-11-05")(
    RequestsTasksFromALaterRevision=has(
        "Sends tasks/get, a request of 2025-11-25, in a session of 2024-11-05.",
        on_ask=lambda self, request: self.ask(request, "tasks/get", {"taskId": "1"}),
    )
)


@mutant("lifecycle-negotiated-client-capabilities")
class ElicitsFromAnyClient(AskingTool):
    """Sends elicitation/create to a client that did not declare it."""

    def on_ask(self, request: Json) -> None:
        if "elicitation" in self.client:
            super().on_ask(request)
            return
        schema = {"type": "object", "properties": {}}
        self.ask(request, "elicitation/create", {"message": "?", "requestedSchema": schema})


mutants("lifecycle-negotiated-client-capabilities-advisory", of=AskingTool, revision=OLD)(
    RequestsRootsOfAnyClient=has(
        "Sends roots/list to a client that did not declare roots.",
        on_ask=lambda self, request: self.ask(request, "roots/list"),
    )
)


class Waits(AskingTool):
    """A tool that requests the roots of a client with roots, and waits for them."""

    def on_ask(self, request: Json) -> None:
        if "roots" in self.client:
            own = self.ask(request, "roots/list")
            self.after(request, own)
        else:
            super().on_ask(request)

    def after(self, request: Json, own: str) -> None:
        """Act once the client was asked."""

    def give_up(self, request: Json, own: str) -> None:
        """End a call that still waits."""
        if self.waiting.pop(own, None):
            text = {"type": "text", "text": "the client did not answer in time"}
            self.answer(request, {"content": [text], "isError": True})


mutants("lifecycle-timeout-cancels", of=Waits)(
    GivesUpSilently=has(
        "Gives up on a request to the client without cancelling it.",
        after=lambda self, request, own: self.later(0.3, lambda: self.give_up(request, own)),
    )
)


@control("lifecycle-timeout-cancels")
class CancelsAbandonedRequests(Waits):
    """Gives up on a request to the client and cancels it."""

    def after(self, request: Json, own: str) -> None:
        self.later(0.3, lambda: self.give_up(request, own))

    def give_up(self, request: Json, own: str) -> None:
        if own in self.waiting:
            why = {"requestId": own, "reason": "timeout"}
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": why}
            self.emit(note)
        super().give_up(request, own)


@control("lifecycle-timeout-cancels")
class RequestsTheRootsOfTheSessionLate(CancelsAbandonedRequests):
    """Gives up on a request and cancels it; its request at the start of the session comes late."""

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == "roots/list":
            self.later(0.15, lambda: self.emit(message))
            return None
        message = super().said(message, request)
        if request.get("method") == "tools/list" and "result" in message:
            message["result"]["tools"] = [dict(self.TOOL)]
        return message  # type: ignore[no-any-return]


@control()
class RequestsTheRootsDuringACall(AskingTool):
    """Requests the roots of the session while a tool runs that asks nothing, and fails."""

    roots: Json | None = None

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == "roots/list":
            self.roots = message
            return None
        message = super().said(message, request)
        if request.get("method") == "tools/list" and "result" in message:
            message["result"]["tools"] = [dict(self.TOOL)]
        return message  # type: ignore[no-any-return]

    def on_ask(self, request: Json) -> None:
        roots, self.roots = self.roots, None
        if roots is not None:
            self.emit(roots)
        text = {"type": "text", "text": "there is nothing to ask"}
        self.answer(request, {"content": [text], "isError": True})


controls(of=Waits)(WaitsForEver="Waits for the client without a time limit.")


@control()
class DoesNotWait(Waits):
    """Sends the client a request and ends the call at once."""

    def after(self, request: Json, own: str) -> None:
        self.waiting.pop(own)
        AskingTool.on_ask(self, request)
