"""basic/ping: the liveness probe of the handshake revisions, and its removal.

``lifecycle.py`` judges pings before initialized, and pings while a tool waits for the client.
"""

from collections.abc import Iterator

from mcp_touchstone.suite import Breach, Conversation, Record, Role, Seen, ambient, scenario

WINDOW = 10.0
GENEROUS = 10


@scenario("ping-empty-response")
def answers_a_ping(talk: Conversation) -> None:
    """A ping gets an empty result, with no params, with empty params and with _meta."""
    for params in (None, {}, {"_meta": {"com.example/probe": 1}}):
        reply = talk.request("ping", params)
        talk.judge(
            "ping-empty-response",
            reply.result is not None,
            expected="an empty result object",
            actual=reply,
            at=reply,
        )
        more = sorted(set(reply.result or {}) - {"_meta"})
        talk.judge(
            "ping-empty-response",
            not more,
            expected="a result without members except _meta",
            actual=f"members {', '.join(more)}",
            at=reply,
            mild=Breach.WARN,
        )


@scenario("ping-removed")
def refuses_the_removed_ping(talk: Conversation) -> None:
    """ping, which this revision removed, is refused."""
    reply = talk.request("ping")
    talk.judge(
        "ping-removed",
        reply.result is None,
        expected="error -32601 for ping",
        actual=reply,
        at=reply,
    )


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
