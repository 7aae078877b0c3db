"""Tasks of the client (2025-11-25): requests it answers with a task, to be polled. Pure.

A task depends on polls, not on the clock: after a number of polls it is completed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcp_touchstone.connection.answers import Answer

RELATED: Final = "io.modelcontextprotocol/related-task"
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
_INVALID: Final = Answer({"error": {"code": -32602, "message": "there is no such task"}})
_BORN: Final = "2026-01-02T03:04:{:02}Z"


@dataclass(slots=True)
class _Task:
    number: int
    outcome: Answer
    status: str = "working"
    polls: int = 0


@dataclass(kw_only=True)
class ClientTasks:
    """The tasks of one client.

    Attributes:
        polls: number of polls after which a task is completed; None for never.
        poll_interval: milliseconds the server should wait between two polls.
        name: prefix of the ids, to distinguish these tasks from those of another client.
        needs_input: whether tasks go to input_required, instead of completed, until tasks/result.
    """

    polls: int | None = 1
    poll_interval: int = 50
    name: str = "client-task"
    needs_input: bool = False
    _tasks: dict[str, _Task] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """Ids of the tasks made so far."""
        return list(self._tasks)

    def complete(self, own: str) -> None:
        """Complete a task that is not over."""
        if self._tasks[own].status not in TERMINAL:
            self._tasks[own].status = "completed"

    def shown(self, own: str) -> dict[str, Any]:
        """Return the task object of a task."""
        return self._shown(self._tasks[own])

    def create(self, outcome: Answer) -> Answer:
        """Make a task whose result will be ``outcome``; return the CreateTaskResult."""
        task = _Task(len(self._tasks) + 1, outcome)
        self._tasks[self._id(task)] = task
        return Answer({"result": {"task": self._shown(task)}})

    def serve(self, method: str, params: Mapping[str, Any]) -> Answer:
        """Answer tasks/get, tasks/result, tasks/list or tasks/cancel."""
        if method == "tasks/list":
            return Answer({"result": {"tasks": [self._shown(t) for t in self._tasks.values()]}})
        task = self._tasks.get(str(params.get("taskId")))
        if task is None or (method == "tasks/cancel" and task.status in TERMINAL):
            return _INVALID
        if method == "tasks/result":
            return self._result(task)
        if method == "tasks/cancel":
            task.status = "cancelled"
        else:
            self._poll(task)
        return Answer({"result": self._shown(task)})

    def _poll(self, task: _Task) -> None:
        task.polls += 1
        if task.status == "working" and self.polls is not None and task.polls >= self.polls:
            task.status = "input_required" if self.needs_input else "completed"

    def _result(self, task: _Task) -> Answer:
        if self.polls is None and task.status not in TERMINAL:
            return Answer(None)
        if task.status not in TERMINAL:
            task.status = "completed"
        body = dict(task.outcome.body or {})
        if isinstance(body.get("result"), dict):
            meta = {RELATED: {"taskId": self._id(task)}}
            body["result"] = {**body["result"], "_meta": meta}
        return replace(task.outcome, body=body or None)

    def _id(self, task: _Task) -> str:
        return f"{self.name}-{task.number}"

    def _shown(self, task: _Task) -> dict[str, Any]:
        return {
            "taskId": self._id(task),
            "status": task.status,
            "createdAt": _BORN.format(0),
            "lastUpdatedAt": _BORN.format(min(task.polls, 59)),
            "ttl": 60_000,
            "pollInterval": self.poll_interval,
        }
