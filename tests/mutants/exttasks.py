"""Servers that declare the Tasks extension of 2026-07-28, and servers that break its rules."""

import secrets
import time
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    client_capabilities,
    controls,
    has,
    is_modern,
    misfit,
    mutant,
    mutants,
    params,
)

EXTENSION = "io.modelcontextprotocol/tasks"
NEEDED: Json = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
TERMINAL = ("completed", "failed", "cancelled")
ASKED: Json = {
    "name": {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"who": {"type": "string"}}},
        },
    }
}


class Hands(Fault):
    """Answers calls of its tool ``work`` with a task, if the client declares the extension.

    Without a word the tool fails at once, in the result of its task.

    Attributes:
        tasks: the state of each task, as tasks/get shows it.
    """

    TOOL: ClassVar[Json] = {
        "name": "work",
        "description": "Works for a while.",
        "inputSchema": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
        "annotations": {"readOnlyHint": True},
    }
    LASTS: ClassVar[float] = 0.4

    tasks: ClassVar[dict[str, Json]] = {}

    def said(self, message: Any, request: Json) -> Out:
        result = message.get("result") if isinstance(message, dict) else None
        if isinstance(result, dict) and is_modern(request):
            if request.get("method") == "server/discover":
                result["capabilities"]["extensions"] = {EXTENSION: {}}
            if request.get("method") == "tools/list":
                result["tools"].insert(0, dict(self.TOOL))
        return message  # type: ignore[no-any-return]

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not isinstance(message, dict) or not is_modern(message) or "id" not in message:
            return line
        method, own = message.get("method"), params(message)
        if method == "tools/call" and own.get("name") == "work":
            unfit = misfit(message, self.TOOL)
            if unfit is not None:
                self.refuse(message, *unfit)
            else:
                self.on_call(message, able=self.is_able(message))
            return None
        if method in {"tasks/get", "tasks/update", "tasks/cancel"}:
            self.on_operation(message, str(method))
            return None
        wanted = own.get("notifications") if method == "subscriptions/listen" else None
        if isinstance(wanted, dict) and "taskIds" in wanted and not self.is_able(message):
            return self.on_listen(line, message)
        return line

    def is_able(self, request: Json) -> bool:
        """Whether the client declares the extension in a request."""
        return EXTENSION in client_capabilities(request).get("extensions", {})

    def outcome(self, request: Json) -> Json:
        """Return the result of the call."""
        fails = not isinstance(params(request).get("arguments", {}).get("word"), str)
        text = "A word is needed." if fails else "Done."
        return {"content": [{"type": "text", "text": text}], "isError": fails}

    def on_call(self, request: Json, *, able: bool) -> None:
        """Handle a call."""
        if able:
            self.create(request)
        else:
            self.on_plain(request)

    def on_plain(self, request: Json) -> None:
        """Handle a call of a client without the extension."""
        self.answer(request, self.outcome(request))

    def create(self, request: Json) -> None:
        """Answer with a new task, and let it end later."""
        own, now = self.new_id(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        times = {"createdAt": now, "lastUpdatedAt": now, "ttlMs": 60_000, "pollIntervalMs": 100}
        self.tasks[own] = {"taskId": own, "status": "working", **times}
        self.answer(request, {**self.tasks[own], "resultType": "task"})
        self.later(self.LASTS, lambda: self.ask(request, own))

    def new_id(self) -> str:
        """Return the id of the next task."""
        return secrets.token_hex(16)

    def ask(self, request: Json, own: str) -> None:
        """Ask the client for something, if it can elicit, or end the task."""
        if "elicitation" in client_capabilities(request) and self.tasks[own]["status"] == "working":
            self.tasks[own].update(status="input_required", inputRequests=ASKED, call=request)
        else:
            self.finish(request, own)

    def finish(self, request: Json, own: str) -> None:
        """End a task."""
        task = self.tasks[own]
        task.pop("inputRequests", None)
        if task["status"] not in TERMINAL:
            task.update(status="completed", result=self.outcome(request))

    def on_operation(self, request: Json, method: str) -> None:
        """Handle tasks/get, tasks/update or tasks/cancel."""
        own = params(request).get("taskId")
        if not self.is_able(request):
            self.refuse(request, -32021, "Missing required client capability", NEEDED)
        elif own not in self.tasks:
            self.refuse(request, -32602, "There is no such task")
        elif method == "tasks/get":
            self.answer(request, self.shown(str(own)))
        else:
            if method == "tasks/cancel":
                self.on_cancel(self.tasks[own])
            elif {*ASKED} <= params(request).get("inputResponses", {}).keys():
                self.finish(self.tasks[own]["call"], str(own))
            self.acknowledge(request, method)

    def shown(self, own: str) -> Json:
        """Return the result of tasks/get."""
        return {key: value for key, value in self.tasks[own].items() if key != "call"}

    def on_cancel(self, task: Json) -> None:
        """Cancel a task that is not over."""
        if task["status"] not in TERMINAL:
            task["status"] = "cancelled"
            task.pop("inputRequests", None)

    def acknowledge(self, request: Json, method: str) -> None:
        """Answer tasks/update or tasks/cancel."""
        self.answer(request, {})

    def on_listen(self, line: bytes, request: Json) -> bytes | None:
        """Handle a subscription to tasks of a client without the extension."""
        self.refuse(request, -32021, "Missing required client capability", NEEDED)
        return None


ALL = (
    *("exttasks-only-for-declaring-clients", "exttasks-operations-need-capability"),
    *("exttasks-durable-when-returned", "exttasks-task-shape", "exttasks-status-payload"),
    *("exttasks-result-type", "exttasks-iserror-completes", "exttasks-acknowledges"),
    *("exttasks-ignores-unknown-responses", "exttasks-unknown-id-get"),
    *("exttasks-unknown-id-others", "exttasks-input-keys-unique", "exttasks-terminal-final"),
    "exttasks-id-unguessable",
)
controls(*ALL, of=Hands, revision=MODERN)(
    HandsOutTasks="Keeps the rules of the extension, and serves clients without it too."
)


class _Only(Hands):
    """Cannot do without tasks."""

    def on_plain(self, request: Json) -> None:
        self.refuse(request, -32021, "Missing required client capability", NEEDED)


# Such a tool is found without arguments alone: a call of it by a client without tasks fails.
_Only.TOOL = {**Hands.TOOL, "inputSchema": {"type": "object", "properties": {}}}


controls("exttasks-required-capability-error", of=_Only, revision=MODERN)(
    HandsOutTasksOnly="Names the extension to clients without it."
)
mutants("exttasks-required-capability-error", of=_Only, revision=MODERN)(
    RefusesWithoutNamingTheExtension=has(
        "Refuses a client without the extension, and does not say what it lacks.",
        on_plain=lambda self, request: self.refuse(request, -32602, "Tasks are needed"),
    )
)


@mutant("exttasks-only-for-declaring-clients", revision=MODERN)
class HandsTasksToAnyClient(Hands):
    """Gives a task to each client, once one has declared the extension."""

    known = False

    def on_call(self, request: Json, *, able: bool) -> None:
        self.known = self.known or able
        super().on_call(request, able=self.known)


@mutant("exttasks-operations-need-capability", revision=MODERN)
class ServesTasksToAnyClient(Hands):
    """Answers tasks/get of a client without the extension."""

    def on_operation(self, request: Json, method: str) -> None:
        own = params(request).get("taskId")
        if method == "tasks/get" and own in self.tasks:
            self.answer(request, self.shown(str(own)))
        else:
            super().on_operation(request, method)


@mutant("exttasks-operations-need-capability", revision=MODERN, outcome="warn")
class AcknowledgesWithoutTheTask(Hands):
    """Opens a subscription to tasks for a client without the extension, and leaves the task out."""

    def on_listen(self, line: bytes, request: Json) -> bytes | None:
        request["params"]["notifications"] = {}
        self.pass_on(request)
        return None


@mutant("exttasks-durable-when-returned", revision=MODERN)
class StoresTasksLater(Hands):
    """Stores a task a moment after it was returned."""

    def create(self, request: Json) -> None:
        self.early = time.monotonic() + 0.3
        super().create(request)

    def on_operation(self, request: Json, method: str) -> None:
        if method == "tasks/get" and self.is_able(request) and time.monotonic() < self.early:
            self.refuse(request, -32602, "There is no such task")
        else:
            super().on_operation(request, method)

    early = 0.0


@mutant("exttasks-task-shape", revision=MODERN)
class ShowsTasksWithoutATtl(Hands):
    """Leaves ttlMs out of tasks/get."""

    def shown(self, own: str) -> Json:
        found = super().shown(own)
        del found["ttlMs"]
        return found


@mutant("exttasks-status-payload", revision=MODERN)
class CompletesWithoutAResult(Hands):
    """Shows completed tasks without their result."""

    def shown(self, own: str) -> Json:
        found = super().shown(own)
        found.pop("result", None)
        return found


mutants("exttasks-result-type", of=Hands, revision=MODERN, outcome="warn")(
    ShowsTasksAsNew=has(
        "Writes the resultType of a new task into tasks/get.",
        shown=lambda self, own: {**Hands.shown(self, own), "resultType": "task"},
    )
)
mutants("exttasks-result-of-request", of=Hands, revision=MODERN)(
    CompletesWithoutContent=has(
        "Has a result without content in a completed task.",
        shown=lambda self, own: {
            **Hands.shown(self, own),
            **({"result": {"done": True}} if self.tasks[own]["status"] == "completed" else {}),
        },
    )
)


class _Fails(Hands):
    """Ends its tasks with a JSON-RPC error."""

    MESSAGE: ClassVar[Json] = {"statusMessage": "The disk is full"}
    ERROR: ClassVar[Json] = {"code": -32603, "message": "The disk is full"}

    def finish(self, request: Json, own: str) -> None:
        task = self.tasks[own]
        task.pop("inputRequests", None)
        if task["status"] not in TERMINAL:
            task.update(status="failed", error=self.ERROR, **self.MESSAGE)

    def outcome(self, request: Json) -> Json:
        return {"content": [{"type": "text", "text": "Done."}]}


controls("exttasks-result-of-request", "exttasks-failed-message", of=_Fails, revision=MODERN)(
    FailsItsTasks="Fails its tasks, and says why."
)
mutants("exttasks-failed-message", of=_Fails, revision=MODERN)(
    FailsTasksInSilence=has("Fails its tasks without a statusMessage.", MESSAGE={})
)
mutants("exttasks-result-of-request", of=_Fails, revision=MODERN)(
    FailsWithAWord=has("Fails its tasks with an error without a code.", ERROR={"message": "full"})
)


class _Notifies(Hands):
    """Notifies subscribers of a task.

    Attributes:
        streams: the requests for subscriptions by task.
    """

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[str, Json] = {}

    def heard(self, line: bytes, message: Any) -> bytes | None:
        listens = isinstance(message, dict) and message.get("method") == "subscriptions/listen"
        wanted = params(message).get("notifications", {}) if listens else None
        if isinstance(wanted, dict) and "taskIds" in wanted and self.is_able(message):
            self.streams |= dict.fromkeys(wanted["taskIds"], message)
            self.notify(message, "subscriptions/acknowledged", {"notifications": wanted})
            return None
        return super().heard(line, message)

    def notify(self, stream: Json, name: str, content: Json) -> None:
        """Send a notification on a stream."""
        meta = {"io.modelcontextprotocol/subscriptionId": stream["id"]}
        body = {**content, "_meta": meta}
        self.emit({"jsonrpc": "2.0", "method": f"notifications/{name}", "params": body})

    def finish(self, request: Json, own: str) -> None:
        super().finish(request, own)
        if own in self.streams:
            self.more(self.streams[own])
            self.notify(self.streams[own], "tasks", self.shown(own))

    def more(self, stream: Json) -> None:
        """Send more on a stream."""


controls("exttasks-stream-kinds", of=_Notifies, revision=MODERN)(
    NotifiesOfTasks="Notifies subscribers of their tasks."
)
mutants(
    "exttasks-stream-kinds",
    "progress-token-known",
    "subscriptions-id-only-on-stream=warn",
    of=_Notifies,
    revision=MODERN,
)(
    LogsToSubscribersOfTasks=has(
        "Sends progress to subscribers of a task.",
        more=lambda self, stream: self.notify(
            stream, "progress", {"progressToken": 1, "progress": 1}
        ),
    )
)
mutants("exttasks-result-type", of=Hands, revision=MODERN)(
    AcknowledgesWithATask=has(
        "Writes the resultType of a new task into its acknowledgments.",
        acknowledge=lambda self, request, *_: self.answer(request, {"resultType": "task"}),
    )
)


@mutant("exttasks-iserror-completes", revision=MODERN)
class FailsTasksOfFailedTools(Hands):
    """Ends a task as failed if its tool result has isError, as in 2025-11-25."""

    def finish(self, request: Json, own: str) -> None:
        super().finish(request, own)
        task = self.tasks[own]
        if task["status"] == "completed" and task["result"].get("isError"):
            del task["result"]
            error = {"code": -32603, "message": "A word is needed"}
            task.update(status="failed", error=error, statusMessage="A word is needed")


@mutant("exttasks-acknowledges", revision=MODERN)
class RefusesToCancelTasks(Hands):
    """Refuses to cancel a task."""

    def acknowledge(self, request: Json, method: str) -> None:
        if method == "tasks/cancel":
            self.refuse(request, -32603, "Too late")
        else:
            super().acknowledge(request, method)

    def on_cancel(self, task: Json) -> None:
        """Go on."""


@mutant("exttasks-acknowledges", revision=MODERN, outcome="warn")
class AcknowledgesWithTheTask(Hands):
    """Answers tasks/cancel with the task."""

    def acknowledge(self, request: Json, method: str) -> None:
        self.answer(request, self.shown(params(request)["taskId"]) if "cancel" in method else {})


@mutant("exttasks-ignores-unknown-responses", revision=MODERN)
class RefusesUnknownResponses(Hands):
    """Refuses a response under a key that it did not issue."""

    def on_operation(self, request: Json, method: str) -> None:
        given = params(request).get("inputResponses", {})
        if method == "tasks/update" and self.is_able(request) and {*given} - {*ASKED}:
            self.refuse(request, -32602, "There is no such request")
        else:
            super().on_operation(request, method)


class _Knows(Hands):
    """Knows every task."""

    methods: ClassVar[tuple[str, ...]]

    def on_operation(self, request: Json, method: str) -> None:
        unknown = params(request).get("taskId") not in self.tasks
        if unknown and method in self.methods and self.is_able(request):
            self.refuse(request, -32603, "Internal error")
        else:
            super().on_operation(request, method)


mutants("exttasks-unknown-id-get", of=_Knows, revision=MODERN)(
    FailsOnAnUnknownHandle=has(
        "Answers tasks/get of an unknown task with another code.", methods=("tasks/get",)
    )
)
mutants("exttasks-unknown-id-others", of=_Knows, revision=MODERN)(
    FailsToCancelAnUnknownTask=has(
        "Answers tasks/cancel of an unknown task with another code.", methods=("tasks/cancel",)
    )
)


@mutant("exttasks-input-keys-unique", revision=MODERN)
class ChangesItsQuestionUnderAKey(Hands):
    """Changes its question under the same key."""

    looks = 0

    def shown(self, own: str) -> Json:
        found = super().shown(own)
        if "inputRequests" in found:
            self.looks += 1
            asked = ASKED["name"]
            about = {**asked["params"], "message": f"Who, the {self.looks}. time?"}
            found["inputRequests"] = {"name": {**asked, "params": about}}
        return found

    def on_operation(self, request: Json, method: str) -> None:
        known = params(request).get("taskId") in self.tasks and self.is_able(request)
        if known and method == "tasks/update" and self.looks < 2:
            self.acknowledge(request, method)
        else:
            super().on_operation(request, method)


@mutant("exttasks-terminal-final", revision=MODERN)
class CancelsACompletedHandle(Hands):
    """Shows a completed task as cancelled the second time."""

    over: ClassVar[set[str]] = set()

    def shown(self, own: str) -> Json:
        found = super().shown(own)
        if own in self.over:
            return {**found, "status": "cancelled"}
        if found["status"] == "completed":
            self.over.add(own)
        return found


mutants("exttasks-id-unguessable", of=Hands, revision=MODERN)(
    CountsItsHandles=has("Numbers its tasks.", new_id=lambda self: f"task-{len(self.tasks) + 1}")
)
