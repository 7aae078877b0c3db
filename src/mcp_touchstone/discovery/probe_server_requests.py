"""Find requests of a server to its client, with a client that can answer all of them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.connection import server_requests
from mcp_touchstone.connection.mrtr import Provoked, provoke
from mcp_touchstone.connection.profile import willing
from mcp_touchstone.connection.server_profile import Example, Request, may_be_task
from mcp_touchstone.connection.server_requests import Question
from mcp_touchstone.connection.tasks import Task
from mcp_touchstone.discovery.probe_features import needs_task
from mcp_touchstone.discovery.prober import NOT_NAMED, Prober
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.wire.framing import value_in
from mcp_touchstone.wire.reply import Reply

URL_REQUIRED: Final = -32042
"""The error of 2025-11-25 that lists URLs to be visited first."""

TASK: Final = "asking-task"
TASK_PATIENCE: Final = 5.0
"""Seconds to wait for a request of a task."""

CANDIDATES: Final = 2
"""Arguments tried on one tool."""

_HINTS: Final = frozenset(
    {
        "ask",
        "confirm",
        "elicit",
        "elicitation",
        "input",
        "llm",
        "root",
        "roots",
        "sample",
        "sampling",
        "summarize",
    }
)
"""Words in the name of a tool that is tried early; they decide nothing."""


def find_questions(scout: Prober, wanted: set[str]) -> None:
    """Use the server until each wanted word is met, or all permitted features were used."""
    connection = scout.connection()
    if connection is None:
        return
    before = connection.answers.client
    try:
        _use(scout, wanted - {TASK})
        if TASK in wanted and scout.spoken.declares("tasks.requests.tools.call"):
            _run_tasks(scout)
    finally:
        after = scout.connection()
        if after is not None and after.modern:
            after.answers.use(before)


def _use(scout: Prober, wanted: set[str]) -> None:
    if not scout.tools():
        for word in wanted:
            scout.note(word, NOT_NAMED)
    for requests, item in _things(scout):
        for request in requests:
            connection = scout.connection()
            if connection is None or wanted <= scout.spoken.found.keys():
                return
            if connection.modern:
                connection.answers.use(willing(scout.revision))
            provoked = provoke(connection, request)
            if request.method and not provoked.reply.answered:
                scout.unanswered(connection)
            _keep(scout, request, item, provoked)
            if provoked.questions or provoked.reply.succeeded:
                break


def _run_tasks(scout: Prober) -> None:
    """Run tools as tasks, until one sends a request."""
    for tool in scout.tools():
        for request in scout.calls(tool)[:CANDIDATES] if may_be_task(tool) else ():
            connection = scout.connection()
            if connection is None or scout.spoken.found.get(TASK):
                return
            task = Task(connection, request)
            if not task.created.answered:
                scout.unanswered(connection, task.request)
            if task.id:
                task.wait(TASK_PATIENCE)
                sent = server_requests.questions(connection.transcript.since(task.request.line))
                asked = tuple(_as_asked(one) for one in sent if one.method != "roots/list")
                if asked:
                    found = Example(request.method, request.params, item=tool, asked=asked)
                    scout.found(TASK, found)
                break


def _as_asked(question: Question) -> dict[str, Any]:
    return {"method": question.method, "params": question.params}


def _things(scout: Prober) -> Iterator[tuple[list[Request], Mapping[str, Any]]]:
    """Yield, for each permitted tool, prompt and resource, the requests to try."""
    connection = scout.connection()
    if connection is not None and not connection.modern:
        yield [Request("")], {}
    for tool in sorted(scout.tools(), key=lambda tool: not {*words(tool["name"])} & _HINTS):
        if not needs_task(tool, scout.revision):
            yield scout.calls(tool)[:CANDIDATES], tool
    found = scout.spoken.found
    for word in ("rendered-prompt", "readable-resource"):
        for known in found.get(word, [])[:2]:
            yield [Request(known.method, known.params)], known.item
    plain = scout.spoken.plain_prompts[:2] if "rendered-prompt" not in found else []
    for name in plain:
        yield [Request("prompts/get", {"name": name})], {"name": name}
    listed = scout.spoken.named("resources", "uri")[:2] if "readable-resource" not in found else []
    for item in listed:
        yield [Request("resources/read", {"uri": item["uri"]})], item


def _keep(scout: Prober, request: Request, item: Mapping[str, Any], provoked: Provoked) -> None:
    asked = [_as_asked(question) for question in provoked.questions]
    asked += [{"method": "elicitation/create", "params": one} for one in _urls(provoked.reply)]
    interim = [taken for taken in provoked.rounds if taken.asks]
    example = Example(
        request.method,
        request.params,
        result=(interim[0].reply.result if interim else provoked.reply.result) or {},
        item=item,
        asked=tuple(asked),
    )
    for one in asked:
        for word in server_requests.words(one["method"], one["params"]):
            scout.found(word, example)
    if interim:
        scout.found("mrtr", example)


def _urls(reply: Reply) -> list[Any]:
    """Return the elicitations that an error -32042 lists; at least one, readable or not."""
    if reply.code != URL_REQUIRED:
        return []
    found = value_in(reply.error, "data", "elicitations")
    return found if isinstance(found, list) and found else [{"mode": "url"}]
