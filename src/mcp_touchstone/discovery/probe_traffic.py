"""What makes a server report progress, log, take its time, run a task, or serve a subscription."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.arguments import SHORT, slowed
from mcp_touchstone.dossier import LISTS, Example, Exchange, may_be_task
from mcp_touchstone.examples import needs_task
from mcp_touchstone.scout import Attempt, Scout
from mcp_touchstone.subscriptions import Subscription
from mcp_touchstone.tasks import Task

ENOUGH: Final = 10
"""Exchanges watched for progress and log messages."""

SLOW: Final = 1.0
"""Seconds a call lasts at least to count as one that lasts."""

WISHED: Final = 2.0
"""Seconds a call should last where it takes a duration."""

TASK_PATIENCE: Final = 3.0
"""Seconds a task is watched; one that lasts longer is cancelled."""

LOGGED: Final = "notifications/message"


def find_traffic(scout: Scout) -> None:
    """Send what worked once more, with a progress token and at log level debug."""
    connection = scout.connection()
    if connection is not None and not connection.modern and scout.spoken.declares("logging"):
        scout.attempt(Exchange("logging/setLevel", {"level": "debug"}))
    for number, example in enumerate(_known(scout)):
        if number >= ENOUGH or _has_both(scout):
            break
        exchange = Exchange(example.method, example.params)
        token = f"touchstone-progress-{number}"
        attempt = scout.attempt(exchange, example.item, token=token, level="debug")
        if attempt is not None:
            note_traffic(scout, attempt)
    connection = scout.connection()
    if (
        connection is not None
        and not connection.modern
        and not scout.spoken.found.get("log-traffic")
    ):
        _find_unasked_log(scout)


def _known(scout: Scout) -> Iterator[Example]:
    """Walk what worked: calls first, then a resource, a prompt and the lists."""
    found = scout.spoken.found
    yield from found.get("callable-tool", [])[: ENOUGH - 4]
    yield from found.get("readable-resource", [])[:1]
    yield from found.get("rendered-prompt", [])[:1]
    yield from (Example(LISTS[feature][0]) for feature in list(scout.spoken.lists)[:2])


def _has_both(scout: Scout) -> bool:
    return all(scout.spoken.found.get(word) for word in ("progress-call", "log-traffic"))


def note_traffic(scout: Scout, attempt: Attempt) -> None:
    """Keep what reports or logs; with which token it reports is not learnt but judged."""
    if attempt.notified("notifications/progress"):
        scout.found("progress-call", attempt.example())
    if attempt.notified(LOGGED):
        scout.found("log-traffic", attempt.example())


def _find_unasked_log(scout: Scout) -> None:
    """Look for log messages that belong to no exchange of ours."""
    connection = scout.connection()
    if connection is None:
        return
    connection.quiet()
    methods = (m.method for e in connection.transcript for m in e.messages if m.answers is None)
    if LOGGED in methods:
        scout.found("log-traffic", Example(""))


def may_last(tool: Mapping[str, Any]) -> bool:
    """Whether a listed tool takes a duration."""
    return slowed(tool.get("inputSchema"), {}, WISHED) is not None


def find_slow(scout: Scout) -> list[Attempt]:
    """Find a call that lasts: one that did, or one that takes a duration; give what was tried.

    What that reported is for ``note_traffic``, once ``find_traffic`` is done.
    """
    calls = scout.spoken.found.get("callable-tool", [])
    lasted: list[Attempt] = []
    for call in calls:
        if call.seconds >= SLOW:
            lasted += _lasts_again(scout, call)
    for call in calls:
        if not scout.spoken.found.get("slow-call"):
            lasted += _slow_down(scout, call)
    return lasted


def _lasts_again(scout: Scout, call: Example) -> Iterator[Attempt]:
    """Send what lasted once more: a busy machine is slow once."""
    token = f"touchstone-progress-{call.name}"
    exchange = Exchange(call.method, call.params)
    attempt = scout.attempt(exchange, call.item, token=token, level="debug")
    if attempt is not None and attempt.succeeded and attempt.seconds >= SLOW:
        scout.found("slow-call", attempt.example())
        yield attempt


def _slow_down(scout: Scout, call: Example) -> Iterator[Attempt]:
    """Ask a call that takes a duration to last; some wait that long for each of many things."""
    wish = WISHED / max(1, int(call.seconds / SHORT))
    for _ in range(2):
        longer = slowed(call.schema, call.arguments, wish)
        if longer is None or scout.spoken.found.get("slow-call"):
            return
        exchange = Exchange(call.method, {**call.params, "arguments": longer})
        token = f"touchstone-progress-{call.name}"
        attempt = scout.attempt(exchange, call.item, token=token, level="debug")
        if attempt is None or not attempt.succeeded:
            return
        if attempt.seconds >= SLOW:
            scout.found("slow-call", attempt.example())
            yield attempt
        wish *= WISHED / max(SHORT, attempt.seconds)


def find_task(scout: Scout) -> None:
    """Run a tool as a task, where one may be called and lists that it can be."""
    if not scout.spoken.declares("tasks.requests.tools.call"):
        return
    for tool in scout.tools():
        if not may_be_task(tool):
            continue
        calls = scout.calls(tool)
        for exchange in calls:
            connection = scout.connection()
            if connection is None:
                return
            task = Task(connection, exchange, token=f"touchstone-task-{tool['name']}")
            if not task.created.answered:
                scout.unanswered(connection, task.request)
            elif task.created.result is not None or not needs_task(tool, scout.revision):
                # whatever a declared tool answers, the chapter on tasks judges it
                scout.found("task-tool", _watch(scout, task, exchange, tool))
                break
            else:
                scout.spoken.notes["task-tool"] = f"{tool['name']} answered {task.created}"
    if scout.spoken.found.get("task-tool"):
        scout.spoken.notes.pop("task-tool", None)


def find_slow_task(scout: Scout) -> None:
    """Find a task that lasts: a call that does and can be a task, or a task that was seen to."""
    for call in scout.spoken.found.get("slow-call", []):
        if may_be_task(call.item):
            scout.found("slow-task", call)
    for example in scout.spoken.found.get("task-tool", []):
        if example.seconds >= SLOW:
            scout.found("slow-task", example)
    if not scout.spoken.found.get("slow-task"):
        _slow_task_down(scout)


def _slow_task_down(scout: Scout) -> None:
    """Ask a tool that takes a duration to last; one that may be called plainly was asked before."""
    for known in scout.spoken.found.get("task-tool", []):
        longer = slowed(known.schema, known.arguments, WISHED)
        connection = scout.connection()
        if connection is None or longer is None or not needs_task(known.item, scout.revision):
            continue
        exchange = Exchange(known.method, {**known.params, "arguments": longer})
        task = Task(connection, exchange, token=f"touchstone-task-{known.name}-slow")
        example = _watch(scout, task, exchange, known.item)
        if task.id and example.seconds >= SLOW:
            scout.found("slow-task", example)


def _watch(scout: Scout, task: Task, exchange: Exchange, tool: Mapping[str, Any]) -> Example:
    if not task.wait(TASK_PATIENCE) and task.id and scout.spoken.declares("tasks.cancel"):
        task.cancel()
    return Example(
        exchange.method,
        exchange.params,
        result=task.created.result or {},
        seconds=task.lasted,
        item=tool,
    )


def find_subscription(scout: Scout) -> None:
    """Open a subscription to nothing; whatever is not refused with an error counts as one."""
    connection = scout.connection()
    if connection is None:
        return
    subscription = Subscription(connection, {})
    subscription.acknowledged(connection.pace.silence)
    refusal = subscription.refusal
    if refusal.is_error:
        scout.spoken.notes["subscriptions"] = f"subscriptions/listen answered {refusal}"
        return
    scout.found("subscriptions", Example("subscriptions/listen", {"notifications": {}}))
    if not refusal.answered:
        subscription.cancel()
