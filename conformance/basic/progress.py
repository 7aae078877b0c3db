"""basic/progress: the tokens, the values and the end of progress reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mcp_touchstone.suite import (
    TERMINAL,
    Breach,
    Conversation,
    Entry,
    Example,
    Kind,
    Message,
    Pending,
    Record,
    Role,
    Seen,
    Source,
    Task,
    ambient,
    brief,
    id_key,
    object_in,
    scenario,
    shapes,
    sightings,
    tagged,
    type_name,
)

PROGRESS = "notifications/progress"
STATUS = "notifications/tasks/status"
TOKENS = ("touchstone-token", 7, 0)
POLLED = {"tasks/get", "tasks/cancel"}
"""Methods whose result is the state of one task."""

CROSSING = 1.0
"""Seconds in which a message on another stream may cross with a response."""

LASTING = 5.0
"""Seconds a task is followed; a longer one is cancelled."""


# --- progress notifications


@dataclass(slots=True)
class Holder:
    """One request that supplied a token.

    Attributes:
        token: the token, as sent.
        augmented: whether the request asked for a task.
        task: the id of its task; empty if it has none.
        over: its response without a task; None before it.
        passed: the time of the answer to a later request, which the server wrote after that; None
            before it.
        cancelled: whether we cancelled it.
        terminal: the line on which its task became terminal; None before.
        reached: the line and the value of the last report; None before the first.
    """

    token: Any
    augmented: bool = False
    task: str = ""
    over: Entry | None = None
    passed: float | None = None
    cancelled: bool = False
    terminal: Entry | None = None
    reached: tuple[Entry, Any] | None = None


def _is_new(entry: Entry) -> bool:
    """Whether a line came on a stream that repeats no earlier ones."""
    return entry.origin is not None and entry.origin.exchange.said("Last-Event-ID") is None


def _amount(value: Any) -> Any:
    """Return a comparable number; None for anything else."""
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return value if number else None


class Watch:
    """Follows the tokens of one record, line by line, and yields the findings."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._by_token: dict[Any, Holder] = {}
        self._by_id: dict[Any, Holder] = {}
        self._over: dict[Any, Holder] = {}  # those over, as long as nothing later was answered
        self._by_task: dict[str, Holder] = {}

    def walk(self) -> Iterator[Seen]:
        """Yield the findings of the whole record."""
        for entry in self._record.transcript:
            if entry.source is Source.US:
                for said in entry.value if isinstance(entry.value, list) else [entry.value]:
                    self._said(said)
            for message in entry.messages:
                if message.role is Role.NOTIFICATION and message.method == PROGRESS:
                    yield from self._reported(entry, object_in(message.value, "params"))
                else:
                    self._heard(entry, message)

    def _said(self, value: Any) -> None:
        params = object_in(value, "params")
        if not params:
            return
        if value.get("method") == "notifications/cancelled":
            holder = self._by_id.get(id_key(params.get("requestId")))
            if holder is not None:
                holder.cancelled = True
            return
        token = object_in(params, "_meta").get("progressToken")
        key = id_key(token)
        if key is not None:
            holder = Holder(token, augmented=isinstance(params.get("task"), dict))
            number = id_key(value.get("id"))
            self._by_token[key] = self._by_id[number] = holder
            self._over.pop(number, None)

    def _heard(self, entry: Entry, message: Message) -> None:
        if message.role is Role.NOTIFICATION and message.method == STATUS:
            self._state(entry, object_in(message.value, "params"))
        if message.role is not Role.ANSWER:
            return
        for number, one in [*self._over.items()]:
            if message.answers and one.over and message.answers > one.over.n:
                one.passed = entry.at
                del self._over[number]
        result = object_in(message.value, "result")
        listed = result.get("tasks") if message.method == "tasks/list" else None
        for state in listed if isinstance(listed, list) else [result]:
            if message.method in POLLED or state is not result:
                self._state(entry, state)
        answered = id_key(message.value.get("id"))
        holder = self._by_id.get(answered)
        if holder is None or holder.over is not None:
            return
        task = object_in(result, "task").get("taskId")
        if holder.augmented and message.kind is Kind.RESULT and isinstance(task, str):
            holder.task = task
            self._by_task[task] = holder
        else:
            holder.over = entry
            self._over[answered] = holder

    def _state(self, entry: Entry, state: Any) -> None:
        """Record the state of a task from an answer or a notification."""
        own = state.get("taskId") if isinstance(state, dict) else None
        holder = self._by_task.get(own) if isinstance(own, str) else None
        status = state.get("status") if holder is not None else None
        if holder is not None and holder.terminal is None and isinstance(status, str):
            holder.terminal = entry if status in TERMINAL else None

    def _reported(self, entry: Entry, params: dict[str, Any]) -> Iterator[Seen]:
        key = id_key(params.get("progressToken"))
        if key is None:
            return  # progress-params-shape judges this
        holder = self._by_token.get(key)
        expected = "the token of a request, type and value"
        actual = f"{type_name(params['progressToken'])} {brief(params['progressToken'], 60)}"
        passed = holder is not None
        yield Seen("progress-token-known", passed, entry.n, expected, f"the token {actual}")
        if holder is not None:
            yield from self._in_time(entry, holder)
            yield from self._grown(entry, holder, _amount(params.get("progress")))

    def _in_time(self, entry: Entry, holder: Holder) -> Iterator[Seen]:
        token = brief(holder.token, 60)
        if holder.task:
            clause = "progress-task-stops-terminal"
            passed = holder.terminal is None or not entry.follows(holder.terminal)
            expected = "no progress of a finished task"
            yield Seen(clause, passed, entry.n, expected, f"progress of {token}")
        elif not holder.cancelled:
            clause = "progress-stops-after-completion"
            passed = holder.over is None or not entry.follows(holder.over)
            expected = "no progress of a request after its response"
            yield Seen(clause, passed, entry.n, expected, f"progress of {token}")
            if passed and holder.passed is not None and _is_new(entry):
                passed = entry.at - holder.passed <= CROSSING
                actual = f"progress of {token} on another stream"
                yield Seen(clause, passed, entry.n, expected, actual, mild=Breach.WARN)

    def _grown(self, entry: Entry, holder: Holder, now: Any) -> Iterator[Seen]:
        before = holder.reached
        if now is None:
            return
        holder.reached = entry, now
        if before is not None and entry.follows(before[0]):
            clause, expected = "progress-increases", f"more than {before[1]}"
            yield Seen(clause, now > before[1], entry.n, expected, f"progress {now}")


@ambient(
    "progress-token-known",
    "progress-stops-after-completion",
    "progress-increases",
    "progress-task-stops-terminal",
)
def reports_progress_consistently(record: Record) -> Iterator[Seen]:
    """Progress has a known token, increases, and ends with its request or task."""
    yield from Watch(record).walk()


@ambient("progress-params-shape", "progress-server-tokens")
def writes_progress_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Progress has a number and a token; a token of the server is a string or an integer."""
    yield from shapes(record)


@ambient("progress-message-useful")
def sends_no_blank_progress_message(record: Record) -> Iterator[Seen]:
    """A progress message is not blank."""
    for entry, message in record.messages(Role.NOTIFICATION):
        said = object_in(message.value, "params").get("message")
        if message.method == PROGRESS and isinstance(said, str):
            clause, expected = "progress-message-useful", "a message with text, or none"
            yield Seen(clause, bool(said.strip()), entry.n, expected, brief(said, 60))


@ambient("progress-server-tokens")
def gives_its_requests_unique_progress_tokens(record: Record) -> Iterator[Seen]:
    """No two open requests of the server have the same token."""
    waiting: dict[Any, Any] = {}
    for entry in record.transcript:
        value = entry.value if entry.source is Source.US else None
        for said in value if isinstance(value, list) else [value]:
            if isinstance(said, dict) and "method" not in said:
                waiting.pop(id_key(said.get("id")), None)
        for message in entry.messages:
            params = object_in(message.value, "params")
            if message.method == "notifications/cancelled":
                waiting.pop(id_key(params.get("requestId")), None)
            token = id_key(object_in(params, "_meta").get("progressToken"))
            if message.role is Role.REQUEST and token is not None:
                passed = token not in waiting.values()
                expected, actual = "a unique token", f"{brief(token[1], 60)} used twice"
                yield Seen("progress-server-tokens", passed, entry.n, expected, actual)
                waiting[id_key(message.value.get("id"))] = token


# --- requested progress


@scenario("progress-token-types-accepted")
def serves_a_request_with_any_token(talk: Conversation) -> None:
    """A request is served with a text, 7 and 0 as its token."""
    cheap = talk.wire.ping_method
    methods = (cheap, *talk.spoken.list_methods[:1])
    served = [method for method in methods if talk.wire.request(method).result is not None]
    if not served:
        why = f"no result of {' or '.join(methods)} without a token"
        talk.judge.unseen("progress-token-types-accepted", why)
    for method in served:
        for token in TOKENS:
            meta = tagged(talk.wire, token=token)
            reply = talk.wire.request(method, meta=meta, required=False)
            talk.judge.expect_result(
                reply,
                "progress-token-types-accepted",
                f"the result of {method} also with progressToken {brief(token)}",
            )


@scenario("progress-token-known")
def reports_progress_with_the_given_token(talk: Conversation) -> None:
    """Progress has the token of a request (text, 7 or 0); requests without one get none.

    A report on a request of an earlier scenario may come late: another clause judges its time.
    """
    call = min(talk.examples("progress-call"), key=lambda example: example.seconds)
    line = len(talk.wire.transcript)
    for pending in [Pending(talk.wire, call, token=token) for token in TOKENS]:
        pending.reply()
    Pending(talk.wire, call).reply()
    talk.wire.quiet()
    reports = [
        (entry, object_in(message.value, "params").get("progressToken"))
        for entry in talk.since(line)
        for message in entry.messages
        if message.role is Role.NOTIFICATION and message.method == PROGRESS
    ]
    if not reports:
        talk.judge.unseen("progress-token-known", "the tool reported no progress when called again")
        return
    supplied = {None} | {
        id_key(object_in(entry.value, "params", "_meta").get("progressToken"))
        for entry in talk.wire.transcript
        if entry.source is Source.US
    }
    strange = [(entry, token) for entry, token in reports if id_key(token) not in supplied]
    talk.judge(
        "progress-token-known",
        not strange,
        expected=f"one of the tokens {', '.join(map(brief, TOKENS))}, or of an earlier request",
        actual=f"{type_name(strange[0][1])} {brief(strange[0][1], 60)}" if strange else "",
        at=strange[0][0] if strange else None,
    )


@scenario("progress-task-stops-terminal", lasts=True)
def reports_on_a_task_until_it_ends(talk: Conversation) -> None:
    """A task reports no progress after its end."""
    clause = "progress-task-stops-terminal"
    task = Task(talk.wire, _reporting(talk), token="touchstone-task")  # noqa: S106  (not a password)
    if not task.id:
        talk.judge.unseen(clause, f"no task was created: {task.created}")
        return
    if not task.wait(LASTING):
        task.cancel()
    talk.wire.quiet()
    if not task.ended or not task.request.progress():
        talk.judge.unseen(
            clause, "the task did not end" if not task.ended else "it sent no progress"
        )
        return
    ended = next(
        shown.entry
        for shown in sightings(talk.wire.transcript)
        if shown.id == task.id and shown.status in TERMINAL
    )
    late = [entry for entry, _ in task.request.progress() if entry.follows(ended)]
    talk.judge(
        clause,
        not late,
        expected="no progress of a finished task",
        actual=f"more reports after the state {brief(task.status)}",
        at=late[0] if late else None,
    )


def _reporting(talk: Conversation) -> Example:
    """Choose a task tool that reports progress in a plain call, if there is one."""
    names = {example.name for example in talk.examples("progress-call")}
    tasks = talk.examples("task-tool")
    return next((task for task in tasks if task.name in names), talk.examples.best("task-tool"))
