"""Servers that break a rule of basic/cancellation."""

import os
import time
from functools import partial
from typing import Any, ClassVar

from tests.mutants.kit import (
    LATE,
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    SaysMore,
    control,
    controls,
    encode,
    has,
    meta,
    mutant,
    mutants,
    notifies,
    params,
    taken_back,
)

CANCELLED = "notifications/cancelled"
SLOW = "workspace_digest"


def _cancels(message: Any) -> bool:
    return notifies(message) and message["method"] == CANCELLED


class _Cancelled(Fault):
    """Handles the cancellation of a long call that is not answered yet in its own way."""

    answered: ClassVar[set[Any]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        own = taken_back(message)
        request = self.asked.get(own, {})
        if params(request).get("name") != SLOW or own in self.answered:
            return line
        return self.cancelled(line, request)

    def said(self, message: Any, request: Json) -> Out:
        if request:
            self.answered.add(request["id"])
        return message  # type: ignore[no-any-return]

    def cancelled(self, line: bytes, request: Json) -> bytes | None:
        """Act; give what is passed on."""
        raise NotImplementedError


@mutant("cancellation-no-response")
class AnswersACancelledCall(_Cancelled):
    """Stops the work of a cancelled call, and still answers it some time later."""

    def cancelled(self, line: bytes, request: Json) -> bytes | None:
        self.later(1.5, lambda: self.refuse(request, 0, "Request cancelled"))
        return line


@mutant("cancellation-no-response")
class AnswersACancelledCallAndReadsLate(AnswersACancelledCall):
    """Reads the first cancellation so late that the call cannot be judged, as a busy server may."""

    late = False

    def cancelled(self, line: bytes, request: Json) -> bytes | None:
        if not self.late:
            self.late = True
            time.sleep(1.0)
        return super().cancelled(line, request)


mutants(
    "cancellation-no-response",
    "cancellation-stdio-no-further-messages",
    of=_Cancelled,
    revision=MODERN,
    outcome="warn",
)(
    IgnoresCancellations=has(
        "Continues a cancelled call as if nothing had happened.", cancelled=lambda *_: None
    )
)


class _Waits(AskingTool):
    """Its only long tool waits as long as its client wishes, and reads cancellations of it late."""

    TOOL: ClassVar[Json] = {
        "name": "ask",
        "description": "Waits.",
        "inputSchema": {
            "type": "object",
            "properties": {"seconds": {"type": "number", "minimum": 0, "maximum": 60}},
        },
        "annotations": {"readOnlyHint": True},
    }

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.asked.get(taken_back(message), {}).get("method") == "tools/call":
            time.sleep(1.2)
        return super().heard(line, message)

    def said(self, message: Any, request: Json) -> Out:
        message = super().said(message, request)
        if request.get("method") == "tools/list" and "result" in message:
            tools = message["result"]["tools"]
            message["result"]["tools"] = [tool for tool in tools if tool["name"] != SLOW]
        return message  # type: ignore[no-any-return]


@mutant("cancellation-no-response")
class AnswersACancelledWait(_Waits):
    """Answers a cancelled call that is judged only if it lasts longer than usual."""

    def on_ask(self, request: Json) -> None:
        seconds = params(request).get("arguments", {}).get("seconds", 0.0)
        done = {"content": [{"type": "text", "text": "done"}]}
        self.later(seconds, lambda: self.answer(request, done))


class _KeepsReporting(_Cancelled):
    """Stops the work of a cancelled call, and still reports progress."""

    def cancelled(self, line: bytes, request: Json) -> bytes | None:
        for step in range(1, 8):
            self.later(step * 0.25, lambda step=step: self.report(request, step))  # type: ignore[misc]
        return line

    def report(self, request: Json, step: int) -> None:
        """Report one step more."""
        token = meta(request).get("progressToken")
        if token is None:
            return
        body = {"progressToken": token, "progress": 1000 + step}
        self.emit({"jsonrpc": "2.0", "method": "notifications/progress", "params": body})


mutants("cancellation-stop-work", of=_KeepsReporting)(
    KeepsReporting="Stops the work of a cancelled call, and still reports progress."
)
mutants("cancellation-stdio-no-further-messages", of=_KeepsReporting, revision=MODERN)(
    KeepsReportingStatelessly=(
        "Stops the work of a cancelled stateless request, and still reports progress."
    )
)


@mutant("cancellation-stop-work", revision=MODERN)
class KeepsWriting(_Cancelled):
    """Sends nothing more for a cancelled call, and still writes its files."""

    def cancelled(self, line: bytes, request: Json) -> bytes | None:
        for step in range(1, 8):
            self.later(step * 0.25, self.write)
        return line

    def write(self) -> None:
        """Write one line more."""
        with (self.root / "digest.log").open("a", encoding="utf-8") as file:
            file.write("another file\n")


@control("cancellation-no-response")
class WritesALogAllTheTime(_Cancelled):
    """Writes a log file all the time, independent of any call."""

    def start(self) -> None:
        for step in range(200):
            self.later(step * 0.1, self.write)

    def cancelled(self, line: bytes, request: Json) -> bytes | None:
        return line

    def write(self) -> None:
        """Write one line more."""
        with (self.root / "server.log").open("a", encoding="utf-8") as file:
            file.write("still here\n")


mutants("cancellation-invalid-ignored", of=Fault)(
    DiesOfACancellationWithoutParams=has(
        "Exits when a cancellation has no params.",
        heard=lambda self, line, message: (
            os._exit(1) if _cancels(message) and "params" not in message else line
        ),
    )
)


@mutant("cancellation-invalid-ignored", revision=MODERN)
class DiesOfAnUnknownCancellation(Fault):
    """Exits when the cancellation of an unknown request has a reason."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        named = taken_back(message)
        if named is not None and named not in self.asked and "reason" in params(message):
            os._exit(1)
        return line


class _LosesARace(Fault):
    """Hangs when the request it has just read is cancelled."""

    last: Any = None
    stuck = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not isinstance(message, dict):
            return line
        named = taken_back(message)
        self.stuck |= named is not None and named == self.last
        quick = message.get("method") in {"ping", "server/discover"}
        self.last = message.get("id") if quick else None
        return None if self.stuck else line


mutants("cancellation-race-tolerated", of=_LosesARace)(
    HangsOnACancelledPing="Hangs when the ping it has just read is cancelled.",
    HangsOnACancelledDiscover=has(
        "Hangs when the server/discover it has just read is cancelled.", MODERN
    ),
)


class _Cancels(SaysMore):
    """Sends a cancellation after each list of tools."""

    def more(self) -> None:
        lists = [own for own, r in self.asked.items() if r.get("method") == "tools/list"]
        self.cancel(lists[-1])

    def cancel(self, own: Any) -> None:
        """Say that a request is cancelled."""
        body = {"requestId": own, "reason": "taken back"}
        self.emit({"jsonrpc": "2.0", "method": CANCELLED, "params": body})


mutants("cancellation-server-own-requests", of=_Cancels)(
    CancelsARequestOfItsClient="Cancels a request of its client."
)
mutants("cancellation-server-only-for-listen", of=_Cancels, revision=MODERN)(
    CancelsAStatelessRequest="Cancels a request of its client that is not a subscription."
)


@mutant("cancellation-notification-shape")
class CancelsWithoutAnId(SaysMore):
    """Cancels without a requestId, which the schema of this revision allows."""

    def more(self) -> None:
        body = {"reason": "taken back"}
        self.emit({"jsonrpc": "2.0", "method": CANCELLED, "params": body})


@mutant("cancellation-notification-shape", revision=MODERN)
class CancelsNull(SaysMore):
    """Cancels null."""

    def more(self) -> None:
        self.emit({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": None}})


class _Withdraws(AskingTool):
    """A tool that requests the roots, and cancels that when its own call is cancelled."""

    def on_ask(self, request: Json) -> None:
        if "roots" in self.client:
            self.ask(request, "roots/list")
        else:
            super().on_ask(request)

    def heard(self, line: bytes, message: Any) -> bytes | None:
        named = taken_back(message)
        for own in [own for own, call in self.waiting.items() if call["id"] == named]:
            del self.waiting[own]
            self.withdraw(own)
        return super().heard(line, message)

    def withdraw(self, own: str) -> None:
        """Take the question back."""
        body = {"requestId": own, "reason": "no longer needed"}
        self.emit({"jsonrpc": "2.0", "method": CANCELLED, "params": body})


controls(
    "cancellation-server-own-requests",
    "cancellation-ignore-late-response",
    "cancellation-notification-shape",
    of=_Withdraws,
)(CancelsItsOwnRequest="Cancels its request to the client when the call is cancelled.")


@control("cancellation-ignore-late-response")
class AlsoRequestsTheRootsByItself(_Withdraws):
    """Requests the roots for the session in the same moment as for a call."""

    own: ClassVar[set[str]] = set()

    def emit(self, message: Out) -> None:
        if isinstance(message, dict) and message.get("id") in self.waiting:
            self.own.add(own := f"session-{message['id']}")
            message = encode(message) + encode({**message, "id": own})
        super().emit(message)

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("id") in self.own:
            self.own.remove(message["id"])
            return None
        return super().heard(line, message)


@mutant("cancellation-ignore-late-response")
class AnswersLateAnswers(_Withdraws):
    """Answers a late answer to its cancelled request with an error."""

    withdrawn: ClassVar[set[str]] = set()

    def withdraw(self, own: str) -> None:
        self.withdrawn.add(own)
        super().withdraw(own)

    def heard(self, line: bytes, message: Any) -> bytes | None:
        own = message.get("id") if isinstance(message, dict) and "method" not in message else None
        if isinstance(own, str) and own in self.withdrawn:
            error = {"code": -32600, "message": "Unknown response id"}
            self.emit({"jsonrpc": "2.0", "id": None, "error": error})
            return None
        return super().heard(line, message)


mutants("cancellation-ignore-late-response", of=AnswersLateAnswers)(
    AnswersLateAnswersAndAsksLate=has(
        "Sends its request late, as a busy server may.",
        on_ask=lambda self, request: self.later(
            LATE, partial(AnswersLateAnswers.on_ask, self, request)
        ),
    )
)


@mutant("cancellation-server-own-requests", outcome="warn")
class CancelsAnAnsweredRequest(AskingTool):
    """Cancels its request well after it was answered."""

    def on_ask(self, request: Json) -> None:
        if "roots" in self.client:
            self.ask(request, "roots/list")
        else:
            super().on_ask(request)

    def on_answer(self, request: Json, message: Json) -> None:
        self.later(1.3, lambda: self.cancel(request, message["id"]))

    def cancel(self, request: Json, own: str) -> None:
        """Say that the question is cancelled, and answer the call."""
        body = {"requestId": own}
        self.emit({"jsonrpc": "2.0", "method": CANCELLED, "params": body})
        super().on_answer(request, {})


@mutant("cancellation-server-own-requests")
class CancelsARequestOfAnEarlierCall(CancelsAnAnsweredRequest):
    """Cancels its request after it was answered, and many later requests of the client too."""

    def on_answer(self, request: Json, message: Json) -> None:
        AskingTool.on_answer(self, request, {})
        count = len(self.asked)

        def wait() -> None:
            if len(self.asked) > count + 1:
                self.later(1.3, lambda: self.withdraw(message["id"]))
            else:
                self.later(0.02, wait)

        self.later(0.02, wait)

    def withdraw(self, own: str) -> None:
        """Say that the question is cancelled."""
        self.emit({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": own}})


class _AsksForATask(AskingTool):
    """A tool that requests a task of the client, and gives it up when its call is cancelled."""

    ASKED: ClassVar[Json] = {
        "message": "Which colour?",
        "requestedSchema": {"type": "object", "properties": {}},
        "task": {"ttl": 60_000},
    }

    given: ClassVar[dict[Any, tuple[str, str]]] = {}

    def on_ask(self, request: Json) -> None:
        if "tasks" in self.client:
            self.ask(request, "elicitation/create", {"mode": "form", **self.ASKED})
        else:
            super().on_ask(request)

    def on_answer(self, request: Json, message: Json) -> None:
        result = message.get("result", {})
        task = result.get("task")
        content = result.get("content", {"colour": ""})
        if task is None and not (
            isinstance(content, dict) and isinstance(content.get("colour"), str)
        ):
            self.refuse(request, -32602, "That is no colour")
            return
        if task is None:
            super().on_answer(request, message)
            return
        self.given[request["id"]] = (message["id"], task["taskId"])
        self.ask(request, "tasks/result", {"taskId": task["taskId"]})

    def heard(self, line: bytes, message: Any) -> bytes | None:
        question = self.given.pop(taken_back(message), None)
        if question is not None:
            self.give_up(*question)
        return super().heard(line, message)

    def give_up(self, own: str, task: str) -> None:
        """Notify the client that its task is not wanted any more."""
        body = {"taskId": task}
        self.emit(
            {"jsonrpc": "2.0", "id": f"cancel-{task}", "method": "tasks/cancel", "params": body}
        )


controls("cancellation-tasks-use-cancel", of=_AsksForATask)(
    CancelsTheTask="Gives up a task of the client with tasks/cancel."
)


@mutant("cancellation-tasks-use-cancel")
class CancelsTheRequest(_AsksForATask):
    """Gives up a task of the client by cancelling the request that created it."""

    def give_up(self, own: str, task: str) -> None:
        body = {"requestId": own, "reason": "no longer needed"}
        self.emit({"jsonrpc": "2.0", "method": CANCELLED, "params": body})
