"""gateways/trouble: a server that is late, wrong, changes or ends, and a client that leaves."""

from collections.abc import Iterator
from typing import Any, Final

from mcp_touchstone.gateway.suite import (
    SOON,
    ExchangeTalk,
    Seen,
    ambient,
    brief,
    exchange,
    hops,
    is_modern,
    object_in,
    troubled,
    upstream,
)

LATE: Final = 5000
"""Milliseconds after which a late answer comes."""

PATIENT: Final = 20.0
"""Seconds for a late answer."""

TRIES: Final = 10
"""Calls until a server that starts again must be reached."""

UNAUTHORIZED, LOST = 401, 404
"""The statuses for a request without a right token, and for a session that is over."""

HALF: Final = troubled.UNPAIRED


@exchange("late", troubled.Troubled)
def calls_a_late_server(talk: ExchangeTalk) -> None:
    """Call while other calls are open, cancel one that is answered all the same, and list again."""
    talk.pages("tools-before", "tools/list", "tools")
    talk.call("grow", "grow")
    talk.settle()
    talk.pages("tools-after", "tools/list", "tools")
    talk.call("grown", troubled.GROWN)
    late = talk.begin("later", "l", mark="late", after=LATE)
    quiet = talk.send("tools/call", talk.params("later", mark="quiet", after=LATE))
    first = talk.begin("tardy", "f", mark="first")
    open_ = talk.send("tools/call", talk.params("echo", text="open", mark="open"))
    if talk.take("open", open_, seconds=SOON).value is None:
        talk.cancel(first)
    talk.take("late", late, seconds=PATIENT)
    talk.take("quiet", quiet, seconds=PATIENT)
    talk.cancel(talk.begin("tardy", "t", mark="tardy"))
    talk.settle()
    talk.call("next", "echo", text="next", mark="next")


@exchange(hops.GARBAGE, troubled.Troubled)
def calls_a_wrong_server(talk: ExchangeTalk) -> None:
    """Let the server answer with what is no message and no result, and call again."""
    garbage = talk.send("tools/call", talk.params("garbage", mark="garbage"))
    talk.call("after", "echo", text="after", mark="after")
    talk.take("garbage", garbage, seconds=SOON)
    half = talk.send("tools/call", talk.params("unpaired", mark="half-back"))
    sent = talk.send("tools/call", talk.params("echo", text=HALF, mark="half-sent"))
    talk.call("half-after", "echo", text="after", mark="half-after")
    talk.take("half-back", half, seconds=SOON)
    talk.take("half-sent", sent, seconds=SOON)


@exchange("refused")
def calls_what_is_refused(talk: ExchangeTalk) -> None:
    """Call a tool that a server over HTTP refuses with each of some statuses, and another one."""
    for status in upstream.REFUSALS:
        mark = f"refused-{status}"
        line = talk.send("tools/call", talk.params("refuse", status=status, mark=mark))
        talk.take(mark, line, seconds=PATIENT)
    talk.call("served", "echo", text="served", mark="served")


@exchange("end")
def ends_the_server(talk: ExchangeTalk) -> None:
    """Let the server end while a call is open, and call until it is back."""
    line = talk.send("tools/call", talk.params("leave", mark="leave"))
    if talk.take("leave", line).value is None and not talk.shares:
        return
    for _ in range(TRIES):
        step = talk.call("again", "echo", text="again", mark="again")
        if step.result or step.timed_out or _is_over(talk.first.transcript, step.asked):
            break
        talk.settle()


def _is_over(transcript: Any, line: int) -> bool:
    """Whether a client was told that its session is over."""
    return hops.status_of(transcript, line) == LOST


@exchange("leave", troubled.Troubled)
def leaves_while_a_call_runs(talk: ExchangeTalk) -> None:
    """Use what each of two sessions has, and end one client while its call runs."""
    if not talk.shares:
        return
    other = talk.another()
    for client in () if talk.modern else (0, other):
        tools = talk.pages(f"list-{client}", "tools/list", "tools", client)
        for name in hops.names(tools):
            if troubled.OWN in name:
                talk.ask(f"own-{client}", "tools/call", {"name": name}, client)
    talk.begin("hold", "left", other, mark="left")
    talk.connections[other].end()
    talk.facts["cancelled"] = talk.is_cancelled("left")
    talk.call("stays", "echo", text="stays", mark="stays")


@exchange("stop", troubled.Stubborn)
def is_stopped(talk: ExchangeTalk) -> None:
    """Call once; then the gateway is stopped."""
    talk.call("stop", "echo", text="stop", mark="stop")


@ambient("gateway-open-calls", "gateway-late-answers", "gateway-late-own", of="late")
def waits_for_late_answers(pair: hops.Pair) -> Iterator[Seen]:
    """A late answer arrives, at its own request, and holds nothing else up."""
    for name in pair.comparable("open"):
        # One that reached the server while the other was open was not held up.
        passed = _is_answered(pair, name) or _is_open_at(pair, "first", "open")
        actual = f"{hops.Fate.DELAYED}: the server gets it after the end of the first call"
        yield pair.judge("gateway-open-calls", name, passed, "its answer meanwhile", actual)
    yield from pair.judge_answer("gateway-late-answers", "late", "quiet")
    for name in pair.comparable("next"):
        crossed = "tardy" in brief(pair.through.steps[name].value, 500)
        actual = f"{hops.Fate.CROSSED}: the late answer to a cancelled call"
        yield pair.judge("gateway-late-own", name, not crossed, "its own answer", actual)


def _is_open_at(pair: hops.Pair, first: str, then: str) -> bool:
    """Whether a call reached the server before it knew that nobody waits for another one."""
    begun, later = pair.through.call(first), pair.through.call(then)
    if begun is None or later is None:
        return False
    cancelled = hops.cancelled_at(pair.through, first)
    return begun[0] != later[0] or cancelled is None or later[1].n < cancelled.n


@ambient("gateway-list-fresh", "gateway-list-new", of="late")
def follows_a_change_of_the_list(pair: hops.Pair) -> Iterator[Seen]:
    """A tool that appears during a session is listed, and can be called."""
    if is_modern(pair.revision):  # a list may be kept for a time there
        return
    for name in pair.comparable("tools-after"):
        listed = hops.names(pair.through.steps[name])
        passed = pair.expected.prefix + troubled.GROWN in listed
        actual = f"{hops.Fate.LOST}: the tool {troubled.GROWN}; the list is the earlier one"
        yield pair.judge("gateway-list-fresh", name, passed, "the new tool", actual)
    yield from pair.judge_answer("gateway-list-new", "grown")


@ambient("gateway-garbage-outlived", "gateway-garbage-answered", of=hops.GARBAGE)
def outlives_a_wrong_server(pair: hops.Pair) -> Iterator[Seen]:
    """What is no message of the server disturbs no other call, and leaves no client waiting."""
    if pair.through.call("garbage") is None:
        return
    yield from pair.judge_answer("gateway-garbage-outlived", "after")
    if _is_answered(pair, "after"):  # so the gateway has read what the server sent before
        yield pair.judge_end("gateway-garbage-answered", "garbage")


def _is_answered(pair: hops.Pair, name: str) -> bool:
    """Whether a call was answered as it is without the gateway."""
    return any(seen.passed for seen in pair.judge_answer("", name))


@ambient("gateway-text-surrogates", of=hops.GARBAGE)
def keeps_or_refuses_half_a_pair(pair: hops.Pair) -> Iterator[Seen]:
    """Half a pair of surrogates arrives, or the call that has it ends with an error."""
    if not _is_answered(pair, "after"):
        return  # it is in trouble already
    for name in pair.comparable("half-back", "half-sent"):
        step, call = pair.through.steps[name], pair.through.call(name)
        heard = object_in(call[1].value if call else None, "params", "arguments").get("text", HALF)
        refused = "error" in (step.value or {}) or step.result.get("isError") is True
        refused = refused or hops.is_refused(pair.transcript, step.asked)
        passed = heard == HALF and (refused or _is_answered(pair, name))
        actual = step.why or f"{hops.Fate.CHANGED}: {brief(step.value)}"
        if heard != HALF:
            actual = f"{hops.Fate.CHANGED} on its way to the server: {brief(heard)}"
        yield pair.judge("gateway-text-surrogates", name, passed, "the text, or an error", actual)
    yield from pair.judge_answer("gateway-text-surrogates", "half-after")


@ambient("gateway-end-after", of="end")
def goes_on_after_the_end_of_its_server(pair: hops.Pair) -> Iterator[Seen]:
    """After its server ended, a gateway answers with an error, ends, or opens it again."""
    steps = pair.through.steps
    if pair.through.upstream and "again" in steps and steps["leave"].value is not None:
        yield pair.judge_end("gateway-end-after", "again")


@ambient("gateway-restart-reached", of="end")
def reaches_a_server_that_starts_again(pair: hops.Pair) -> Iterator[Seen]:
    """A server over HTTP that starts again on its port is reached."""
    steps, came = pair.through.steps, pair.through.call("leave")
    posts = [o for each in pair.through.upstream for o in each.exchanges if o.verb == "POST"]
    posts.sort(key=lambda one: one.began)
    told = any(one.status == LOST for one in posts[:-1])  # gateway-session-lost judges the rest
    if came and posts and "again" in steps and not told:
        step = steps["again"]
        if not (step.timed_out or _is_over(pair.transcript, step.asked)):
            said = step.why or brief(step.value)
            actual = f"{hops.Fate.LOST}: the server is back, and the answer is {said}"
            yield pair.judge(
                "gateway-restart-reached", "again", bool(step.result), "its answer", actual
            )


@ambient("gateway-refusal-told", of="refused")
def tells_that_a_call_was_refused(pair: hops.Pair) -> Iterator[Seen]:
    """A call that the server refuses by a status has no result, and nobody waits for it."""
    served = pair.through.steps.get("served")
    posts = [one for each in pair.through.upstream for one in each.exchanges]
    for status in {one.status for one in posts} & {*upstream.REFUSALS}:
        name = f"refused-{status}"
        step = pair.through.steps[name]
        if not step.timed_out or not (served is None or served.timed_out):
            passed = not step.timed_out and (not step.result or step.result.get("isError") is True)
            actual = step.why or f"{hops.Fate.INVENTED}: {brief(step.value)}"
            yield pair.judge("gateway-refusal-told", name, passed, f"an error for {status}", actual)


@ambient("gateway-challenge", of="refused")
def wants_a_token_with_a_challenge(pair: hops.Pair) -> Iterator[Seen]:
    """A gateway that answers 401 says in WWW-Authenticate what it wants."""
    for one in pair.transcript.exchanges:
        if one.status == UNAUTHORIZED:
            challenged = one.header("WWW-Authenticate") is not None
            yield Seen(
                "gateway-challenge",
                challenged,
                one.line or one.event_line or None,
                "401 with WWW-Authenticate",
                f"{hops.Fate.LOST}: {one} without WWW-Authenticate",
            )


@ambient("gateway-session-list", of="leave")
def keeps_sessions_apart(pair: hops.Pair) -> Iterator[Seen]:
    """What a client lists, it can call: both reach the same session of the server."""
    for client in (0, 1):
        name = f"own-{client}"
        if name in pair.through.steps and name in pair.direct.steps:
            step = pair.through.steps[name]
            passed = troubled.OWN in brief(step.result.get("content"))
            said = step.why or brief(step.value)
            actual = f"{hops.Fate.CROSSED}: it lists a tool of another session: {said}"
            yield pair.judge("gateway-session-list", name, passed, "its answer", actual)


@ambient("gateway-leave-cancels", "gateway-leave-others", of="leave")
def cancels_the_call_of_a_client_that_left(pair: hops.Pair) -> Iterator[Seen]:
    """The call of a client that left is cancelled; the other client is served."""
    if len(pair.through.clients) <= 1:
        return
    yield from pair.judge_answer("gateway-leave-others", "stays")
    call = pair.through.call("left")
    if call is not None and (is_modern(pair.revision) or _is_deleted(pair)):
        cancelled = bool(pair.through.facts.get("cancelled"))
        actual = f"{hops.Fate.LOST}: the server goes on, and nobody waits"
        where = (call[0], call[1].n)
        yield pair.judge_line(
            "gateway-leave-cancels", cancelled, where, "a cancellation, or an end", actual
        )


def _is_deleted(pair: hops.Pair) -> bool:
    """Whether the gateway accepted the end of the session."""
    ended = [one for one in pair.through.clients[1].exchanges if one.verb == "DELETE"]
    return any(one.status in hops.SUCCESS for one in ended)


@ambient("gateway-stop-server", of="stop")
def ends_its_server(pair: hops.Pair) -> Iterator[Seen]:
    """A gateway that is stopped leaves no process of its server."""
    left = pair.through.facts.get("left")
    if left is not None and pair.through.call("stop") is not None:
        actual = f"{', '.join(left)} of the server runs after the end of the gateway"
        where = (0, len(pair.through.upstream[0]))
        yield pair.judge_line("gateway-stop-server", not left, where, "no process", actual)
