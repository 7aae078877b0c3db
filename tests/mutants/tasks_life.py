"""Servers that break a rule of basic/utilities/tasks: results, failures, cancellation, the list."""

import os
from typing import Any, ClassVar

from tests.mutants.kit import (
    Fault,
    Json,
    Out,
    control,
    drops,
    has,
    meta,
    mutant,
    mutants,
    on,
    params,
    puts,
    refusal,
)
from tests.mutants.tasks import is_task
from tests.mutants.tasks_states import RELATED, STATUS, Shows


class _Results(Fault):
    """Changes the results of tasks."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/result" and "result" in message:
            return self.on_result(message, params(request)["taskId"])
        return message  # type: ignore[no-any-return]

    def on_result(self, message: Json, task: str) -> Out:
        """Return what is written in its place."""
        raise NotImplementedError


@control("tasks-result-final")
class ChangesItsResultOverTime(Fault):
    """Adds a word to the result of each call after a task is over."""

    _over = False
    _wise: ClassVar[set[str]] = set()

    def said(self, message: Any, request: Json) -> Out:
        method, result = request.get("method"), message.get("result", {})
        if is_task(request) and self._over and "task" in result:
            self._wise.add(result["task"]["taskId"])
        own = params(request).get("taskId") in self._wise
        knows_more = self._over if method == "tools/call" else own
        self._over |= method == "tasks/result"
        if knows_more and "content" in result:
            result["content"].append({"type": "text", "text": "more"})
        return message  # type: ignore[no-any-return]


@control("tasks-result-final")
class WorksForMinutes(Fault):
    """Takes minutes for a call that it runs as a task at once."""

    def said(self, message: Any, request: Json) -> Out:
        lasts = "pause_ms" in params(request).get("arguments", {}) and not is_task(request)
        return None if lasts else message


mutants("tasks-result-final", of=_Results)(
    NeverReturnsAResult=has("Never answers tasks/result.", on_result=lambda *_: None)
)
mutants("tasks-result-related-meta", of=_Results)(
    OmitsTheTaskOfAResult=has(
        "Leaves the task out of the metadata of a result.",
        on_result=drops("result", "_meta", RELATED),
    )
)


class Watches(Fault):
    """Keeps track of the state of each task."""

    states: ClassVar[dict[str, str]] = {}

    def said(self, message: Any, request: Json) -> Out:
        state = message.get("params") if message.get("method") == STATUS else None
        if is_task(request) and "result" in message:
            state = message["result"]["task"]
        if state:
            self.states[state["taskId"]] = state["status"]
        return message  # type: ignore[no-any-return]

    def works(self, message: Any) -> bool:
        """Whether a message asks for the result of a task that is not over."""
        is_wanted = isinstance(message, dict) and message.get("method") == "tasks/result"
        return is_wanted and self.states.get(str(params(message).get("taskId"))) == "working"


mutants("tasks-result-blocks", of=Watches)(
    RefusesToWait=has(
        "Refuses tasks/result while the task works.",
        heard=lambda self, line, message: (
            self.refuse(message, -32602, "The task is not over yet")
            if self.works(message)
            else line
        ),
    )
)


@control("tasks-result-blocks")
class ShowsTheEndOfATaskLate(Shows):
    """Shows a task as working until a moment after its result, and sends no notifications."""

    given: ClassVar[set[str]] = set()
    over: ClassVar[set[str]] = set()

    def said(self, message: Any, request: Json) -> Out:
        if message.get("method") == STATUS:
            return None
        if request.get("method") == "tasks/result":
            self.given.add(params(request)["taskId"])
        return super().said(message, request)

    def on_state(self, method: str, state: Json) -> None:
        own = state["taskId"]
        if method == "tasks/get" and own in self.given and own not in self.over:
            state["status"] = "working"
        if state["status"] == "completed" or own in self.given:
            self.over.add(own)


@mutant("tasks-result-blocks", "tasks-result-of-cancelled-answered")
class DropsEarlyTasksResult(Watches):
    """Answers tasks/result only if the task was over when it came."""

    forgotten: ClassVar[set[Any]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            self.forgotten.add(message["id"])
        return line

    def said(self, message: Any, request: Json) -> Out:
        if "method" not in message and message.get("id") in self.forgotten:
            return None
        return super().said(message, request)


@mutant("tasks-result-blocks", outcome="warn")
class BlocksDuringTasksResult(Watches):
    """Answers no tasks/get while a tasks/result waits."""

    waiting: ClassVar[set[Any]] = set()
    queue: ClassVar[list[Json]] = []

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            self.waiting.add(message["id"])
        elif self.waiting and isinstance(message, dict) and message.get("method") == "tasks/get":
            self.queue.append(message)
            return None
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("id") in self.waiting:
            self.emit(message)
            self.waiting.discard(request["id"])
            while self.queue:
                self.pass_on(self.queue.pop(0))
            return None
        return super().said(message, request)


@mutant("tasks-terminal-final")
class ExitsWithAResult(Watches):
    """Answers tasks/result, and exits during the next tasks/get."""

    waiting: ClassVar[set[Any]] = set()
    last: Json | None = None

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            self.waiting.add(message["id"])
        elif self.last and isinstance(message, dict) and message.get("method") == "tasks/get":
            self.emit(self.last)
            os._exit(1)
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("id") in self.waiting:
            self.last = message
            return None
        return super().said(message, request)


mutants("tasks-failed-status-message", of=Shows)(
    OmitsTheReasonOfAFailure=has(
        "Gives no reason for a failed task.",
        on_state=lambda self, method, state: (
            state.pop("statusMessage", None) if state["status"] == "failed" else None
        ),
    )
)
mutants("tasks-iserror-means-failed", of=Shows)(
    CompletesFailedTasks=has(
        "Shows every task as completed, whatever its result.",
        on_state=lambda self, method, state: (
            state.update(status="completed") if state["status"] == "failed" else None
        ),
    )
)


class _Cancels(Fault):
    """Answers tasks/cancel in its own way; the task is cancelled nevertheless."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/cancel" and self.fits(message):
            return self.on_cancel(message, request)
        return message  # type: ignore[no-any-return]

    def fits(self, message: Json) -> bool:
        """Whether this answer is changed."""
        return "result" in message

    def on_cancel(self, message: Json, request: Json) -> Out:
        """Return what is written in its place."""
        raise NotImplementedError


class _CancelsAgain(_Cancels):
    """Handles the cancellation of a finished task in its own way."""

    def fits(self, message: Json) -> bool:
        return "already" in message.get("error", {}).get("message", "")


mutants("tasks-cancel-terminal-rejected", of=_CancelsAgain)(
    RefusesToCancelWithAnotherCode=has(
        "Refuses the cancellation of a finished task with another code.",
        on_cancel=puts("error", "code", -32600),
    )
)
mutants("tasks-cancel-transition", of=_Cancels)(
    AnswersCancelWithAWorkingTask=has(
        "Answers tasks/cancel with a working task.", on_cancel=puts("result", "status", "working")
    )
)


@mutant("tasks-cancel-transition")
class ShowsACancelledTaskAsWorking(Shows):
    """Shows a task that it has just cancelled as working, once."""

    cancelled: ClassVar[set[str]] = set()

    def on_state(self, method: str, state: Json) -> None:
        if method == "tasks/cancel":
            self.cancelled.add(state["taskId"])
        if method == "tasks/get" and state["taskId"] in self.cancelled:
            self.cancelled.discard(state["taskId"])
            state["status"] = "working"


mutants("tasks-cancel-transition", of=Fault)(
    RefusesToCancel=has(
        "Refuses to cancel any task.",
        heard=lambda self, line, message: (
            self.refuse(message, -32602, "The task cannot be cancelled, it is already under way")
            if isinstance(message, dict) and message.get("method") == "tasks/cancel"
            else line
        ),
    )
)


class _Lists(Fault):
    """Changes the list of tasks."""

    said = on("tasks/list", lambda self, result: self.on_list(result))

    def on_list(self, result: Json) -> None:
        """Change a page."""
        raise NotImplementedError


@mutant("tasks-list-consistent-with-get")
class OmitsTheNextPage(_Lists):
    """Returns the first two tasks as if there were no more."""

    def on_list(self, result: Json) -> None:
        del result["tasks"][2:]


@mutant("tasks-id-param-authoritative")
class ReadsTheTaskFromTheMetadata(Fault):
    """Takes the task of tasks/get from its metadata."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "tasks/get":
            related = meta(message).get(RELATED)
            if related:
                message["params"]["taskId"] = related["taskId"]
                self.pass_on(message)
                return None
        return line


mutants("tasks-id-param-authoritative", of=Fault)(
    RefusesAnotherTaskInTheMetadata=has(
        "Refuses tasks/get if its metadata names another task.",
        said=lambda self, message, request: (
            refusal(request, -32602, "Which of the two tasks?")
            if request.get("method") == "tasks/get" and RELATED in meta(request)
            else message
        ),
    )
)
