"""gateways/sessions: a session that its client ends, and a stream that another client resumes."""

from collections.abc import Iterator
from typing import Final

from mcp_touchstone.gateway.suite import ExchangeTalk, Seen, ambient, brief, exchange, hops

NOT_FOUND: Final = 404
SHOWN: Final = 2
"""Messages that a finding shows."""

PATIENCE: Final = 2.0
"""Seconds for the first message of a stream that is resumed."""


@exchange("sessions")
def ends_a_session(talk: ExchangeTalk) -> None:
    """Resume a stream of the first client in the second one; end the session of that."""
    if talk.modern or not talk.shares or not talk.http().local:
        return
    other = talk.another()
    for client in (0, other):
        name, params = f"of-{client}", talk.params("progress", mark=f"of-{client}")
        talk.ask(name, "tools/call", params, client, token=name)
        talk.settle(client)
    http = talk.http(other)
    streams = [
        one for one in talk.first.transcript.exchanges if one.line == talk.steps["of-0"].asked
    ]
    if ids := [event.id for one in streams for event in one.events if event.id]:
        answer = http.get({"Last-Event-ID": ids[0]})
        answer.wait_messages(PATIENCE)
        talk.settle(other)
        answer.close()
        talk.facts["resumed"] = answer.line
    if http.delete().status in hops.SUCCESS:
        talk.facts["closed"] = talk.is_cancelled("of-1")
        params = talk.params("echo", text="after", mark="after")
        after = http.post(talk.connections[other].build("tools/call", params))
        talk.facts["after"] = after.reply.result, str(after), after.status


@ambient("gateway-sessions-ended", "gateway-sessions-404", "gateway-sessions-closed", of="sessions")
def ends_sessions(pair: hops.Pair) -> Iterator[Seen]:
    """A session that its client ended is over, at the gateway and at the server."""
    if "closed" not in pair.through.facts:
        return
    result, answer, status = pair.through.facts["after"]
    actual = f"{answer}: {brief(result)}" if result else answer
    clause = "gateway-sessions-ended"
    yield pair.judge(clause, "of-1", result is None, "no service after the end", actual)
    if result is None:
        clause, passed = "gateway-sessions-404", status == NOT_FOUND
        yield pair.judge(clause, "of-1", passed, "404 Not Found after the end", answer)
    first, second = (pair.through.call(f"of-{client}") for client in (0, 1))
    if first is not None and second is not None and first[0] != second[0]:
        spot, closed = (second[0], second[1].n), bool(pair.through.facts["closed"])
        actual = f"{hops.Fate.LOST}: the end of the session; that with the server goes on"
        yield pair.judge_line("gateway-sessions-closed", closed, spot, "its end", actual)


@ambient("gateway-streams-own", of="sessions")
def resumes_streams_of_the_same_client(pair: hops.Pair) -> Iterator[Seen]:
    """An event id of another client leads to none of its messages."""
    if "resumed" in pair.through.facts:
        later = pair.through.clients[1].since(pair.through.facts["resumed"])
        texts = [(entry.n, brief(one.value, 500)) for entry in later for one in entry.messages]
        foreign = [(n, text) for n, text in texts if "of-0" in text]
        actual = f"{hops.Fate.CROSSED}: {'; '.join(text for _, text in foreign[:SHOWN])}"
        beside = tuple((f"{hops.CLIENT}:1", n) for n, _ in foreign[:SHOWN])
        expected = "no message of the first client"
        yield Seen("gateway-streams-own", not foreign, None, expected, actual, beside=beside)
