"""gateways/exchanges: subscriptions, tasks, and questions in several messages."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from mcp_touchstone.gateway.suite import (
    META,
    SOON,
    ExchangeTalk,
    Kind,
    Role,
    Seen,
    ambient,
    brief,
    exchange,
    hops,
    id_key,
    is_modern,
    object_in,
    rich_upstream,
    upstream,
    value_in,
)

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
FILTERS: Final[dict[str, dict[str, Any]]] = {
    "listen-0": {"toolsListChanged": True, "resourceSubscriptions": [upstream.WATCHED]},
    "listen-1": {"promptsListChanged": True, "resourcesListChanged": True},
    "listen-2": {"toolsListChanged": True},
}
"""Step -> what a subscription asks for; the first one is cancelled."""

OTHER: Final = "listen-2"
"""That of another client over HTTP, under the id of the first one."""

LISTENING: Final = 7779

LEFT: Final = "subscribed"
TRIES: Final = 10
CREATED: Final = ("task-created", "task-second")
STATUS: Final = "notifications/tasks/status"
OWN: Final = {
    "com.example.client/own": {"list": [1, None, "ü"]},
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
"""Metadata of a request, of the client and of a trace."""

AS_SENT: Final = "as the client sent it"
SAMPLING: Final = "sampling/createMessage"
QUESTIONS: Final = {
    "roots": ("gateway-roots", "roots/list"),
    "sampling": ("gateway-sampling", SAMPLING),
    "elicitation": ("gateway-elicitation", "elicitation/create"),
    "url": ("gateway-elicitation-url", "elicitation/create"),
    "refusal": ("gateway-elicitation-refused", "elicitation/create"),
    "tools": ("gateway-sampling-tools", SAMPLING),
    "error": ("gateway-question-error", SAMPLING),
}
"""What the server asks -> the clause, and the method."""

REPORT: Final = {"progress": 1, "total": 2.5, "message": "ünïcode"}
"""The progress of our client with a question."""

NOTIFICATION: Final = f"notifications/{upstream.UNKNOWN}"
VALUE: Final = {"value": [1, "ü", None]}
"""A notification that only our server knows, and its params."""

COMPLETE: Final = "notifications/elicitation/complete"
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
LATER: Final = "unsubscribe"
"""The step before whose answer notifications must arrive. The client waits for them first."""

AFTERWARDS: Final = (
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
)
"""What the server sends after an answer, in this order."""


@exchange("subscriptions", rich_upstream.Rich)
def subscribes(talk: ExchangeTalk) -> None:
    """Subscribe, hear of changes, and end it."""
    if not talk.modern:
        watched = {"uri": talk.expected.uri(upstream.WATCHED)}
        talk.ask("subscribe", "resources/subscribe", watched)
        talk.call("change", "change")
        talk.settle()
        talk.hear(talk.call("afterwards", "afterwards").asked, *AFTERWARDS)
        talk.ask("unsubscribe", "resources/unsubscribe", watched)
        return
    for name, wanted in FILTERS.items():
        if name == OTHER and not talk.shares:
            break
        client = talk.another() if name == OTHER else 0
        uris = {"resourceSubscriptions": [talk.expected.uri(upstream.WATCHED)]}
        at_it = {member: uris.get(member, one) for member, one in wanted.items()}
        number = LISTENING + (name == "listen-1")
        line = talk.send(rich_upstream.LISTEN, {"notifications": at_it}, client, id=number)
        talk.steps[name] = hops.ExchangeStep(line, client=client)
        transcript = talk.connections[client].transcript
        talk.connections[client].wait(partial(_notifications, transcript, line), SOON)
    talk.call("change", "change")
    talk.settle()
    talk.cancel(talk.steps["listen-0"].asked)
    for _ in range(TRIES):  # the end of a stream is noticed some time later
        step = talk.call(LEFT, LEFT, mark=LEFT)
        if object_in(step.result, "structuredContent").get("open") in [0, _left(talk.steps)]:
            break
        talk.settle()


def _left(steps: Mapping[str, hops.ExchangeStep]) -> int:
    """Return how many subscriptions are open when the first one has ended."""
    return sum(name in steps for name in FILTERS) - 1


@exchange("tasks", rich_upstream.Rich)
def runs_tasks(talk: ExchangeTalk) -> None:
    """Call a tool as a task, ask for the task and its result, and cancel another one."""
    if not talk.modern and talk.first.transcript.revision != rich_upstream.WITH_TASKS:
        return
    params, member = talk.params("everything", kind="all"), f"{META}clientCapabilities"
    extended = {**object_in(talk.first.meta(), member), "extensions": {rich_upstream.EXTENSION: {}}}
    able = {member: extended} if talk.modern else {}
    asks = {} if talk.modern else {"task": {"ttl": 61_000}}
    for name in CREATED:
        line = talk.ask(name, "tools/call", {**params, **asks}, meta=able).asked
        if not talk.modern:
            talk.hear(line, STATUS)
    first, second = ({"taskId": _task(talk.steps[name])} for name in CREATED)
    talk.ask("task-got", "tasks/get", first, meta=able)
    if talk.modern:
        talk.ask("task-updated", "tasks/update", {**second, "inputResponses": {}}, meta=able)
    else:
        talk.ask("task-result", "tasks/result", first)
        talk.ask("task-listed", "tasks/list", {})
    talk.ask("task-cancelled", "tasks/cancel", second, meta=able)
    talk.settle()


def _task(step: hops.ExchangeStep) -> Any:
    """Return the id of the task that a call became."""
    return step.result.get("taskId", object_in(step.result, "task").get("taskId"))


@exchange("questions", rich_upstream.Rich)
def answers_questions(talk: ExchangeTalk) -> None:
    """Send values of each type; answer a question with a URL, decline one, go through rounds."""
    params = {**talk.params("take"), "arguments": upstream.DATA["given"]}
    talk.ask("take", "tools/call", params, meta=OWN)
    talk.ask("unknown", upstream.UNKNOWN, VALUE)
    if not talk.modern:
        talk.first.notify(NOTIFICATION, VALUE)
    for what in QUESTIONS:
        if what != "error" or not talk.modern:  # there no answer to a question is an error
            line = talk.question(what).asked
            if what == "url" and not talk.modern:
                talk.hear(line, COMPLETE)
    talk.settle()
    if talk.modern:
        talk.rounds("round", talk.params("rounds", mark="rounds"))
        return
    line = talk.send("tools/call", talk.params("ask", what="withdrawn", mark="withdrawn"))
    if talk.asked(SAMPLING, line):
        talk.call("withdraw", "withdraw", mark="withdraw")
    talk.take("ask-withdrawn", line)
    line = talk.send("tools/call", talk.params("ask", what="reported", mark="reported"))
    if asked := talk.asked(SAMPLING, line):
        token = object_in(asked, "params", "_meta").get("progressToken")
        if id_key(token) is not None:
            talk.first.notify(PROGRESS, {"progressToken": token, **REPORT})
        talk.first.say({"jsonrpc": "2.0", "id": asked["id"], "result": upstream.DATA["said"]})
        talk.facts["token"] = token
    talk.take("ask-reported", line)
    talk.settle()


def _notifications(transcript: Any, line: int) -> list[tuple[int, str, Any]]:
    """Return the notifications of a subscription: line, method, and params without its id."""
    key, found = id_key(value_in(transcript[line].value, "id")), []
    for entry in transcript:
        for message in entry.messages:
            params = object_in(message.value, "params")
            meta = object_in(params, "_meta")
            own = id_key(meta.get(rich_upstream.SUBSCRIPTION)) == key
            if message.role is Role.NOTIFICATION and message.method and own:
                rest = {k: v for k, v in params.items() if k != "_meta"}
                found.append((entry.n, message.method, rest))
    return found


@ambient("gateway-subscribe-arrives", of="subscriptions")
def passes_subscriptions_on(pair: hops.Pair) -> Iterator[Seen]:
    """The client's requests to watch a resource, and to watch it no more, reach the server."""
    yield from pair.judge_request("gateway-subscribe-arrives", "subscribe", "unsubscribe")


@ambient("gateway-messages-afterwards", of="subscriptions")
def passes_messages_behind_an_answer_on(pair: hops.Pair) -> Iterator[Seen]:
    """What the server sends after the answer of a request arrives."""
    for method in AFTERWARDS:
        if pair.through.heard(method):  # else another rule says that none arrive
            clause = "gateway-messages-afterwards"
            yield from pair.judge_arrival(clause, "afterwards", method, until=LATER)


@ambient(
    "gateway-listen-acknowledged",
    "gateway-listen-own",
    "gateway-listen-changes",
    of="subscriptions",
)
def passes_streams_on(pair: hops.Pair) -> Iterator[Seen]:
    """Each subscription is acknowledged first, and gets what it asked for, under its id."""
    if not is_modern(pair.revision):
        return
    for name in FILTERS:
        if name not in pair.through.steps:
            continue
        step = pair.through.steps[name]
        transcript = pair.through.clients[step.client]
        notified = _notifications(transcript, step.asked)
        answer = transcript.answer_to(step.asked)
        if answer is not None and (answer[1].kind is Kind.RESULT or not notified):
            continue  # it was refused, or has ended; what was cancelled may get an error
        first = [method for _, method, _ in notified[:1]]
        actual = f"{first[0]} comes first" if first else f"{hops.Fate.LOST}: {ACKNOWLEDGED}"
        passed = first == [ACKNOWLEDGED]
        clause = "gateway-listen-acknowledged"
        yield pair.judge(clause, name, passed, "an acknowledgement before all others", actual)
        direct = _notifications(pair.direct.clients[step.client], pair.direct.steps[name].asked)
        wanted = [(method, params) for _, method, params in direct if method != ACKNOWLEDGED]
        ours = [(method, pair.expected.ours(params)) for _, method, params in notified]
        found = [one for one in ours if one[0] != ACKNOWLEDGED]
        lost = [brief(one) for one in wanted if one not in found]
        actual = f"{hops.Fate.LOST}: {'; '.join(lost)}"
        yield pair.judge("gateway-listen-changes", name, not lost, "each notification", actual)
        strange = [brief(one) for one in found if one not in wanted]
        actual = f"{hops.Fate.CROSSED}: {'; '.join(strange)}, which it never asked for"
        yield pair.judge("gateway-listen-own", name, not strange, "what it asked for", actual)


@ambient("gateway-listen-ends", of="subscriptions")
def passes_the_end_of_a_subscription_on(pair: hops.Pair) -> Iterator[Seen]:
    """A subscription that the client cancels ends at the server."""
    if not [*pair.comparable(LEFT)]:
        return
    before, after = (side.reported(LEFT).get("open") for side in (pair.direct, pair.through))
    arrived = list(pair.through.received(rich_upstream.LISTEN))
    left = _left(pair.direct.steps)
    # 0: the gateway starts a server for each request
    if before == left and after != 0 and len(arrived) > left:
        actual = f"the server has {brief(after)} open subscriptions"
        yield pair.judge("gateway-listen-ends", LEFT, after == left, f"{left} are left", actual)


@ambient("gateway-tasks-answers", "gateway-tasks-status", of="tasks")
def passes_tasks_on(pair: hops.Pair) -> Iterator[Seen]:
    """Requests about tasks are answered as by the server; only the ids may differ."""
    if "tasks" in pair.expected.drops:
        return
    declared = object_in(pair.through.steps["opening"].result, "capabilities")
    offered = {*declared, *object_in(declared, "extensions")}
    if "task-created" in pair.direct.steps and not offered & {"tasks", rich_upstream.EXTENSION}:
        actual = f"{hops.Fate.LOST}: the capability tasks"
        yield pair.judge("gateway-tasks-answers", "opening", False, "tasks are offered", actual)
        return
    for name in pair.comparable():
        if name.startswith("task-"):
            old, new = (_unnamed(side, name) for side in (pair.direct, pair.through))
            yield pair.compare("gateway-tasks-answers", name, old, new)
    sent, came = [len(side.heard(STATUS)) for side in (pair.direct, pair.through)]
    if sent:
        actual = f"{came} of {sent} notifications"
        clause, name = "gateway-tasks-status", "task-created"
        yield pair.judge(clause, name, came == sent, "each notification", actual)


def _unnamed(side: hops.RecordedExchange, name: str) -> Any:
    """Return the answer of a step with places for the ids of the tasks."""
    ids = [_task(side.steps[one]) for one in CREATED]
    return _with_places(hops.plain(side.steps[name].value), ids)


def _with_places(value: Any, ids: list[Any]) -> Any:
    if isinstance(value, dict):  # another rule counts large numbers
        return {key: _with_places(inner, ids) for key, inner in value.items() if key != "large"}
    if isinstance(value, list):
        return [_with_places(inner, ids) for inner in value]
    return f"task {ids.index(value)}" if isinstance(value, str) and value in ids else value


@ambient(
    *(clause for clause, _ in QUESTIONS.values()), "gateway-elicitation-complete", of="questions"
)
def passes_all_questions_on(pair: hops.Pair) -> Iterator[Seen]:
    """Questions of each mode reach the client, and its answers the server."""
    for what, (clause, method) in QUESTIONS.items():
        for name in pair.comparable(f"ask-{what}"):
            old, new = (side.question(name, method) for side in (pair.direct, pair.through))
            if what != "error" or new["asked"]:  # else gateway-sampling says so
                yield pair.compare(clause, name, old, new, "the question and its answer")
    if pair.through.steps["ask-url"].value is not None:
        clause, later = "gateway-elicitation-complete", "ask-refusal"
        yield from pair.judge_arrival(clause, "ask-url", COMPLETE, until=later)


@ambient("gateway-question-cancelled", "gateway-question-cancelled-right", of="questions")
def passes_cancelled_questions_on(pair: hops.Pair) -> Iterator[Seen]:
    """That the server cancels a question reaches the client, with the id of the question there."""
    for name in pair.comparable("withdraw"):
        line = pair.through.steps["ask-withdrawn"].asked
        asked = [m.value["id"] for entry, m in pair.through.heard(SAMPLING) if entry.n > line][:1]
        heard = pair.through.heard(CANCELLED)
        sent, came = (
            {CANCELLED: [{"reason": one.get("reason")} for one in side.params_of(CANCELLED)][:1]}
            for side in (pair.direct, pair.through)
        )
        yield pair.compare("gateway-question-cancelled", name, sent, came, "the cancellation")
        for number, (entry, message) in enumerate(heard):
            own = object_in(message.value, "params").get("requestId")
            passed = [id_key(own)] == [id_key(one) for one in asked] and number == 0
            actual = f"cancellation {number + 1} is of {brief(own)}"
            expected = f"one, of the question {brief(asked)}"
            yield Seen("gateway-question-cancelled-right", passed, entry.n, expected, actual)


@ambient("gateway-progress-upstream", of="questions")
def passes_progress_of_the_client_on(pair: hops.Pair) -> Iterator[Seen]:
    """Progress that the client reports of a question reaches the server, under its token."""
    if "token" not in pair.through.facts:
        return  # the question did not reach the client
    heard = (object_in(entry.value, "params") for _, entry in pair.through.received(PROGRESS))
    own = [params for params in heard if params.get("progressToken") == rich_upstream.TOKEN]
    sent: dict[str, Any] = {PROGRESS: [{"progressToken": rich_upstream.TOKEN, **REPORT}]}
    came: dict[str, Any] = {PROGRESS: own}
    if id_key(pair.through.facts["token"]) is None:  # so the client could not report
        sent, came = {"question": {"progressToken": rich_upstream.TOKEN}}, {"question": {}}
    for name in pair.comparable("ask-reported"):
        yield pair.compare("gateway-progress-upstream", name, sent, came, AS_SENT)


@ambient(
    "gateway-request-arguments",
    "gateway-request-meta",
    "gateway-request-capabilities",
    of="questions",
)
def passes_requests_on(pair: hops.Pair) -> Iterator[Seen]:
    """The arguments and the metadata of a call, and what the client can do, reach the server."""
    params, able = _call_with_values(pair.through)
    if not params or not [*pair.comparable("take")]:
        return
    yield from pair.judge_request("gateway-request-arguments", "take")
    meta = object_in(params, "_meta")
    own_meta = {"_meta": {k: meta[k] for k in OWN if k in meta}}
    yield pair.compare("gateway-request-meta", "take", {"_meta": OWN}, own_meta, AS_SENT)
    own = _call_with_values(pair.direct)[1]
    yield pair.judge_nothing_lost("gateway-request-capabilities", "opening", own, able)


def _call_with_values(side: hops.RecordedExchange) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the params of the call that took values, and what its client can do."""
    for number, entry in side.received("tools/call"):
        params = object_in(entry.value, "params")
        if "numbers" in object_in(params, "arguments"):
            able = object_in(params, "_meta").get(f"{META}clientCapabilities")
            asked = side.upstream[number].session.asked
            openings = (one.value for one in asked if one.method == "initialize")
            opened = value_in(next(openings, None), "params", "capabilities")
            return params, {"capabilities": opened if able is None else able}
    return {}, {}


@ambient("gateway-unknown-methods", of="questions")
def passes_unknown_methods_on(pair: hops.Pair) -> Iterator[Seen]:
    """A request and notifications of methods that only the server knows arrive."""
    for name in pair.comparable("unknown"):
        old, new = (hops.plain(side.steps[name].value) for side in (pair.direct, pair.through))
        yield pair.compare("gateway-unknown-methods", name, old, new)
        yield from pair.judge_arrival("gateway-unknown-methods", name, NOTIFICATION)
        if pair.direct.heard(NOTIFICATION):
            came = [object_in(e.value, "params") for _, e in pair.through.received(NOTIFICATION)]
            sent = {NOTIFICATION: [VALUE]}
            yield pair.compare("gateway-unknown-methods", name, sent, {NOTIFICATION: came})


@ambient("gateway-rounds", of="questions")
def passes_each_round_on(pair: hops.Pair) -> Iterator[Seen]:
    """Each round of a call arrives, with its questions, answers and state."""
    for number in range(len(rich_upstream.ROUNDS) + 1):
        for name in pair.comparable(f"round-{number}"):
            others = (  # a state is opaque: a gateway may give its own; the report is read below
                ("result", "requestState"),
                ("result", "structuredContent"),
            )
            found = [one for one in pair.changes(name) if one.path[:2] not in others]
            actual = pair.through.steps[name].why or hops.in_words(found)
            yield pair.judge("gateway-rounds", name, not found, "the round of the server", actual)
    for name in pair.comparable("round"):
        old, new = (side.reported("rounds") for side in (pair.direct, pair.through))
        yield pair.compare("gateway-rounds", name, old, new, "answers and state of the client")
