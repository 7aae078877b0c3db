"""gateways/clients: several clients at a time, the end of the server, and large messages."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.gateway.suite import (
    META,
    SOON,
    ExchangeTalk,
    Seen,
    ambient,
    brief,
    exchange,
    hops,
    id_key,
    list_in,
    object_in,
    rich_upstream,
    upstream,
    value_in,
)

SAME: Final = "same"
OPEN: Final = 7778
ASKED: Final = "asked"
"""Ids that both clients use."""

ANSWERED: Final = {"of": (900, 500), "to": (500, 900)}
"""Calls of both clients at a time -> the milliseconds until each is answered."""

CHANGED: Final = "notifications/tools/list_changed"
QUESTION: Final = "sampling/createMessage"
TOKEN: Final = "same"  # noqa: S105
SIZES: Final = (1023, 4095, 8191, 16383, 65535)
"""Bytes before a character of three bytes, which so straddles a power of two."""

LARGE: Final = 8 << 20
"""Bytes of a result, and of an argument."""

PATIENCE: Final = 30.0
"""Seconds for the answer to such a call, and for a page of a long list."""


class Shared(rich_upstream.Rich):
    """Our server with all it has, and a list of two pages."""

    pages = upstream.Upstream.pages


@exchange("clients", Shared)
def talks_as_two_clients(talk: ExchangeTalk) -> None:
    """Call in two clients at a time, with equal ids and tokens, questions and tasks."""
    if not talk.shares:
        return
    other = talk.another()
    _answer_questions(talk, (0, other))
    for name, times in ANSWERED.items():
        sent = [
            talk.begin("later", TOKEN, n, f"{SAME}-{name}", mark=f"{name}-{n}", after=after)
            for n, after in zip((0, other), times, strict=True)
        ]
        for client, line in enumerate(sent):
            talk.take(f"{name}-{client}", line, client)
    beside = talk.send("tools/call", talk.params("later", mark="beside", after=1200), id=OPEN)
    talk.cancel(talk.begin("hold", "open", other, OPEN, mark="open"), other)
    talk.take("beside", beside)
    for client in (0, other):
        talk.pages(f"tools-{client}", "tools/list", "tools", client)
    if talk.first.transcript.revision == rich_upstream.WITH_TASKS:
        _run_tasks(talk, (0, other))
    for client in (0, other):
        level = {f"{META}logLevel": "debug"} if talk.modern else {}
        log = talk.params("log", mark=f"of-{client}")
        talk.ask(f"log-{client}", "tools/call", log, client, meta=level)
    if not talk.modern:
        talk.ask("subscribe-0", "resources/subscribe", {"uri": talk.expected.uri(upstream.WATCHED)})
        talk.call("change-0", "change", 0)
        changed = talk.call("change-1", "change", other, only="tools")
        talk.hear(changed.asked, CHANGED, client=other)
    if not talk.modern:
        talk.question("sampling", 0)
    talk.settle(0)
    talk.settle(other)


def _answer_questions(talk: ExchangeTalk, clients: tuple[int, int]) -> None:
    """Let our server ask both at a time; each answers with its own text."""
    params = {n: talk.params("ask", what="withdrawn", mark=f"ask-{n}") for n in clients}
    said = {n: {**upstream.DATA["said"], "model": f"model-{n}"} for n in clients}
    lines = {n: talk.send("tools/call", params[n], n, id=ASKED) for n in clients}
    if talk.modern:
        steps = {n: talk.take(f"asked-{n}", lines[n], n) for n in clients}
        for n, step in steps.items():
            answers = dict.fromkeys(object_in(step.result, "inputRequests"), said[n])
            more = {"inputResponses": answers, "requestState": step.result.get("requestState")}
            lines[n] = talk.send("tools/call", {**params[n], **more}, n)
    else:
        asked = {n: talk.asked(QUESTION, lines[n], n) for n in clients}
        for n, one in asked.items():
            if one is not None:
                talk.connections[n].say({"jsonrpc": "2.0", "id": one["id"], "result": said[n]})
    for n in clients:
        talk.take(f"ask-{n}", lines[n], n, SOON)


def _run_tasks(talk: ExchangeTalk, clients: tuple[int, int]) -> None:
    """Make a task for each, and ask for its result: our server has one id for both."""
    for n in clients:
        params = {**talk.params("later", mark=f"task-{n}"), "task": {"ttl": 61_000}}
        talk.ask(f"made-{n}", "tools/call", params, n)
    for n in clients:
        if task := object_in(talk.steps[f"made-{n}"].result, "task").get("taskId"):
            talk.ask(f"task-{n}", "tasks/result", {"taskId": task}, n)


@exchange("sizes", once=True)
def sends_large_messages(talk: ExchangeTalk) -> None:
    """Send and get long texts with characters across each boundary of a buffer."""
    for size in SIZES:
        for shift in range(3):
            text = "x" * (shift + size % 3) + "€" * (size // 3 + 2)
            talk.call(f"echo-{size}-{shift}", "echo", text=text, mark=f"{size}-{shift}")
            mark = f"{size}-{shift}-stream"  # over HTTP the answer comes in one, after progress
            params = talk.params("echo", text=text, mark=mark)
            talk.ask(f"echo-{mark}", "tools/call", params, token=mark)
    large: dict[str, dict[str, Any]] = {
        "large": {"size": LARGE},
        "sent": {"size": 1, "text": "x" * LARGE},
    }
    for name, asked in large.items():
        line = talk.send("tools/call", talk.params("big", **asked))
        talk.take(name, line, seconds=PATIENCE)


@exchange("many", upstream.Many, once=True)
def lists_many_tools(talk: ExchangeTalk) -> None:
    """Read a list of ten thousand tools."""
    talk.pages("many", "tools/list", "tools")


@ambient("gateway-answers-own", "gateway-lists-own", of="clients")
def answers_each_client_its_own(pair: hops.Pair) -> Iterator[Seen]:
    """Two clients with one id get each its own answer, and each the whole list."""
    names = (f"{kind}-{n}" for kind in ("of", "to", "tools", "task") for n in (0, 1))
    for name in pair.comparable(*names):
        step = pair.through.steps[name]
        clause = "gateway-lists-own" if name.startswith("tools-") else "gateway-answers-own"
        old, new = (_owned(side.steps[name]) for side in (pair.direct, pair.through))
        actual = step.why or f"{hops.Fate.CHANGED}: {brief(step.value)}"
        if f"{name[:-1]}{1 - step.client}" in brief(step.value, 500):
            actual = f"{hops.Fate.CROSSED}: the answer of the other client"
        yield pair.judge(clause, name, set(old) <= set(new), "its own answer", actual)


@ambient("gateway-list-changes", of="clients")
def tells_each_client_of_changes(pair: hops.Pair) -> Iterator[Seen]:
    """The changes of a list in the session of a second client arrive there."""
    yield from pair.judge_arrival("gateway-list-changes", "change-1", CHANGED)


@ambient("gateway-questions-own", of="clients")
def answers_the_question_of_each_client(pair: hops.Pair) -> Iterator[Seen]:
    """What a client answers, and the state of its call, reach that call and no other."""
    for name in pair.comparable("ask-0", "ask-1"):
        step = pair.through.steps[name]
        found = brief(pair.through.reported(name), 500)
        foreign = [f"{what}-{1 - step.client}" for what in ("model", "state/ask")]
        passed = not any(word in found for word in foreign)
        actual = f"{hops.Fate.CROSSED}: the server heard {found}"
        yield pair.judge("gateway-questions-own", name, passed, "its own answer and state", actual)


@ambient("gateway-cancel-own", of="clients")
def cancels_no_call_of_another_client(pair: hops.Pair) -> Iterator[Seen]:
    """The cancellation of a client leaves the call of another one with that id alone."""
    beside = pair.through.call("beside")
    if beside is not None:
        number, entry = beside
        own = id_key(value_in(entry.value, "id"))
        for where, one in pair.through.received("notifications/cancelled"):
            cancelled = id_key(value_in(one.value, "params", "requestId"))
            passed, spot = (where, cancelled) != (number, own), (where, one.n)
            actual = f"{hops.Fate.CROSSED}: it cancels the call of another client"
            yield pair.judge_line("gateway-cancel-own", passed, spot, "the other call", actual)
        yield from pair.judge_answer("gateway-cancel-own", "beside")


def _owned(step: hops.ExchangeStep) -> list[Any]:
    """Return the names of the tools in an answer, or its text; other members have other rules."""
    return [hops.said(step)] if "content" in step.result else hops.names(step)


@ambient("gateway-messages-own", of="clients")
def tells_each_client_its_own(pair: hops.Pair) -> Iterator[Seen]:
    """Log messages, progress and questions reach only the client that they belong to."""
    if len(pair.through.clients) < 2:
        return
    found = [
        (client, entry.n, f"{method} of client {1 - client} at client {client}")
        for client in (0, 1)
        for method in ("notifications/message", "notifications/progress")
        for entry, one in pair.through.heard(method, client)
        if _of(object_in(one.value, "params"), f"of-{1 - client}")
    ]
    others = {
        "notifications/resources/updated": "an update of a resource that client 0 watches",
        QUESTION: "a question to client 0",
    }
    for method, what in others.items():
        heard = pair.through.heard(method, 1)
        found += [
            (1, entry.n, f"{what} at client 1")
            for entry, one in heard
            if rich_upstream.WAIT not in brief(one.value, 500)  # each client gets that question
        ]
    actual = f"{hops.Fate.CROSSED}: {'; '.join(dict.fromkeys(words for _, _, words in found))}"
    seen = pair.judge("gateway-messages-own", "of-1", not found, "its own messages only", actual)
    crossed = tuple((f"{hops.CLIENT}:{client}", n) for client, n, _ in found[: hops.SHOWN])
    yield replace(seen, n=None, beside=crossed) if found else seen


def _of(params: Any, mark: str) -> bool:
    data = object_in(params, "data")
    return data.get("mark") == mark or str(object_in(params).get("message", "")).startswith(mark)


@ambient("gateway-end-answered", of="end")
def answers_when_its_server_ends(pair: hops.Pair) -> Iterator[Seen]:
    """An open request is answered, or its connection closed, when the server ends."""
    if "leave" in pair.through.steps and pair.through.upstream:
        yield pair.judge_end("gateway-end-answered", "leave")


@ambient("gateway-text-whole", of="sizes")
def passes_text_whole(pair: hops.Pair) -> Iterator[Seen]:
    """Characters of several bytes pass whole, in both directions."""
    for name in pair.comparable():
        before, after = pair.direct.steps[name], pair.through.steps[name]
        if name.startswith("echo-") and before.result:
            call = pair.through.call(name.removeprefix("echo-"))
            sent = object_in(before.result, "structuredContent").get("text")
            heard = value_in(call[1].value, "params", "arguments", "text") if call else sent
            got = hops.said(after) if heard == sent else heard
            where = "on its way to the server" if heard != sent else "on its way back"
            actual = after.why or f"{hops.Fate.CHANGED} {where}: {_first(sent, got)}"
            yield pair.judge("gateway-text-whole", name, got == sent, "the same text", actual)


def _first(one: Any, two: Any) -> str:
    """Return where two texts differ first."""
    if not (isinstance(one, str) and isinstance(two, str)):
        return brief(two)
    pairs = enumerate(zip(one, two, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(one), len(two)))
    size = f"{len(two):,} characters in place of {len(one):,}"
    return f"from character {at} on: {brief(two[at : at + 20])}, {size}"


@ambient("gateway-result-large", "gateway-request-large", of="sizes")
def passes_large_messages_on(pair: hops.Pair) -> Iterator[Seen]:
    """A result of 8 MiB arrives, and a call of that size is answered."""
    for name, clause in (("large", "gateway-result-large"), ("sent", "gateway-request-large")):
        timed_out = name in pair.through.steps and pair.through.steps[name].timed_out
        if not (timed_out and pair.is_too_slow(name, PATIENCE)):
            yield from pair.judge_answer(clause, name)


@ambient("gateway-tools-many", of="many")
def lists_all_of_many_tools(pair: hops.Pair) -> Iterator[Seen]:
    """Each of ten thousand tools is listed."""
    for name in pair.comparable("many"):
        if not pair.through.steps[name].timed_out:  # as above
            named = [{"name": one} for one in hops.names(pair.direct.steps[name])]
            tools = pair.expected.own(list_in(pair.through.steps[name].result, "tools"))
            came = [{"name": value_in(one, "name")} for one in tools]
            expected = f"{len(named):,} tools"
            yield pair.compare(
                "gateway-tools-many", name, {"tools": named}, {"tools": came}, expected
            )
