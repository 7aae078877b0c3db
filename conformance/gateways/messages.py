"""gateways/messages: notifications, cancellation, and requests of the server."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.gateway.suite import (
    META,
    SOON,
    ExchangeTalk,
    Role,
    Seen,
    Source,
    ambient,
    brief,
    exchange,
    hops,
    id_key,
    object_in,
    upstream,
    value_in,
)

CHANGED: Final = tuple(
    f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
)
UPDATED: Final = "notifications/resources/updated"
LATER: Final = "listed again"
"""The step before whose answer notifications must arrive. The client waits for them first."""

ROOTS: Final = "notifications/roots/list_changed"
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
LEVEL: Final = "debug"
NUMBER: Final = 7007
"""An id, which is that of another request as a text."""

SAME: Final = ("same-0", "same-1")
"""Two equal calls."""

FURTHER: Final = {Role.SECOND_ANSWER, Role.ORPHAN}
"""Answers that nobody waits for."""

CALL: Final = "token-p"
PROGRESS_BESIDE: Final = "token-k"
PROGRESS_OPEN: Final = "token-h"
"""The progress tokens of calls."""

OPEN: Final = "open"
BESIDE: Final = "beside"
"""A call that stays open until it is cancelled, and one that is answered meanwhile."""


@exchange("messages")
def sends_and_hears_messages(talk: ExchangeTalk) -> None:
    """Use log messages, progress, cancellation, questions and changes of lists."""
    if not talk.modern:
        talk.ask("level", "logging/setLevel", {"level": LEVEL})
    level = {f"{META}logLevel": LEVEL} if talk.modern else {}
    talk.ask("log", "tools/call", talk.params("log", mark="log"), meta=level)
    talk.ask("progress", "tools/call", talk.params("progress", mark="p", steps=3), token=CALL)
    talk.settle()
    if not talk.modern:
        talk.ask("subscribe", "resources/subscribe", {"uri": talk.expected.uri(upstream.WATCHED)})
        talk.hear(talk.call("change", "change").asked, *CHANGED, UPDATED)
        talk.pages(LATER, "tools/list", "tools")
        talk.first.notify(ROOTS)
    for name in SAME:
        talk.call(name, "echo", text="same", mark="same")
    alike = {"id-number": NUMBER, "id-text": str(NUMBER), "id-zero": 0}
    lines = {
        name: talk.send("tools/call", talk.params("later", mark=name, after=100), id=own)
        for name, own in alike.items()
    }
    for name, line in lines.items():
        talk.take(name, line, seconds=SOON)
    params = talk.params("later", mark=BESIDE, after=1200)
    beside = talk.send("tools/call", params, token=PROGRESS_BESIDE)
    talk.cancel(talk.begin("hold", PROGRESS_OPEN, mark=OPEN))
    talk.take(BESIDE, beside)
    talk.facts["cancelled"] = talk.is_cancelled(OPEN)
    talk.settle()


@ambient("gateway-log-messages", "gateway-log-level", of="messages")
def passes_log_messages_on(pair: hops.Pair) -> Iterator[Seen]:
    """Log messages arrive, and the level that the client sets reaches the server."""
    if "logging" in pair.expected.drops:
        return
    yield from pair.judge_arrival(
        "gateway-log-messages", "log", "notifications/message", until=LATER
    )
    yield from pair.judge_request("gateway-log-level", "level")


@ambient("gateway-progress-arrives", of="messages")
def passes_progress_on(pair: hops.Pair) -> Iterator[Seen]:
    """Each report of progress arrives under the token of the client."""
    for name in pair.comparable("progress"):
        before, after = (
            {name: [one for one in side.params_of(PROGRESS) if one.get("progressToken") == CALL]}
            for side in (pair.direct, pair.through)
        )
        yield pair.compare("gateway-progress-arrives", name, before, after, "each report")


@ambient("gateway-cancel-arrives", "gateway-cancel-right", "gateway-cancel-others", of="messages")
def passes_cancellation_on(pair: hops.Pair) -> Iterator[Seen]:
    """A cancellation reaches the right request of the server, once, and no other."""
    call = pair.through.call(OPEN)
    yield from pair.judge_answer("gateway-cancel-others", BESIDE)
    if call is None or BESIDE not in pair.through.steps:
        return
    number, entry = call
    own, right = entry.value["id"], list[Any]()
    for where, one in pair.through.received(CANCELLED):
        named = value_in(one.value, "params", "requestId")
        if (where, id_key(named)) == (number, id_key(own)):
            right.append(one.value)
            passed, actual = len(right) == 1, f"the request {brief(named)} is cancelled again"
        else:
            passed, actual = False, f"{hops.Fate.CROSSED}: it cancels {brief(named)}"
        spot, expected = (where, one.n), f"the request {brief(own)}, once"
        yield pair.judge_line("gateway-cancel-right", passed, spot, expected, actual)
    passed = bool(right) or bool(pair.through.facts.get("cancelled"))  # or its stream was closed
    actual = f"{hops.Fate.LOST}: no cancellation of the request {brief(own)}"
    if right and not value_in(right[0], "params", "reason"):
        passed, actual = False, f"{hops.Fate.LOST}: params.reason of the cancellation"
    spot = (number, entry.n)
    seen = pair.judge_line("gateway-cancel-arrives", passed, spot, "a cancellation", actual)
    ours = (one for one in pair.transcript if one.source is Source.US)
    sent = (one.n for one in ours if value_in(one.value, "method") == CANCELLED)
    yield replace(seen, n=next(sent, seen.n))


@ambient("gateway-progress-meanwhile", of="messages")
def passes_progress_on_at_once(pair: hops.Pair) -> Iterator[Seen]:
    """Progress of an open call arrives before the answer to a later call."""
    beside, open_call = pair.through.steps.get(BESIDE), pair.through.call(OPEN)
    if beside is None or beside.entry is None or open_call is None:
        return
    (number, entry), answered = open_call, pair.at_server(BESIDE)
    if (
        answered is not None
        and answered[0] == f"{hops.UPSTREAM}:{number}"
        and answered[1] < entry.n
    ):
        return  # the server got the call after that answer: gateway-open-calls judges this
    arrived, direct = (
        [entry for entry, one in side.heard(PROGRESS) if _is_of_open_call(one.value)]
        for side in (pair.through, pair.direct)
    )
    others = [one for _, one in pair.through.heard(PROGRESS) if not _is_of_open_call(one.value)]
    if direct and others:
        passed = any(entry.n < beside.entry for entry in arrived)
        actual = f"{hops.Fate.DELAYED}: progress of the call before has not arrived"
        yield pair.judge("gateway-progress-meanwhile", BESIDE, passed, "progress before", actual)


def _is_of_open_call(message: Any) -> bool:
    """Whether it is progress of the call that stays open, by its token or its text."""
    params = object_in(message, "params")
    text = str(params.get("message"))
    return params.get("progressToken") == PROGRESS_OPEN or text.startswith(OPEN)


@ambient("gateway-ids-types", of="messages")
def tells_ids_of_two_types_apart(pair: hops.Pair) -> Iterator[Seen]:
    """Requests whose ids are a number, the same digits as a text, and zero get their answers."""
    yield from pair.judge_answer("gateway-ids-types", "id-number", "id-text", "id-zero")


@ambient("gateway-answers-once")
def answers_each_request_once(pair: hops.Pair) -> Iterator[Seen]:
    """A client gets one answer to each request, and no other answers."""
    alone = {
        message.role for one in pair.direct.clients for entry in one for message in entry.messages
    }
    for entry in pair.transcript if not alone & FURTHER else ():
        for message in entry.messages:
            if message.role in {Role.ANSWER, *FURTHER}:
                passed = message.role is Role.ANSWER
                actual = f"{hops.Fate.INVENTED}: a {message.role}"
                yield Seen("gateway-answers-once", passed, entry.n, "one answer", actual)


@ambient("gateway-calls-once")
def makes_each_call_once(pair: hops.Pair) -> Iterator[Seen]:
    """A call reaches the server as often as the clients make it."""
    made = Counter(
        _call(pair, entry.value)
        for transcript in pair.through.clients
        for entry in transcript
        if entry.source is Source.US and value_in(entry.value, "method") == "tools/call"
    )
    came, upstream_of = Counter[str](), pair.through.upstream
    for number, entry in pair.through.received("tools/call"):
        call = _call(pair, entry.value)
        again = "inputResponses" in object_in(entry.value, "params")
        if call in made and not again and not hops.is_refused(upstream_of[number], entry.n):
            came[call] += 1
            passed, spot = came[call] <= made[call], (number, entry.n)
            actual = f"{hops.Fate.INVENTED}: call {came[call]} of {made[call]}"
            yield pair.judge_line("gateway-calls-once", passed, spot, f"{made[call]}", actual)

    same = [step for name in SAME if (step := pair.through.steps.get(name)) and step.result]
    if len(same) == len(SAME):
        arrived = sum(
            1 for _, e in pair.through.received("tools/call") if hops.mark_of(e.value) == "same"
        )
        actual = f"{hops.Fate.LOST}: {len(SAME) - arrived} of {len(SAME)} equal calls"
        passed = arrived >= len(SAME)
        yield pair.judge("gateway-calls-once", SAME[-1], passed, f"{len(SAME)}", actual)


def _call(pair: hops.Pair, value: Any) -> str:
    """Return a text for the name and the arguments of a call, as our server knows them."""
    params = pair.own_params(value)
    return json.dumps([params.get("name"), params.get("arguments")], sort_keys=True)


@ambient("gateway-roots-changes", of="messages")
def tells_the_server_of_changed_roots(pair: hops.Pair) -> Iterator[Seen]:
    """That the roots of the client changed reaches the server."""
    openings = (one.value for server in pair.through.upstream for one in server.session.asked[:1])
    if any(value_in(o, "params", "capabilities", "roots", "listChanged") for o in openings):
        came = bool(list(pair.through.received(ROOTS)))
        actual = f"{hops.Fate.LOST}: {ROOTS}"
        yield pair.judge("gateway-roots-changes", "opening", came, ROOTS, actual)


@ambient("gateway-list-changes", "gateway-resource-updates", of="messages")
def passes_changes_on(pair: hops.Pair) -> Iterator[Seen]:
    """Changes of lists and of a resource arrive."""
    yield from pair.judge_arrival("gateway-list-changes", "change", *CHANGED, until=LATER)
    yield from pair.judge_arrival("gateway-resource-updates", "change", UPDATED, until=LATER)
