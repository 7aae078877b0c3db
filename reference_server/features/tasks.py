"""Tool calls as tasks (2025-11-25 basic/utilities/tasks): the client fetches the result later.

    tools/call with "task" --> task --work--> completed, failed or cancelled --ttl--> removed

Tasks run on separate threads, so other calls never wait for a task. There is one client and it may
see all tasks; their ids are random nevertheless. 2026-07-28 has no tasks in its core (its
changelog: they became an extension), so the server does not offer them there.
"""

from __future__ import annotations

import secrets
import threading
import time
from datetime import UTC, datetime

from ..protocol.envelope import object_of, string_of
from ..protocol.errors import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    CancelledError,
    ProtocolError,
    invalid_params,
    invalid_request,
    quote,
)
from ..protocol.framing import encode
from ..protocol.pages import page
from ..protocol.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.calls import Call
    from ..protocol.toolbox import Arguments, Tool
    from ..surface import Surface

    Outcome = dict[str, Any] | ProtocolError

RELATED = "io.modelcontextprotocol/related-task"

MOST_TASKS = 100
"""Maximum number of tasks, including ended ones that are not removed yet."""

SHORTEST_TTL, DEFAULT_TTL, LONGEST_TTL = 1_000, 300_000, 3_600_000
"""Milliseconds from the creation of a task until it is removed, if it has ended."""

POLL_INTERVAL = 500
"""Milliseconds."""

_MOMENT = 1.0
"""Seconds to wait for the threads to end."""

_WORKING, _INPUT_REQUIRED = "working", "input_required"
_COMPLETED, _FAILED, _CANCELLED = "completed", "failed", "cancelled"


class Task:
    """One task; it is changed only under the lock of ``Tasks``.

    Attributes:
        call: The call for the tool; the request itself is answered already.
        outcome: The result or error of the tool; None until it has ended, and for a cancelled task.
    """

    def __init__(self, tasks: Tasks, number: int, call: Call, ttl: int) -> None:
        self.id = secrets.token_urlsafe(24)
        self.number = number
        self.status = _WORKING
        self.outcome: Outcome | None = None
        self.waiters: list[Call] = []
        self.call = call.detach(
            {RELATED: {"taskId": self.id}},
            lambda waits: tasks.move(self, _INPUT_REQUIRED if waits else _WORKING),
        )
        self._ttl = ttl
        self._created = self._updated = datetime.now(UTC)
        self._forgotten_at = time.monotonic() + ttl / 1000
        self._message = ""

    @property
    def has_ended(self) -> bool:
        return self.status in (_COMPLETED, _FAILED, _CANCELLED)

    @property
    def is_over(self) -> bool:
        """Whether it may be removed. A task that works is kept: a request may wait for it."""
        return self.has_ended and time.monotonic() >= self._forgotten_at

    def become(self, status: str, message: str = "") -> None:
        self.status = status
        self._message = message
        self._updated = max(self._updated, datetime.now(UTC))  # a clock may be set back

    def shown(self) -> dict[str, Any]:
        """Return the ``Task`` object (schema.ts#Task)."""
        shown: dict[str, Any] = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _timestamp(self._created),
            "lastUpdatedAt": _timestamp(self._updated),
            "ttl": self._ttl,
            "pollInterval": POLL_INTERVAL,
        }
        if self._message:
            shown["statusMessage"] = self._message
        return shown


class Tasks:
    """All tasks of one server.

    Every message with a status is written under one lock, so the client reads the statuses of a
    task in the right order.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._lock = threading.RLock()
        self._tasks: dict[str, Task] = {}
        self._created = 0
        self._workers = Workers(surface.settings.workers, MOST_TASKS)

    # --- requests

    def call_tool(self, call: Call) -> dict[str, Any] | None:
        toolbox = self._surface.toolbox
        if "task" not in call.params:
            return toolbox.call_tool(call)
        ttl = _ttl(object_of(call.params, "task"))
        tool, arguments = toolbox.asked_for(call)
        if not tool.task:
            raise ProtocolError(METHOD_NOT_FOUND, f"{quote(tool.name)} cannot be called as a task")
        with self._lock:
            self._forget()
            if len(self._tasks) >= MOST_TASKS:
                raise invalid_request(f"{MOST_TASKS} tasks are the most that are kept at a time")
            call.check()
            self._created += 1
            task = Task(self, self._created, call, ttl)
            self._tasks[task.id] = task
            call.finish({"task": task.shown(), "_meta": {RELATED: {"taskId": task.id}}})
        self._workers.submit(lambda: self._work(task, tool, arguments))
        return None

    def get(self, call: Call) -> None:
        with self._lock:
            call.finish(self._find(call).shown())

    def result(self, call: Call) -> None:
        """Answer ``tasks/result`` once the task has ended; no thread waits for the end."""
        with self._lock:
            task = self._find(call)
            if task.has_ended:
                _answer(call, task)
            else:
                task.waiters = [*(one for one in task.waiters if not one.cancelled), call]

    def list_tasks(self, call: Call) -> None:
        with self._lock:
            self._forget()
            found = page(
                *(list(self._tasks.values()), call.params, "tasks"),
                self._surface.settings.page_size,
                place=lambda task: task.number,
            )
            found["tasks"] = [task.shown() for task in found["tasks"]]
            call.finish(found)

    def cancel(self, call: Call) -> None:
        with self._lock:
            task = self._find(call)
            if task.has_ended:
                raise invalid_params(f"the task is {task.status} already")
            task.call.cancel()
            self._end(task, _CANCELLED, None, "Cancelled by request.")
            call.finish(task.shown())

    # --- the life of a task

    def move(self, task: Task, status: str) -> None:
        with self._lock:
            if not task.has_ended:
                task.become(status)
                self._tell(task)

    def _work(self, task: Task, tool: Tool, arguments: Arguments) -> None:
        outcome: Outcome
        try:
            task.call.check()
            outcome = self._surface.toolbox.run(task.call, tool, arguments)
        except CancelledError:
            return  # its status says so already
        except ProtocolError as error:
            outcome = error
        except Exception as defect:  # noqa: BLE001 - as for a request: see ``Connection.run``
            log = self._surface.log
            log.error("defect", type=type(defect).__name__)  # noqa: TRY400
            outcome = ProtocolError(INTERNAL_ERROR, "Internal error")
        with self._lock:
            if not task.has_ended:
                task.call.close()
                problem = _problem(outcome)
                status = _COMPLETED if problem is None else _FAILED
                self._end(task, status, outcome, problem or "")

    def _end(self, task: Task, status: str, outcome: Outcome | None, message: str) -> None:
        task.outcome = outcome
        task.become(status, message)
        self._surface.log.info("task", number=task.number, status=status)
        self._tell(task)
        waiters, task.waiters = task.waiters, []
        for call in waiters:
            _answer(call, task)

    def _tell(self, task: Task) -> None:
        """Notify the client of the status (#task-status-notification)."""
        connection = self._surface.connection
        if connection.session.ready:
            notification = {"method": "notifications/tasks/status", "params": task.shown()}
            connection.send(encode({"jsonrpc": "2.0", **notification}))

    def _find(self, call: Call) -> Task:
        """Return the task with the id in the params; the ``_meta`` of the request is ignored."""
        self._forget()
        wanted = string_of(call.params, "taskId")
        if wanted not in self._tasks:
            raise invalid_params("there is no such task; it may have expired")
        return self._tasks[wanted]

    def _forget(self) -> None:
        self._tasks = {name: task for name, task in self._tasks.items() if not task.is_over}

    def close(self) -> None:
        """Cancel all tasks: no request can fetch their results any more."""
        with self._lock:
            tasks = list(self._tasks.values())
        for task in tasks:
            task.call.cancel()
        self._workers.close(_MOMENT)


def build(surface: Surface) -> Tasks:
    """Return the part ``tasks``."""
    return Tasks(surface)


def _ttl(wanted: dict[str, Any]) -> int:
    """Return the milliseconds to keep a task: the requested number, within our limits."""
    ttl = wanted.get("ttl", DEFAULT_TTL)
    if type(ttl) not in (int, float) or ttl < 0:
        raise invalid_params("task.ttl must be a number of milliseconds, not a negative one")
    return int(min(max(ttl, SHORTEST_TTL), LONGEST_TTL))


def _problem(outcome: Outcome) -> str | None:
    if isinstance(outcome, ProtocolError):
        return outcome.message
    if not outcome.get("isError"):
        return None
    text: str = outcome["content"][0]["text"]
    return text


def _answer(call: Call, task: Task) -> None:
    outcome = task.outcome
    if isinstance(outcome, ProtocolError):
        call.fail(outcome)
    elif outcome is None:
        call.fail(invalid_params("the task was cancelled, so it has no result"))
    else:
        meta = {**outcome.get("_meta", {}), RELATED: {"taskId": task.id}}
        call.finish({**outcome, "_meta": meta})


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
