"""basic/utilities/tasks: a long task while it runs."""

from mcp_touchstone.suite import (
    TERMINAL,
    Breach,
    Conversation,
    Example,
    Place,
    Reply,
    Task,
    Window,
    brief,
    scenario,
    sightings,
)

INVALID, NOT_FOUND = -32602, -32601
UNFINISHED = ("working", "input_required")
POLL = 0.25
LONGEST = 5.0
"""The most seconds to wait for the natural end of cancelled work."""
PROGRESS = "touchstone-lasting-task"


@scenario(
    "tasks-create-result-prompt",
    "tasks-result-blocks",
    "tasks-cancel-transition",
    "tasks-terminal-final",
    place=Place.OWN_PROCESS,
    lasts=True,
)
def stays_responsive_during_a_long_task(talk: Conversation) -> None:
    """A long task is created at once, delays its result until its end, and can be cancelled."""
    clauses = ("tasks-create-result-prompt", "tasks-result-blocks", "tasks-cancel-transition")
    if not talk.examples("slow-task"):
        talk.judge.unseen("tasks-terminal-final", "no task lasts long enough to be cancelled")
        return
    example = talk.examples.best("slow-task")
    talk.wire.open()
    task = Task(talk.wire, example, token=PROGRESS)
    other = Task(talk.wire, example) if talk.spoken.declares("tasks.cancel") else None
    if not task.id:
        talk.judge.unseen(
            (*clauses, "tasks-terminal-final"), f"no task was created: {task.created}"
        )
        return
    cancelled = _judge_cancel(talk, other) if other is not None and other.id else None
    _judge_blocking(talk, task, example)
    _judge_prompt(talk, task, example)
    if other is None or cancelled is None:
        talk.judge.unseen("tasks-terminal-final", "no task was cancelled")
        return
    talk.wire.quiet(max(talk.pace.settle, min(LONGEST, 1.2 * example.seconds) - other.request.age))
    later = other.get()
    status = (later.result or {}).get("status")
    talk.judge(
        "tasks-terminal-final",
        status == "cancelled" or later.is_error,
        expected="state cancelled, also after the natural end of the work",
        actual=brief(status) if later.answered else later,
        at=later,
    )


def _judge_cancel(talk: Conversation, task: Task) -> Reply | None:
    """Cancel a task; return the answer if that worked."""
    clause = "tasks-cancel-transition"
    reply = task.cancel()
    answered = (reply.result or {}).get("status")
    later = task.get()
    shown = (later.result or {}).get("status")
    if reply.code == NOT_FOUND or (reply.code == INVALID and shown not in UNFINISHED):
        talk.judge.unseen(clause, f"the task ended before it was cancelled, or cannot be: {reply}")
        return None
    passed = answered == "cancelled" and (shown == "cancelled" or later.code == INVALID)
    talk.judge(
        clause,
        passed,
        expected="state cancelled in the answer and in the next tasks/get",
        actual=later if answered == "cancelled" else reply,
        at=later if answered == "cancelled" else reply,
    )
    return reply if passed else None


def _judge_blocking(talk: Conversation, task: Task, example: Example) -> None:
    clause = "tasks-result-blocks"
    wanted = task.start_result()
    window = Window(talk.wire, talk.pace.reply + 3 * example.seconds)
    polls: list[Reply] = []
    while not wanted.answers() and not window.over and not talk.wire.gone:
        polls.append(task.get())
        if task.ended or not polls[-1].answered:
            break
        talk.wire.quiet(POLL)
    reply = wanted.reply(talk.pace.reply)
    after = task.get()
    if (after.result or {}).get("status") in UNFINISHED:
        # A store of states may lag behind the result for a moment.
        talk.wire.quiet(talk.pace.settle)
        after = task.get()
    status = (after.result or {}).get("status")
    if reply.code == NOT_FOUND or (not reply.answered and not _has_result(talk, task)):
        talk.judge.unseen(clause, f"tasks/result gave no answer to judge: {reply}")
        return
    talk.judge(
        clause,
        reply.answered and status not in UNFINISHED,
        expected="an answer to tasks/result when the task is over, not before",
        actual=f"state {status} after the answer" if reply.answered else reply,
        at=after if reply.answered else reply,
    )
    stuck = [poll for poll in polls if _was_stuck(talk, poll, wanted.line, reply)]
    if stuck:
        talk.judge(
            clause,
            False,
            expected="an answer to tasks/get while tasks/result waits",
            actual="an answer only after the result" if stuck[0].answered else stuck[0],
            at=stuck[0],
            mild=Breach.WARN,
        )


def _has_result(talk: Conversation, task: Task) -> bool:
    """Whether a finished task answers a new tasks/result."""
    again = {"taskId": task.id}
    return task.ended and talk.wire.request("tasks/result", again, required=False).answered


def _was_stuck(talk: Conversation, poll: Reply, begun: int, reply: Reply) -> bool:
    """Whether a poll that was sent long before the result was answered only after it, or never.

    If the server exited, an unanswered poll counts only if it had waited long before.
    """
    left = talk.wire.gone and not poll.answered
    if reply.entry is None or not (poll.answered or left):
        return not (poll.answered or left)
    start, sent, end = (talk.wire.transcript[n].at for n in (begun, poll.asked, reply.entry))
    lines = talk.wire.transcript
    after = left or (poll.entry is not None and lines[poll.entry].follows(lines[reply.entry]))
    return after and end - sent > max(0.5, (end - start) / 2)


def _judge_prompt(talk: Conversation, task: Task, example: Example) -> None:
    """Judge whether a new task is shown before it ends; a late first one is repeated."""
    clause = "tasks-create-result-prompt"
    created = task.states[0].get("status")
    if created not in UNFINISHED:
        talk.judge.unseen(
            clause, "the task was shown as finished, which tasks-initial-status judges"
        )
        return
    ends = [
        shown
        for shown in sightings(talk.wire.transcript)
        if shown.id == task.id and shown.status in TERMINAL
    ]
    answer = talk.wire.transcript[task.created.entry] if task.created.entry else None
    early = any(answer is not None and answer.follows(shown.entry) for shown in ends)
    late = early
    if not early and _was_late(talk, task, example):
        again = Task(talk.wire, example)
        again.get()
        late = bool(again.id) and _was_late(talk, again, example)
    talk.judge(
        clause,
        not late,
        expected="the new task as soon as it is accepted",
        actual="the task only when it was over",
        at=task.created,
    )


def _was_late(talk: Conversation, task: Task, example: Example) -> bool:
    """Whether a task was shown near the end of its duration, and was over at the first poll."""
    sent, shown = (talk.wire.transcript[n].at for n in (task.request.line, task.created.entry or 0))
    over = len(task.states) > 1 and task.states[1].get("status") in TERMINAL
    return over and shown - sent > max(0.5, 0.7 * example.seconds)
