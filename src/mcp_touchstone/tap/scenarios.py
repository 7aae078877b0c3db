"""The parts that our server plays for clients under test, each with what the client is to do."""

from functools import partial
from typing import Any, ClassVar, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.parts.part import (
    DROPS,
    FORGETS,
    NUMBERS,
    TWICE,
    UNSUPPORTED,
    VERSION,
    Json,
    Part,
    variant,
)
from mcp_touchstone.tap.auth_scenarios import AUTHORIZATION
from mcp_touchstone.wire.framing import object_in, value_in

CURSORS: Final = ("page two/€ ?&=", "cGFnZSB0aHJlZQ==")
"""Cursors that a client which reads or rewrites them would change."""

FORM: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 3, "default": "Ada Lovelace"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 7},
        "color": {"type": "string", "enum": ["red", "green"], "default": "green"},
        "sure": {"type": "boolean", "default": True},
    },
    "required": ["name", "count"],
}
ADD: Final[Json] = {"role": "user", "content": {"type": "text", "text": "Add 2 and 3."}}
USE: Final[Json] = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "u1", "name": "add_numbers", "input": {"a": 2, "b": 3}}],
}
RESULT: Final[Json] = {"type": "tool_result", "toolUseId": "u1", "content": []}
QUESTIONS: Final[dict[str, tuple[str, Json]]] = {
    "roots": ("roots/list", {}),
    "sampling": (
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say something."}}],
            "maxTokens": 50,
            "_meta": {"progressToken": "p1"},
        },
    ),
    "elicitation": ("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM}),
    "url": (
        "elicitation/create",
        {
            "mode": "url",
            "message": "Open this page.",
            "elicitationId": "e1",
        },
    ),
    "sampling with tools": (
        "sampling/createMessage",
        {"messages": [ADD], "maxTokens": 50, "tools": [NUMBERS]},
    ),
    "sampling without a result": (
        "sampling/createMessage",
        {"messages": [ADD, USE, ADD], "maxTokens": 50, "tools": [NUMBERS]},
    ),
    "sampling with a mixed result": (
        "sampling/createMessage",
        {
            "messages": [ADD, USE, {"role": "user", "content": [RESULT, ADD["content"]]}],
            "maxTokens": 50,
            "tools": [NUMBERS],
        },
    ),
}
CONSENT: Final = "consent"
"""The page of the elicitation in URL mode."""

PATIENCE: Final = 5.0
"""Seconds that a call waits for the answers of the client."""


class Version(Part):
    """Answer initialize with a version that no revision has."""

    steps = ()
    may_fail = True

    def initialize(self, request: Json) -> None:
        """Answer initialize."""
        self.answer(request, {**self.opening(), "protocolVersion": "1999-01-01"})


class Questions(Part):
    """Ask for a ping, roots, four samples and two elicitations, whatever the client declared."""

    def call(self, request: Json) -> None:
        """Ask, and answer the call when all answers are there, or after a while."""
        open_ = {"ping": "ping", **{name: method for name, (method, _) in QUESTIONS.items()}}
        if self.revision < "2025-06-18":
            del open_["elicitation"]
        if self.revision < "2025-11-25":
            for name in [name for name in open_ if name == "url" or "sampling with" in name]:
                del open_[name]

        def end() -> None:
            if open_:
                open_.clear()
                self.answer(request, self.text("done"))

        def came(name: str, _response: Json) -> None:
            if open_.pop(name, None) and not open_:
                self.answer(request, self.text("done"))

        for name, method in list(open_.items()):
            params = QUESTIONS[name][1] if name in QUESTIONS else {}
            params = {**params, "url": self.canary + CONSENT} if name == "url" else params
            self.ask(method, partial(came, name), **params)
        self.later(PATIENCE, end)


class Pagination(Part):
    """Give the tools in several pages, with cursors that only an unaltered copy matches."""

    CURSORS: ClassVar[tuple[str | None, ...]] = (None, *CURSORS)

    def tools(self, params: Json) -> Json | None:
        """Return a page."""
        cursor = params.get("cursor")
        if cursor not in self.CURSORS:
            return None
        page = self.CURSORS.index(cursor)
        more = {"nextCursor": self.CURSORS[page + 1]} if page + 1 < len(self.CURSORS) else {}
        return {"tools": [{**NUMBERS, "name": f"add_{page}"} if page else NUMBERS], **more}


class Pages(Pagination):
    """Give the tools in several pages in 2026-07-28; the second cursor is an empty string."""

    modern = True
    CURSORS = (None, "", CURSORS[0])


class ListChanged(Part):
    """Say that the tools have changed, after the first list."""

    _listed = False

    def tools(self, params: Json) -> Json | None:
        """Return the tools; more of them the second time."""
        if not self._listed:
            self._listed = True
            self.later(0.05, lambda: self.say({"method": "notifications/tools/list_changed"}))
            return super().tools(params)
        return {"tools": [NUMBERS, {**NUMBERS, "name": "add_more"}]}


class Progress(Part):
    """Report progress of a call, if the client wants it; declare tasks, and no tool that is one."""

    capabilities: ClassVar = {**Part.capabilities, "tasks": {"requests": {"tools": {"call": {}}}}}
    steps: ClassVar = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3, "progress": True},
        {"call": "add_numbers", "a": 4, "b": 5, "progress": True},
    )

    def call(self, request: Json) -> None:
        """Report three times, then answer."""
        token = object_in(request, "params", "_meta").get("progressToken")
        for value in (1, 2, 3) if token is not None else ():
            params = {"progressToken": token, "progress": value, "total": 3}
            self.say({"method": "notifications/progress", "params": params})
        super().call(request)


class Cancel(Part):
    """Do not answer a call until it is cancelled, and then answer it nevertheless."""

    steps: ClassVar = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3, "cancel": 0.3},
        {"list": "tools"},
    )
    may_fail = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._held: dict[Any, Json] = {}

    def call(self, request: Json) -> None:
        """Keep the call."""
        self._held[request.get("id")] = request

    def noticed(self, message: Json) -> None:
        """Answer the cancelled call too late."""
        own = object_in(message, "params").get("requestId")
        if message.get("method") == "notifications/cancelled" and own in self._held:
            super().call(self._held.pop(own))


class Exit(Part):
    """Exit in the middle of the first call."""

    restarts = may_fail = True

    def call(self, request: Json) -> None:
        """Exit in place of an answer."""
        del request
        self.gone = 1


class Restart(Part):
    """Exit in the middle of the first call of 2026-07-28, and answer calls after a restart."""

    steps: ClassVar = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3, "fails": True},
        {"call": "add_numbers", "a": 4, "b": 5, "fails": True},
    )
    modern = restarts = may_fail = True

    def call(self, request: Json) -> None:
        """Exit in place of an answer, if this is the first process."""
        if self.recorder.is_first:
            self.gone = 1
        else:
            super().call(request)


class Resume(Part):
    """Ask for a ping during a call, and answer later; over HTTP the stream ends in between."""

    http_fault = DROPS

    def call(self, request: Json) -> None:
        """Ask, and answer later."""
        self.ask("ping", lambda _response: None)
        self.later(1.0, partial(super().call, request))


class SessionLost(Part):
    """Answer a call; over HTTP the session is over then."""

    steps: ClassVar = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3},
        {"call": "add_numbers", "a": 4, "b": 5, "fails": True},
        {"call": "add_numbers", "a": 6, "b": 7, "fails": True},
    )
    http_fault = FORGETS
    may_fail = True


class Content(Part):
    """Answer with members that no revision has, then name an elicitation that never was."""

    steps: ClassVar = (*Part.steps, *Part.steps[1:] * 2)
    may_fail = True
    MORE: ClassVar[Json] = {"x-touchstone": [1], "_meta": {"org.example/x": {"y": None}}}

    def tools(self, params: Json) -> Json | None:
        """Return the tools, with more members."""
        return {**(super().tools(params) or {}), **self.MORE}

    def call(self, request: Json) -> None:
        """Answer the first call with more members."""
        self._number += 1
        result = self.text("5")
        if self._number == 1:
            result |= self.MORE
        elif "2025-11-25" <= self.revision < "2026-07-28":
            params = {"elicitationId": "never-given"}
            self.say({"method": "notifications/elicitation/complete", "params": params})
        self.answer(request, result)


class Output(Part):
    """Answer a call with a structured result that its outputSchema does not allow."""

    steps = TWICE
    may_fail = True

    def tools(self, params: Json) -> Json | None:
        """Return the tool with its outputSchema."""
        del params
        schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
        return {"tools": [{**NUMBERS, "outputSchema": schema}]}

    def call(self, request: Json) -> None:
        """Answer with the wrong type."""
        self.answer(request, {**self.text('{"sum": "5"}'), "structuredContent": {"sum": "five"}})


class ResultType(Part):
    """Answer a call of 2026-07-28 with a resultType that no revision and no extension has."""

    modern = True
    steps = TWICE
    may_fail = True

    def call(self, request: Json) -> None:
        """Answer with it."""
        self.answer(request, {**self.text("5"), "resultType": "x-touchstone"})


class Cache(Part):
    """Say in two ways that a list of 2026-07-28 is stale at once: ttlMs 0, and a negative one."""

    modern = may_fail = True
    steps: ClassVar = ({"list": "tools"},) * 3

    def tools(self, params: Json) -> Json | None:
        """Return the tools with the next ttlMs."""
        self._number += 1  # -1, 0, -1
        return {**(super().tools(params) or {}), "ttlMs": -(self._number % 2)}


class Headers(Part):
    """List tools with arguments for HTTP headers in 2026-07-28, some of them invalid."""

    modern = True
    GOOD: ClassVar = {
        "plain": "us-west 1",
        "odd": " Grüße,\n世界",
        "like": "=?base64?eA==?=",
        "none": None,
        "count": -7,
        "flag": True,
        "inner": {"deep": "x"},
    }
    steps: ClassVar = (
        {"list": "tools"},
        {"call": "send", "arguments": GOOD},
        {"call": "café 世界", "a": 2, "b": 3},
        {"call": "*", "a": 2, "b": 3},
    )

    def tools(self, params: Json) -> Json | None:
        """Return a tool with headers, and one for each way to be invalid."""
        del params

        def marked(header: Any, kind: str = "string") -> Json:
            return {"type": kind, "x-mcp-header": header}

        kinds = {"count": "integer", "flag": "boolean"}
        good = {k: marked(k.title(), kinds.get(k, "string")) for k in self.GOOD if k != "inner"}
        good["inner"] = {"type": "object", "properties": {"deep": marked("Deep-Value")}}
        bad = {
            "empty": {"x": marked("")},
            "space": {"x": marked("My Region")},
            "control": {"x": marked("Re\r\ngion")},
            "twice": {"x": marked("Region"), "y": marked("REGION")},
            "number": {"x": marked("Region", "number")},
            "object": {"x": marked("Region", "object")},
            "items": {"x": {"type": "array", "items": marked("Region")}},
            "choice": {"x": {"anyOf": [marked("Region")]}},
        }
        tools = {"send": good, **{f"bad_{name}": schema for name, schema in bad.items()}}
        return {
            "tools": [
                NUMBERS,
                {**NUMBERS, "name": "café 世界"},
                *(
                    {"name": k, "inputSchema": {"type": "object", "properties": v}}
                    for k, v in tools.items()
                ),
            ]
        }


class OldErrors(Part):
    """Refuse what comes before initialize with an error that only this server has."""

    def serve(self, request: Json) -> None:
        if self.opened or request["method"] == "initialize":
            super().serve(request)
        else:
            self.refuse(request, -31999, "Not now")


class Newer(Part):
    """Speak only a revision that is newer than 2026-07-28."""

    modern = may_fail = True
    steps = ()

    def serve(self, request: Json) -> None:
        named = value_in(request, "params", "_meta", VERSION)
        data = {"supported": ["2099-01-01"], "requested": named}
        self.refuse(request, UNSUPPORTED, "Unsupported protocol version", **data)


class SchemaRef(Part):
    """List a tool whose schema refers to an address of ours, which nobody may fetch."""

    modern = True

    def tools(self, params: Json) -> Json | None:
        """Return the tool and a harmless one."""
        del params
        schema = {"type": "object", "properties": {"a": {"$ref": f"{self.canary}canary.json"}}}
        return {"tools": [NUMBERS, {"name": "far", "inputSchema": schema}]}


class State(Questions):
    """Ask for input twice in 2026-07-28, with a state to return, and then without one."""

    modern = True
    steps = TWICE
    STATES: Final = ('c3RhdGU=  +/ é\u2028\\"%41', '{"n": 1.0, "a" : [ ]}')

    def call(self, request: Json) -> None:
        """Answer in up to three rounds, as far as the client can answer."""
        params = object_in(request, "params")
        can = object_in(params, "_meta", rev.META + "clientCapabilities")
        state, given = params.get("requestState"), object_in(params, "inputResponses")
        wanted = {
            name: {"method": method, "params": asked}
            for name, (method, asked) in QUESTIONS.items()
            if name in can
        }
        if "url" in object_in(can, "elicitation"):
            method, asked = QUESTIONS["url"]
            wanted["url"] = {"method": method, "params": {**asked, "url": self.canary + CONSENT}}
        if not wanted or (state is None and given):
            Part.call(self, request)
        elif state is None:
            self._more(request, inputRequests=wanted, requestState=self.STATES[0])
        elif state == self.STATES[0]:
            self._more(request, requestState=self.STATES[1])
        elif state == self.STATES[1]:
            self._more(request, inputRequests=wanted)
        else:
            self.refuse(request, -32602, "Unknown requestState")

    def _more(self, request: Json, **more: Any) -> None:
        self.answer(request, {"resultType": "input_required", **more})


SCENARIOS: Final[dict[str, type[Part]]] = {
    "tools_call": variant(Part, "List the tools and call one, with a session."),
    "version": Version,
    "questions": Questions,
    "pagination": Pagination,
    "pages": Pages,
    "list-changed": ListChanged,
    "progress": Progress,
    "cancel": Cancel,
    "cancel-stateless": variant(
        Cancel,
        "Do not answer a call of 2026-07-28 until it is cancelled, "
        "and then answer it nevertheless.",
        modern=True,
    ),
    "slow-exit": variant(Part, "Go on for a second after the end of the input.", lingers=1.0),
    "exit": Exit,
    "restart": Restart,
    "resume": Resume,
    "session-lost": SessionLost,
    "content": Content,
    "content-stateless": variant(
        Content, "Answer with members that no revision has, in 2026-07-28.", modern=True
    ),
    "output": Output,
    "output-stateless": variant(
        Output,
        "Answer a call with a structured result that its outputSchema forbids, in 2026-07-28.",
        modern=True,
    ),
    "result-type": ResultType,
    "cache": Cache,
    "headers": Headers,
    "old-errors": OldErrors,
    "newer": Newer,
    "stateless": variant(Part, "List the tools and call one, in 2026-07-28.", modern=True),
    "schema-ref": SchemaRef,
    "state": State,
    **AUTHORIZATION,
}
"""Name of a scenario -> the part of our server in it."""


class ScenarioError(UserError):
    """There is no such scenario; the message names the closest one."""


def find(name: str) -> type[Part]:
    """Return the part of a scenario.

    Raises:
        ScenarioError: there is none.
    """
    if name not in SCENARIOS:
        known = nearest(name, SCENARIOS) or f"; there are {', '.join(SCENARIOS)}"
        raise ScenarioError(f"no scenario is called {name!r}{known}")
    return SCENARIOS[name]
