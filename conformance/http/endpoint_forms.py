"""http/endpoint: the same request in other forms of HTTP, which mean the same."""

from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Change,
    Conversation,
    HttpAnswer,
    Unopened,
    scenario,
)

JSON, EVENTS = "application/json", "text/event-stream"
SESSION = "Mcp-Session-Id"
LENGTH_REQUIRED = 411
NOT_ACCEPTABLE = 406
NOT_IMPLEMENTED = 501
GRACE = 2.0
"""Seconds in which a stream ends after its response."""

ACCEPTS = (
    (f"{EVENTS}, {JSON}", True),
    (f"{JSON},{EVENTS}", True),
    (f"{JSON} , {EVENTS}", True),
    (f"{JSON}, {EVENTS}, */*;q=0.1", True),
    (f"{JSON};q=0.9, {EVENTS};q=0.8", False),
)
"""Values of Accept that list both types, and whether a refusal fails; otherwise it is a warning."""

KINDS = (f"{JSON}; charset=utf-8", f'{JSON};charset="UTF-8"')
REFUSED: tuple[tuple[str, dict[str, Change]], ...] = (
    ("with Accept: text/plain", {"Accept": "text/plain"}),
    ("with Content-Type: text/plain", {"Content-Type": "text/plain"}),
    ("of an unknown session", {SESSION: "touchstone-no-such-session"}),
    ("of an unknown version", {"MCP-Protocol-Version": "1999-01-01"}),
)
"""Requests that a server may refuse before it reads their body."""


def asks(talk: Conversation, change: dict[str, Change], **more: Any) -> HttpAnswer:
    """Send a ping with other headers."""
    return talk.http.post(talk.wire.build(talk.wire.ping_method), change, **more)


@scenario("endpoint-accept-forms", unopened=Unopened.AFTER_NOT_ACCEPTABLE)
def takes_accept_in_each_form(talk: Conversation) -> None:
    """An Accept header that lists both types is taken in each form."""
    clause = "endpoint-accept-forms"
    ordinary = talk.http.first_request()
    talk.http.end_session(ordinary)
    if ordinary.reply.result is None:
        for alone in (JSON, EVENTS, "*/*") if ordinary.status == NOT_ACCEPTABLE else ():
            other = talk.http.first_request({"Accept": alone})
            if other.reply.result is not None:
                talk.judge.expect(
                    ordinary,
                    clause,
                    False,
                    f"a result with Accept: {JSON}, {EVENTS}, as with Accept: {alone}",
                    also=(other.line,),
                )
                return
        talk.judge.unseen(clause, f"it does not serve the first request: {ordinary}")
        return
    talk.need(talk.wire.ping(), "an ordinary request")
    for form, certain in ACCEPTS:
        answer = asks(talk, {"Accept": form})
        talk.judge.expect(
            answer,
            clause,
            answer.reply.result is not None,
            f"a result with Accept: {form}",
            mild=None if certain else Breach.WARN,
            because="few clients write it so",
        )


@scenario("endpoint-content-type-forms")
def takes_json_with_a_charset(talk: Conversation) -> None:
    """A body of application/json is read with the parameter charset, too."""
    talk.need(talk.wire.ping(), "an ordinary request")
    for kind in KINDS:
        answer = asks(talk, {"Content-Type": kind})
        talk.judge.expect(
            answer,
            "endpoint-content-type-forms",
            answer.reply.result is not None,
            f"a result with Content-Type: {kind}",
        )


@scenario("endpoint-chunked-request")
def reads_a_chunked_body(talk: Conversation) -> None:
    """A request in chunks is served, or refused because it has no length."""
    talk.need(talk.wire.ping(), "an ordinary request")
    message = talk.wire.build(talk.wire.ping_method)
    body = talk.http.body(message)
    half = len(body) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(e), e) for e in (body[:half], body[half:], b""))
    change: dict[str, Change] = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    answer = talk.http.post(message, change, body=chunks)
    talk.judge.expect(
        answer,
        "endpoint-chunked-request",
        answer.reply.result is not None or answer.status in {LENGTH_REQUIRED, NOT_IMPLEMENTED},
        "a result for a body in chunks, or 411 Length Required",
    )


@scenario("endpoint-kept-connection")
def serves_requests_on_one_connection(talk: Conversation) -> None:
    """A request gets its own answer on a connection that had another request before."""
    clause = "endpoint-kept-connection"
    talk.need(talk.wire.ping(), "an ordinary request")
    kept: HttpAnswer | None = None
    for what, change in (("that was served", {}), *REFUSED):
        first = asks(talk, {**change, "Connection": None}, keeps=True, after=kept)
        first.wait_closed(GRACE)
        kept = None
        if not first.is_kept:
            continue
        answer = asks(talk, {"Connection": None}, keeps=True, after=first)
        answer.wait_closed(GRACE)
        if not answer.status and answer.closed:
            continue  # a server may close a connection at any time
        served = talk.judge.expect(
            answer,
            clause,
            answer.reply.result is not None,
            f"a result on the connection of a request {what}",
            mild=None if answer.status else Breach.WARN,
            also=(first.line,),
        )
        if not served:
            answer.close()
            break
        kept = answer if answer.is_kept else None
    if kept is not None:
        kept.close()
    talk.judge.otherwise_unseen(clause, "it closes each connection after its response")
