"""basic/utilities/tasks: task support of requests, the operations, and their errors."""

import secrets
from collections.abc import Iterator

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Record,
    Reply,
    Request,
    Seen,
    Task,
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
    """The members of the tasks capability are objects; taskSupport has one of three values."""
    yield from shapes(record)


# --- requests that may be tasks


@scenario("tasks-ignored-when-undeclared")
def ignores_task_requests_without_support(talk: Conversation) -> None:
    """A task member has no effect on a request that cannot be a task."""
    calls = [] if talk.spoken.declares(CALLS) else _plain_calls(talk)
    lists = [Request(method) for method in talk.spoken.list_methods[:1]]
    for request in (*calls, *lists, Request("ping")):
        params = {**request.params, "task": TASK}
        reply = talk.wire.request(request.method, params, required=False)
        made = "task" in (reply.result or {}) and request.method == "tools/call"
        if reply.result is not None or _works(talk, request):
            talk.judge.expect(
                reply,
                "tasks-ignored-when-undeclared",
                reply.result is not None and not made,
                f"the ordinary result of {request}, without a task",
            )
    why = "no request that cannot be a task was served"
    talk.judge.otherwise_unseen("tasks-ignored-when-undeclared", why)


def _plain_calls(talk: Conversation) -> list[Request]:
    """Return at most one call that is safe and likely to succeed."""
    known: list[Request] = list(talk.examples("callable-tool")[:1])
    free = [Request("tools/call", {"name": n, "arguments": {}}) for n in talk.spoken.harmless[:1]]
    return known or free


def _works(talk: Conversation, request: Request) -> bool:
    return talk.run(request, required=False).result is not None


@scenario("tasks-forbidden-tool-error")
def refuses_a_task_of_a_tool_without_support(talk: Conversation) -> None:
    """A call as a task of a tool without task support gets error -32601."""
    clause = "tasks-forbidden-tool-error"
    tools = [e for e in talk.examples("callable-tool") if e.item and not may_be_task(e.item)]
    if not tools:
        talk.judge.unseen(clause, "every callable tool supports tasks")
        return
    task = Task(talk.wire, tools[0])
    reply = task.created
    talk.judge.expect_refusal(
        reply,
        clause,
        (NOT_FOUND,),
        f"error -32601 for {tools[0].name} as a task, because it lists no support",
    )
    task.wait(talk.pace.reply)


@scenario("tasks-required-tool-error")
def refuses_a_plain_call_of_a_task_only_tool(talk: Conversation) -> None:
    """A call without a task of a tool that requires one gets error -32601."""
    clause = "tasks-required-tool-error"
    tools = [e for e in talk.examples("task-tool") if task_support(e.item) == "required"]
    if not tools:
        talk.judge.unseen(clause, "no callable tool requires a task")
        return
    reply = talk.run(tools[0])
    talk.judge.expect_refusal(
        reply,
        clause,
        (NOT_FOUND,),
        f"error -32601 for {tools[0].name} without a task, because it requires one",
        mild=Breach.WARN if reply.code == INVALID_REQUEST else None,
    )


# --- the operations


@scenario("tasks-declared-operations-work", "tasks-unknown-id-error", "tasks-informative-errors")
def implements_the_task_operations_it_declares(talk: Conversation) -> None:
    """The declared operations exist, and refuse an unknown task id with error -32602."""
    stranger = {"taskId": secrets.token_hex(16)}
    offered = {
        "tasks/get": talk.spoken.declares(CALLS),
        "tasks/result": talk.spoken.declares(CALLS),
        "tasks/cancel": talk.spoken.declares("tasks.cancel"),
        "tasks/list": talk.spoken.declares("tasks.list"),
    }
    refusals = []
    for method, declared in offered.items():
        params = {} if method == "tasks/list" else stranger
        reply = talk.wire.request(method, params, required=False)
        if declared:
            _judge_declared(talk, method, reply)
        elif method in {"tasks/cancel", "tasks/list"}:
            talk.judge.expect_refusal(
                reply,
                "tasks-declared-operations-work",
                (NOT_FOUND,),
                f"error -32601 for {method}, because it is not declared",
                mild=Breach.WARN,
            )
        if reply.is_error:
            refusals.append(reply)
        if declared and params and reply.code != NOT_FOUND:
            talk.judge.expect(
                reply,
                "tasks-unknown-id-error",
                reply.refused(INVALID),
                f"error -32602 for {method} with an unknown task id",
            )
    _judge_messages(talk, refusals)
    talk.judge.otherwise_unseen(
        "tasks-unknown-id-error", "no operation that takes an id is declared"
    )
    talk.judge.otherwise_unseen("tasks-declared-operations-work", "no operation is declared")


def _judge_declared(talk: Conversation, method: str, reply: Reply) -> None:
    talk.judge.expect(
        reply,
        "tasks-declared-operations-work",
        reply.code != NOT_FOUND,
        f"a working {method}, because it is declared",
    )


def _judge_messages(talk: Conversation, refusals: list[Reply]) -> None:
    """Judge the messages of the errors -32602."""
    readable = [reply for reply in refusals if reply.code == INVALID]
    for reply in readable:
        words = (reply.error or {}).get("message")
        talk.judge.expect(
            reply,
            "tasks-informative-errors",
            not isinstance(words, str) or not words or bool(words.strip()),
            "a message that describes the error",
        )
    if not readable:
        talk.judge.unseen("tasks-informative-errors", "no error -32602 came")


@scenario("tasks-invalid-cursor-error")
def refuses_an_invalid_task_cursor(talk: Conversation) -> None:
    """tasks/list with an invalid cursor gets error -32602."""
    reply = talk.wire.request("tasks/list", {"cursor": f"touchstone-{secrets.token_hex(8)}"})
    if reply.code == NOT_FOUND:
        talk.judge.unseen("tasks-invalid-cursor-error", "there is no tasks/list")
        return
    talk.judge.expect_refusal(
        reply,
        "tasks-invalid-cursor-error",
        (INVALID,),
        "error -32602 for a cursor that the server never gave out",
    )
