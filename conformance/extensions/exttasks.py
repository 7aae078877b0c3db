"""The Tasks extension of 2026-07-28 (SEP-2663): ``io.modelcontextprotocol/tasks``."""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcp_touchstone.suite import (
    TERMINAL,
    Breach,
    Conversation,
    Entry,
    Kind,
    Record,
    Reply,
    Request,
    Role,
    Seen,
    Subscription,
    ambient,
    arguments,
    brief,
    guessable,
    integral,
    object_in,
    scenario,
    timestamps,
    willing,
)

EXTENSION = "io.modelcontextprotocol/tasks"
ABLE: dict[str, Any] = {"extensions": {EXTENSION: {}}}
CALL, GET, UPDATE, CANCEL = "tools/call", "tasks/get", "tasks/update", "tasks/cancel"
MORE: dict[str, dict[str, Any]] = {UPDATE: {"inputResponses": {}}}
"""Members of params besides taskId."""

NOTICE = "notifications/tasks"
OF_REQUESTS = ("notifications/progress", "notifications/message")
STATUSES = ("working", "input_required", *TERMINAL)
PAYLOADS = {"input_required": "inputRequests", "completed": "result", "failed": "error"}

INVALID, LACKING = -32602, -32021
SEVERAL = 5
"""Number of tasks whose ids are compared."""
POLLS = 40
TRIED = 6
PAUSE = 0.25
"""The longest pause between two polls, in seconds."""

ONLY, REQUIRED = "exttasks-only-for-declaring-clients", "exttasks-required-capability-error"
OPERATIONS, DURABLE = "exttasks-operations-need-capability", "exttasks-durable-when-returned"
SHAPE, PAYLOAD = "exttasks-task-shape", "exttasks-status-payload"
TYPE, COMPLETES = "exttasks-result-type", "exttasks-iserror-completes"
ACKNOWLEDGES, IGNORES = "exttasks-acknowledges", "exttasks-ignores-unknown-responses"
UNKNOWN, UNKNOWN_TOO = "exttasks-unknown-id-get", "exttasks-unknown-id-others"
KEYS, FINAL = "exttasks-input-keys-unique", "exttasks-terminal-final"
UNGUESSABLE = "exttasks-id-unguessable"
RESULT, MESSAGE = "exttasks-result-of-request", "exttasks-failed-message"
KINDS = "exttasks-stream-kinds"


# --- traffic


@ambient(SHAPE, PAYLOAD, TYPE, COMPLETES, RESULT, MESSAGE)
def writes_tasks_of_the_extension_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Tasks have their members, the payload of their status, and the right resultType."""
    for entry, method, result in _results(record):
        kind = result.get("resultType")
        if method in {GET, UPDATE, CANCEL}:
            mild = Breach.WARN if kind == "task" and method == GET else None
            yield Seen(TYPE, kind == "complete", entry.n, "complete", brief(kind), mild=mild)
        elif kind == "task":
            yield Seen(TYPE, method == CALL, entry.n, "a task only of tools/call", method)
        elif method == CALL and {"taskId", "status"} <= result.keys() and "content" not in result:
            yield Seen(TYPE, False, entry.n, "task for a new task", brief(kind))
    for entry, method, task in _tasks(record):
        wrong, odd = _faults(task)
        expected, mild = "a task with all its members", None if wrong else Breach.WARN
        yield Seen(SHAPE, not wrong + odd, entry.n, expected, ", ".join(wrong + odd), mild=mild)
        status = task.get("status")
        member = PAYLOADS.get(status) if isinstance(status, str) and method != CALL else None
        if member is not None:
            passed = isinstance(task.get(member), dict)
            expected = f"{member} of a task in status {status}"
            yield Seen(PAYLOAD, passed, entry.n, expected, brief(task.get(member)))
        if method == GET and status == "failed":
            said = task.get("statusMessage")
            yield Seen(MESSAGE, bool(said), entry.n, "a statusMessage", brief(said))
        if method != CALL and isinstance(end := task.get(member or ""), dict):
            if status == "completed":
                fine = isinstance(end.get("content"), list)
                yield Seen(RESULT, fine, entry.n, "a result of tools/call", brief(end))
            elif status == "failed":
                fine = integral(end.get("code")) and isinstance(end.get("message"), str)
                yield Seen(RESULT, fine, entry.n, "a JSON-RPC error", brief(end))
        if status == "failed" and method != CALL:
            expected = "an error, and no result, of a failed task"
            yield Seen(COMPLETES, "result" not in task, entry.n, expected, "a result")


def _results(record: Record) -> Iterator[tuple[Entry, str, dict[str, Any]]]:
    """Yield results to requests, if the server declares the extension."""
    spoken = record.profile.spoken.get(record.revision)
    if spoken is not None and EXTENSION in spoken.extensions:
        for entry, message in record.answers(Kind.RESULT):
            result = message.value["result"]
            if message.method and isinstance(result, dict):
                yield entry, message.method, result


def _tasks(record: Record) -> Iterator[tuple[Entry, str, dict[str, Any]]]:
    """Yield the tasks that a server shows, each with the method of its message."""
    for entry, method, result in _results(record):
        if method == GET or (method == CALL and result.get("resultType") == "task"):
            yield entry, method, result
    for entry, message in record.messages(Role.NOTIFICATION):
        if message.method == NOTICE:
            yield entry, NOTICE, object_in(message.value, "params")


def _faults(task: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the wrong members of a task and the merely unusual ones."""
    wrong, odd = [], []
    for member in ("taskId", "createdAt", "lastUpdatedAt"):
        if not isinstance(task.get(member), str):
            wrong.append(f"{member} {brief(task.get(member))}")
        elif member != "taskId" and timestamps.instant(task[member]) is None:
            odd.append(f"{member} {brief(task[member])}")
    if task.get("status") not in STATUSES:
        wrong.append(f"status {brief(task.get('status'))}")
    if not isinstance(task.get("statusMessage", ""), str):
        wrong.append(f"statusMessage {brief(task['statusMessage'])}")
    if "ttlMs" not in task:
        wrong.append("no ttlMs")
    for member in ("ttlMs", "pollIntervalMs"):
        value = task.get(member, 0)
        if value is None and member == "ttlMs":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            wrong.append(f"{member} {brief(value)}")
        elif value != int(value):
            odd.append(f"{member} {value}")
    return wrong, odd


@ambient(ONLY)
def returns_tasks_only_to_declaring_clients(record: Record) -> Iterator[Seen]:
    """A request without the extension gets no task."""
    spoken = record.profile.spoken.get(record.revision)
    if spoken is None or EXTENSION not in spoken.extensions:
        return
    for entry, message in record.answers(Kind.RESULT, CALL):
        declared = record.declared(message.answers or 0).get("extensions")
        if EXTENSION not in (declared or {}):
            kind = object_in(message.value, "result").get("resultType")
            yield Seen(ONLY, kind != "task", entry.n, "no task, as none was declared", "a task")


@ambient(KEYS, FINAL)
def keeps_keys_and_terminal_statuses(record: Record) -> Iterator[Seen]:
    """The request under a key of inputRequests and a terminal status never change."""
    known: dict[tuple[Any, str], Any] = {}
    ended: dict[Any, tuple[int, str]] = {}
    asked = {e.n: m.answers for e, m in record.answers(Kind.RESULT)}
    for entry, _, task in _tasks(record):
        own, status = task.get("taskId"), task.get("status")
        if not isinstance(own, str):
            continue
        for key, request in object_in(task, "inputRequests").items():
            same = known.setdefault((own, key), request) == request
            expected = f"one request under the key {brief(key)}"
            yield Seen(KEYS, same, entry.n, expected, brief(request))
        line, before = ended.get(own, (0, ""))
        if before and (asked.get(entry.n) or 0) > line:
            yield Seen(FINAL, status == before, entry.n, f"status {before}", brief(status))
        if status in TERMINAL:
            ended.setdefault(own, (entry.n, str(status)))


# --- tasks


def _able(talk: Conversation) -> dict[str, Any]:
    """Return the ``_meta`` of a client that declares every capability and the extension."""
    return talk.wire.meta(capabilities={**willing(talk.revision).capabilities, **ABLE})


def _calls(talk: Conversation) -> list[Request]:
    """Return calls that are safe, the best first."""
    known = talk.examples("callable-tool")
    names = {example.name for example in known}
    free = [Request(CALL, {"name": n, "arguments": {}}) for n in talk.spoken.harmless]
    return [*known, *(call for call in free if call.params["name"] not in names)]


def _created(talk: Conversation, call: Request) -> tuple[Reply, str]:
    """Call as a client with the extension; return the answer and the task id, or an empty id."""
    reply = talk.run(call, meta=_able(talk), required=False)
    result = reply.result or {}
    own = result.get("taskId") if result.get("resultType") == "task" else None
    return reply, own if isinstance(own, str) else ""


def _ask(talk: Conversation, method: str, own: str, **more: Any) -> Reply:
    params = {"taskId": own, **more}
    return talk.wire.request(method, params, meta=_able(talk), required=False)


def _giving(talk: Conversation) -> tuple[Request, str] | None:
    """Return the first call that creates a task, and the id of that task."""
    for call in _calls(talk)[:TRIED]:
        _, own = _created(talk, call)
        if own:
            return call, own
    return None


@scenario(DURABLE, ONLY, REQUIRED, OPERATIONS, ACKNOWLEDGES, IGNORES, lasts=True)
def serves_tasks_of_the_extension(talk: Conversation) -> None:
    """A task can be read at once, updated and cancelled, but only by clients with the extension."""
    given = _giving(talk)
    if given is None:
        talk.judge.unseen(
            (DURABLE, ONLY, REQUIRED, OPERATIONS, ACKNOWLEDGES, IGNORES),
            "no read-only call gave a task",
        )
        return
    call, own = given
    known = _ask(talk, GET, own)
    expected = "the task that was just returned"
    talk.judge.expect_result(known, DURABLE, expected)
    update = _ask(talk, UPDATE, own, inputResponses={"touchstone-unexpected": {"action": "cancel"}})
    if (_ask(talk, GET, own).result or {}).get("status") not in TERMINAL:
        expected = "an empty result, because unknown keys are ignored"
        talk.judge.expect_result(update, IGNORES, expected)
    _judge_undeclared(talk, call, own)
    _follow(talk, own)
    _ask(talk, GET, own)  # keeps_keys_and_terminal_statuses compares the status
    _, other = _created(talk, call)
    if other:
        _judge_acknowledgment(talk, _ask(talk, CANCEL, other), other)
    talk.judge.unseen((ACKNOWLEDGES, IGNORES), "each task was over at once")


def _judge_undeclared(talk: Conversation, call: Request, own: str) -> None:
    """Use the task, and repeat its call, as a client without the extension."""
    plain = talk.run(call, required=False)
    made = (plain.result or {}).get("resultType") == "task"
    expected = "no task, because the request does not declare the extension"
    talk.judge.expect(plain, ONLY, not made, expected)
    if plain.is_error:
        needed = object_in(plain.error, "data", "requiredCapabilities", "extensions")
        passed = plain.refused(LACKING) and EXTENSION in needed
        expected = f"a result, or error -32021 that names {EXTENSION}"
        talk.judge.expect(plain, REQUIRED, passed, expected)
    else:
        talk.judge.unseen(REQUIRED, "the server serves the call without a task too")
    for method in (GET, UPDATE, CANCEL):
        reply = talk.wire.request(method, {"taskId": own, **MORE.get(method, {})}, required=False)
        expected = f"error -32021 for {method} without the extension"
        passed = reply.refused(LACKING)
        talk.judge.expect(reply, OPERATIONS, passed, expected)
    stream = Subscription(talk.wire, {"taskIds": [own]})
    found = stream.acknowledged()
    granted = own in (stream.granted.get("taskIds") or [])
    talk.judge(
        OPERATIONS,
        stream.refusal.refused(LACKING),
        expected="error -32021 for a subscription to tasks without the extension",
        actual="an acknowledgment" if found else stream.refusal,
        at=stream.refusal if stream.refusal.answered else stream.line,
        mild=Breach.WARN if found and not granted else None,
    )
    if not stream.refusal.answered:
        stream.cancel()


def _judge_acknowledgment(talk: Conversation, reply: Reply, own: str) -> None:
    if reply.is_error and (_ask(talk, GET, own).result or {}).get("status") in TERMINAL:
        return
    more = sorted({*(reply.result or {})} - {"resultType", "_meta"})
    talk.judge(
        ACKNOWLEDGES,
        reply.result is not None and not more,
        expected="an empty result",
        actual=f"also {', '.join(more)}" if more else reply,
        at=reply,
        mild=Breach.WARN if more else None,
    )


def _follow(talk: Conversation, own: str) -> dict[str, Any]:
    """Poll a task until it ends and answer its input requests; return its last state."""
    client, answered = willing(talk.revision), set[str]()
    state: dict[str, Any] = {}
    for _ in range(POLLS):
        reply = _ask(talk, GET, own)
        if reply.result is None or reply.result.get("status") in TERMINAL:
            return reply.result or state
        state = reply.result
        requests = object_in(state, "inputRequests")
        new = {key: value for key, value in requests.items() if key not in answered}
        if new:
            responses = talk.wire.answers.filled(client, new)
            answered |= {*responses}
            update = _ask(talk, UPDATE, own, inputResponses=responses)
            if talk.judge.covers(ACKNOWLEDGES):
                _judge_acknowledgment(talk, update, own)
        wish = state.get("pollIntervalMs")
        talk.wire.quiet(min(PAUSE, wish / 1000) if isinstance(wish, int | float) else PAUSE)
    return state


@scenario(KINDS, lasts=True)
def sends_only_tasks_to_subscribers_of_tasks(talk: Conversation) -> None:
    """A subscription to a task has no progress and no log messages."""
    client = willing(talk.revision)
    talk.wire.answers.use(replace(client, capabilities={**client.capabilities, **ABLE}))
    given = _giving(talk)
    stream = Subscription(talk.wire, {"taskIds": [given[1]]}) if given else None
    if given is None or stream is None or stream.acknowledged() is None:
        talk.judge.unseen(KINDS, "no call gave a task, or the subscription was refused")
        return
    granted = given[1] in (stream.granted.get("taskIds") or [])
    _follow(talk, given[1])
    _ask(talk, GET, given[1])
    wrong = [(e, m) for e, m in stream.heard() if m.method in OF_REQUESTS]
    if granted or wrong:
        actual = ", ".join(brief(message.method) for _, message in wrong)
        at = wrong[0][0] if wrong else stream.line
        talk.judge(KINDS, not wrong, expected="notifications/tasks alone", actual=actual, at=at)
    stream.cancel()
    talk.judge.unseen(KINDS, "the server does not notify of tasks")


@scenario(UNKNOWN, UNKNOWN_TOO)
def refuses_unknown_tasks_of_the_extension(talk: Conversation) -> None:
    """An unknown task id gets error -32602."""
    own = secrets.token_hex(16)
    for clause, method in ((UNKNOWN, GET), (UNKNOWN_TOO, UPDATE), (UNKNOWN_TOO, CANCEL)):
        reply = _ask(talk, method, own, **MORE.get(method, {}))
        expected = f"error -32602 for {method} with an unknown id"
        passed = reply.refused(INVALID)
        talk.judge.expect(reply, clause, passed, expected)


@scenario(UNGUESSABLE, lasts=True)
def gives_tasks_of_the_extension_unguessable_ids(talk: Conversation) -> None:
    """The ids of tasks cannot be guessed from one another."""
    given = _giving(talk)
    ids = [_created(talk, given[0])[1] for _ in range(SEVERAL)] if given else []
    if not all(ids) or len({*ids}) < SEVERAL:
        talk.judge.unseen(UNGUESSABLE, "no call gave several tasks")
        return
    for own in ids:
        _ask(talk, CANCEL, own)
    expected = "ids that cannot be guessed from others"
    actual = ", ".join(brief(own, 40) for own in ids)
    line = len(talk.wire.transcript)
    talk.judge(UNGUESSABLE, not guessable(ids), expected=expected, actual=actual, at=line)


@scenario(COMPLETES, lasts=True)
def completes_tasks_whose_tool_fails(talk: Conversation) -> None:
    """A task whose tool result has isError ends in status completed."""
    for example in talk.examples("callable-tool")[:TRIED]:
        for spoilt in (
            arguments.mistyped(example.schema, example.arguments),
            arguments.incomplete(example.schema, example.arguments),
        ):
            if spoilt is None:
                continue
            call = Request(CALL, {**example.params, "arguments": spoilt[1]})
            fails = talk.run(call, required=False).is_tool_error
            created, own = _created(talk, call) if fails else (None, "")
            if created is None or not own:
                continue
            state = _follow(talk, own)
            if state.get("status") not in TERMINAL:
                continue
            talk.judge(
                COMPLETES,
                state.get("status") != "failed",
                expected="status completed, because the tool result has isError",
                actual=brief(state.get("status")),
                at=len(talk.wire.transcript),
            )
            return
    talk.judge.unseen(COMPLETES, "no failing call gave a task")
