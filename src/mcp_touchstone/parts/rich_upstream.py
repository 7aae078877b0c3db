"""Our server behind a gateway, with what takes several messages: subscriptions, tasks, rounds."""

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.parts.part import Json
from mcp_touchstone.parts.upstream import DATA, TOOLS, UNKNOWN, WATCHED, Upstream, text_in
from mcp_touchstone.wire.framing import id_key, list_in, object_in, value_in

LISTEN: Final = "subscriptions/listen"
SUBSCRIPTION: Final = f"{rev.META}subscriptionId"
RELATED: Final = f"{rev.META}related-task"
WITH_TASKS: Final = "2025-11-25"
"""The revision in which tasks are part of the protocol."""

TASK: Final[Json] = DATA["task"]
EXTENDED: Final[Json] = DATA["extended"]
"""A task of 2025-11-25, and one of the extension of 2026-07-28."""

TASKS: Final[Json] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The extension of 2026-07-28 with tasks."""

DECLINE: Final = "Decline"
REFUSE: Final = "Refuse"
WAIT: Final = "Wait"
"""What our client does with a question in which the word is: it declines, answers with an error, or
does not answer by itself."""

TOKEN: Final = "progress/ünïcode"  # noqa: S105
"""The progress token of a request of ours."""

ROUNDS: Final = (("elicitation", "roots"), ("sampling",))
"""The questions of each round of one call."""


class Rich(Upstream):
    """The same server, with subscriptions, tasks, and questions in several rounds."""

    calls: ClassVar = {**Upstream.calls, "take": Upstream.text("taken")}
    pages: ClassVar[Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]] = {
        **Upstream.pages,
        "tools/list": ("tools", ((*TOOLS, *DATA["further"]),)),
    }

    def __init__(self, peer: Any) -> None:
        super().__init__(peer)
        self._open: dict[Any, Json] = {}
        self._tasks: dict[str, Any] = {}

    def discovered(self) -> Json:
        """Declare tasks as an extension."""
        return {**super().discovered(), "extensions": {EXTENSION: {}}}

    def opening(self) -> Json:
        """Declare tasks in the revision that has them."""
        found = super().opening()
        if self.revision == WITH_TASKS:
            found["capabilities"] = {**found["capabilities"], "tasks": TASKS}
        return found

    def serve(self, request: Json) -> None:
        """Answer a request."""
        method = request["method"]
        if method == LISTEN and self.is_open(request) and self.modern:
            self._listen(request)
        elif method.startswith("tasks/") and self.revision == WITH_TASKS and self.opened:
            self._serve_task(request, method)
        elif method.startswith("tasks/") and _wants_tasks(request):
            self._serve_extended(request, method)
        else:
            super().serve(request)

    def call(self, request: Json) -> None:
        """Answer tools/call."""
        name = text_in(request, "name")
        mark = value_in(request, "params", "arguments", "mark")
        if name == "everything" and self.modern and _wants_tasks(request):
            name = f"task-{secrets.token_hex(8)}"  # a gateway may start a server for each request
            self.answer(request, {"resultType": "task", "taskId": name, **EXTENDED})
        elif "task" in object_in(request, "params") and not self.modern:
            name = f"task-{len(self._tasks) + 1}"
            self._tasks[name] = mark
            task = {"taskId": name, **TASK}
            self.answer(request, {"task": task})
            self.say({"method": "notifications/tasks/status", "params": task})
        elif name == "subscribed":
            told = {"open": len(self._open), "mark": mark}
            self.answer(request, {**self.text("subscribed"), "structuredContent": told})
        elif name == "withdraw":
            self._withdraw(request)
        elif name == "afterwards":
            self._tell_afterwards(request)
        elif name == "rounds":
            self._round(request)
        else:
            super().call(request)
            if value_in(request, "params", "arguments", "what") == "url" and not self.modern:
                params = {"elicitationId": "elicitation-1"}
                self.say({"method": "notifications/elicitation/complete", "params": params})
            if name == "change" and self.modern:
                self._tell_changes()

    def _withdraw(self, request: Json) -> None:
        """Cancel the last question, and answer the call that asked it."""
        question = f"q{self._number}"
        then = self._asked.pop(id_key(question), None)
        if then is not None:
            params = {"requestId": question, "reason": "ünïcode"}
            self.say({"method": "notifications/cancelled", "params": params})
            then({})
        self.answer(request, self.text("withdrawn"))

    def _tell_afterwards(self, request: Json) -> None:
        """Log before the answer and after it, and tell of changes after it."""
        self._log_one("before")
        self.answer(request, self.text("afterwards"))
        self._log_one("after")
        self.say({"method": "notifications/tools/list_changed"})
        self.say({"method": "notifications/resources/updated", "params": {"uri": WATCHED}})

    def _log_one(self, data: str) -> None:
        params = {"level": "emergency", "logger": "upstream", "data": data}
        self.say({"method": "notifications/message", "params": params})

    def noticed(self, message: Json) -> None:
        """End a subscription that was cancelled; repeat a notification that only we know."""
        if message.get("method") == "notifications/cancelled":
            self._open.pop(id_key(value_in(message, "params", "requestId")), None)
        elif message.get("method") == f"notifications/{UNKNOWN}" and not self.modern:
            self.say({"method": message["method"], "params": object_in(message, "params")})

    def _listen(self, request: Json) -> None:
        wanted = object_in(request, "params", "notifications")
        self._open[id_key(request["id"])] = {"id": request["id"], "wanted": wanted}
        self._tell(request["id"], "notifications/subscriptions/acknowledged", notifications=wanted)

    def _tell_changes(self) -> None:
        for one in self._open.values():
            for kind in ("tools", "prompts", "resources"):
                if one["wanted"].get(f"{kind}ListChanged"):
                    self._tell(one["id"], f"notifications/{kind}/list_changed")
            for uri in list_in(one["wanted"], "resourceSubscriptions"):
                if uri == WATCHED:
                    self._tell(one["id"], "notifications/resources/updated", uri=uri)

    def _tell(self, subscription: Any, method: str, **params: Any) -> None:
        meta = {"_meta": {SUBSCRIPTION: subscription}}
        self.say({"method": method, "params": {**params, **meta}})

    def _serve_task(self, request: Json, method: str) -> None:
        name = text_in(request, "taskId")
        if method == "tasks/list":
            self.answer(request, {"tasks": [{"taskId": one, **TASK} for one in self._tasks]})
        elif method == "tasks/result":
            mark = self._tasks.get(name)
            done = DATA["everything"] if mark is None else self.text(f"later {mark}")
            self.answer(request, {**done, "_meta": {RELATED: {"taskId": name}}})
        else:
            status = "completed" if method == "tasks/get" else "cancelled"
            self.answer(request, {"taskId": name, **TASK, "status": status})

    def _serve_extended(self, request: Json, method: str) -> None:
        task = {"taskId": value_in(request, "params", "taskId"), **EXTENDED}
        done = {**task, "status": "completed", "result": DATA["everything"]}
        self.answer(request, done if method == "tasks/get" else {})

    def _round(self, request: Json) -> None:
        """Ask the questions of the next round, or report the answers and states of all."""
        params = object_in(request, "params")
        state = params.get("requestState")
        done = str(state).count("/") if isinstance(state, str) else 0
        answers = object_in(params, "inputResponses")
        if done >= len(ROUNDS):
            mark = value_in(params, "arguments", "mark")
            told = {"state": state, "answers": answers, "mark": mark}
            self.answer(request, {**self.text("rounds"), "structuredContent": told})
            return
        asked = {one: DATA["questions"][one] for one in ROUNDS[done]}
        further = f"{state or 'ü'}/{len(answers)}"
        more = {"inputRequests": asked, "requestState": further}
        self.answer(request, {"resultType": "input_required", **more})


def _wants_tasks(request: Json) -> bool:
    """Whether a request of 2026-07-28 declares the extension."""
    able = object_in(request, "params", "_meta", f"{rev.META}clientCapabilities", "extensions")
    return EXTENSION in able
