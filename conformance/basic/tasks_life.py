"""basic/utilities/tasks: the life of a task, from its id to its result."""

import secrets
from collections.abc import Iterator

from mcp_touchstone.suite import (
    RELATED,
    Conversation,
    Example,
    Reply,
    Request,
    Task,
    arguments,
    brief,
    guessable,
    listings,
    object_in,
    read_pages,
    same_outcome,
    scenario,
    task_support,
)

INVALID, NOT_FOUND = -32602, -32601
SEVERAL = 5
"""Number of tasks whose ids are compared."""


# --- several at once


@scenario(
    "tasks-id-server-generated",
    "tasks-id-unguessable",
    "tasks-id-param-authoritative",
    "tasks-list-consistent-with-get",
)
def identifies_its_tasks_by_unguessable_ids(talk: Conversation) -> None:
    """Each task gets an unguessable id, is found by it alone, and is listed."""
    example = talk.examples.best("task-tool")
    wish = f"touchstone-{secrets.token_hex(8)}"
    odd = Task(talk.wire, example, more={"taskId": wish})
    talk.judge.expect(
        odd.created,
        "tasks-id-server-generated",
        odd.id != wish,
        "an id made by the server, not the one in the request",
    )
    tasks = [task for task in (Task(talk.wire, example) for _ in range(SEVERAL)) if task.id]
    ids = list(dict.fromkeys(task.id for task in tasks))
    if len(ids) < SEVERAL:
        talk.judge.unseen("tasks-id-unguessable", f"only {len(ids)} ids of {SEVERAL} tasks")
    else:
        talk.judge(
            "tasks-id-unguessable",
            not guessable(ids),
            expected="ids that cannot be guessed from others",
            actual=", ".join(brief(one, 40) for one in ids),
            at=tasks[-1].created,
        )
    _judge_parameter(talk, tasks)
    if talk.judge.covers("tasks-list-consistent-with-get"):
        _judge_list(talk, tasks)


def _judge_parameter(talk: Conversation, tasks: list[Task]) -> None:
    clause = "tasks-id-param-authoritative"
    if len({task.id for task in tasks}) < 2:
        talk.judge.unseen(clause, "fewer than two tasks were created")
        return
    first, second = tasks[:2]
    reply = first.get({RELATED: {"taskId": second.id}})
    described = (reply.result or {}).get("taskId")
    failed = reply.result is None and first.get().result is not None
    talk.judge.expect(
        reply,
        clause,
        described != second.id and not failed,
        f"the task {brief(first.id)} of the taskId parameter",
    )


def _judge_list(talk: Conversation, tasks: list[Task]) -> None:
    clause = "tasks-list-consistent-with-get"
    there = [task for task in tasks if task.get().result is not None]
    pages = list(read_pages(talk.wire, "tasks/list"))
    listed = {state.get("taskId") for state in listings.items(pages, "tasks")}
    last = pages[-1].result or {}
    readable = all(isinstance((page.result or {}).get("tasks"), list) for page in pages)
    if not readable or "nextCursor" in last:
        talk.judge.unseen(clause, f"a page of the list is missing: {pages[-1]}")
        return
    hidden = [t for t in there if t.id not in listed and t.get().result is not None]
    if not there:
        talk.judge.unseen(clause, "tasks/get knows none of the tasks")
        return
    talk.judge(
        clause,
        not hidden,
        expected="every task that tasks/get knows on some page of tasks/list",
        actual=f"{len(hidden)} of {len(there)} missing, for example {brief(hidden[0].id)}"
        if hidden
        else "",
        at=pages[-1],
    )


# --- results


@scenario(
    "tasks-result-final", "tasks-result-related-meta", "tasks-cancel-terminal-rejected", lasts=True
)
def returns_the_result_of_a_finished_task(talk: Conversation) -> None:
    """tasks/result returns the result of the call, and a finished task cannot be cancelled."""
    clauses = (
        "tasks-result-final",
        "tasks-result-related-meta",
        "tasks-cancel-terminal-rejected",
    )
    example = talk.examples.best("task-tool")
    before = _plain_result(talk, example)
    task = Task(talk.wire, example)
    task.wait(_patience(talk, example))
    if task.status not in {"completed", "failed"}:
        talk.judge.unseen(clauses, f"the task did not end in time; its state is {task.status}")
        return
    reply = task.result()
    plain = _plain_result(talk, example) if before else None
    if before and plain and not same_outcome(before, plain):
        plain = None  # The result of the call varies by itself.
    gone = reply.code == INVALID and task.get().code == INVALID
    if gone or reply.code == NOT_FOUND:
        talk.judge.unseen(clauses[0], f"the task is gone, or there is no tasks/result: {reply}")
        talk.judge.unseen(clauses[1], f"the task is gone, or there is no tasks/result: {reply}")
    else:
        fits = isinstance((reply.result or {}).get("content"), list) or reply.is_error
        talk.judge.expect(
            reply,
            clauses[0],
            fits and (plain is None or same_outcome(plain, reply)),
            "the result of the plain call" if plain else "a result of tools/call",
        )
        _judge_related(talk, task, reply)
        _judge_second_result(talk, task, reply)
    if talk.judge.covers(clauses[2]):
        refused = task.cancel()
        if refused.code == NOT_FOUND:
            talk.judge.unseen(clauses[2], "there is no tasks/cancel")
            return
        talk.judge.expect(
            refused,
            clauses[2],
            refused.refused(INVALID),
            f"error -32602, because the task is {task.states[-1].get('status')}",
        )


def _judge_second_result(talk: Conversation, task: Task, first: Reply) -> None:
    again = talk.wire.request("tasks/result", {"taskId": task.id}, required=False)
    if again.code == INVALID and task.get().code == INVALID:
        return  # tasks-kept-for-ttl judges this
    talk.judge.expect(
        again,
        "tasks-result-final",
        not first.answered or same_outcome(first, again),
        "the same outcome of a second tasks/result",
    )


def _patience(talk: Conversation, example: Example) -> float:
    return talk.pace.reply + 3 * example.seconds


def _plain_result(talk: Conversation, example: Example) -> Reply | None:
    """Return the answer to the same call without a task; None if there is none in time.

    None is due: the example returned a task at once, so nobody knows how long the call lasts.
    """
    if task_support(example.item) != "optional":
        return None
    reply = talk.run(example, required=False)
    return reply if reply.answered else None


def _judge_related(talk: Conversation, task: Task, reply: Reply) -> None:
    clause = "tasks-result-related-meta"
    if reply.result is None:
        talk.judge.unseen(clause, "tasks/result gave no result")
        return
    meta = reply.result.get("_meta")
    talk.judge(
        clause,
        object_in(meta, RELATED).get("taskId") == task.id,
        expected=f"{RELATED} with the id of the task in _meta",
        actual=brief(meta) if meta is not None else "no _meta",
        at=reply,
    )


@scenario("tasks-failed-status-message", "tasks-iserror-means-failed", lasts=True)
def reports_failed_tasks(talk: Conversation) -> None:
    """A task whose tool fails is in state failed and gives a reason."""
    for exchange in _failing(talk):
        task = Task(talk.wire, exchange)
        if not task.id or not task.wait(talk.pace.reply):
            continue
        state = task.get().result or {}
        reply = task.result()
        if reply.is_tool_error:
            talk.judge(
                "tasks-iserror-means-failed",
                task.status != "completed",
                expected="state failed, because the result has isError",
                actual=task.status,
                at=reply,
            )
        elif reply.is_error and reply.code not in {INVALID, NOT_FOUND}:
            talk.judge(
                "tasks-iserror-means-failed",
                task.status != "completed",
                expected=f"state failed, because the request ended in error {reply.code}",
                actual=task.status,
                at=reply,
            )
        if state.get("status") == "failed":
            words = state.get("statusMessage")
            talk.judge(
                "tasks-failed-status-message",
                bool(words) and (not isinstance(words, str) or bool(words.strip())),
                expected="a statusMessage that describes the failure",
                actual=brief(words) if "statusMessage" in state else "none",
                at=reply.asked,
            )
        if talk.judge.judgements:
            break
    talk.judge.otherwise_unseen(
        ("tasks-failed-status-message", "tasks-iserror-means-failed"),
        "no task could be made to fail",
    )


def _failing(talk: Conversation) -> Iterator[Request]:
    for example in talk.examples("task-tool")[:2]:
        for spoilt in (
            arguments.mistyped(example.schema, example.arguments),
            arguments.incomplete(example.schema, example.arguments),
        ):
            if spoilt is not None:
                yield Request(example.method, {**example.params, "arguments": spoilt[1]})
