"""basic/utilities/tasks: the result and the work of a cancelled task; limits of tasks."""

from mcp_touchstone.suite import Breach, Conversation, Place, Reply, Task, brief, scenario, traces

INVALID, NOT_FOUND = -32602, -32601
CANCELLED = "notifications/cancelled"
TOKEN = "touchstone-cancelled-task"  # noqa: S105  (a progress token)

RESULT = "tasks-result-of-cancelled-answered"
WORK = "tasks-cancel-stops-execution"
NOTICE = "tasks-not-cancelled-by-notification"
LIMITS = "tasks-operational-limits"

GRACE = 1.0
"""Seconds in which a cancelled task may clean up."""

LONGEST = 6.0
"""Longest duration in seconds of a chosen task, if there are several."""

OVER = 1.15
"""Work is over after this many times its earlier duration."""

TEN_YEARS = 315_360_000_000
SHORT = 100
"""Requested lifetimes of tasks, in milliseconds."""

SHORTEST = 3_000
"""Longest lifetime in milliseconds whose end is awaited."""


@scenario(RESULT, WORK, place=Place.OWN_FOLDER, lasts=True)
def answers_for_the_result_of_a_cancelled_task(talk: Conversation) -> None:
    """tasks/result of a cancelled task is answered, and the task stops its work."""
    talk.wire.open()
    fitting = [one for one in talk.examples("slow-task") if one.seconds <= LONGEST]
    example = talk.examples.best("slow-task")
    example = talk.examples.here(max(fitting, key=lambda one: one.seconds, default=example))
    before = traces(talk.root)
    task = Task(talk.wire, example, token=TOKEN)
    wanted = task.start_result() if task.id else None
    talk.wire.quiet(example.seconds / 4)
    worked = traces(talk.root) != before
    early = wanted is None or bool(wanted.answers())
    reply = task.cancel()
    if wanted is None or early or reply.result is None:
        talk.judge.unseen((RESULT, WORK), f"no task was cancelled while it ran: {reply}")
        return
    # The answer to tasks/cancel proves that the server has read everything up to here.
    for answer in (
        wanted.reply(talk.pace.reply),
        talk.wire.request("tasks/result", {"taskId": task.id}, required=False),
    ):
        alive = task.get().answered
        talk.judge(
            RESULT,
            answer.answered or not alive,
            expected="an answer to tasks/result, a result or an error, because the task is over",
            actual=f"{answer}, while tasks/get was answered",
            at=answer,
        )
    _judge_work(talk, task, example.seconds, worked=worked)


def _judge_work(talk: Conversation, task: Task, seconds: float, *, worked: bool) -> None:
    """Judge whether files changed between the grace period and the natural end of the task."""
    left = OVER * seconds - task.request.age - GRACE
    if not worked or left < talk.pace.settle:
        talk.judge.unseen(WORK, "the task left no sign of its work, or is too short")
        return
    talk.wire.quiet(GRACE)
    before = traces(talk.root)
    talk.wire.quiet(left)
    after = traces(talk.root)
    # If the folder still changes after the natural end, the cause is not the task.
    changed = after != before
    if changed:
        talk.wire.quiet(seconds / 2)
        changed = traces(talk.root) == after
    talk.judge(
        WORK,
        not changed,
        expected="a task that stops its work when it is cancelled",
        actual="files in its folder went on changing until its natural end",
        at=len(talk.wire.transcript),
    )


@scenario(NOTICE)
def ignores_cancellations_of_task_requests(talk: Conversation) -> None:
    """notifications/cancelled for a request about a task does not cancel the task."""
    task = Task(talk.wire, talk.examples.best("slow-task"))
    if not task.id:
        talk.judge.unseen(NOTICE, f"no task was created: {task.created}")
        return
    wanted = task.start_result()
    for own in (task.request.id, wanted.id):
        talk.wire.notify(CANCELLED, {"requestId": own})
        state = task.get()
        talk.judge(
            NOTICE,
            (state.result or {}).get("status") != "cancelled",
            expected="a task that only tasks/cancel cancels",
            actual=f"state {brief(task.status)} after {CANCELLED} for a request about it",
            at=state,
        )
    if talk.spoken.declares("tasks.cancel"):
        task.cancel()
    else:
        task.wait(talk.pace.reply)


@scenario(LIMITS, lasts=True)
def limits_the_lifetime_of_tasks(talk: Conversation) -> None:
    """The lifetime of a task has a maximum, and an expired task is deleted."""
    example = talk.examples.best("task-tool")
    long = Task(talk.wire, example, ttl=TEN_YEARS)
    if long.id:
        talk.judge(
            LIMITS,
            long.states[0].get("ttl") != TEN_YEARS,
            expected="a maximum for ttl",
            actual="a ttl of ten years as the client asked for it",
            at=long.created,
        )
    short = Task(talk.wire, example, ttl=SHORT)
    ttl = short.states[0].get("ttl") if short.id else None
    ended = short.wait(talk.pace.reply)
    if isinstance(ttl, int) and ttl <= SHORTEST and ended:
        talk.wire.quiet(max(0.0, 2 * ttl / 1000 + 1.0 - short.request.age))
        late: Reply = short.get()
        talk.judge.expect(
            late,
            LIMITS,
            late.result is None,
            f"no task after its ttl of {ttl} ms",
            mild=Breach.NOTE,
        )
    talk.judge.unseen(LIMITS, "no task was created")
