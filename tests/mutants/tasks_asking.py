"""Servers whose tasks ask the client something, and that make tasks of what they ask."""

import time
from typing import Any, ClassVar

from tests.mutants.asking import elicits, fills_in
from tests.mutants.kit import AskingTool, Json, Out, control, controls, has, mutant, mutants, params
from tests.mutants.tasks_states import RELATED

FORM: Json = {
    "message": "Shall it go on?",
    "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
}
BORN = "2026-01-02T03:04:05Z"
DONE: Json = {"content": [{"type": "text", "text": "asked and answered"}]}


class TaskThatAsks(AskingTool, TOOL={**AskingTool.TOOL, "execution": {"taskSupport": "optional"}}):
    """Has a tool that sends a request to a capable client when it is called as a task.

    Attributes:
        status: the state of each task.
        results: requests that wait for the result of a task.
    """

    status: ClassVar[dict[str, str]] = {}
    results: ClassVar[dict[str, list[Json]]] = {}

    def on_ask(self, request: Json) -> None:
        if "task" not in params(request):
            self.answer(request, DONE)
            return
        own = f"{len(self.status)}-{time.time_ns() ** 3:x}"
        self.status[own] = "working"
        self.answer(request, {"task": self.shown(own)})
        self.later(0.1, lambda: self.begin(request, own))

    def heard(self, line: bytes, message: Any) -> bytes | None:
        own = params(message).get("taskId") if isinstance(message, dict) else None
        if not isinstance(own, str) or own not in self.status:
            return super().heard(line, message)
        if message["method"] == "tasks/result":
            self.on_wanted(own)
            if self.status[own] == "completed":
                self.give(message, own)
            else:
                self.results.setdefault(own, []).append(message)
        elif message["method"] == "tasks/cancel" and self.status[own] == "completed":
            self.refuse(message, -32602, "The task is over")
        else:
            if message["method"] == "tasks/cancel":
                self.status[own] = "cancelled"
            self.answer(message, self.shown(own))
        return None

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/list" and "result" in message:
            message["result"]["tasks"] += [self.shown(own) for own in self.status]
        return super().said(message, request)

    def shown(self, own: str) -> Json:
        """Return the task object."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        times = {"createdAt": BORN, "lastUpdatedAt": now, "ttl": None, "pollInterval": 50}
        return {"taskId": own, "status": self.status[own], **times}

    def give(self, request: Json, own: str) -> None:
        """Answer tasks/result."""
        self.answer(request, {**DONE, "_meta": {RELATED: {"taskId": own}}})

    def begin(self, request: Json, own: str) -> None:
        """Do what the task does."""
        if not elicits(self.client, "form"):
            self.finish(own)
            return
        self.status[own] = self.waits(own)
        self.pose(request, own)

    def pose(self, request: Json, own: str) -> None:
        """Ask what there is to ask."""
        about = {**FORM, "_meta": self.related(own)}
        self.ask({**request, "own": own}, "elicitation/create", about)

    def waits(self, own: str) -> str:
        """Return the state of a task that waits for an answer."""
        return "input_required"

    def related(self, own: str) -> Json:
        """Return the metadata of a question."""
        return {RELATED: {"taskId": own}}

    def on_wanted(self, own: str) -> None:
        """Handle that somebody wants the result."""

    def on_answer(self, request: Json, message: Json) -> None:
        self.finish(request["own"])

    def finish(self, own: str) -> None:
        """End a task."""
        if self.status[own] != "cancelled":
            self.status[own] = "completed"
        for request in self.results.pop(own, []):
            self.give(request, own)


controls(
    "tasks-input-required-status",
    "tasks-leaves-input-required",
    "tasks-related-meta-on-requests",
    of=TaskThatAsks,
)(AsksInATask="Sends a request in a task, with the right state.")


@control(
    "tasks-input-required-status", "tasks-leaves-input-required", "tasks-related-meta-on-requests"
)
class AsksAfterTasksResult(TaskThatAsks):
    """Sends a request in a task only after tasks/result."""

    posed: ClassVar[dict[str, Json]] = {}

    def pose(self, request: Json, own: str) -> None:
        self.posed[own] = request

    def on_wanted(self, own: str) -> None:
        if own in self.posed:
            super().pose(self.posed.pop(own), own)


mutants("tasks-input-required-status", of=TaskThatAsks)(
    IsWorkingWhileItAsks=has(
        "Shows a task that waits for the client as working.",
        waits=lambda self, own: self.status[own],
    )
)


@mutant("tasks-leaves-input-required")
class StaysInInputRequired(TaskThatAsks):
    """Shows a task as input_required after the answer."""

    def on_answer(self, request: Json, message: Json) -> None:
        """The answer is not looked at."""


mutants("tasks-related-meta-on-requests", of=TaskThatAsks)(
    AsksWithoutTheTask=has(
        "Sends a request in a task without naming the task.", related=lambda *_: {}
    )
)


class Augments(AskingTool):
    """Sends a request to the client on a call, as a task if it can, and polls the task."""

    interval: ClassVar[float] = 1.0

    polled: ClassVar[dict[str, Json]] = {}

    def on_ask(self, request: Json) -> None:
        if elicits(self.client, "form"):
            self.ask(request, "elicitation/create", {**FORM, **self.augmentation()})
        else:
            super().on_ask(request)

    def augmentation(self) -> Json:
        """Return what makes a task of a request, where the client can."""
        requests = self.client.get("tasks", {}).get("requests", {})
        return {"task": {"ttl": 60_000}} if "elicitation" in requests else {}

    def on_answer(self, request: Json, message: Json) -> None:
        result = message.get("result", {})
        state = result.get("task") or result
        if state.get("status") == "working":
            pause = self.interval * state["pollInterval"] / 1000
            self.later(pause, lambda: self.poll(request, state["taskId"]))
        elif "status" in state:
            self.ask(request, "tasks/result", {"taskId": state["taskId"]})
        elif fills_in(result, FORM):
            super().on_answer(request, message)
        else:
            self.answer(request, {**DONE, "isError": True})

    def poll(self, request: Json, task: str) -> None:
        """Look at a task of the client."""
        self.ask(request, "tasks/get", {"taskId": task})


controls("tasks-no-undeclared-augmentation", "tasks-requestor-poll-interval", of=Augments)(
    RespectsThePollInterval="Requests tasks if it may, and polls them at the pace of the client."
)
mutants("tasks-requestor-poll-interval", of=Augments)(
    PollsTooFast=has(
        "Polls tasks of the client ten times as fast as pollInterval allows.", interval=0.1
    )
)
mutants("tasks-no-undeclared-augmentation", of=Augments)(
    RequestsTasksOfAnyClient=has(
        "Requests tasks of clients with or without tasks.",
        augmentation=lambda *_: {"task": {"ttl": 60_000}},
    )
)
