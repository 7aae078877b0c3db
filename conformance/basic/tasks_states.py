"""basic/utilities/tasks: the shape, states and metadata of tasks in all messages."""

import math
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    RELATED,
    TERMINAL,
    Breach,
    Entry,
    Kind,
    Message,
    Record,
    Role,
    Seen,
    Sighting,
    ambient,
    brief,
    id_key,
    may_be_task,
    object_in,
    shapes,
    sightings,
    timestamps,
)

CALL, STATUS = "tools/call", "notifications/tasks/status"
GONE = -32602
IMMEDIATE = "io.modelcontextprotocol/model-immediate-response"
SECOND = 1.1
"""The coarsest step of a timestamp, in seconds, with a margin."""


@ambient("tasks-task-shape")
def writes_tasks_in_the_right_types(record: Record) -> Iterator[Seen]:
    """A task has an id, one of the five states, two timestamps and a ttl."""
    yield from shapes(record, "tasks-task-shape")


@ambient("tasks-create-result", "tasks-initial-status")
def answers_with_a_working_task(record: Record) -> Iterator[Seen]:
    """A call that becomes a task is answered with the task in state working."""
    said: dict[str, str] = {}
    made = {shown.entry.n for shown in _all(record) if shown.method == CALL}
    answered = {entry.n: message for entry, message in _created(record)}
    for shown in _all(record):
        if shown.method != CALL and shown.status:
            said.setdefault(shown.id, shown.status)
        message = answered.get(shown.entry.n)
        if message is None or shown.method != CALL:
            continue
        status = shown.status
        first = said.get(shown.id, status)
        if status and (first == status or first not in TERMINAL):
            yield Seen(
                "tasks-initial-status",
                first == "working",
                shown.entry.n,
                "a new task in state working",
                first,
            )
        said.setdefault(shown.id, status)
    for n in answered:
        yield Seen(
            "tasks-create-result",
            n in made,
            n,
            "a result with a task object, because the call asked for a task",
            "a result without a task object",
        )
    for n, message in answered.items():
        words = object_in(message.value, "result", "_meta").get(IMMEDIATE, "")
        clause, expected = "tasks-create-result", f"a string as {IMMEDIATE}"
        yield Seen(clause, isinstance(words, str), n, expected, brief(words), mild=Breach.NOTE)


def _created(record: Record) -> Iterator[tuple[Entry, Message]]:
    """Yield the results of calls that ask for a task, of tools that support it."""
    spoken = record.profile.spoken.get(record.revision)
    if spoken is None or not spoken.declares("tasks.requests.tools.call"):
        return
    known = [*spoken.named("tools"), *(example.item for example in spoken.examples("task-tool"))]
    able = {tool["name"] for tool in known if may_be_task(tool)}
    for entry, message in record.answers(Kind.RESULT):
        params = _asked(record, message)
        refused = object_in(message.value, "result").get("isError") is True
        wished = message.method == CALL and "task" in params and params.get("name") in able
        if wished and not refused:
            yield entry, message


def _asked(record: Record, message: Message) -> dict[str, Any]:
    """Return the params of the request that a message answers; empty if there are none."""
    sent = record.asked_on(message.answers)
    return object_in(sent.value if sent is not None else None, "params")


def _all(record: Record) -> list[Sighting]:
    """Return every task state on a connection."""
    return record.transcript.once(_all, lambda: list(sightings(record.transcript)))


# --- ids


@ambient("tasks-id-unique")
def gives_each_task_a_unique_id(record: Record) -> Iterator[Seen]:
    """No two tasks have the same id."""
    made: dict[str, Sighting] = {}
    listed: dict[tuple[int, str], Sighting] = {}
    for shown in _all(record):
        if not shown.id or shown.method not in {CALL, "tasks/list"}:
            continue
        if shown.method == CALL:
            twice = shown.id in made
            made.setdefault(shown.id, shown)
        else:
            other = listed.setdefault((shown.entry.n, shown.id), shown)
            born = shown.state.get("createdAt")
            twice = other is not shown and other.state.get("createdAt") != born
        yield Seen(
            "tasks-id-unique",
            not twice,
            shown.entry.n,
            "a unique id",
            f"{brief(shown.id)} used twice",
        )


# --- times


@ambient("tasks-created-at")
def gives_valid_creation_times(record: Record) -> Iterator[Seen]:
    """The createdAt of a task is a timestamp and does not change."""
    clause = "tasks-created-at"
    born: dict[str, str] = {}
    doubtful = _shared(record)
    for shown, text in _times(record, "createdAt"):
        yield _timestamp(clause, shown, text)
        known = born.setdefault(shown.id, text)
        yield Seen(
            clause,
            shown.id in doubtful or timestamps.same_instant(known, text),
            shown.entry.n,
            f"createdAt {known}, unchanged",
            text,
        )


@ambient("tasks-last-updated-at")
def gives_valid_update_times(record: Record) -> Iterator[Seen]:
    """The lastUpdatedAt of a task is a timestamp and never decreases."""
    clause = "tasks-last-updated-at"
    latest: dict[str, str] = {}
    doubtful = _shared(record)
    for shown, text in _times(record, "lastUpdatedAt"):
        yield _timestamp(clause, shown, text)
        known = latest.get(shown.id, text)
        latest[shown.id] = text
        yield Seen(
            clause,
            shown.id in doubtful or not timestamps.is_earlier(text, known),
            shown.entry.n,
            f"lastUpdatedAt {known} or later",
            text,
            mild=Breach.WARN,
        )
    yield from _stale_times(record, doubtful)


def _stale_times(record: Record, doubtful: set[str]) -> Iterator[Seen]:
    """Yield times before the creation, and times that a change of status left unchanged.

    Times may be whole seconds. Therefore the earlier status must have lasted a second: a request
    that was sent a second after its first appearance was still answered with it.
    """
    clause = "tasks-last-updated-at"
    first: dict[tuple[str, str, str], Entry] = {}
    lasting: set[tuple[str, str, str]] = set()
    for shown, text in _times(record, "lastUpdatedAt"):
        born, asked = shown.state.get("createdAt"), record.asked_on(shown.asked)
        if shown.id in doubtful or not shown.status or asked is None:
            continue
        if isinstance(born, str) and timestamps.is_earlier(text, born):
            expected = f"lastUpdatedAt {born}, when it was created, or later"
            yield Seen(clause, False, shown.entry.n, expected, text, mild=Breach.WARN)
        earlier = [s for own, t, s in lasting if (own, t) == (shown.id, text) and s != shown.status]
        if earlier:
            expected = f"lastUpdatedAt of the change from {earlier[0]} to {shown.status}"
            yield Seen(clause, False, shown.entry.n, expected, text, mild=Breach.WARN)
        begun = first.setdefault((shown.id, text, shown.status), shown.entry)
        if asked.at >= begun.at + SECOND:
            lasting.add((shown.id, text, shown.status))


def _times(record: Record, member: str) -> Iterator[tuple[Sighting, str]]:
    """Yield each text in a member of the tasks in results; tasks-task-shape judges other types."""
    for shown in _all(record):
        text = shown.state.get(member)
        if shown.method != STATUS and isinstance(text, str):
            yield shown, text


def _shared(record: Record) -> set[str]:
    """Return the ids that several tasks share; their states cannot be compared."""
    made = [shown.id for shown in _all(record) if shown.method == CALL]
    pages = [(s.entry.n, s.id) for s in _all(record) if s.method == "tasks/list"]
    twice = {one for one in made if made.count(one) > 1}
    return {"", *twice, *(own for n, own in pages if pages.count((n, own)) > 1)}


def _timestamp(clause: str, shown: Sighting, text: str) -> Seen:
    return Seen(
        clause,
        timestamps.is_rfc3339(text),
        shown.entry.n,
        "a timestamp of RFC 3339",
        brief(text),
        mild=None if timestamps.instant(text) is None else Breach.WARN,
    )


# --- states


@ambient("tasks-terminal-final")
def keeps_terminal_task_states(record: Record) -> Iterator[Seen]:
    """A completed, failed or cancelled task keeps its state."""
    ended: dict[str, Sighting] = {}
    last: dict[str, str] = {}
    doubtful = _shared(record)
    for shown in _all(record):
        before = ended.get(shown.id)
        # A request sent before the end was reported may be answered with the earlier state.
        late = before is not None and (
            shown.entry.follows(before.entry)
            if shown.asked is None
            else shown.asked > before.entry.n
        )
        # tasks-cancel-transition judges the first tasks/get after a cancellation.
        first = (last.get(shown.id), shown.method) == ("tasks/cancel", "tasks/get")
        last[shown.id] = shown.method
        if not shown.status or shown.id in doubtful or first:
            continue
        if before is not None and late:
            yield Seen(
                "tasks-terminal-final",
                shown.status == before.status,
                shown.entry.n,
                f"state {before.status}, as on line {before.entry.n}",
                shown.status,
                mild=Breach.WARN if shown.method == STATUS else None,
            )
        if shown.status in TERMINAL:
            ended.setdefault(shown.id, shown)


@ambient("tasks-kept-for-ttl")
def keeps_tasks_until_their_ttl(record: Record) -> Iterator[Seen]:
    """A completed or failed task can be read until its ttl has elapsed."""
    ended = {s.id: s for s in _all(record) if s.status in {"completed", "failed"}}
    made = {s.id: record.asked_on(s.asked) for s in _all(record) if s.method == CALL}
    cancelled = {s.id for s in _all(record) if s.status == "cancelled"} | _shared(record)
    for entry, message in record.messages(Role.ANSWER):
        own = _asked(record, message).get("taskId") if message.method == "tasks/get" else None
        last, begun = (ended.get(own), made.get(own)) if isinstance(own, str) else (None, None)
        if last is None or begun is None or own in cancelled or last.entry.n > entry.n:
            continue
        ttl = last.state.get("ttl", "")  # tasks-task-shape judges a missing one
        kept = math.inf if ttl is None else ttl
        gone = message.kind is Kind.ERROR and object_in(message.value, "error").get("code") == GONE
        age = 1000 * (entry.at - begun.at)
        if isinstance(kept, int | float) and age < kept:
            expected = f"the task, until its ttl of {'null' if ttl is None else ttl} ms is over"
            actual = f"error -32602 after {age:.0f} ms"
            yield Seen("tasks-kept-for-ttl", not gone, entry.n, expected, actual)


# --- notifications


@ambient("tasks-status-notification-shape")
def sends_complete_status_notifications(record: Record) -> Iterator[Seen]:
    """A status notification has a complete task, which the client created."""
    clause = "tasks-status-notification-shape"
    yield from shapes(record, clause)
    known = {shown.id for shown in _all(record) if shown.method == CALL}
    waited = any(
        asked.method == CALL and not asked.answers and "task" in object_in(asked.value, "params")
        for asked in record.transcript.session.asked
    )
    for shown in _all(record):
        if shown.method == STATUS and shown.id and not waited:
            yield Seen(
                clause,
                shown.id in known,
                shown.entry.n,
                "the id of a task of this client",
                brief(shown.id),
                mild=Breach.WARN,
            )


# --- related-task metadata


@ambient("tasks-no-related-meta-in-get-list-cancel", "tasks-status-notification-no-related-meta")
def omits_redundant_task_metadata(record: Record) -> Iterator[Seen]:
    """Messages about a task do not repeat its id in their metadata."""
    for entry, message in record.messages(Role.ANSWER, Role.NOTIFICATION, Role.REQUEST):
        operation = message.method in {"tasks/get", "tasks/list", "tasks/cancel"}
        if message.role is Role.NOTIFICATION and message.method == STATUS:
            clause, holder = "tasks-status-notification-no-related-meta", "params"
        elif operation and message.kind is Kind.RESULT:
            clause, holder = "tasks-no-related-meta-in-get-list-cancel", "result"
        elif operation and message.role is Role.REQUEST:
            clause, holder = "tasks-no-related-meta-in-get-list-cancel", "params"
        else:
            continue
        meta = object_in(message.value, holder, "_meta")
        yield Seen(
            clause,
            RELATED not in meta,
            entry.n,
            f"{message.method} without {RELATED}, because it has the id of the task",
            brief(meta),
        )


@ambient("tasks-related-meta-on-messages")
def names_the_task_in_its_progress(record: Record) -> Iterator[Seen]:
    """Progress of a task has the task's id in its metadata."""
    owners = _tokens(record)
    made: dict[Any, str] = {}
    for entry, message in record.messages(Role.ANSWER, Role.NOTIFICATION) if owners else ():
        made.update({key: owner for key, (n, owner) in owners.items() if n == entry.n})
        params = object_in(message.value, "params")
        owner = made.get(id_key(params.get("progressToken")))
        if message.method != "notifications/progress" or owner is None:
            continue
        related = object_in(params, "_meta", RELATED).get("taskId")
        yield Seen(
            "tasks-related-meta-on-messages",
            related == owner,
            entry.n,
            f"{RELATED} with the id of the task",
            "no id of a task" if related is None else brief(related),
            mild=Breach.WARN if related is None else None,
        )


@ambient("tasks-related-meta-on-messages")
def writes_related_task_metadata_with_an_id(record: Record) -> Iterator[Seen]:
    """Related-task metadata is an object with the id of a task."""
    for entry, message in record.messages():
        for holder in ("params", "result"):
            meta = object_in(message.value, holder, "_meta")
            if RELATED in meta:
                own = object_in(meta, RELATED).get("taskId")
                clause, expected = "tasks-related-meta-on-messages", "an object with a taskId"
                actual, passed = brief(meta[RELATED]), isinstance(own, str)
                yield Seen(clause, passed, entry.n, expected, actual, mild=Breach.NOTE)


def _tokens(record: Record) -> dict[Any, tuple[int, str]]:
    """Return the task of each progress token, and the line that showed the task.

    A token that was used again is left out.
    """
    shows = [one for one in _all(record) if one.method == CALL and one.id]
    sent = [_token(entry) for entry in record.transcript] if shows else []
    found = {}
    for shown in shows:
        asked = record.asked_on(shown.asked)
        if asked is not None:
            key = _token(asked)
            if key is not None and sent.count(key) == 1:
                found[key] = (shown.entry.n, shown.id)
    return found


def _token(entry: Entry) -> Any:
    return id_key(object_in(entry.value, "params", "_meta").get("progressToken"))
