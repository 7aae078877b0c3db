"""basic/utilities/tasks: what may be a task, which operations there are, and what they refuse."""

import secrets
from collections.abc import Iterator

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Exchange,
    Record,
    Reply,
    Seen,
    ambient,
    may_be_task,
    scenario,
    shapes,
    task_support,
)

NOT_FOUND, INVALID, INVALID_REQUEST = -32601, -32602, -32600
TASK = {"ttl": 60_000}
CALLS = "tasks.requests.tools.call"


@ambient("tasks-capability-shape", "tasks-tool-support-values")
def declares_tasks_in_the_right_types(record: Record) -> Iterator[Seen]:
    """The members of the tasks capability are objects; taskSupport is one of three words."""
    yield from shapes(record, "tasks-capability-shape", "tasks-tool-support-values")


# --- which requests may be tasks


@scenario("tasks-ignored-when-undeclared")
def ignores_a_task_where_it_has_none(talk: Conversation) -> None:
    """A request that cannot be a task is answered as if it did not ask to be one."""
    calls = [] if talk.spoken.declares(CALLS) else _plain_calls(talk)
    lists = [Exchange(method) for method in talk.spoken.listing[:1]]
    for exchange in (*calls, *lists, Exchange("ping")):
        params = {**exchange.params, "task": TASK}
        reply = talk.request(exchange.method, params, required=False)
        made = "task" in (reply.result or {}) and exchange.method == "tools/call"
        failed = reply.result is None and _works(talk, exchange)
        talk.judge(
            "tasks-ignored-when-undeclared",
            not made and not failed,
            expected=f"the ordinary result of {exchange}, which cannot be a task",
            actual=reply,
            at=reply,
        )


def _plain_calls(talk: Conversation) -> list[Exchange]:
    """Give a call that is safe and likely to succeed."""
    known: list[Exchange] = list(talk.examples("callable-tool")[:1])
    free = [Exchange("tools/call", {"name": n, "arguments": {}}) for n in talk.spoken.harmless[:1]]
    return known or free


def _works(talk: Conversation, exchange: Exchange) -> bool:
    return talk.run(exchange, required=False).result is not None


@scenario("tasks-forbidden-tool-error")
def refuses_a_task_of_a_tool_that_cannot_be_one(talk: Conversation) -> None:
    """A tool that does not list task support, called as a task, gets error -32601."""
    clause = "tasks-forbidden-tool-error"
    tools = [e for e in talk.examples("callable-tool") if e.item and not may_be_task(e.item)]
    if not tools:
        talk.unseen(clause, "every tool that may be called can be a task")
        return
    task = talk.task(tools[0])
    reply = task.created
    talk.judge(
        clause,
        reply.refused(NOT_FOUND),
        expected=f"error -32601 for {tools[0].name} as a task, which lists no support for it",
        actual=reply,
        at=reply,
    )
    task.wait(talk.pace.reply)


@scenario("tasks-required-tool-error")
def refuses_to_run_plainly_what_must_be_a_task(talk: Conversation) -> None:
    """A tool whose taskSupport is required, called without a task, gets error -32601."""
    clause = "tasks-required-tool-error"
    tools = [e for e in talk.examples("task-tool") if task_support(e.item) == "required"]
    if not tools:
        talk.unseen(clause, "no tool that may be called has to be a task")
        return
    reply = talk.run(tools[0])
    talk.judge(
        clause,
        reply.refused(NOT_FOUND),
        expected=f"error -32601 for {tools[0].name}, which has to be a task",
        actual=reply,
        at=reply,
        mild=Breach.WARN if reply.code == INVALID_REQUEST else None,
    )


# --- which operations there are


@scenario("tasks-declared-operations-work", "tasks-unknown-id-error", "tasks-informative-errors")
def has_the_operations_it_declares(talk: Conversation) -> None:
    """What is declared exists, and refuses the id of a task nobody made with error -32602."""
    stranger = {"taskId": secrets.token_hex(16)}
    offered = {
        "tasks/get": talk.spoken.declares("tasks.requests"),
        "tasks/result": talk.spoken.declares("tasks.requests"),
        "tasks/cancel": talk.spoken.declares("tasks.cancel"),
        "tasks/list": talk.spoken.declares("tasks.list"),
    }
    refusals = []
    for method, declared in offered.items():
        params = {} if method == "tasks/list" else stranger
        reply = talk.request(method, params, required=False)
        if declared:
            _judge_declared(talk, method, reply)
        elif method in {"tasks/cancel", "tasks/list"}:
            talk.judge(
                "tasks-declared-operations-work",
                reply.refused(NOT_FOUND),
                expected=f"error -32601, as {method} is not declared",
                actual=reply,
                at=reply,
                mild=Breach.WARN,
            )
        if reply.is_error:
            refusals.append(reply)
        if declared and params and reply.code != NOT_FOUND:
            talk.judge(
                "tasks-unknown-id-error",
                reply.answered and reply.refused(INVALID),
                expected=f"error -32602 for {method} with an id of no task",
                actual=reply,
                at=reply,
            )
    _judge_messages(talk, refusals)
    if not any(one.clause == "tasks-unknown-id-error" for one in talk.judgements):
        talk.unseen("tasks-unknown-id-error", "no operation that takes an id is declared")
    if not any(one.clause == "tasks-declared-operations-work" for one in talk.judgements):
        talk.unseen("tasks-declared-operations-work", "nothing is declared")


def _judge_declared(talk: Conversation, method: str, reply: Reply) -> None:
    talk.judge(
        "tasks-declared-operations-work",
        reply.code != NOT_FOUND,
        expected=f"{method}, which is declared",
        actual=reply,
        at=reply,
    )


def _judge_messages(talk: Conversation, refusals: list[Reply]) -> None:
    """Judge the words of errors -32602; where none came, nothing was to be read."""
    readable = [reply for reply in refusals if reply.code == INVALID]
    for reply in readable:
        words = (reply.error or {}).get("message")
        talk.judge(
            "tasks-informative-errors",
            not isinstance(words, str) or not words or bool(words.strip()),
            expected="a message that says what is wrong",
            actual=reply,
            at=reply,
        )
    if not readable:
        talk.unseen("tasks-informative-errors", "no error -32602 came")


@scenario("tasks-invalid-cursor-error")
def refuses_a_cursor_it_never_gave(talk: Conversation) -> None:
    """tasks/list with a cursor that is none gets error -32602."""
    reply = talk.request("tasks/list", {"cursor": f"touchstone-{secrets.token_hex(8)}"})
    if reply.code == NOT_FOUND:
        talk.unseen("tasks-invalid-cursor-error", "there is no tasks/list")
        return
    talk.judge(
        "tasks-invalid-cursor-error",
        reply.refused(INVALID),
        expected="error -32602 for a cursor the server never gave",
        actual=reply,
        at=reply,
    )
