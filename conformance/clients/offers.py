"""clients/offers: resources, prompts, completion, logging, subscriptions and tasks of a server.

The rules on all messages, headers and capabilities judge what a client sends for them.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from mcp_touchstone.suite import (
    META,
    Asked,
    Record,
    Seen,
    ambient,
    brief,
    clients,
    object_in,
    parts,
)

NOTE, SPACED, ABSENT = "memo://notes/1", "memo://notes/a%20b", "memo://notes/none"
PAGE = "page two/€ ?&="
DAY = "2026-01-01T00:00:00Z"
CREATED = {"createdAt": DAY, "lastUpdatedAt": DAY, "ttl": 60000, "pollInterval": 10}


@parts.scenario("resources", official="")
class Resources(parts.Part):
    """Offer resources and a template; one URI has an escape, one is unknown."""

    capabilities: ClassVar = {**parts.Part.capabilities, "resources": {}}
    steps = (
        {"list": "resources"},
        {"list": "templates"},
        {"read": NOTE},
        {"read": SPACED},
        {"read": ABSENT, "fails": True},
    )
    results: ClassVar[Mapping[str, parts.Json]] = {
        "resources/list": {
            "resources": [{"uri": NOTE, "name": "note"}, {"uri": SPACED, "name": "spaced"}]
        },
        "resources/templates/list": {
            "resourceTemplates": [{"uriTemplate": "memo://notes/{n}", "name": "note"}]
        },
    }

    def serve(self, request: parts.Json) -> None:
        """Answer a request."""
        uri = object_in(request, "params").get("uri")
        if request["method"] != "resources/read" or not self.is_open(request):
            super().serve(request)
        elif isinstance(uri, str) and uri in {NOTE, SPACED}:
            self.answer(request, {"contents": [{"uri": uri, "text": "A note."}], **self.cache})
        else:
            code = parts.INVALID_PARAMS if self.modern else -32002
            self.refuse(request, code, "Resource not found", uri=uri)


@parts.scenario("prompts", official="")
class Prompts(parts.Part):
    """Offer prompts in two pages, one of them with arguments."""

    capabilities: ClassVar = {**parts.Part.capabilities, "prompts": {}}
    steps: ClassVar[tuple[parts.Json, ...]] = (
        {"list": "prompts"},
        {"prompt": "greet", "arguments": {"name": "Ada"}},
        {"prompt": "grüß dich"},
    )
    results: ClassVar[Mapping[str, parts.Json]] = {
        "prompts/get": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hello."}}]
        }
    }
    GREET: ClassVar = {"name": "greet", "arguments": [{"name": "name", "required": True}]}

    def serve(self, request: parts.Json) -> None:
        """Answer a request."""
        cursor = object_in(request, "params").get("cursor")
        if request["method"] != "prompts/list" or not self.is_open(request):
            super().serve(request)
        elif cursor is None:
            self.answer(request, {"prompts": [self.GREET], "nextCursor": PAGE, **self.cache})
        elif cursor == PAGE:
            self.answer(request, {"prompts": [{"name": "grüß dich"}], **self.cache})
        else:
            self.refuse(request, parts.INVALID_PARAMS, "Unknown cursor")


@parts.scenario("completion", official="")
class Completion(Prompts):
    """Complete an argument of a prompt."""

    capabilities: ClassVar = {**Prompts.capabilities, "completions": {}}
    steps = ({"list": "prompts"}, {"complete": "greet", "argument": "name", "value": "A"})
    results: ClassVar = {
        **Prompts.results,
        "completion/complete": {"completion": {"values": ["Ada"], "total": 1, "hasMore": False}},
    }


@parts.scenario("logging", official="")
class Logging(parts.Part):
    """Log during a call, from the level on that the client set."""

    is_about_sessions = True
    capabilities: ClassVar = {**parts.Part.capabilities, "logging": {}}
    steps = ({"level": "warning"}, *parts.Part.steps)
    results: ClassVar[Mapping[str, parts.Json]] = {"logging/setLevel": {}}

    def call(self, request: parts.Json) -> None:
        """Log, and answer."""
        params = {"level": "error", "logger": "calls", "data": {"a": [1, None]}}
        self.say({"method": "notifications/message", "params": params})
        super().call(request)


@parts.scenario("subscriptions", official="")
class Subscriptions(Resources):
    """Send an update of a resource to which the client subscribed."""

    capabilities: ClassVar = {**parts.Part.capabilities, "resources": {"subscribe": True}}
    steps = (
        {"list": "resources"},
        {"subscribe": NOTE},
        {"wait": 0.2},
        {"read": NOTE},
        {"unsubscribe": NOTE},
    )

    def serve(self, request: parts.Json) -> None:
        """Answer a request."""
        method, params = request["method"], object_in(request, "params")
        if not self.is_open(request):
            super().serve(request)
        elif method == "subscriptions/listen" and self.modern:
            own = {META + "subscriptionId": request.get("id")}
            wanted = object_in(params, "notifications")
            self._tell(own, "subscriptions/acknowledged", notifications=wanted)
            for uri in wanted.get("resourceSubscriptions") or ():
                self._tell(own, "resources/updated", uri=uri)
        elif method == "resources/subscribe" and not self.modern:
            self.answer(request, {})
            self._tell({}, "resources/updated", uri=params.get("uri"))
        elif method == "resources/unsubscribe" and not self.modern:
            self.answer(request, {})
        else:
            super().serve(request)

    def _tell(self, meta: parts.Json, name: str, **params: object) -> None:
        more = {"_meta": meta} if meta else {}
        self.say({"method": f"notifications/{name}", "params": {**more, **params}})


@parts.scenario("tasks", official="")
class Tasks(parts.Part):
    """Offer a tool that must be called as a task, and end the task at once."""

    versions = ("2025-11-25",)
    capabilities: ClassVar = {
        **parts.Part.capabilities,
        "tasks": {"requests": {"tools": {"call": {}}}},
    }
    steps = ({"list": "tools"}, {"call": "add_numbers", "a": 2, "b": 3, "task": True})
    task: ClassVar = {"taskId": "t1", "status": "completed", **CREATED}
    results: ClassVar[Mapping[str, parts.Json]] = {
        "tasks/get": task,
        "tasks/result": {
            **parts.Part.text("5"),
            "_meta": {META + "related-task": {"taskId": "t1"}},
        },
    }

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return the tool."""
        del params
        return {"tools": [{**parts.NUMBERS, "execution": {"taskSupport": "required"}}]}

    def call(self, request: parts.Json) -> None:
        """Answer with a task."""
        if "task" in object_in(request, "params"):
            self.answer(request, {"task": {**self.task, "status": "working"}})
        else:
            self.refuse(request, parts.METHOD_NOT_FOUND, "The tool must be called as a task")


REPORT = "tell"
"""The tool to which the results go back."""


NUMBERS = (2, 40)
"""What two calls at a time add to, in the order of the steps."""


@parts.scenario("order", official="")
class Order(parts.Part):
    """Answer two calls at a time, the later one first; then take both results back."""

    steps = (
        {"list": "tools"},
        {"together": [{"call": "add_numbers", "a": n, "b": 3} for n in NUMBERS]},
        {"call": REPORT, "results": True},
    )
    PATIENCE = 3.0
    _first: parts.Json | None = None

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return both tools."""
        del params
        texts = {"results": {"type": "array", "items": {"type": "string"}}}
        report = {"name": REPORT, "inputSchema": {"type": "object", "properties": texts}}
        return {"tools": [parts.NUMBERS, report]}

    def call(self, request: parts.Json) -> None:
        """Keep the first call until the second one was answered, or for a while."""
        if self._first is None:
            self._first = request
            self.later(self.PATIENCE, self._end)
        else:
            super().call(request)
            self._end()

    def _end(self) -> None:
        """Answer the first call, once."""
        if self._first:
            super().call(self._first)
            self._first = {}


@ambient("client-answers-by-id")
def takes_each_response_for_its_request(record: Record) -> Iterator[Seen]:
    """The results that the client sends back are those of its calls, in the order of the steps.

    Over HTTP two requests at a time may arrive in another order.
    """
    if record.scenario != "order":
        return
    calls = [one for one in clients.requests(record) if one.method == "tools/call"]
    found = [clients.answer(record, one) for one in calls[:2]]
    for report in calls[2:]:
        given = object_in(report.value, "params", "arguments").get("results")
        steps = sorted(calls[:2], key=_is_second)
        texts = [clients.text(record, one) for one in steps]
        at = [answer[0].n for answer in found if answer is not None]
        crossed = len(at) == len(found) and at == sorted(at, reverse=True)
        if crossed and isinstance(given, list):
            expected, actual = f"the results {brief(texts)}", brief(given, 60)
            yield Seen("client-answers-by-id", given == texts, report.line, expected, actual)


def _is_second(call: Asked) -> bool:
    """Whether a call is not the first one of the step with two."""
    return object_in(call.value, "params", "arguments").get("a") != NUMBERS[0]
