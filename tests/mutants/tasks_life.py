"""Servers that break a rule of basic/utilities/tasks: results, failures, cancellation, the list."""

import os
from typing import Any

from tests.mutants.kit import Fault, Json, Out, control, meta, mutant, params, refusal
from tests.mutants.tasks import is_task
from tests.mutants.tasks_states import RELATED, STATUS, Shows

# --- results


class _Results(Fault):
    """Changes the results of tasks."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/result" and "result" in message:
            return self.on_result(message, params(request)["taskId"])
        return message  # type: ignore[no-any-return]

    def on_result(self, message: Json, task: str) -> Out:
        """Give what is written in its place."""
        raise NotImplementedError


@control("tasks-result-final")
class LearnsWhileItWorks(Fault):
    """Says a word more in every call that begins after a task is over."""

    def __init__(self) -> None:
        super().__init__()
        self._over = False
        self._wise: set[str] = set()

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


@mutant("tasks-result-final")
class ResultsInATask(_Results):
    """Gives the task again in place of its result."""

    def on_result(self, message: Json, task: str) -> Out:
        body = message["result"]
        message["result"] = {"taskId": task, "status": "completed", "_meta": body["_meta"]}
        return message


@mutant("tasks-result-final")
class ResultsInAnotherThing(_Results):
    """Gives a summary in place of what the call would have given."""

    def on_result(self, message: Json, task: str) -> Out:
        message["result"]["content"] = [{"type": "text", "text": "All done."}]
        return message


@mutant("tasks-result-final")
class ResultsInNothing(_Results):
    """Never answers tasks/result."""

    def on_result(self, message: Json, task: str) -> Out:
        return None


@mutant("tasks-result-related-meta")
class ResultsInNoParticularTask(_Results):
    """Does not say whose result it is."""

    def on_result(self, message: Json, task: str) -> Out:
        del message["result"]["_meta"][RELATED]
        return message


@mutant("tasks-result-related-meta")
class ResultsInAnotherTask(_Results):
    """Says that it is the result of another task."""

    def on_result(self, message: Json, task: str) -> Out:
        message["result"]["_meta"][RELATED] = {"taskId": task[::-1]}
        return message


class Watches(Fault):
    """Knows in which state each task is."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, str] = {}

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


@mutant("tasks-result-blocks")
class RefusesToWait(Watches):
    """Refuses tasks/result while the task works."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            self.refuse(message, -32602, "The task is not over yet")
            return None
        return line


@mutant("tasks-result-blocks")
class GivesAResultTooEarly(Watches):
    """Gives an empty result while the task works."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            related = {RELATED: {"taskId": params(message)["taskId"]}}
            self.answer(message, {"content": [], "_meta": related})
            return None
        return line


@mutant("tasks-result-blocks")
class ForgetsWhoWaits(Watches):
    """Answers tasks/result only if the task was over when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: set[Any] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            self.forgotten.add(message["id"])
        return line

    def said(self, message: Any, request: Json) -> Out:
        if "method" not in message and message.get("id") in self.forgotten:
            return None
        return super().said(message, request)


@mutant("tasks-result-blocks", outcome="warn")
class WaitsAndDoesNothingElse(Watches):
    """Answers no tasks/get while somebody waits for a result."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: set[Any] = set()
        self.queue: list[Json] = []

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            self.waiting.add(message["id"])
        elif self.waiting and isinstance(message, dict) and message.get("method") == "tasks/get":
            self.queue.append(message)
            return None
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("id") in self.waiting:
            self.tell(message)
            self.waiting.discard(request["id"])
            queue, self.queue = self.queue, []
            for one in queue:
                self.pass_on(one)
            return None
        return super().said(message, request)


@mutant("tasks-terminal-final")
class LeavesWithAResult(Watches):
    """Gives the result it was asked for, and leaves while somebody asks once more how it goes."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: set[Any] = set()
        self.last: Json | None = None

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.works(message):
            self.waiting.add(message["id"])
        elif self.last and isinstance(message, dict) and message.get("method") == "tasks/get":
            self.tell(self.last)
            os._exit(1)
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("id") in self.waiting:
            self.last = message
            return None
        return super().said(message, request)


# --- failures


@mutant("tasks-failed-status-message")
class FailsWithoutAWord(Shows):
    """Does not say why a task has failed."""

    def on_state(self, method: str, state: Json) -> None:
        if state["status"] == "failed":
            state.pop("statusMessage", None)


@mutant("tasks-failed-status-message")
class FailsWithAnEmptyWord(Shows):
    """Has an empty text to say why a task has failed."""

    def on_state(self, method: str, state: Json) -> None:
        if state["status"] == "failed":
            state["statusMessage"] = ""


@mutant("tasks-iserror-means-failed")
class CompletesWhatFails(Shows):
    """Says of a task that it is completed, whatever its result."""

    def on_state(self, method: str, state: Json) -> None:
        if state["status"] == "failed":
            state["status"] = "completed"


# --- cancellation


class _Cancels(Fault):
    """Answers tasks/cancel by itself; the task is cancelled all the same."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/cancel" and self.fits(message):
            return self.on_cancel(message, request)
        return message  # type: ignore[no-any-return]

    def fits(self, message: Json) -> bool:
        """Whether this answer is changed."""
        return "result" in message

    def on_cancel(self, message: Json, request: Json) -> Out:
        """Give what is written in its place."""
        raise NotImplementedError


class _CancelsAgain(_Cancels):
    """Treats the cancellation of what is over in its own way."""

    def fits(self, message: Json) -> bool:
        return "already" in message.get("error", {}).get("message", "")


@mutant("tasks-cancel-terminal-rejected")
class CancelsWhatIsOver(_CancelsAgain):
    """Answers the cancellation of a task that is over with the task."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, Json] = {}

    def said(self, message: Any, request: Json) -> Out:
        if message.get("method") == STATUS:
            self.states[message["params"]["taskId"]] = message["params"]
        return super().said(message, request)

    def on_cancel(self, message: Json, request: Json) -> Out:
        self.answer(request, self.states[params(request)["taskId"]])
        return None


@mutant("tasks-cancel-terminal-rejected")
class FindsItInvalidToCancelWhatIsOver(_CancelsAgain):
    """Has another code for the cancellation of a task that is over."""

    def on_cancel(self, message: Json, request: Json) -> Out:
        message["error"]["code"] = -32600
        return message


@mutant("tasks-cancel-transition")
class WillCancelSoon(_Cancels):
    """Answers tasks/cancel with a task that still works."""

    def on_cancel(self, message: Json, request: Json) -> Out:
        message["result"]["status"] = "working"
        return message


@mutant("tasks-cancel-transition")
class CancelsOnlySoTheySay(Shows):
    """Says of a task it has just cancelled that it works, once."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled: set[str] = set()

    def on_state(self, method: str, state: Json) -> None:
        if method == "tasks/cancel":
            self.cancelled.add(state["taskId"])
        if method == "tasks/get" and state["taskId"] in self.cancelled:
            self.cancelled.discard(state["taskId"])
            state["status"] = "working"


@mutant("tasks-cancel-transition")
class RefusesToCancelWhatWorks(Fault):
    """Refuses to cancel any task, and lets it work."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "tasks/cancel":
            self.refuse(message, -32602, "The task cannot be cancelled, it is already under way")
            return None
        return line


# --- the list, and who is meant


class _Lists(Fault):
    """Changes the list of tasks."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/list" and "result" in message:
            self.on_list(message["result"])
        return message  # type: ignore[no-any-return]

    def on_list(self, result: Json) -> None:
        """Change a page."""
        raise NotImplementedError


@mutant("tasks-list-consistent-with-get")
class ForgetsTheNextPage(_Lists):
    """Gives the first two tasks as if there were no more."""

    def on_list(self, result: Json) -> None:
        del result["tasks"][2:]


@mutant("tasks-list-consistent-with-get")
class ListsAllButTheLast(_Lists):
    """Does not list the newest task."""

    def on_list(self, result: Json) -> None:
        del result["tasks"][-1:]


@mutant("tasks-id-param-authoritative")
class LooksForTheTaskInTheMetadata(Fault):
    """Takes the task that tasks/get is about from its metadata."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "tasks/get":
            related = meta(message).get(RELATED)
            if related:
                message["params"]["taskId"] = related["taskId"]
                self.pass_on(message)
                return None
        return line


@mutant("tasks-id-param-authoritative")
class RefusesTwoTasksAtOnce(Fault):
    """Refuses tasks/get whose metadata names another task."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tasks/get" and RELATED in meta(request):
            return refusal(request, -32602, "Which of the two tasks?")
        return message  # type: ignore[no-any-return]
