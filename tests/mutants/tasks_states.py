"""Servers that break a rule of basic/utilities/tasks: how tasks show."""

import json
import time
from typing import Any, ClassVar

from tests.mutants.kit import (
    Fault,
    Json,
    Out,
    drops,
    encode,
    has,
    mutant,
    mutants,
    on,
    params,
    puts,
)
from tests.mutants.tasks import is_task

RELATED = "io.modelcontextprotocol/related-task"
STATUS = "notifications/tasks/status"
TERMINAL = ("completed", "failed", "cancelled")


def progresses(message: Any) -> bool:
    """Whether a message is the progress of a task."""
    is_progress = message.get("method") == "notifications/progress"
    return is_progress and RELATED in message["params"].get("_meta", {})


class Shows(Fault):
    """Changes the tasks in its messages; ``on_state`` changes one."""

    def said(self, message: Any, request: Json) -> Out:
        method = request.get("method") or message.get("method")
        result = message.get("result", {})
        if method == STATUS:
            self.on_state(method, message["params"])
        elif is_task(request) and isinstance(result.get("task"), dict):
            self.on_state("tools/call", result["task"])
        elif method in {"tasks/get", "tasks/cancel"} and result:
            self.on_state(method, result)
        elif method == "tasks/list":
            for state in result.get("tasks", []):
                self.on_state(method, state)
        return message  # type: ignore[no-any-return]

    def on_state(self, method: str, state: Json) -> None:
        """Change one state, shown in the answer to a method or in a notification."""


@mutant("tasks-create-result")
class GivesOnlyTheIdOfATask(Fault):
    """Returns only the id of the task."""

    def said(self, message: Any, request: Json) -> Out:
        if is_task(request) and "result" in message:
            message["result"]["task"] = message["result"]["task"]["taskId"]
        return None if message.get("method") == STATUS or progresses(message) else message


mutants("tasks-task-shape", of=Shows)(
    InventsATaskState=has(
        "Uses a state of its own for working, in lists.",
        on_state=lambda self, method, state: (
            state.update(status="running") if method == "tasks/list" else None
        ),
    ),
    WritesANullStatusMessage=has(
        "Writes the missing statusMessage of a created task as null.",
        on_state=lambda self, method, state: (
            state.setdefault("statusMessage", None) if method == "tools/call" else None
        ),
    ),
)


@mutant("tasks-task-shape", outcome="warn")
class GivesAFractionalTaskTtl(Shows):
    """Gives a fractional ttl."""

    def on_state(self, method: str, state: Json) -> None:
        if method != STATUS:
            state["ttl"] += 0.5


class Renames(Fault):
    """Gives tasks other ids; ``name`` makes them."""

    own: ClassVar[dict[str, str]] = {}
    real: ClassVar[dict[str, str]] = {}

    def said(self, message: Any, request: Json) -> Out:
        result = message.get("result", {})
        if is_task(request) and isinstance(result.get("task"), dict):
            real = result["task"]["taskId"]
            self.own[real] = self.name(len(self.own), request)
            self.real[self.own[real]] = real
        text = json.dumps(message)
        for real, own in list(self.own.items()):
            text = text.replace(real, own)
        return json.loads(text)  # type: ignore[no-any-return]

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and str(message.get("method")).startswith("tasks/"):
            named = params(message).get("taskId")
            if named in self.real:
                message["params"]["taskId"] = self.real[named]
                return encode(message).rstrip(b"\n")
        return line

    def name(self, number: int, request: Json) -> str:
        """Make the id of a task: how many there were before, the request that asks for it."""
        raise NotImplementedError


@mutant("tasks-id-server-generated")
class TakesIdsFromTheClient(Renames):
    """Takes the id of a task from the request."""

    def name(self, number: int, request: Json) -> str:
        wish = params(request)["task"].get("taskId")
        return wish if isinstance(wish, str) else f"{number}-{time.time_ns() ** 3:x}"


mutants("tasks-id-unique", of=Renames)(
    HasOneIdForAllTasks=has(
        "Gives all tasks the same id, and reports no progress.",
        said=lambda self, message, request: (
            None if progresses(message) else Renames.said(self, message, request)
        ),
        name=lambda self, number, request: "the-task-of-this-server",
    )
)


@mutant("tasks-id-unique")
class ListsAnotherTaskUnderTheSameId(Fault):
    """Lists two tasks with the same id."""

    def said(self, message: Any, request: Json) -> Out:
        listed = message.get("result", {}).get("tasks") if isinstance(message, dict) else None
        if request.get("method") == "tasks/list" and listed:
            listed.append({**listed[0], "createdAt": "2020-01-02T03:04:05Z"})
        return message  # type: ignore[no-any-return]


mutants("tasks-id-unguessable", of=Renames)(
    GivesTimesAsTaskIds=has(
        "Uses the creation time in milliseconds as the id of a task.",
        name=lambda self, number, *_: str(int(time.time() * 1000) + number),
    )
)


class _Holds(Fault):
    """Answers a call as a task only when the task is over."""

    notifies: ClassVar[bool]

    held: ClassVar[dict[str, Json]] = {}

    def said(self, message: Any, request: Json) -> Out:
        result = message.get("result", {})
        if is_task(request) and isinstance(result.get("task"), dict):
            self.held[result["task"]["taskId"]] = message
            return None
        if message.get("method") == STATUS and message["params"]["status"] in TERMINAL:
            created = self.held.pop(message["params"]["taskId"], None)
            if created is not None:
                self.release(created, message)
                return None
        return message  # type: ignore[no-any-return]

    def release(self, created: Json, status: Json) -> None:
        """Report a task that is over: the answer that was held, and what was to notify of it."""
        raise NotImplementedError


@mutant("tasks-initial-status", outcome="warn")
class AnswersWithACompletedTask(_Holds):
    """Works before it answers with the task, which is completed then."""

    def release(self, created: Json, status: Json) -> None:
        created["result"]["task"] = status["params"]
        self.emit(created)


@mutant("tasks-create-result-prompt")
class AnswersAfterTheEndOfATask(_Holds):
    """Answers with a working task after the notification that it is completed."""

    def release(self, created: Json, status: Json) -> None:
        self.emit(status)
        self.emit(created)


mutants("tasks-create-result-prompt", of=_Holds)(
    AnswersLateWithAWorkingTask=has(
        "Works before it answers with the task, and shows it as working.",
        release=lambda self, created, *_: self.emit(created),
    )
)
mutants("tasks-initial-status", of=Shows)(
    BeginsWithInputRequired=has(
        "Shows a new task as input_required without reason.",
        on_state=lambda self, method, state: (
            state.update(status="input_required") if method == "tools/call" else None
        ),
    )
)


@mutant("tasks-terminal-final")
class CompletesACancelledTask(Shows):
    """Shows a cancelled task as completed at its natural end."""

    cancelled: ClassVar[dict[str, float]] = {}

    def on_state(self, method: str, state: Json) -> None:
        if method == "tasks/cancel":
            self.cancelled[state["taskId"]] = time.monotonic()
        passed = time.monotonic() - self.cancelled.get(state["taskId"], time.monotonic())
        if method == "tasks/get" and passed > 1.0:
            state["status"] = "completed"


@mutant("tasks-terminal-final")
class RestartsAFailedTask(Shows):
    """Shows a failed task as working again."""

    failed: ClassVar[set[str]] = set()

    def on_state(self, method: str, state: Json) -> None:
        if method == "tasks/get" and state["status"] == "failed":
            if state["taskId"] in self.failed:
                state["status"] = "working"
            self.failed.add(state["taskId"])


@mutant("tasks-terminal-final", outcome="warn")
class NotifiesOfAnEarlierState(Fault):
    """Announces a task as working after the answer that it was cancelled."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/cancel" and "result" in message:
            self.emit(message)
            state = {**message["result"], "status": "working"}
            return {"jsonrpc": "2.0", "method": STATUS, "params": state}
        return message  # type: ignore[no-any-return]


mutants("tasks-created-at", of=Shows)(
    WritesCreatedAtInWords=has(
        "Writes createdAt in words.",
        on_state=lambda self, method, state: state.update(createdAt="a moment ago"),
    ),
    ChangesCreatedAt=has(
        "Writes the time of the last update as createdAt.",
        on_state=lambda self, method, state: state.update(createdAt=state["lastUpdatedAt"]),
    ),
)


@mutant("tasks-created-at", outcome="warn")
class OmitsTheTimeZone(Shows):
    """Leaves the UTC offset out of createdAt."""

    def on_state(self, method: str, state: Json) -> None:
        state["createdAt"] = state["createdAt"].removesuffix("Z")


mutants("tasks-last-updated-at", of=Shows)(
    WritesLastUpdatedAtAsSeconds=has(
        "Writes lastUpdatedAt as seconds since 1970, as text.",
        on_state=lambda self, method, state: state.update(lastUpdatedAt=f"{time.time():.3f}"),
    )
)


@mutant("tasks-last-updated-at", outcome="warn")
class DecreasesLastUpdatedAt(Shows):
    """Shows an earlier lastUpdatedAt at each tasks/get."""

    looks = 0

    def on_state(self, method: str, state: Json) -> None:
        self.looks = min(self.looks + 1, 3599)
        minute, second = divmod(3599 - self.looks, 60)
        state["lastUpdatedAt"] = f"2026-01-02T03:{minute:02}:{second:02}.000Z"


@mutant("tasks-status-notification-shape")
class NotifiesOfPartOfATask(Shows):
    """Announces only the id and state of a task."""

    def on_state(self, method: str, state: Json) -> None:
        if method == STATUS:
            for member in {*state} - {"taskId", "status"}:
                del state[member]


mutants("tasks-status-notification-shape", of=Shows, outcome="warn")(
    NotifiesOfAnotherTask=has(
        "Announces an unknown task.",
        on_state=lambda self, method, state: (
            state.update(taskId="nobody-s-" + state["taskId"]) if method == STATUS else None
        ),
    )
)


@mutant("tasks-status-notification-no-related-meta")
class NamesTheTaskInANotification(Shows):
    """Names the task in the metadata of a notification too."""

    def on_state(self, method: str, state: Json) -> None:
        if method == STATUS:
            state["_meta"] = {RELATED: {"taskId": state["taskId"]}}


@mutant("tasks-no-related-meta-in-get-list-cancel")
class NamesTheTaskInTasksGet(Shows):
    """Names the task in the metadata of tasks/get too."""

    def on_state(self, method: str, state: Json) -> None:
        if method == "tasks/get":
            state["_meta"] = {RELATED: {"taskId": state["taskId"]}}


mutants("tasks-no-related-meta-in-get-list-cancel", of=Fault)(
    NamesATaskInTheList=has(
        "Names a task in the metadata of the list.",
        said=on("tasks/list", puts("_meta", {RELATED: {"taskId": "one"}})),
    )
)


class _Progress(Fault):
    """Changes the metadata of the progress of tasks."""

    def said(self, message: Any, request: Json) -> Out:
        if progresses(message):
            self.on_meta(message["params"]["_meta"])
        return message  # type: ignore[no-any-return]

    def on_meta(self, meta: Json) -> None:
        """Change it."""
        raise NotImplementedError


mutants("tasks-related-meta-on-messages", of=_Progress)(
    NamesAnotherTaskInProgress=has(
        "Names another task in the progress of a task.", on_meta=puts(RELATED, "taskId", "another")
    )
)
mutants("tasks-related-meta-on-messages", of=_Progress, outcome="warn")(
    NamesNoTaskInProgress=has("Names no task in the progress of a task.", on_meta=drops(RELATED))
)
