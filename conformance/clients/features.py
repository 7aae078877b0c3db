"""clients/features: capabilities, cancellation, progress, pagination, and answers to the server."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Asked,
    Breach,
    Happened,
    Phase,
    Record,
    Role,
    Seen,
    ambient,
    brief,
    clients,
    id_key,
    is_modern,
    list_in,
    misfit,
    object_in,
    value_in,
)

FEATURES = {
    "tools/": "tools",
    "prompts/": "prompts",
    "resources/subscribe": "resources.subscribe",
    "resources/unsubscribe": "resources.subscribe",
    "resources/": "resources",
    "logging/": "logging",
    "completion/": "completions",
    "tasks/": "tasks",
}
"""Beginning of a method -> the capability of the server that it belongs to."""

REJECTED = -1
"""Code of the error of a user who rejected a sample."""

CONSENT = "/consent"
"""Path of the page of the elicitation in URL mode."""

OWN = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
"""Request of a server -> the capability of the client that it belongs to."""


@ambient("client-server-capabilities", "client-server-capabilities-legacy")
def uses_only_features_that_the_server_declared(record: Record) -> Iterator[Seen]:
    """No request is about a feature that the server did not declare."""
    accepted = clients.acceptance(record)
    if accepted is None or is_modern(record.revision):
        return
    entry, result = accepted
    has = object_in(result, "capabilities")
    for asked in clients.requests(record):
        found = (f for start, f in FEATURES.items() if (asked.method or "").startswith(start))
        feature = next(found, "")
        if asked.line < entry.n or not feature:
            continue
        if feature == "completions" and record.revision == "2024-11-05":
            continue  # that revision has no such capability
        name, _, flag = feature.partition(".")
        passed = name in has and (not flag or object_in(has, name).get(flag) is True)
        actual = f"{asked.method}, and the server did not declare {feature}"
        for clause in ("client-server-capabilities", "client-server-capabilities-legacy"):
            yield Seen(clause, passed, asked.line, "declared features only", actual)


@ambient("client-task-support")
def augments_calls_with_tasks_as_declared(record: Record) -> Iterator[Seen]:
    """A call is a task only if the server and the tool allow it, and if the tool requires it."""
    accepted = clients.acceptance(record)
    if accepted is None:
        return
    can = "call" in object_in(accepted[1], "capabilities", "tasks", "requests", "tools")
    lists = [one for one in clients.requests(record) if one.method == "tools/list"]
    for asked in clients.requests(record):
        if asked.method != "tools/call" or asked.line < accepted[0].n:
            continue
        params = object_in(asked.value, "params")
        said = _task_support(record, lists, asked.line, params.get("name")) if can else {"none"}
        if len(said) != 1 or said == {"optional"}:
            continue  # the tool is not in a list, or the lists differ
        required = said == {"required"}
        unread = can and not record.scenario  # a host may know the tool from elsewhere
        expected = "a task" if required else "no task"
        actual = "a call without a task" if required else "a call with a task"
        clause, mild = "client-task-support", Breach.WARN if unread else None
        passed = ("task" in params) is required
        yield Seen(clause, passed, asked.line, expected, actual, mild=mild)


def _task_support(record: Record, lists: list[Asked], line: int, name: Any) -> set[Any]:
    """Return what the lists before a line say of a tool: its values of taskSupport."""
    found = ((one, clients.answer(record, one)) for one in lists)
    return {
        object_in(tool, "execution").get("taskSupport", "forbidden")
        for one, answer in found
        if answer is not None and answer[0].n < line
        for tool in clients.tools(record, one)
        if tool.get("name") == name
    }


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
        yield Seen("client-capability-declared", passed, entry.n, expected, actual)
        modes = object_in(can, "elicitation") or {"form": {}}
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


@ambient("client-url-not-fetched")
def opens_no_page_without_consent(record: Record) -> Iterator[Seen]:
    """The page of an elicitation that the client did not accept is not fetched."""
    events = (one for one in record.transcript if one.happened is Happened.FETCHED)
    paths = ((one, one.text.removeprefix(Happened.FETCHED)) for one in events)
    fetched = next((one for one, path in paths if path.startswith(CONSENT)), None)
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


@ambient("client-cancel-known", "client-cancel-initialize")
def cancels_its_own_requests(record: Record) -> Iterator[Seen]:
    """A cancellation names a request of the client, and never initialize."""
    asked = {id_key(a.value.get("id")): a for a in clients.peer(record).session.asked}
    for entry, message in record.messages(Role.NOTIFICATION):
        if message.method != "notifications/cancelled":
            continue
        own = object_in(message.value, "params").get("requestId")
        known = asked.get(id_key(own))
        passed = known is not None and known.line < entry.n
        actual = f"requestId {brief(own)}, which no request of the client had"
        yield Seen("client-cancel-known", passed, entry.n, "the id of a request", actual)
        wrong = known is not None and known.method == "initialize"
        expected = "another request than initialize"
        yield Seen("client-cancel-initialize", not wrong, entry.n, expected, "initialize")


@ambient("client-progress-token-unique")
def gives_active_requests_their_own_tokens(record: Record) -> Iterator[Seen]:
    """No two active requests have the same progressToken."""
    active: dict[Any, int] = {}
    for asked in clients.requests(record):
        token = object_in(asked.value, "params", "_meta").get("progressToken")
        key = id_key(token)
        if key is None:
            continue
        before = active.get(key)
        answered = None if before is None else clients.peer(record).answer_to(before)
        taken = before is not None and (answered is None or answered[0].n > asked.line)
        taken = taken and not _is_cancelled(record, before, asked.line)
        actual = f"progressToken {brief(token)}, which line {before} has too"
        clause = "client-progress-token-unique"
        yield Seen(clause, not taken, asked.line, "a token of its own", actual)
        active[key] = asked.line


def _is_cancelled(record: Record, line: int | None, before: int) -> bool:
    """Whether the client cancelled the request of a line before another line."""
    own = [a for a in clients.peer(record).session.asked if a.line == line and a.cancelled]
    return any(
        message.method == "notifications/cancelled" and entry.n < before
        for entry, message in record.messages(Role.NOTIFICATION)
        if own
    )


@ambient("client-progress-known", "client-progress-increases")
def reports_progress_of_requests(record: Record) -> Iterator[Seen]:
    """Progress of the client has the token of a request of the server, and increases."""
    given = {
        id_key(object_in(asked.value, "params", "_meta").get("progressToken")): asked.line
        for asked in record.transcript.session.asked
    }
    last: dict[Any, float] = {}
    for entry, message in record.messages(Role.NOTIFICATION):
        if message.method != "notifications/progress":
            continue
        params = object_in(message.value, "params")
        key, value = id_key(params.get("progressToken")), params.get("progress")
        passed = key is not None and given.get(key, entry.n) < entry.n
        actual = f"progressToken {brief(params.get('progressToken'))}"
        expected = "the token of a request of the server"
        yield Seen("client-progress-known", passed, entry.n, expected, actual)
        if isinstance(value, int | float) and key is not None:
            more = key not in last or value > last[key]
            actual = f"{brief(value)} after {brief(last.get(key))}"
            yield Seen("client-progress-increases", more, entry.n, "more than before", actual)
            last[key] = value


@ambient("client-pages", "client-pages-end")
def lists_all_pages(record: Record) -> Iterator[Seen]:
    """Each nextCursor is asked for, and after a page without one the list is complete."""
    asked = [one for one in clients.requests(record) if (one.method or "").endswith("/list")]
    for one in asked if record.scenario else ():
        result = clients.result(record, one)
        later = [a for a in asked if a.method == one.method and a.line > one.line]
        following, own = result.get("nextCursor"), object_in(one.value, "params").get("cursor")
        cursors = [object_in(a.value, "params").get("cursor") for a in later]
        if following and isinstance(following, str):
            passed = any(cursor is not None for cursor in cursors)  # another clause judges which
            if passed or clients.event(record, Happened.ENDED):
                expected = f"a request with cursor {brief(following, 60)}"
                actual = "the client ended without it"
                yield Seen("client-pages", passed, one.line, expected, actual)
        elif own is not None and result and following is None:
            at = later[0].line if later else one.line
            actual = f"cursor {brief(own, 60)} again"
            passed = cursors[:1] != [own]
            yield Seen("client-pages-end", passed, at, "no request for a further page", actual)


@ambient("client-cursor-empty")
def asks_for_the_page_of_an_empty_cursor(record: Record) -> Iterator[Seen]:
    """An empty nextCursor is not the end of a list."""
    asked = clients.requests(record)
    for one in asked:
        if clients.result(record, one).get("nextCursor") != "":
            continue
        later = [a for a in asked if a.method == one.method and a.line > one.line]
        passed = any(object_in(a.value, "params").get("cursor") == "" for a in later)
        if passed or (record.scenario and clients.event(record, Happened.ENDED)):
            expected, actual = 'a request with cursor ""', "the client ended without it"
            yield Seen("client-cursor-empty", passed, one.line, expected, actual)


@ambient("client-cursor-opaque")
def returns_cursors_unaltered(record: Record) -> Iterator[Seen]:
    """A cursor is one that the server gave in an earlier page of the same list."""
    pages: dict[str | None, set[str]] = {}
    asked = clients.requests(record)
    for one in asked:
        cursor = object_in(one.value, "params").get("cursor")
        if not isinstance(cursor, str) or not (one.method or "").endswith("/list"):
            continue
        if one.phase is Phase.CLOSING:
            continue
        given = pages.setdefault(one.method, set())
        for before in asked:
            answer = clients.answer(record, before)
            if before.method == one.method and answer is not None and answer[0].n < one.line:
                following = clients.result(record, before).get("nextCursor")
                given |= {following} if isinstance(following, str) else set()
        expected = "a nextCursor of this list"
        actual = f"cursor {brief(cursor, 60)}, which the server never gave"
        yield Seen("client-cursor-opaque", cursor in given, one.line, expected, actual)
