"""basic/ping: the liveness probe of the handshake revisions, and its removal.

``lifecycle.py`` judges pings before initialized, and pings while a tool waits for the client.
"""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Entry,
    Pending,
    Place,
    Record,
    Reply,
    Role,
    Seen,
    ambient,
    scenario,
)

WINDOW = 10.0
GENEROUS = 10
ATTEMPTS = 3
NOT_FOUND = 404
LASTED = 0.5
"""A call that is over sooner, in seconds, is too short to tell what answers came during it."""


@scenario("ping-empty-response")
def answers_a_ping(talk: Conversation) -> None:
    """A ping gets an empty result, with no params, with empty params and with _meta."""
    for params in (None, {}, {"_meta": {"com.example/probe": 1}}):
        reply = talk.wire.request("ping", params)
        if talk.wire.channel.session_ended:
            _judge_lost_session(talk, params)
            return
        talk.judge.expect_result(reply, "ping-empty-response", "an empty result object")
        more = sorted(set(reply.result or {}) - {"_meta"})
        talk.judge(
            "ping-empty-response",
            not more,
            expected="a result without members except _meta",
            actual=f"members {', '.join(more)}",
            at=reply,
            mild=Breach.WARN,
        )


def _judge_lost_session(talk: Conversation, params: dict[str, Any] | None) -> None:
    """Judge whether 404 to a ping ended the session, or only that ping was refused."""
    talk.server.restart()
    talk.need(talk.wire.open(), "another session")
    ping, lists = talk.wire.build("ping", params), talk.wire.build("tools/list")
    # no two to five servers that answer in turn would answer all pings so, and no list
    sent = [(one, talk.http.post(one)) for one in (ping, ping, lists, ping, lists, lists, ping)]
    only_ping = all((answer.status == NOT_FOUND) == (one is ping) for one, answer in sent)
    talk.judge.expect(sent[0][1], "ping-empty-response", not only_ping, "an empty result object")


@scenario("ping-during-call", place=Place.OWN_SESSION, lasts=True)
def answers_a_ping_during_a_call(talk: Conversation) -> None:
    """A ping that is sent during a call that lasts is answered before that call."""
    talk.need(talk.wire.open(), "an ordinary opening")
    clause, call = "ping-during-call", talk.examples.here(talk.examples.best("slow-call"))
    late: list[tuple[Reply, Entry]] = []
    for _ in range(ATTEMPTS):
        pending = Pending(talk.wire, call)
        ping = talk.wire.request("ping", required=False, seconds=3 * call.seconds + talk.pace.reply)
        if not ping.answered:
            break
        over = [entry for entry, _ in pending.answers() if entry.n < (ping.entry or 0)]
        if not over:
            pending.cancel("the ping was answered")
            talk.judge.expect(ping, clause, True, "an answer to ping during a call")
            return
        if over[0].at - talk.wire.transcript[pending.line].at >= LASTED:
            late.append((ping, over[0]))
    if not late:
        talk.judge.unseen(clause, "no ping was answered, or each call was over too soon")
        return
    ping, response = late[-1]
    talk.judge(
        clause,
        False,
        expected=f"an answer to ping before the call of {call.name} is over",
        actual=f"the ping was answered after the call, in {len(late)} of {ATTEMPTS} calls",
        at=ping,
        also=(response.n,),
    )


@scenario("ping-removed")
def refuses_the_removed_ping(talk: Conversation) -> None:
    """ping, which this revision removed, is refused."""
    reply = talk.wire.request("ping")
    talk.judge.expect(reply, "ping-removed", reply.result is None, "error -32601 for ping")


@ambient("ping-not-excessive")
def does_not_ping_excessively(record: Record) -> Iterator[Seen]:
    """A server sends at most one ping per second."""
    pings = [entry for entry, m in record.messages(Role.REQUEST) if m.method == "ping"]
    oldest = 0
    for position, entry in enumerate(pings):
        while entry.at - pings[oldest].at >= WINDOW:
            oldest += 1
        recent = position + 1 - oldest
        passed = recent <= GENEROUS
        actual = f"{recent} pings within {WINDOW:.0f} s"
        yield Seen("ping-not-excessive", passed, entry.n, "at most one ping per second", actual)
