"""Find examples of progress, log messages, long calls, tasks and subscriptions."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from mcp_touchstone.connection.server_profile import LISTS, Example, Request, may_be_task
from mcp_touchstone.connection.subscriptions import Subscription
from mcp_touchstone.connection.tasks import Task
from mcp_touchstone.discovery.probe_features import needs_task
from mcp_touchstone.discovery.prober import Attempt, Prober
from mcp_touchstone.samples.from_schema import SHORT, counted, counts, slowed

ENOUGH: Final = 10
"""Exchanges watched for progress and log messages."""

SLOW: Final = 1.0
"""Least seconds of a lasting call."""

WISHED: Final = 2.0
"""Wanted seconds of a call with a duration."""

COUNTED: Final = 3
"""Whole numbers of one tool that are raised to find a call that lasts."""

FIRST_COUNT: Final = 10
LARGEST_COUNT: Final = 10_000
"""Least and greatest value of such a number; the bounds of its schema are kept too."""

BRIEF: Final = 0.2
"""Seconds of a call that can take ten times as much work."""

NEARLY: Final = 0.8
"""Part of the wanted seconds that is enough."""

TASK_PATIENCE: Final = 3.0
"""Seconds a task is watched; one that lasts longer is cancelled."""

LOGGED: Final = "notifications/message"


def find_traffic(scout: Prober) -> None:
    """Send the working examples again, with a progress token and at log level debug."""
    connection = scout.connection()
    if connection is not None and not connection.modern and scout.spoken.declares("logging"):
        scout.attempt(Request("logging/setLevel", {"level": "debug"}))
    for number, example in enumerate(_known(scout)):
        found = scout.spoken.found
        if number >= ENOUGH or (found.get("progress-call") and found.get("log-traffic")):
            break
        request = Request(example.method, example.params)
        token = f"touchstone-progress-{number}"
        attempt = scout.attempt(request, example.item, token=token, level="debug")
        if attempt is not None:
            note_traffic(scout, attempt)
    connection = scout.connection()
    if connection is None or connection.modern or scout.spoken.found.get("log-traffic"):
        return
    connection.quiet()
    methods = (m.method for e in connection.transcript for m in e.messages if m.answers is None)
    if LOGGED in methods:  # messages that belong to no request of ours
        scout.found("log-traffic", Example(""))


def _known(scout: Prober) -> Iterator[Example]:
    """Yield the working examples: calls first, then a resource, a prompt and the lists."""
    found = scout.spoken.found
    yield from found.get("callable-tool", [])[: ENOUGH - 4]
    yield from found.get("readable-resource", [])[:1]
    yield from found.get("rendered-prompt", [])[:1]
    yield from (Example(LISTS[feature][0]) for feature in list(scout.spoken.lists)[:2])


def note_traffic(scout: Prober, attempt: Attempt) -> None:
    """Record a request with progress or log messages; rules judge the progress token."""
    if attempt.notified("notifications/progress"):
        scout.found("progress-call", attempt.example())
    if attempt.notified(LOGGED):
        scout.found("log-traffic", attempt.example())


def may_last(tool: Mapping[str, Any]) -> bool:
    """Return whether a listed tool accepts a duration."""
    return slowed(tool.get("inputSchema"), {}, WISHED) is not None


def _wish(call: Example) -> float:
    """Return the duration to ask for; some tools wait that long for each of many items."""
    return WISHED / max(1, int(call.seconds / SHORT))


def find_slow(scout: Prober) -> list[Attempt]:
    """Find a call that lasts: with a duration, with a large number, or as it is.

    That comes last: on a busy machine any call may last, and may not the next time.
    Returns the attempts that lasted.
    ``note_traffic`` records their messages, after ``find_traffic``.
    """
    calls = scout.spoken.found.get("callable-tool", [])
    lasted: list[Attempt] = []
    for call in calls:
        if not scout.spoken.found.get("slow-call"):
            lasted += _slow_down(scout, call)
    for call in calls:
        for name in counts(call.schema)[:COUNTED]:
            if not scout.spoken.found.get("slow-call"):
                lasted += _count_up(scout, call, name)
    for call in calls:
        if call.seconds >= SLOW and not scout.spoken.found.get("slow-call"):
            lasted += _lasts_again(scout, call)
    return lasted


def _count_up(scout: Prober, call: Example, name: str) -> Iterator[Attempt]:
    """Raise a whole number of a call until the call lasts long enough, or fails; do that again."""
    amount, tried, longest = float(FIRST_COUNT), call.arguments.get(name), None
    while amount <= LARGEST_COUNT:
        larger = counted(call.schema, call.arguments, name, int(amount))
        if larger[name] == tried:
            break
        tried = larger[name]
        request = Request(call.method, {**call.params, "arguments": larger})
        attempt = scout.attempt(request, call.item)
        if attempt is None or not attempt.reply.succeeded:
            break
        if attempt.seconds >= SLOW:
            longest = attempt
        if attempt.seconds >= NEARLY * WISHED:
            break
        amount = max(amount + 1, amount * min(10.0, WISHED / max(BRIEF, attempt.seconds)))
    if longest is not None:
        yield from _lasts_again(scout, longest.example())


def _lasts_again(scout: Prober, call: Example) -> Iterator[Attempt]:
    """Send a slow call again, since a busy machine may have delayed it."""
    token = f"touchstone-progress-{call.name}"
    request = Request(call.method, call.params)
    attempt = scout.attempt(request, call.item, token=token, level="debug")
    if attempt is not None and attempt.reply.succeeded and attempt.seconds >= SLOW:
        scout.found("slow-call", attempt.example())
        yield attempt


def _slow_down(scout: Prober, call: Example) -> Iterator[Attempt]:
    """Call a tool with a duration.

    A call of less than the wanted duration is used only if no longer one is found: a busy machine
    delays the short call from which the first duration is estimated. One of less than the duration
    that it was given is sent again.
    """
    wish = _wish(call)
    longest, obeyed = None, False
    for tried in count():
        if tried > 1 and wish >= WISHED:  # less is the mark of a busy machine
            break
        longer = slowed(call.schema, call.arguments, wish)
        if longer is None:
            break
        request = Request(call.method, {**call.params, "arguments": longer})
        token = f"touchstone-progress-{call.name}"
        attempt = scout.attempt(request, call.item, token=token, level="debug")
        if attempt is None or not attempt.reply.succeeded:
            break
        if attempt.seconds >= SLOW:
            longest, obeyed = attempt, attempt.seconds >= wish
        if attempt.seconds >= NEARLY * WISHED:
            break
        wish *= max(2.0, WISHED / max(SHORT, attempt.seconds))
    if longest is not None and obeyed:
        scout.found("slow-call", longest.example())
        yield longest
    elif longest is not None:
        yield from _lasts_again(scout, longest.example())


def find_task(scout: Prober) -> None:
    """Run a tool as a task, if one may be called and declares task support."""
    if not scout.spoken.declares("tasks.requests.tools.call"):
        return
    for tool in scout.tools():
        if not may_be_task(tool):
            continue
        calls = scout.calls(tool)
        for request in calls:
            connection = scout.connection()
            if connection is None:
                return
            task = Task(connection, request, token=f"touchstone-task-{tool['name']}")
            if not task.created.answered:
                scout.unanswered(connection, task.request)
            elif task.created.result is not None or not needs_task(tool, scout.revision):
                # the chapter on tasks judges any answer of a declared tool
                scout.found("task-tool", _watch(scout, task, request, tool))
                break
            else:
                scout.note("task-tool", f"{tool['name']} answered {task.created}")
    if scout.spoken.found.get("task-tool"):
        scout.forget("task-tool")


def find_slow_task(scout: Prober) -> None:
    """Find a task that lasts: a lasting call that can be a task, or an observed task."""
    for call in scout.spoken.found.get("slow-call", []):
        if may_be_task(call.item):
            scout.found("slow-task", call)
    for example in scout.spoken.found.get("task-tool", []):
        if example.seconds >= SLOW:
            scout.found("slow-task", example)
    if not scout.spoken.found.get("slow-task"):
        _slow_task_down(scout)


def _slow_task_down(scout: Prober) -> None:
    """Run a task-only tool with a duration; ordinary tools were called so before."""
    for known in scout.spoken.found.get("task-tool", []):
        longer = slowed(known.schema, known.arguments, WISHED)
        connection = scout.connection()
        if connection is None or longer is None or not needs_task(known.item, scout.revision):
            continue
        request = Request(known.method, {**known.params, "arguments": longer})
        task = Task(connection, request, token=f"touchstone-task-{known.name}-slow")
        example = _watch(scout, task, request, known.item)
        if task.id and example.seconds >= SLOW:
            scout.found("slow-task", example)


def _watch(scout: Prober, task: Task, request: Request, tool: Mapping[str, Any]) -> Example:
    if not task.wait(TASK_PATIENCE) and task.id and scout.spoken.declares("tasks.cancel"):
        task.cancel()
    return Example(
        request.method,
        request.params,
        result=task.created.result or {},
        seconds=task.lasted,
        item=tool,
    )


def find_subscription(scout: Prober) -> None:
    """Open a subscription with an empty filter; it counts unless it is refused with an error."""
    connection = scout.connection()
    if connection is None:
        return
    subscription = Subscription(connection, {})
    subscription.acknowledged()
    refusal = subscription.refusal
    if refusal.is_error:
        scout.note("subscriptions", f"subscriptions/listen answered {refusal}")
        return
    scout.found("subscriptions", Example("subscriptions/listen", {"notifications": {}}))
    if not refusal.answered:
        subscription.cancel()
