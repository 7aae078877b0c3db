"""basic/utilities/tasks: tasks that send requests to the client, and tasks of the client."""

import secrets
from dataclasses import replace
from typing import Any

from mcp_touchstone.suite import (
    CAPABILITIES,
    RELATED,
    Client,
    ClientTasks,
    Conversation,
    Entry,
    Example,
    Pending,
    Question,
    Role,
    Source,
    Task,
    Window,
    answer,
    brief,
    id_key,
    mrtr,
    object_in,
    questions,
    scenario,
    sightings,
    willing,
)

HOLD = 1.0
"""Seconds an answer is held back, to inspect the task meanwhile."""
POLL = 0.1
INTERVAL = 300
"""The pollInterval of a task of the client, in milliseconds."""
POLLS = 4
MORE = 6
"""Number of polls that a server may need to notice that a task needs input."""
TRIED = 4


# --- tasks that send requests


@scenario(
    "tasks-input-required-status",
    "tasks-leaves-input-required",
    "tasks-related-meta-on-requests",
    willing=True,
)
def marks_a_task_that_waits_for_input(talk: Conversation) -> None:
    """A task that waits for the client is in state input_required until it gets the answer."""
    clauses = (
        "tasks-related-meta-on-requests",
        "tasks-input-required-status",
        "tasks-leaves-input-required",
    )
    example = talk.examples.best("asking-task")
    passed = answer.late(HOLD, answer.accept()), answer.late(HOLD, answer.say())
    talk.wire.answers.use(
        replace(talk.wire.answers.client, elicitation=passed[0], sampling=passed[1])
    )
    task = Task(talk.wire, example)
    question = _first_question(talk, task)
    if question is None:
        talk.judge.unseen(clauses, "the task sent no request this time")
        return
    related = object_in(question.params, "_meta", RELATED)
    known = {shown.id for shown in sightings(talk.wire.transcript)}
    talk.judge(
        clauses[0],
        related.get("taskId") in known,
        expected=f"{RELATED} with the id of the task in _meta of {question.method}",
        actual=brief(related),
        at=question.entry,
    )
    while _answered(talk, question) is None and not talk.wire.gone and not task.ended:
        task.get()
        talk.wire.quiet(POLL)
    waited = "input_required" in [state.get("status") for state in task.states]
    talk.judge(
        clauses[1],
        waited,
        expected="state input_required until the client answers",
        actual=brief(task.status),
        at=question.entry,
    )
    _judge_leaving(talk, task, clauses[2], waited=waited)
    task.wait(talk.pace.settle)


def _first_question(talk: Conversation, task: Task) -> Question | None:
    """Wait for the first request of a task; some servers send it only after tasks/result."""
    window = Window(talk.wire, talk.pace.reply)
    while not window.over and not task.ended and task.id and not talk.wire.gone:
        asked = _asked(talk, task)
        if asked:
            return asked[0]
        task.get()
        if task.status == "input_required":
            task.start_result()
        talk.wire.quiet(POLL)
    return next(iter(_asked(talk, task)), None)


def _asked(talk: Conversation, task: Task) -> list[Question]:
    found = list(questions(talk.since(task.request.line)))
    return [question for question in found if question.method != "roots/list"]


def _answered(talk: Conversation, question: Question) -> Entry | None:
    """Return our line that answers a request; None while it is held back."""
    for entry in talk.since(question.entry.n):
        value = entry.value if entry.source is Source.US else None
        body = value if isinstance(value, dict) and "method" not in value else {}
        if body and id_key(body.get("id")) == id_key(question.key):
            return entry
    return None


def _judge_leaving(talk: Conversation, task: Task, clause: str, *, waited: bool) -> None:
    if not waited:
        talk.judge.unseen(clause, "the task was never in state input_required")
        return
    window = Window(talk.wire, talk.pace.reply)
    while True:
        reply = task.get()
        pending = [one for one in _asked(talk, task) if _answered(talk, one) is None]
        left = task.status != "input_required" or reply.result is None
        if left or pending or window.over or talk.wire.gone:
            break
        talk.wire.quiet(POLL)
    talk.judge(
        clause,
        left or bool(pending),
        expected="another state after the client answered",
        actual=f"still {task.status}",
        at=reply,
    )


# --- tasks of the client


@scenario("tasks-no-undeclared-augmentation")
def asks_no_task_of_a_client_without_tasks(talk: Conversation) -> None:
    """Requests to a client without tasks have no task member."""
    clause = "tasks-no-undeclared-augmentation"
    capabilities = {k: v for k, v in CAPABILITIES[talk.revision].items() if k != "tasks"}
    talk.server.reopen(Client(capabilities=capabilities, elicitation=answer.accept()))
    asked: list[Question] = []
    for example in _asking(talk):
        provoked = mrtr.provoke(talk.wire, example)
        asked = [one for one in provoked.questions if one.method != "roots/list"]
        if asked:
            break
    for question in asked:
        talk.judge(
            clause,
            "task" not in question.member,
            expected=f"{question.method} without task, because the client declared no tasks",
            actual=brief(question.member.get("task")),
            at=question.entry,
        )
    if not asked:
        talk.judge.unseen(clause, "the server sent no request this time")


@scenario("tasks-requestor-poll-interval", willing=True)
def respects_the_poll_interval_of_the_client(talk: Conversation) -> None:
    """A server polls a task of its client no faster than its pollInterval."""
    clause = "tasks-requestor-poll-interval"
    for example in _asking(talk):
        # The server may still poll tasks of an earlier client, at their own pace.
        name = f"touchstone-{secrets.token_hex(4)}"
        tasks = ClientTasks(polls=POLLS, poll_interval=INTERVAL, name=name)
        talk.wire.answers.use(replace(willing(talk.revision), tasks=tasks))
        line = len(talk.wire.transcript)
        mrtr.provoke(talk.wire, example)
        for own in tasks.ids:
            gaps, last = _gaps(talk, line, own)
            if len(gaps) > 1:
                pause = 1000 * sum(gaps) / len(gaps)
                talk.judge(
                    clause,
                    pause > INTERVAL / 2,
                    expected=f"about {INTERVAL} ms between two polls of a task of the client",
                    actual=f"{pause:.0f} ms",
                    at=last,
                )
        if talk.judge.judgements:
            return
    talk.judge.unseen(clause, "the server polled no task of the client more than twice")


@scenario("tasks-requestor-polling", willing=True, lasts=True)
def fetches_the_result_of_a_task_that_needs_input(talk: Conversation) -> None:
    """A server that sees a task of the client in input_required sends tasks/result."""
    clause = "tasks-requestor-polling"
    for example in _asking(talk):
        tasks = _own_tasks(needs_input=True)
        talk.wire.answers.use(replace(willing(talk.revision), tasks=tasks))
        pending = Pending(talk.wire, example)
        line = pending.line

        def seen(line: int = line, tasks: ClientTasks = tasks) -> list[Entry]:
            return _requests(talk, line, tasks, "tasks/get")

        def is_over(pending: Pending = pending, tasks: ClientTasks = tasks) -> object:
            wanted = _requests(talk, pending.line, tasks, "tasks/result")
            return pending.answers() or wanted or len(seen()) > MORE

        talk.wire.wait(is_over, talk.pace.reply)
        polls = seen()
        wanted = _requests(talk, line, tasks, "tasks/result")
        for own in tasks.ids:
            tasks.complete(own)
        pending.reply(talk.pace.reply)
        if not polls:
            continue
        talk.judge(
            clause,
            bool(wanted) or len(polls) <= MORE,
            expected="tasks/result for a task of the client in input_required",
            actual=f"{len(polls)} times tasks/get and no tasks/result",
            at=polls[-1],
        )
        return
    talk.judge.unseen(clause, "the server polled no task of the client")


@scenario("tasks-requestor-no-reliance-on-notifications", willing=True, lasts=True)
def finishes_without_status_notifications(talk: Conversation) -> None:
    """A call that leads to a task of the client ends without a status notification."""
    clause = "tasks-requestor-no-reliance-on-notifications"
    for example in _asking(talk):
        ended = []
        for notified in (False, True, False, True):
            ended.append(_ends(talk, example, notified=notified))
            if ended[-1] is None or ended[-1] is not notified:
                break
        if ended[-1] is None:
            continue
        talk.judge(
            clause,
            ended != [False, True, False, True],
            expected="an end of the call without a status notification, or a tasks/get",
            actual="an end only with a status notification, and no tasks/get",
            at=len(talk.wire.transcript),
        )
        return
    talk.judge.unseen(clause, "the server asked for no task of the client")


def _ends(talk: Conversation, example: Example, *, notified: bool) -> bool | None:
    """Whether a call ends, or its task of the client is polled; None if there is no task."""
    tasks = _own_tasks()
    talk.wire.answers.use(replace(willing(talk.revision), tasks=tasks))
    pending = Pending(talk.wire, example)
    talk.wire.wait(lambda: tasks.ids or pending.answers(), talk.pace.reply)
    if not tasks.ids:
        pending.reply()
        return None
    tasks.complete(tasks.ids[0])
    if notified:
        talk.wire.notify("notifications/tasks/status", tasks.shown(tasks.ids[0]))

    def polled() -> list[Entry]:
        return _requests(talk, pending.line, tasks, "tasks/get", "tasks/result")

    talk.wire.wait(lambda: pending.answers() or polled(), talk.pace.reply)
    ended = bool(pending.answers() or polled())
    if not ended:
        pending.cancel()
    else:
        pending.reply()
    return ended


def _own_tasks(*, needs_input: bool = False) -> ClientTasks:
    """Make tasks of a client that cannot be confused with those of an earlier one."""
    name = f"touchstone-{secrets.token_hex(4)}"
    return ClientTasks(polls=1, poll_interval=50, name=name, needs_input=needs_input)


def _requests(talk: Conversation, line: int, tasks: ClientTasks, *methods: str) -> list[Entry]:
    """Return the requests of the server about tasks of a client, after a line."""
    return [
        entry
        for entry in talk.since(line)
        for message in entry.messages
        if message.role is Role.REQUEST
        and message.method in methods
        and object_in(message.value, "params").get("taskId") in tasks.ids
    ]


def _asking(talk: Conversation) -> list[Example]:
    found = {str(e): e for word in ("elicits", "samples") for e in talk.examples(word)}
    return list(found.values())[:TRIED]


def _gaps(talk: Conversation, line: int, own: str) -> tuple[list[float], Entry | None]:
    """Return the seconds from each of our answers about a task to the next poll, and its line.

    A busy machine makes these gaps longer, never shorter.
    """
    gaps: list[float] = []
    said: float | None = None
    last: Entry | None = None
    asked: set[Any] = set()
    for entry in talk.since(line):
        for message in entry.messages:
            params = message.value.get("params") if message.role is Role.REQUEST else None
            if message.method != "tasks/get" or not isinstance(params, dict):
                continue
            if params.get("taskId") == own:
                asked.add(id_key(message.value.get("id")))
                if said is not None:
                    gaps.append(entry.at - said)
                last, said = entry, None
        value = entry.value if entry.source is Source.US else None
        if isinstance(value, dict) and "method" not in value and id_key(value.get("id")) in asked:
            said = entry.at
    return gaps, last
