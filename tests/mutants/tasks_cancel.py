"""Servers that break a rule of basic/utilities/tasks: cancelled and expired tasks, their times."""

import time
from functools import partial
from typing import Any, ClassVar

from tests.mutants.kit import (
    LATE,
    Fault,
    Json,
    Out,
    controls,
    has,
    meta,
    mutant,
    mutants,
    params,
    refusal,
    taken_back,
)
from tests.mutants.tasks import is_task
from tests.mutants.tasks_asking import Augments, TaskThatAsks
from tests.mutants.tasks_states import Shows


@mutant("tasks-result-of-cancelled-answered")
class ForgetsWhoWaitsForACancelledTask(Fault):
    """Never answers a tasks/result that waited when the task was cancelled."""

    cancelled: ClassVar[set[Any]] = set()
    early: ClassVar[set[Any]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        own = params(message).get("taskId") if isinstance(message, dict) else None
        if own and message.get("method") == "tasks/cancel":
            self.cancelled.add(own)
        elif own and message.get("method") == "tasks/result" and own not in self.cancelled:
            self.early.add(message["id"])
        return line

    def said(self, message: Any, request: Json) -> Out:
        lost = request.get("id") in self.early and "error" in message
        return None if lost and "cancelled" in str(message["error"]) else message


class _Writes(TaskThatAsks):
    """Has a task that writes a file every twentieth of a second, for three seconds."""

    stops: ClassVar[bool]

    def begin(self, request: Json, own: str) -> None:
        end = time.monotonic() + 3.0  # no number of steps: those last longer on a busy machine
        while time.monotonic() < end:
            time.sleep(0.05)
            if self.stops and self.status[own] != "working":
                break
            if meta(request).get("progressToken") == "touchstone-cancelled-task":
                (self.root / "work.log").write_text(f"{end}\n", encoding="utf-8")
        self.finish(own)

    def on_cancelled(self, own: str) -> None:
        """Answer a tasks/result that waits."""
        for request in self.results.pop(own, []):
            self.refuse(request, -32602, "The task was cancelled")

    def heard(self, line: bytes, message: Any) -> bytes | None:
        own = str(params(message).get("taskId")) if isinstance(message, dict) else ""
        known = own in self.status
        if known and message["method"] == "tasks/result" and self.status[own] == "cancelled":
            self.refuse(message, -32602, "The task was cancelled")
            return None
        passed = super().heard(line, message)
        if known and message["method"] == "tasks/cancel":
            self.on_cancelled(own)
        return passed


mutants("tasks-cancel-stops-execution", of=_Writes)(
    WorksOnAfterTheCancellation=has(
        "Goes on writing a file after its task was cancelled.", stops=False
    )
)
controls("tasks-cancel-stops-execution", "tasks-result-of-cancelled-answered", of=_Writes)(
    StopsItsWork=has("Writes a file until its task is cancelled.", stops=True)
)


@mutant("tasks-not-cancelled-by-notification")
class CancelsTasksByNotification(Fault):
    """Cancels a task when the request that created it is cancelled."""

    made: ClassVar[dict[Any, str]] = {}

    def heard(self, line: bytes, message: Any) -> bytes | None:
        task = self.made.get(taken_back(message))
        if task is not None:
            cancel = {"method": "tasks/cancel", "params": {"taskId": task}}
            self.pass_on({"jsonrpc": "2.0", "id": f"own-{task}", **cancel})
        return line

    def said(self, message: Any, request: Json) -> Out:
        if is_task(request) and "task" in message.get("result", {}):
            self.made[request["id"]] = message["result"]["task"]["taskId"]
        return None if str(message.get("id")).startswith("own-") else message


@mutant("tasks-kept-for-ttl")
class ForgetsATaskOnceItsResultWasRead(Fault):
    """Deletes a task when its result has been read."""

    read: ClassVar[set[Any]] = set()

    def said(self, message: Any, request: Json) -> Out:
        own = params(request).get("taskId")
        if own in self.read:
            return refusal(request, -32602, "There is no such task")
        if request.get("method") == "tasks/result" and "result" in message:
            self.read.add(own)
        return message  # type: ignore[no-any-return]


@mutant("tasks-result-final")
class ReturnsItsResultOnce(Fault):
    """Refuses a second tasks/result, and still shows the task."""

    read: ClassVar[set[Any]] = set()

    def said(self, message: Any, request: Json) -> Out:
        own = params(request).get("taskId")
        if request.get("method") != "tasks/result" or "result" not in message:
            return message  # type: ignore[no-any-return]
        if own in self.read:
            return refusal(request, -32603, "The result was read before")
        self.read.add(own)
        return message  # type: ignore[no-any-return]


@mutant("tasks-iserror-means-failed")
class CompletesATaskThatEndsInAnError(Shows):
    """Shows a task as completed whose request ended in a JSON-RPC error."""

    def said(self, message: Any, request: Json) -> Out:
        failed = message.get("result", {}).get("isError") if "result" in message else False
        if request.get("method") == "tasks/result" and failed:
            return refusal(request, -32603, "Internal error")
        return super().said(message, request)

    def on_state(self, method: str, state: Json) -> None:
        if state["status"] == "failed":
            state["status"] = "completed"


@mutant("tasks-last-updated-at", outcome="warn")
class KeepsTheTimeOfTheFirstUpdate(Shows):
    """Shows the time of the creation as the last update of every status."""

    def on_state(self, method: str, state: Json) -> None:
        state["lastUpdatedAt"] = state["createdAt"]


mutants("tasks-last-updated-at", of=Shows, outcome="warn")(
    UpdatesATaskBeforeItsCreation=has(
        "Shows a last update before the creation.",
        on_state=lambda self, method, state: state.update(lastUpdatedAt="2020-01-02T03:04:05Z"),
    )
)


@mutant("tasks-create-result", outcome="note")
class GivesAnObjectToTheModel(Fault):
    """Gives an object as the immediate response for the model."""

    def said(self, message: Any, request: Json) -> Out:
        if is_task(request) and "task" in message.get("result", {}):
            shown = message["result"].setdefault("_meta", {})
            shown["io.modelcontextprotocol/model-immediate-response"] = {"text": "started"}
        return message  # type: ignore[no-any-return]


@mutant("tasks-related-meta-on-messages", outcome="note")
class NamesTheTaskAsText(Fault):
    """Writes the related task of a new task as a string."""

    def said(self, message: Any, request: Json) -> Out:
        if is_task(request) and "task" in message.get("result", {}):
            own = message["result"]["task"]["taskId"]
            message["result"]["_meta"] = {"io.modelcontextprotocol/related-task": own}
        return message  # type: ignore[no-any-return]


@mutant("tasks-operational-limits")
class KeepsTasksForTenYears(Shows):
    """Accepts any lifetime of a task."""

    wishes: ClassVar[dict[str, Any]] = {}

    def said(self, message: Any, request: Json) -> Out:
        if is_task(request) and "task" in message.get("result", {}):
            wish = params(request)["task"].get("ttl")
            self.wishes[message["result"]["task"]["taskId"]] = wish
        return super().said(message, request)

    def on_state(self, method: str, state: Json) -> None:
        state["ttl"] = self.wishes.get(state["taskId"]) or state["ttl"]


@mutant("tasks-operational-limits")
class KeepsExpiredTasks(Shows):
    """Reports a ttl of a tenth of a second as requested, and keeps the task for minutes."""

    short: ClassVar[set[str]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if is_task(message) and params(message)["task"].get("ttl") == 100:
            message["params"]["task"]["ttl"] = 60_000
            self.short.add(str(message["id"]))
            self.pass_on(message)
            return None
        return line

    def said(self, message: Any, request: Json) -> Out:
        if str(request.get("id")) in self.short and "task" in message.get("result", {}):
            self.short.add(message["result"]["task"]["taskId"])
        return super().said(message, request)

    def on_state(self, method: str, state: Json) -> None:
        if state["taskId"] in self.short:
            state["ttl"] = 100


controls("tasks-requestor-polling", "tasks-requestor-no-reliance-on-notifications", of=Augments)(
    FetchesResultsOfTheClient="Polls tasks of the client until they are over or need input."
)


@mutant("tasks-requestor-polling")
class PollsATaskThatNeedsInput(Augments):
    """Polls a task of the client until it is over, also if it needs input."""

    def on_answer(self, request: Json, message: Json) -> None:
        result = message.get("result", {})
        if result.get("status") == "input_required":
            self.later(0.05, lambda: self.poll(request, result["taskId"]))
        else:
            super().on_answer(request, message)


@mutant(
    "tasks-requestor-no-reliance-on-notifications",
    elsewhere=("elicitation-handles-refusal-legacy",),
)
class WaitsForTheNotification(Augments):
    """Fetches the result of a task of the client when it is notified, and never polls."""

    tasks: ClassVar[dict[str, Json]] = {}
    over: ClassVar[set[str]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "notifications/tasks/status":
            own = params(message)["taskId"]
            self.over.add(own)
            self.fetch(own)
            return None
        return super().heard(line, message)

    def on_answer(self, request: Json, message: Json) -> None:
        task = message.get("result", {}).get("task")
        if task:
            self.tasks[task["taskId"]] = request
            self.fetch(task["taskId"])
        else:
            super().on_answer(request, message)

    def fetch(self, own: str) -> None:
        """Fetch the result of a task that is known to be over."""
        if own in self.over and own in self.tasks:
            self.ask(self.tasks.pop(own), "tasks/result", {"taskId": own})


mutants("tasks-requestor-no-reliance-on-notifications", of=WaitsForTheNotification)(
    WaitsForTheNotificationAndAsksLate=has(
        "Sends its request late, as a busy server may, and never polls.",
        on_ask=lambda self, request: self.later(
            LATE, partial(WaitsForTheNotification.on_ask, self, request)
        ),
    )
)
