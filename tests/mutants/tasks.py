"""Servers that break a rule of basic/utilities/tasks: what may be a task, and what is refused."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    Fault,
    Json,
    Out,
    control,
    controls,
    has,
    mutant,
    mutants,
    params,
    puts,
)

DIGEST = "workspace_digest"


def declared(message: Any, request: Json) -> Json:
    """Return the tasks capability out of the answer to a handshake; empty for any other message."""
    if request.get("method") != "initialize" or "result" not in message:
        return {}
    found = message["result"]["capabilities"].get("tasks")
    return found if isinstance(found, dict) else {}


def tools(message: Any, request: Json) -> list[Json]:
    """Return the tools of a list that knows of tasks; none of any other message."""
    if request.get("method") != "tools/list" or "result" not in message:
        return []
    listed: list[Json] = message["result"]["tools"]
    return listed if any("execution" in tool for tool in listed) else []


def is_task(message: Any) -> bool:
    """Whether a message of the client calls a tool as a task."""
    is_call = isinstance(message, dict) and message.get("method") == "tools/call"
    return is_call and "task" in params(message)


class Lacks(Fault):
    """Lacks some methods of tasks."""

    methods: ClassVar[tuple[str, ...]] = ()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") in self.methods:
            self.refuse(message, -32601, "Method not found")
            return None
        return line


@mutant("tasks-capability-shape")
class DeclaresTheListAsText(Lacks, methods=("tasks/list",)):
    """Declares tasks.list with a string, and has no tasks/list."""

    def said(self, message: Any, request: Json) -> Out:
        if declared(message, request):
            declared(message, request)["list"] = "paginated"
        return message  # type: ignore[no-any-return]


@mutant("tasks-capability-shape", outcome="warn")
class DeclaresTheListWithTrue(Fault):
    """Declares tasks.list as a boolean."""

    def said(self, message: Any, request: Json) -> Out:
        if declared(message, request):
            declared(message, request)["list"] = True
        return message  # type: ignore[no-any-return]


@mutant("tasks-tool-support-values")
class WritesExecutionAsText(Fault):
    """Writes execution as a string."""

    def said(self, message: Any, request: Json) -> Out:
        for tool in tools(message, request)[:1]:
            tool["execution"] = "forbidden"
        return message  # type: ignore[no-any-return]


@mutant("tasks-ignored-when-undeclared")
class RefusesPingsWithATask(Fault):
    """Refuses a ping with a task member."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        is_ping = isinstance(message, dict) and message.get("method") == "ping"
        if is_ping and "task" in params(message):
            self.refuse(message, -32602, "A ping cannot be a task")
            return None
        return line


class _Undeclared(Fault):
    """Does not declare tasks."""

    def said(self, message: Any, request: Json) -> Out:
        if declared(message, request):
            del message["result"]["capabilities"]["tasks"]
        if message.get("method") == "notifications/tasks/status":
            return None
        return message  # type: ignore[no-any-return]


mutants("tasks-ignored-when-undeclared", of=_Undeclared)(
    RefusesUndeclaredTasks="Declares no tasks, and refuses a call with a task member."
)


@mutant("tasks-ignored-when-undeclared")
class MakesUndeclaredTasks(_Undeclared):
    """Declares no tasks, and makes a task of every call with a task member."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if is_task(message):
            call = {**params(message), "name": DIGEST, "arguments": {}}
            self.pass_on({**message, "params": call})
            return None
        return line


@mutant("tasks-forbidden-tool-error")
class RefusesATaskWithAnotherCode(Fault):
    """Refuses to run a tool without task support as a task with -32602."""

    def said(self, message: Any, request: Json) -> Out:
        if is_task(request) and message.get("error", {}).get("code") == -32601:
            message["error"]["code"] = -32602
        return message  # type: ignore[no-any-return]


class _Requires(Fault):
    """Runs a tool only as a task, in sessions with tasks."""

    requires = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        is_call = isinstance(message, dict) and message.get("method") == "tools/call"
        if not is_call or params(message).get("name") != DIGEST or "task" in params(message):
            return line
        return self.on_plain(line, message) if self.requires else line

    def said(self, message: Any, request: Json) -> Out:
        for tool in tools(message, request):
            if tool["name"] == DIGEST:
                tool["execution"]["taskSupport"] = "required"
                self.requires = True
        return message  # type: ignore[no-any-return]

    def on_plain(self, line: bytes, message: Json) -> bytes | None:
        """Handle a call that is no task."""
        self.refuse(message, -32601, "This tool can only be called as a task")
        return None


controls("tasks-required-tool-error", "tasks-create-result", "tasks-result-final", of=_Requires)(
    RequiresATask="Has a tool that requires a task, and declares that."
)
mutants("tasks-required-tool-error", of=_Requires)(
    RunsATaskOnlyToolPlainly=has(
        "Has a tool that requires a task, and runs it without.",
        on_plain=lambda self, line, *_: line,
    )
)


@mutant("tasks-required-tool-error", outcome="warn")
class RefusesAPlainCallAsInvalid(_Requires):
    """Refuses the plain call of a tool that requires a task with -32600."""

    def on_plain(self, line: bytes, message: Json) -> bytes | None:
        self.refuse(message, -32600, "Task augmentation required for tools/call requests")
        return None


mutants("tasks-declared-operations-work", of=Lacks)(
    DeclaresAMissingList=has("Declares tasks.list and has no tasks/list.", methods=("tasks/list",)),
    DeclaresAMissingCancel=has(
        "Declares tasks.cancel and has no tasks/cancel.", methods=("tasks/cancel",)
    ),
    HasNoResultsOfTasks=has("Makes tasks and has no tasks/result.", methods=("tasks/result",)),
)


@control("tasks-declared-operations-work")
class DeclaresNoTaskAtAll(Lacks, methods=("tasks/get", "tasks/result")):
    """Declares an empty tasks.requests, makes no tasks, and has no tasks/get and tasks/result."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and "task" in params(message):
            del message["params"]["task"]
            self.pass_on(message)
            return None
        return super().heard(line, message)

    def said(self, message: Any, request: Json) -> Out:
        if "requests" in declared(message, request):
            declared(message, request)["requests"] = {}
        for tool in tools(message, request):
            tool.pop("execution", None)
        return super().said(message, request)


@mutant("tasks-declared-operations-work", outcome="warn")
class ListsTasksUndeclared(Fault):
    """Has tasks/list without declaring tasks.list."""

    def said(self, message: Any, request: Json) -> Out:
        declared(message, request).pop("list", None)
        return message  # type: ignore[no-any-return]


class _Strangers(Fault):
    """Handles unknown task ids in its own way."""

    method: ClassVar[str]

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == self.method and message.get("error", {}).get("code") == -32602:
            return self.on_stranger(message, request)
        return message  # type: ignore[no-any-return]

    def on_stranger(self, message: Json, request: Json) -> Out:
        """Return what is written in place of the error."""
        message["error"]["code"] = -32603
        return message


mutants("tasks-unknown-id-error", of=_Strangers)(
    FailsOnAnUnknownTask=has(
        "Answers an unknown task id with an internal error.", method="tasks/get"
    )
)
mutants("tasks-unknown-id-error", "tasks-result-of-cancelled-answered", of=_Strangers)(
    WaitsForAnUnknownTask=has(
        "Waits for the result of an unknown task.",
        method="tasks/result",
        on_stranger=lambda *_: None,
    )
)


@mutant("tasks-unknown-id-error")
class CancelsAnUnknownTask(_Strangers, method="tasks/cancel"):
    """Confirms the cancellation of an unknown task."""

    def on_stranger(self, message: Json, request: Json) -> Out:
        if "already" in message["error"]["message"]:
            return message
        when = "2026-01-02T03:04:05Z"
        state = {"status": "cancelled", "createdAt": when, "lastUpdatedAt": when, "ttl": 1000}
        message["result"] = {"taskId": params(request)["taskId"], **state}
        del message["error"]
        return message


mutants("tasks-informative-errors", of=_Strangers)(
    RefusesWithABlankMessage=has(
        "Refuses an unknown task with a blank message.",
        method="tasks/get",
        on_stranger=puts("error", "message", " "),
    )
)


class _Cursors(_Strangers, method="tasks/list"):
    """Handles invalid cursors in its own way."""


mutants("tasks-invalid-cursor-error", of=_Cursors)(
    FailsOnAnUnknownCursor="Answers an invalid cursor with an internal error."
)
