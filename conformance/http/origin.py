"""http/origin: requests of foreign web pages, and the address to listen on."""

from ipaddress import ip_address

from mcp_touchstone.suite import (
    CANCELLATION,
    UNANSWERED,
    Breach,
    Conversation,
    HttpAnswer,
    harmless_requests,
    scenario,
)

FOREIGN = "http://touchstone.invalid"
NEAR = (
    "http://localhost.touchstone.invalid",
    "http://127.0.0.1.touchstone.invalid",
    "http://touchstone-localhost",
)
"""Origins of strangers that begin or end like one of this machine."""

NULL = "null"
"""The origin of a page in a sandbox, or of a file."""

SESSION = "Mcp-Session-Id"
SUCCESS = range(200, 300)
FORBIDDEN = 403


def judge_origin(
    talk: Conversation, clause: str, answer: HttpAnswer, *, served: bool, origin: str = FOREIGN
) -> None:
    """Judge a request with a foreign Origin, and the status of its refusal."""
    because = "" if talk.http.local else "a server on the internet may permit every origin"
    if origin == NULL:
        because = because or "a local file has this origin too"
    talk.judge.expect(
        answer,
        clause,
        not served,
        f"no service for the Origin {origin}",
        mild=Breach.WARN if because else None,
        because=because,
    )
    if not talk.judge.covers("origin-status-403"):
        return
    if served or not answer.status:
        talk.judge.unseen("origin-status-403", f"the request was not refused: {answer}")
        return
    talk.judge.expect(
        answer,
        "origin-status-403",
        answer.status == FORBIDDEN,
        f"403 Forbidden for the Origin {origin}",
    )


@scenario("origin-refused", "origin-status-403")
def refuses_the_first_request_of_a_foreign_page(talk: Conversation) -> None:
    """The first request of a client with a foreign Origin is refused with 403."""
    for origin in (FOREIGN, *NEAR, NULL):
        answer = talk.http.first_request({"Origin": origin})
        served = answer.reply.result is not None
        judge_origin(talk, "origin-refused", answer, served=served, origin=origin)
        talk.http.end_session(answer)
    if talk.modern:
        messages = harmless_requests(talk)[1:]
        if talk.http.post(CANCELLATION).status in SUCCESS:
            messages.append(CANCELLATION)
        for message in messages:
            answer = talk.http.post(message, {"Origin": FOREIGN})
            is_note = "id" not in message and answer.status in SUCCESS
            served = is_note or answer.reply.result is not None
            judge_origin(talk, "origin-refused", answer, served=served)


@scenario("origin-refused-in-session", "origin-status-403")
def refuses_a_request_of_a_foreign_page_in_a_session(talk: Conversation) -> None:
    """A request of a session with a foreign Origin is refused with 403."""
    if talk.modern:
        talk.judge.unseen("origin-status-403", "there are no sessions")
        return
    clause = "origin-refused-in-session"
    for message in harmless_requests(talk):
        answer = talk.http.post(message, {"Origin": FOREIGN})
        judge_origin(talk, clause, answer, served=answer.reply.result is not None)
    for message in UNANSWERED.values():
        if talk.http.post(message).status in SUCCESS:
            answer = talk.http.post(message, {"Origin": FOREIGN})
            judge_origin(talk, clause, answer, served=answer.status in SUCCESS)
    opening = talk.http.first_request()
    if opening.header(SESSION) is not None:
        answer = talk.http.delete({"Origin": FOREIGN, SESSION: opening.header(SESSION)})
        served = answer.status in SUCCESS
        if talk.http.end_session(opening) or served:
            judge_origin(talk, clause, answer, served=served)


@scenario("origin-refused-on-get", "origin-status-403")
def opens_no_stream_for_a_foreign_page(talk: Conversation) -> None:
    """A GET with a foreign Origin opens no stream."""
    ordinary = [one for one in talk.wire.transcript.exchanges if one.verb == "GET"]
    if not any(one.streams and one.status in SUCCESS for one in ordinary):
        talk.judge.unseen(
            ("origin-refused-on-get", "origin-status-403"), "the server opens no stream for a GET"
        )
        return
    opening = talk.http.first_request()  # our session has a stream already
    session = {SESSION: opening.header(SESSION)}
    answer = talk.http.get({"Origin": FOREIGN, **session})
    served = answer.status in SUCCESS and answer.exchange.streams
    judge_origin(talk, "origin-refused-on-get", answer, served=served)
    answer.close()
    talk.http.end_session(opening)


@scenario("origin-local-address")
def listens_on_loopback_only(talk: Conversation) -> None:
    """A local server listens on the loopback address only."""
    addresses = talk.http.addresses()
    if not addresses:
        talk.judge.unseen("origin-local-address", "the addresses of the server cannot be seen")
        return
    wide = [one for one in addresses if not ip_address(one).is_loopback]
    talk.judge(
        "origin-local-address",
        not wide,
        expected="loopback addresses only",
        actual=f"it listens on {', '.join(wide)}",
    )
