"""basic/lifecycle: independent requests, in the revision without sessions."""

from collections.abc import Mapping
from typing import Any

from mcp_touchstone.suite import (
    FULL_CAPABILITIES,
    Conversation,
    Example,
    Place,
    Reply,
    outcome,
    scenario,
    willing,
)

CURSOR = {"nextCursor"}
"""A list that grows or shrinks may get another number of pages."""


@scenario(
    "lifecycle-stateless-no-prior-context",
    "versioning-dual-era-modern-request",
    "discover-implemented",
    place=Place.OWN_SESSION,
)
def serves_the_first_request_it_gets(talk: Conversation) -> None:
    """A feature request that is the first message of a process is served like a later one.

    The next one, server/discover, is served too.
    """
    clause = "lifecycle-stateless-no-prior-context"
    talk.wire.quiet(talk.pace.silence)
    method = next(iter(talk.spoken.list_methods), "server/discover")
    first = talk.wire.request(method, seconds=talk.pace.startup, required=False)
    talk.judge.expect(
        first,
        "versioning-dual-era-modern-request",
        first.answered and not first.is_error,
        f"an answer to {method} under {talk.revision}",
    )
    found = talk.wire.discover(required=False)
    if talk.wire.substitute:
        found = talk.wire.request("server/discover", required=False)
    talk.judge.expect_result(
        found, "discover-implemented", f"a result for server/discover after {method}"
    )
    later = talk.wire.request(method)
    differs = outcome(first) != outcome(later)
    if differs and not first.is_error and _varies_by_itself(talk, method, first, later):
        talk.judge.unseen(
            clause, f"the result of {method} also changes when nothing is sent in between"
        )
        return
    talk.judge(
        clause,
        not first.is_error and not differs,
        expected=f"the same result of {method} as a first and as a later request",
        actual=f"{first}, then {later}",
        at=first,
    )
    able = talk.wire.request(method, meta=talk.wire.meta(capabilities=FULL_CAPABILITIES))
    for capabilities, before in (({}, later), (FULL_CAPABILITIES, able)):
        again = talk.wire.request(method, meta=talk.wire.meta(capabilities=capabilities))
        if outcome(again) != outcome(before):
            twice = talk.wire.request(method, meta=talk.wire.meta(capabilities=capabilities))
            if outcome(twice) != outcome(again):
                talk.judge.unseen(clause, f"two equal requests of {method} in a row differ")
                return
        talk.judge.expect(
            again,
            clause,
            outcome(again) == outcome(before),
            "a result that depends on the _meta of its own request only",
        )


def _varies_by_itself(talk: Conversation, method: str, first: Reply, later: Reply) -> bool:
    """Send a request twice to a new process, at the same times, and nothing in between."""
    record = talk.wire.transcript
    pause = record[later.asked].at - record[first.asked].at
    talk.server.restart()
    talk.wire.quiet(talk.pace.silence)
    once = talk.wire.request(method, seconds=talk.pace.startup, required=False)
    talk.wire.quiet(2 * pause)
    return outcome(once) != outcome(talk.wire.request(method))


@scenario("lifecycle-stateless-multiplexing")
def serves_interleaved_clients_separately(talk: Conversation) -> None:
    """Twelve requests of different clients, sent back to back, each get their own answer."""
    methods = [talk.wire.ping_method, *talk.spoken.declared_list_methods]
    alone = {method: talk.wire.request(method) for method in methods}
    asked = []
    for turn in range(12):
        method = methods[turn % len(methods)]
        meta = talk.wire.meta(
            client={"name": f"client-{turn}", "version": "1"},
            capabilities=FULL_CAPABILITIES if turn % 2 else {},
        )
        request = talk.wire.build(method, meta=meta)
        asked.append((method, talk.wire.say(request, required=False)))
    for method, line in asked:
        reply = talk.wire.answer_to(line)
        talk.judge.expect(
            reply,
            "lifecycle-stateless-multiplexing",
            {*(reply.result or ())} - CURSOR == {*(alone[method].result or ())} - CURSOR,
            f"the result of {method} for each of its requests",
        )


@scenario("lifecycle-stateless-no-affinity", place=Place.OWN_SESSION)
def accepts_cursors_and_states_of_another_process(talk: Conversation) -> None:
    """A process accepts a cursor or a request state of another process."""
    clause = "lifecycle-stateless-no-affinity"
    for method, cursor in talk.spoken.cursors.items():
        reply = talk.wire.request(method, {"cursor": cursor}, seconds=talk.pace.startup)
        if reply.result is None and not _serves_its_own_cursor(talk, method):
            talk.judge.unseen(clause, f"{method} is refused for a cursor of its own process too")
            continue
        talk.judge.expect_result(
            reply, clause, f"a page of {method} for a cursor of another process"
        )
    asking = next(iter(talk.examples("mrtr")), None)
    state = asking.result.get("requestState") if asking else None
    if asking and state is not None:
        reply = _retry(talk, asking, asking.result)
        if reply.result is None and not _serves_its_own_state(talk, asking):
            talk.judge.unseen(
                clause, "a retry with a requestState of its own process is refused too"
            )
            return
        talk.judge.expect_result(reply, clause, "a result for a requestState of another process")
    if not talk.spoken.cursors and state is None:
        talk.judge.unseen(clause, "the server gives out no cursors and no request states")


def _serves_its_own_cursor(talk: Conversation, method: str) -> bool:
    """Whether this process serves a cursor that it gave out itself."""
    cursor = (talk.wire.request(method).result or {}).get("nextCursor")
    return cursor is not None and talk.wire.request(method, {"cursor": cursor}).result is not None


def _serves_its_own_state(talk: Conversation, asking: Example) -> bool:
    """Whether this process serves a retry with a requestState that it gave out itself."""
    meta = talk.wire.meta(capabilities=willing(talk.revision).capabilities)
    asked = talk.wire.request(asking.method, asking.params, meta=meta, required=False).result or {}
    return "requestState" in asked and _retry(talk, asking, asked).result is not None


def _retry(talk: Conversation, asking: Example, asked: Mapping[str, Any]) -> Reply:
    """Send a request again, with the state and the responses that its result asked for."""
    client = willing(talk.revision)
    params = {**asking.params, "requestState": asked["requestState"]}
    params["inputResponses"] = talk.wire.answers.filled(client, asked.get("inputRequests"))
    meta = talk.wire.meta(capabilities=client.capabilities)
    return talk.wire.request(asking.method, params, meta=meta, seconds=talk.pace.startup)
