"""The parts that our server plays for clients under test, each with what the client is to do."""

import http.server
import threading
from functools import partial
from typing import Any, ClassVar, Final

from mcp_touchstone.bridge.headers import WELL_KNOWN
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.tap.act import DROPS, FORGETS, MOVES, NUMBERS, Json, Part, Protection
from mcp_touchstone.tap.recording import FETCHED, Recorder
from mcp_touchstone.wire.framing import object_in

CURSORS: Final = ("", "page two/€ ?&=", "cGFnZSB0aHJlZQ==")
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
            "url": "https://example.com/",
            "elicitationId": "e1",
        },
    ),
}
TWICE: Final[tuple[Json, ...]] = (
    {"list": "tools"},
    {"call": "add_numbers", "a": 2, "b": 3},
    {"call": "add_numbers", "a": 4, "b": 5},
)
ELSEWHERE: Final = "https://elsewhere.invalid"
TENANT: Final = "/tenant"

PATIENCE: Final = 5.0
"""Seconds that a call waits for the answers of the client."""


class ToolsCall(Part):
    """List the tools and call one, with a session."""


class Version(Part):
    """Answer initialize with a version that no revision has."""

    steps = ()
    may_fail = True

    def initialize(self, request: Json) -> None:
        """Answer initialize."""
        self.answer(request, {**self.opening(), "protocolVersion": "1999-01-01"})


class Questions(Part):
    """Ask for a ping, roots, a sample and two elicitations, whatever the client declared."""

    def call(self, request: Json) -> None:
        """Ask, and answer the call when all answers are there, or after a while."""
        open_ = {"ping": "ping", **{name: method for name, (method, _) in QUESTIONS.items()}}
        if self.revision < "2025-06-18":
            del open_["elicitation"]
        if self.revision < "2025-11-25":
            del open_["url"]

        def end() -> None:
            if open_:
                open_.clear()
                self.answer(request, self.text("done"))

        def came(name: str, _response: Json) -> None:
            if open_.pop(name, None) and not open_:
                self.answer(request, self.text("done"))

        for name, method in list(open_.items()):
            params = QUESTIONS[name][1] if name in QUESTIONS else {}
            self.ask(method, partial(came, name), **params)
        self.later(PATIENCE, end)


class Pagination(Part):
    """Give the tools in several pages, with cursors that only an unaltered copy matches."""

    def tools(self, params: Json) -> Json | None:
        """Return a page."""
        cursor = params.get("cursor", "")
        if cursor not in CURSORS:
            return None
        page = CURSORS.index(cursor)
        more = {"nextCursor": CURSORS[page + 1]} if page + 1 < len(CURSORS) else {}
        return {"tools": [{**NUMBERS, "name": f"add_{page}"} if page else NUMBERS], **more}


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
    """Report progress of a call, if the client wants it."""

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


class SlowExit(Part):
    """Go on for a second after the end of the input."""

    def closed(self) -> None:
        """Wait."""
        threading.Event().wait(1.0)


class Exit(Part):
    """Exit in the middle of the first call."""

    restarts = may_fail = True

    def call(self, request: Json) -> None:
        """Exit in place of an answer."""
        del request
        self.gone = 1


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
    """Answer with a content type, members and notifications that no revision has."""

    may_fail = True

    def call(self, request: Json) -> None:
        """Answer with all of them."""
        self.say({"method": "notifications/x-touchstone/unknown", "params": {"n": 1}})
        unknown = {"type": "x-touchstone/hologram", "data": "AAAA"}
        self.answer(request, {"content": [unknown, *self.text("5")["content"]], "x-more": [1]})


class SchemaRef(Part):
    """List a tool whose schema refers to an address of ours, which nobody may fetch."""

    modern = True

    def __init__(self, recorder: Recorder, *given: Any) -> None:
        super().__init__(recorder, *given)

        class Canary(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                recorder.event(f"{FETCHED}{self.path}")
                self.send_error(404)

            do_HEAD = do_POST = do_GET  # noqa: N815  (as above)

            def log_message(self, *_words: Any) -> None:
                """Write nothing to stderr."""

        self._canary = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canary)
        threading.Thread(target=self._canary.serve_forever, daemon=True).start()

    def tools(self, params: Json) -> Json | None:
        """Return the tool and a harmless one."""
        del params
        address = f"http://127.0.0.1:{self._canary.server_address[1]}/canary.json"
        schema = {"type": "object", "properties": {"a": {"$ref": address}}}
        return {"tools": [NUMBERS, {"name": "far", "inputSchema": schema}]}


class Stateless(Part):
    """List the tools and call one, in 2026-07-28."""

    modern = True


class State(Part):
    """Ask for input twice in 2026-07-28, with a state to return, and then without one."""

    modern = True
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
        if not wanted or (state is None and given):
            super().call(request)
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


class Auth(Part):
    """Ask for a token, with the metadata and the scope in the challenge."""

    modern = both = may_fail = True
    protection = Protection(supported=("read", "write", "admin"))


class AuthDiscovery(Auth):
    """Ask for a token; the metadata is where a client looks last, and the token is renewed once."""

    steps = TWICE
    protection = Protection(
        place=f"{WELL_KNOWN}oauth-protected-resource",
        names_place=False,
        scope="",
        supported=("read", "write"),
        tenant=TENANT,
        places=(f"{TENANT}{WELL_KNOWN}openid-configuration",),
        then=FORGETS,
    )


class AuthMarch(Auth):
    """Ask for a token as a server of 2025-03-26 without metadata."""

    modern = both = False
    protection = Protection(scope="", defaults=True)

    def initialize(self, request: Json) -> None:
        """Answer initialize."""
        self.revision = "2025-03-26"
        self.answer(request, self.opening())


def _auth(about: str, **members: Any) -> type[Part]:
    """Return a part that differs from ``Auth`` in its protection."""
    steps = TWICE if "then" in members else Auth.steps
    protection = Protection(**members)
    return type("Other", (Auth,), {"__doc__": about, "steps": steps, "protection": protection})


SCENARIOS: Final[dict[str, type[Part]]] = {
    "tools_call": ToolsCall,
    "version": Version,
    "questions": Questions,
    "pagination": Pagination,
    "list-changed": ListChanged,
    "progress": Progress,
    "cancel": Cancel,
    "slow-exit": SlowExit,
    "exit": Exit,
    "resume": Resume,
    "session-lost": SessionLost,
    "content": Content,
    "stateless": Stateless,
    "schema-ref": SchemaRef,
    "state": State,
    "auth": Auth,
    "auth-discovery": AuthDiscovery,
    "auth-step-up": _auth("Ask for a further scope in a call.", more="write"),
    "auth-refusals": _auth(
        "Refuse a call for want of a scope, whatever the token has.",
        scope="", more="write", never=True,
    ),
    "auth-no-pkce": _auth(
        "Ask for a token of an issuer that does not say that it has PKCE.",
        metadata={"code_challenge_methods_supported": None},
    ),
    "auth-resource": _auth(
        "Ask for a token with the metadata of another server.", resource=f"{ELSEWHERE}/mcp"
    ),
    "auth-issuer": _auth(
        "Ask for a token of an issuer whose metadata names another issuer.",
        tenant=TENANT, places=(f"{WELL_KNOWN}oauth-authorization-server{TENANT}",),
        metadata={"issuer": ELSEWHERE},
    ),
    "auth-iss": _auth(
        "Answer an authorization request as another issuer.", response={"iss": ELSEWHERE}
    ),
    "auth-no-iss": _auth(
        "Answer an authorization request without the issuer that was promised.",
        response={"iss": None},
    ),
    "auth-state": _auth(
        "Answer an authorization request with another state.",
        response={"state": "of-another-request"},
    ),
    "auth-moves": _auth("Ask for a token of another issuer after the first call.", then=MOVES),
    "auth-2025-03-26": AuthMarch,
}  # fmt: skip
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
