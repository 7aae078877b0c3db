"""clients/questions: what a client answers to requests of the server, and how it retries."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from mcp_touchstone.suite import (
    META,
    Asked,
    Breach,
    Happened,
    Kind,
    Record,
    Role,
    Seen,
    ambient,
    brief,
    clients,
    is_modern,
    list_in,
    misfit,
    object_in,
    parts,
    value_in,
)

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 3, "default": "Ada Lovelace"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 7},
        "color": {"type": "string", "enum": ["red", "green"], "default": "green"},
        "sure": {"type": "boolean", "default": True},
    },
    "required": ["name", "count"],
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
}
"""The form for which clients of the official suite have an answer ready."""

CONFIRM = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}}
"""Another one."""

ADD: parts.Json = {"role": "user", "content": {"type": "text", "text": "Add 2 and 3."}}
USE: parts.Json = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "u1", "name": "add_numbers", "input": {"a": 2, "b": 3}}],
}
RESULT: parts.Json = {"type": "tool_result", "toolUseId": "u1", "content": []}
QUESTIONS: dict[str, tuple[str, parts.Json]] = {
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
        {"messages": [ADD], "maxTokens": 50, "tools": [parts.NUMBERS]},
    ),
    "sampling without a result": (
        "sampling/createMessage",
        {"messages": [ADD, USE, ADD], "maxTokens": 50, "tools": [parts.NUMBERS]},
    ),
    "sampling with a mixed result": (
        "sampling/createMessage",
        {
            "messages": [ADD, USE, {"role": "user", "content": [RESULT, ADD["content"]]}],
            "maxTokens": 50,
            "tools": [parts.NUMBERS],
        },
    ),
}
ACCEPTS: parts.Json = {"answer": "accept", "content": {"name": "Ada Lovelace", "count": 7}}
"""The step that says how to answer the form."""

CONSENT = "consent"
"""The page of the elicitation in URL mode."""

LONGEST_TOKEN = 200
"""Characters; no vocabulary that is used has longer tokens."""

PATIENCE = 5.0
"""Seconds that a call waits for the answers of the client."""

REJECTED = -1
"""Code of the error of a user who rejected a sample."""

REFUSALS = {"decline", "cancel"}
"""Answers of a user who gave nothing to an elicitation."""

OWN = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
"""Request of a server -> the capability of the client that it belongs to."""


@parts.scenario("questions", official="elicitation-sep1034-client-defaults elicitation-defaults")
class Questions(parts.Part):
    """Ask for a ping, roots, four samples and two elicitations, whatever the client declared."""

    is_about_sessions = True
    steps = (ACCEPTS, *parts.Part.steps)
    named = ("test_client_elicitation_defaults",)

    def call(self, request: parts.Json) -> None:
        """Ask, and answer the call when all answers are there, or after a while."""
        is_named = object_in(request, "params").get("name") in self.named
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

        def came(name: str, _response: parts.Json) -> None:
            if open_.pop(name, None) and not open_:
                self.answer(request, self.text("done"))

        for name, method in list(open_.items()):
            params = QUESTIONS[name][1] if name in QUESTIONS else {}
            params = {**params, "url": self.canary + CONSENT} if name == "url" else params
            if name == "elicitation" and is_named:
                params = {**params, "requestedSchema": DEFAULTS}
            self.ask(method, partial(came, name), **params)
        self.later(PATIENCE, end)


def _pipe(record: Record, n: int) -> object:
    """Return the response in which a line of ours came; None on stdio, which has one pipe."""
    origin = clients.peer(record)[n].origin
    return origin and origin.exchange


@ambient("client-ping-answered")
def answers_pings(record: Record) -> Iterator[Seen]:
    """A ping of the server gets an empty result.

    Silence counts if the client answered a later request, or read a later answer and ended. Over
    HTTP that answer came in the same stream.
    """
    clause, expected = "client-ping-answered", "an empty result"
    asked = record.transcript.session.asked
    last = max((one.line for one in asked if one.answers), default=0)
    own = filter(None, (clients.answer(record, one) for one in clients.requests(record)))
    read = [found[0].n for found in own] if clients.event(record, Happened.ENDED) else []
    for one in (one for one in asked if one.method == "ping"):
        found = record.transcript.answer_to(one.line)
        if found is not None:
            result = object_in(found[1].value, "result")
            is_result = found[1].kind is Kind.RESULT
            mild = Breach.WARN if is_result else None
            passed = is_result and result.keys() <= {"_meta"}
            yield Seen(clause, passed, found[0].n, expected, brief(found[1].value), mild=mild)
        elif one.line < last:
            yield Seen(clause, False, one.line, expected, "none, but a later request got an answer")
        elif any(one.line < n and _pipe(record, one.line) is _pipe(record, n) for n in read):
            actual = "none, and the client went on to its end"
            yield Seen(clause, False, one.line, expected, actual, mild=Breach.WARN)


@ambient("client-capability-declared")
def tells_of_changed_roots_only_as_it_declared(record: Record) -> Iterator[Seen]:
    """notifications/roots/list_changed needs roots.listChanged."""
    for entry, message in record.messages(Role.NOTIFICATION):
        if message.method == "notifications/roots/list_changed" and not is_modern(record.revision):
            passed = (
                object_in(clients.declared(record, entry.n), "roots").get("listChanged") is True
            )
            mild = Breach.WARN if record.revision < "2025-06-18" else None
            expected, actual = "the capability roots.listChanged", "it was not declared"
            yield Seen("client-capability-declared", passed, entry.n, expected, actual, mild=mild)


@ambient("client-capability-declared", "client-elicitation-mode")
def answers_only_what_it_declared(record: Record) -> Iterator[Seen]:
    """Requests of the server are fulfilled only with the capability for them."""
    for entry, method, params, answer, line in clients.questions(record):
        own = OWN.get(method)
        if own is None:
            continue
        can = clients.declared(record, line if is_modern(record.revision) else entry.n)
        fulfilled = "result" in answer
        actual = f"a result of {method}, without the capability {own}"
        expected = f"the capability {own}, or an error"
        passed = own in can or not fulfilled
        result = object_in(answer, "result")
        refused = own == "elicitation" and result.get("action") in REFUSALS
        gives_none = own == "roots" and result.get("roots") == []
        mild = Breach.WARN if refused or gives_none else None
        yield Seen("client-capability-declared", passed, entry.n, expected, actual, mild=mild)
        modes = {"form", "url"} & object_in(can, "elicitation").keys() or {"form"}
        mode = params.get("mode", "form")
        if own == "elicitation" and own in can and mode not in modes:
            clause, expected = "client-elicitation-mode", "error -32602 (Invalid params)"
            accepted = object_in(answer, "result").get("action") == "accept"
            code = object_in(answer, "error").get("code")
            mild = None if accepted else Breach.WARN
            actual = f"accepted, without the mode {brief(mode)}" if accepted else brief(answer, 60)
            yield Seen(clause, code == -32602, entry.n, expected, actual, mild=mild)


@ambient("client-elicitation-without-mode", "client-sampling-tools")
def answers_by_mode_and_tools(record: Record) -> Iterator[Seen]:
    """An elicitation without a mode is a form; tools for a sample need a capability."""
    for entry, method, params, answer, line in clients.questions(record):
        can = clients.declared(record, line if is_modern(record.revision) else entry.n)
        code = object_in(answer, "error").get("code")
        elicitation = object_in(can, "elicitation")
        form = "elicitation" in can and ("form" in elicitation or "url" not in elicitation)
        if method == "elicitation/create" and "mode" not in params and form:
            actual = f"the error {brief(code)}"
            passed = code not in {-32601, -32602}
            clause = "client-elicitation-without-mode"
            yield Seen(clause, passed, entry.n, "an answer as to a form", actual)
        lacks = "sampling" in can and "tools" not in object_in(can, "sampling")
        if method == "sampling/createMessage" and {"tools", "toolChoice"} & set(params) and lacks:
            passed, actual = "error" in answer, "a result, without the capability sampling.tools"
            yield Seen("client-sampling-tools", passed, entry.n, "an error", actual)


@ambient("client-sampling-results")
def refuses_samples_with_wrong_tool_results(record: Record) -> Iterator[Seen]:
    """Messages in which the result of a tool is missing, or beside other content, get an error."""
    for entry, method, params, answer, _line in clients.questions(record):
        can = object_in(clients.declared(record, entry.n), "sampling")
        wrong = _result_fault(params) if method == "sampling/createMessage" else ""
        code = object_in(answer, "error").get("code")
        if wrong and "tools" in can and code != REJECTED:
            expected, actual = f"the error -32602 ({wrong})", brief(answer, 60)
            yield Seen("client-sampling-results", code == -32602, entry.n, expected, actual)


def _result_fault(params: dict[str, Any]) -> str:
    """Return what is wrong with the tool results of a sampling request; empty if nothing."""
    used: set[str] = set()
    for message in list_in(params, "messages"):
        content = value_in(message, "content")
        several = content if isinstance(content, list) else [content]
        blocks = [block for block in several if isinstance(block, dict)]
        kinds = {str(block.get("type")) for block in blocks}
        if "tool_result" in kinds and len(kinds) > 1:
            return "a tool result beside other content"
        if used - {str(block.get("toolUseId")) for block in blocks}:
            break
        used = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    return "a tool result is missing" if used else ""


@ambient("client-sampling-max-tokens")
def samples_no_more_than_asked(record: Record) -> Iterator[Seen]:
    """A sample is no longer than maxTokens allows: a word is a token or more."""
    for entry, method, params, answer, _line in clients.questions(record):
        most, content = params.get("maxTokens"), value_in(answer, "result", "content")
        if method == "sampling/createMessage" and isinstance(most, int) and content:
            blocks = content if isinstance(content, list) else [content]
            texts = [t for one in blocks if isinstance(t := value_in(one, "text"), str)]
            least = sum(max(len(text.split()), len(text) // LONGEST_TOKEN) for text in texts)
            expected, actual = f"{most} tokens at most", f"{least} tokens or more"
            mild = None if is_modern(record.revision) else Breach.WARN
            clause = "client-sampling-max-tokens"
            yield Seen(clause, least <= most, entry.n, expected, actual, mild=mild)


@ambient("client-url-not-fetched")
def opens_no_page_without_consent(record: Record) -> Iterator[Seen]:
    """The page of an elicitation that the client did not accept is not fetched."""
    events = record.transcript.events(Happened.FETCHED)
    paths = ((one, one.text.removeprefix(Happened.FETCHED)) for one in events)
    fetched = next((one for one, path in paths if path.startswith(f"/{CONSENT}")), None)
    for entry, _method, params, answer, _line in clients.questions(record):
        accepted = object_in(answer, "result").get("action") == "accept"
        if params.get("mode") == "url" and not (accepted and fetched):
            at = fetched.n if fetched else entry.n
            actual = "the client fetched it, and did not accept"
            yield Seen("client-url-not-fetched", fetched is None, at, "no request to it", actual)


@ambient("client-roots-file-uri")
def names_roots_by_file_uris(record: Record) -> Iterator[Seen]:
    """Each root is a file:// URI."""
    for entry, method, _params, answer, _line in clients.questions(record):
        for root in list_in(answer, "result", "roots") if method == "roots/list" else ():
            uri = value_in(root, "uri")
            passed = not isinstance(uri, str) or uri.startswith("file://")
            yield Seen("client-roots-file-uri", passed, entry.n, "a file:// URI", brief(uri))


@ambient("client-roots-error")
def refuses_roots_as_an_unknown_method(record: Record) -> Iterator[Seen]:
    """The error of a client without roots is -32601."""
    for entry, method, _params, answer, _line in clients.questions(record):
        refused = method == "roots/list" and "error" in answer
        if refused and "roots" not in clients.declared(record, entry.n):
            code = object_in(answer, "error").get("code")
            expected = "the error -32601 (Method not found)"
            actual = f"the error {brief(code)}"
            yield Seen("client-roots-error", code == -32601, entry.n, expected, actual)


@ambient("client-elicitation-content")
def fills_forms_as_asked(record: Record) -> Iterator[Seen]:
    """Accepted content fits the requestedSchema."""
    for entry, method, params, answer, _line in clients.questions(record):
        result = object_in(answer, "result")
        accepted = method == "elicitation/create" and result.get("action") == "accept"
        schema = params.get("requestedSchema")
        if accepted and isinstance(schema, dict) and params.get("mode", "form") == "form":
            wrong = misfit(schema, result.get("content", {}))
            if wrong is not None:
                expected = "content as in requestedSchema"
                yield Seen("client-elicitation-content", not wrong, entry.n, expected, wrong)


@parts.scenario("state", official="sep-2322-client-request-state")
class State(parts.Part):
    """Ask for input twice in 2026-07-28, with a state to return, and then without one."""

    modern = may_fail = True
    steps = (ACCEPTS, *parts.TWICE)
    WITH_STATE, WITHOUT = "test_mrtr_echo_state", "test_mrtr_no_state"
    named = (WITH_STATE, WITHOUT, "test_mrtr_unrelated", "test_mrtr_no_result_type")
    STATES = ('c3RhdGU=  +/ é\u2028\\"%41', '{"n": 1.0, "a" : [ ]}')

    def call(self, request: parts.Json) -> None:
        """Answer in up to three rounds, as far as the client can answer."""
        params = object_in(request, "params")
        if params.get("name") in self.named:
            self._call_named(request, params)
            return
        can = object_in(params, "_meta", META + "clientCapabilities")
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
            super().call(request)
        elif state is None:
            self._more(request, inputRequests=wanted, requestState=self.STATES[0])
        elif state == self.STATES[0]:
            self._more(request, requestState=self.STATES[1])
        elif state == self.STATES[1]:
            self._more(request, inputRequests=wanted)
        else:
            self.refuse(request, -32602, "Unknown requestState")

    def _call_named(self, request: parts.Json, params: parts.Json) -> None:
        """Answer a tool of the official scenario: it asks once, with a state or without one."""
        asks = params["name"] in {self.WITH_STATE, self.WITHOUT}
        if not asks or "inputResponses" in params:
            super().call(request)
            return
        form = {"message": "Do you confirm?", "requestedSchema": CONFIRM}
        wanted = {"confirm": {"method": "elicitation/create", "params": form}}
        more = {"requestState": self.STATES[0]} if params["name"] == self.WITH_STATE else {}
        self._more(request, inputRequests=wanted, **more)

    def _more(self, request: parts.Json, **more: Any) -> None:
        self.answer(request, {"resultType": "input_required", **more})


@ambient(
    "client-state-echoed",
    "client-state-not-invented",
    "client-retry-new-id",
    "client-retry-answers",
)
def retries_with_the_state_it_got(record: Record) -> Iterator[Seen]:
    """A retry has the requestState byte for byte, a new id, and all responses."""
    for asked in clients.stateless(record):
        params = object_in(asked.value, "params")
        if not {"inputResponses", "requestState"} & set(params):
            continue
        rounds = clients.earlier(record, asked)
        results = [clients.result(record, before) for before in rounds]
        states = [r["requestState"] for r in results if "requestState" in r]
        own, line = params.get("requestState"), asked.line
        if states and (len(states) == len(results) or "requestState" in params):
            expected, actual = f"requestState {brief(states[0], 60)}", brief(own, 60)
            yield Seen("client-state-echoed", own in states, line, expected, actual)
        elif not states:
            clause, passed = "client-state-not-invented", "requestState" not in params
            elsewhere = " of another request" if _is_of_another(record, asked, own) else ""
            actual = f"requestState {brief(own, 60)}{elsewhere}"
            yield Seen(clause, passed, line, "no requestState", actual)
        ids = [before.value.get("id") for before in rounds]
        expected, actual = "an id of its own", f"id {brief(asked.value.get('id'))} again"
        yield Seen("client-retry-new-id", asked.value.get("id") not in ids, line, expected, actual)
        if results:
            wanted = [set(object_in(result, "inputRequests")) for result in results]
            given = set(object_in(params, "inputResponses"))
            expected = f"responses to {', '.join(sorted(wanted[0])) or 'nothing'}"
            actual = f"responses to {', '.join(sorted(given)) or 'nothing'}"
            yield Seen("client-retry-answers", given in wanted, line, expected, actual)


def _is_of_another(record: Record, asked: Asked, state: Any) -> bool:
    """Whether the server gave a state for a request with another target."""
    given = (
        clients.result(record, one) for one in clients.stateless(record) if one.line < asked.line
    )
    return state is not None and any(result.get("requestState") == state for result in given)
