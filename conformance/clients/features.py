"""clients/features: capabilities, cancellation, progress and pagination."""

from collections.abc import Iterator
from typing import Any, ClassVar

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
    object_in,
    parts,
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


@parts.scenario("progress")
class Progress(parts.Part):
    """Report progress of a call, if the client wants it; declare tasks, and no tool that is one."""

    capabilities: ClassVar = {
        **parts.Part.capabilities,
        "tasks": {"requests": {"tools": {"call": {}}}},
    }
    steps = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3, "progress": True},
        {"call": "add_numbers", "a": 4, "b": 5, "progress": True},
    )

    def call(self, request: parts.Json) -> None:
        """Report three times, then answer."""
        token = object_in(request, "params", "_meta").get("progressToken")
        for value in (1, 2, 3) if token is not None else ():
            params = {"progressToken": token, "progress": value, "total": 3}
            self.say({"method": "notifications/progress", "params": params})
        super().call(request)


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
        taken = taken and not _is_over(record, before, asked.line)
        actual = f"progressToken {brief(token)}, which line {before} has too"
        clause = "client-progress-token-unique"
        beside = (("", before),) if before is not None else ()
        yield Seen(clause, not taken, asked.line, "a token of its own", actual, beside=beside)
        active[key] = asked.line


def _is_over(record: Record, line: int | None, before: int) -> bool:
    """Whether no answer to the request of a line was due any more at another line."""
    sessions = not is_modern(record.revision)  # a stream of a session may be resumed
    at = record.transcript[before].at
    ended = line is not None and not sessions and record.ended_by(line, at)
    return ended or _is_cancelled(record, line, before)


def _is_cancelled(record: Record, line: int | None, before: int) -> bool:
    """Whether the client cancelled the request of a line before another line."""
    own = [a for a in clients.peer(record).session.asked if a.line == line and a.cancelled]
    return any(
        message.method == "notifications/cancelled" and entry.n < before
        for entry, message in record.messages(Role.NOTIFICATION)
        if own
    )


CURSORS = ("page two/€ ?&=", "cGFnZSB0aHJlZQ==")
"""Cursors that a client which reads or rewrites them would change."""


@parts.scenario("pagination", official="")
class Pagination(parts.Part):
    """Give the tools in several pages, with cursors that only an unaltered copy matches."""

    CURSORS: ClassVar[tuple[str | None, ...]] = (None, *CURSORS)

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return a page."""
        cursor = params.get("cursor")
        if cursor not in self.CURSORS:
            return None
        page = self.CURSORS.index(cursor)
        more = {"nextCursor": self.CURSORS[page + 1]} if page + 1 < len(self.CURSORS) else {}
        return {
            "tools": [{**parts.NUMBERS, "name": f"add_{page}"} if page else parts.NUMBERS],
            **more,
        }


@parts.scenario("list-changed")
class ListChanged(parts.Part):
    """Say that the tools have changed, after the first list."""

    is_about_sessions = True
    _listed = False

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return the tools; more of them the second time."""
        if not self._listed:
            self._listed = True
            self.later(0.05, lambda: self.say({"method": "notifications/tools/list_changed"}))
            return super().tools(params)
        return {"tools": [parts.NUMBERS, {**parts.NUMBERS, "name": "add_more"}]}


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


@parts.scenario("pages", official="")
class Pages(Pagination):
    """Give the tools in several pages in 2026-07-28; the second cursor is an empty string."""

    modern = True
    CURSORS = (None, "", CURSORS[0])


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
