"""http/sessions: session ids, and the end of a session."""

from collections.abc import Iterator
from itertools import pairwise

from mcp_touchstone.suite import (
    UNANSWERED,
    Breach,
    Conversation,
    HttpAnswer,
    Place,
    Record,
    Seen,
    ambient,
    brief,
    guessable,
    is_modern,
    scenario,
    value_in,
)

SESSION = "Mcp-Session-Id"
BAD_REQUEST = 400
NOT_FOUND = 404
NOT_ALLOWED = 405
SUCCESS = range(200, 300)
BUSY = (409, 429, 503)
VISIBLE = range(0x21, 0x7F)
SESSIONS = 3
TURNS = 6
"""Requests of one session: a balancer sends them to its servers in turn."""

AFTERWARDS = 10
"""Pings after a connection broke off: a server sees that after a while only."""

BETWEEN = 0.1
"""Seconds between two of these pings."""

LATER = 2
"""Messages after the handshake that show whether a server serves its clients."""

NONE = "the server issues no session ids"


def opens_session(talk: Conversation) -> str | None:
    """Open a session beside ours; return its id, None for none."""
    answer = talk.http.first_request()
    return answer.header(SESSION) if answer.reply.result is not None else None


@ambient("sessions-id-visible-ascii")
def issues_ids_of_visible_characters(record: Record) -> Iterator[Seen]:
    """A session id has visible ASCII characters only."""
    for exchange in record.transcript.exchanges:
        issued = ", ".join(exchange.lines(SESSION))  # so clients read several lines
        if exchange.header(SESSION) is not None and exchange.verb == "POST":
            strange = [character for character in issued if ord(character) not in VISIBLE]
            yield Seen(
                "sessions-id-visible-ascii",
                bool(issued) and not strange,
                exchange.line or None,
                "characters from 0x21 to 0x7E",
                f"the id {brief(issued)}",
            )


@scenario("sessions-id-unique")
def issues_ids_that_cannot_be_guessed(talk: Conversation) -> None:
    """Ids of sessions are unique, and too random to be guessed."""
    ids = [one for one in (opens_session(talk) for _ in range(SESSIONS)) if one is not None]
    for one in ids:
        talk.http.delete({SESSION: one})
    if len(ids) < SESSIONS:
        talk.judge.unseen("sessions-id-unique", NONE)
        return
    repeated = len(set(ids)) < len(ids)
    talk.judge(
        "sessions-id-unique",
        not repeated and not guessable(ids),
        expected="session ids that differ and cannot be guessed",
        actual=f"the same id twice: {ids[0]}" if repeated else f"the ids {', '.join(ids)}",
    )


@ambient("sessions-id-issued")
def issues_the_id_that_it_wants(record: Record) -> Iterator[Seen]:
    """A server that gives no session id serves the requests that have none."""
    sent = [
        (exchange, value_in(record.transcript[exchange.line].value, "method"))
        for exchange in record.transcript.exchanges
        if exchange.verb == "POST" and exchange.line and exchange.status and not exchange.crafted
    ]
    opened = [n for n, (one, asked) in enumerate(sent) if asked == "initialize"]
    for begin, end in pairwise([*opened, len(sent)]):
        opening, *later = [one for one, _ in sent[begin:end]]
        if opening.status not in SUCCESS or len(later) < LATER:
            continue
        refused = all(one.status in {BAD_REQUEST, NOT_FOUND} for one in later)
        if not refused and not any(one.status in SUCCESS for one in later):
            continue
        yield Seen(
            "sessions-id-issued",
            not refused or opening.header(SESSION) is not None,
            later[0].line,
            f"{SESSION} in the response to initialize, or service without it",
            f"no id there, and each later request is refused: {later[0]}",
        )


@scenario("sessions-id-required")
def refuses_a_request_without_the_id_with_400(talk: Conversation) -> None:
    """A request without a session id is answered by 400, if the server wants an id."""
    if talk.http.session_id is None:
        talk.judge.unseen("sessions-id-required", NONE)
        return
    can_end = talk.http.end_session(talk.http.first_request())
    for what, answer in places(talk, None):
        if what == "a ping" and not answer.refused:
            talk.judge.unseen("sessions-id-required", f"it does not require an id: {answer}")
            return
        exists = answer.status != NOT_ALLOWED and (can_end or what != "a DELETE")
        if answer.refused and exists:
            talk.judge(
                "sessions-id-required",
                answer.status == BAD_REQUEST,
                expected=f"400 Bad Request for {what} without a session id",
                actual=answer,
                # our message: a 401 here means that the session is missing, and not the token
                at=talk.wire.transcript[answer.line],
            )


def places(talk: Conversation, session: str | None) -> Iterator[tuple[str, HttpAnswer]]:
    """Send each kind of request with a session id, None for none; yield what it is."""
    yield "a ping", talk.http.post(talk.wire.build(talk.wire.ping_method), {SESSION: session})
    for what, message in UNANSWERED.items():
        yield what, talk.http.post(message, {SESSION: session})
    for send in (talk.http.get, talk.http.delete):
        answer = send({SESSION: session})
        yield f"a {answer.exchange.verb}", answer
        answer.close()


@scenario("sessions-ended-404", "sessions-ended-get-404")
def answers_404_after_the_end_of_a_session(talk: Conversation) -> None:
    """The id of a session that we ended is answered by 404."""
    clauses = ("sessions-ended-404", "sessions-ended-get-404")
    session = opens_session(talk)
    if session is None:
        talk.judge.unseen(clauses, NONE)
        return
    ended = talk.http.delete({SESSION: session})
    if ended.status not in SUCCESS:
        talk.judge.unseen(clauses, f"the server does not let clients end a session: {ended}")
        return
    judge_ended(talk, session, "an ended session", ended.line)


@scenario("sessions-ended-404", place=Place.OWN_SESSION)
def serves_no_session_after_a_404(talk: Conversation) -> None:
    """A session whose id was answered by 404 has ended, and no later request of it is served."""
    session = opens_session(talk)
    if session is None:
        talk.judge.unseen("sessions-ended-404", NONE)
        return
    gone: HttpAnswer | None = None
    for _ in range(TURNS):
        answer = talk.http.post(talk.wire.build(talk.wire.ping_method), {SESSION: session})
        if gone is not None and answer.reply.result is not None:
            talk.judge.expect(
                answer,
                "sessions-ended-404",
                False,
                "404 Not Found for each request of a session that was answered so before",
                also=(gone.line,),
            )
            return
        gone = answer if answer.status == NOT_FOUND else gone
    talk.http.delete({SESSION: session})
    talk.judge.unseen("sessions-ended-404", "no request of an open session was answered by 404")


def judge_ended(talk: Conversation, session: str, whose: str, *also: int) -> None:
    """Judge the responses to all requests with the id of a session that is over."""
    lacking = {what for what, message in UNANSWERED.items() if talk.http.post(message).refused}
    if not talk.http.end_session(talk.http.first_request()):
        lacking.add("a DELETE")
    for what, answer in places(talk, session):
        if what in lacking:
            continue
        clause = "sessions-ended-get-404" if what == "a GET" else "sessions-ended-404"
        if what == "a GET" and answer.status in {0, NOT_ALLOWED}:
            talk.judge.unseen(clause, f"the server has no stream for GET: {answer}")
            continue
        talk.judge.expect(
            answer,
            clause,
            answer.status == NOT_FOUND,
            f"404 Not Found for {what} of {whose}",
            also=also,
        )


@scenario("sessions-ended-404", "sessions-ended-get-404", place=Place.OWN_PROCESS)
def answers_404_after_a_restart(talk: Conversation) -> None:
    """The id of a session of a process that has ended is answered by 404."""

    def leave(why: str) -> None:
        talk.judge.unseen(("sessions-ended-404", "sessions-ended-get-404"), why)

    if not talk.http.started:
        return leave("we did not start the server, so we do not restart it")
    talk.need(talk.wire.open(), "the opening of a session")
    session = talk.http.session_id
    if session is None:
        return leave(NONE)
    talk.server.replace()
    if talk.wire.open().result is None:
        return leave("the server does not start again on its port")
    answer = talk.http.post(talk.wire.build(talk.wire.ping_method), {SESSION: session})
    if answer.reply.result is not None:
        return leave("the server keeps its sessions when it is restarted, or needs no id")
    return judge_ended(talk, session, "a session that the server lost by a restart")


@scenario("sessions-other-clients", place=Place.OWN_PROCESS)
def serves_a_client_whatever_others_do(talk: Conversation) -> None:
    """A client is served while and after others open, end and break off their connections."""
    clause = "sessions-other-clients"
    talk.need(talk.wire.open(), "the opening of the first client")

    def served(what: str, answer: HttpAnswer, light: dict[int, str]) -> bool:
        because = light.get(answer.status, "")
        return talk.judge(
            clause,
            answer.reply.result is not None,
            expected=what,
            actual=answer,
            at=answer.reply,
            mild=Breach.WARN if because else None,
            because=because,
        )

    def opens(which: str) -> HttpAnswer | None:
        busy = dict.fromkeys(BUSY, "the server may limit the number of its clients")
        opening = talk.http.first_request()
        return (
            opening if served(f"a result for the first request of {which}", opening, busy) else None
        )

    def pings(when: str) -> bool:
        ended = {NOT_FOUND: "a server may end a session at any time"}
        answer = talk.http.post(talk.wire.build(talk.wire.ping_method))
        return served(f"a result for a ping of the first client {when}", answer, ended)

    alone = talk.http.post(talk.wire.build(talk.wire.ping_method))
    if alone.refused:
        talk.judge.unseen(clause, f"it serves no ping of a client that is alone: {alone}")
        return
    second = opens("a second client, as for the first")
    if second is None or not pings("beside a second one"):
        return
    talk.http.end_session(second)
    if not pings("after the second one ended its session"):
        return
    half = b'{"jsonrpc": "2.0", '
    talk.http.send("POST", {"Content-Length": str(2 * len(half))}, body=half, wait=False).close()
    for _ in range(AFTERWARDS):
        talk.wire.quiet(BETWEEN)
        if not pings("after another one broke off its connection"):
            break
    else:
        third = opens("a third client, after another one broke off its connection")
        if third is not None:
            talk.http.end_session(third)


@ambient("sessions-none-minted")
def issues_no_session_id(record: Record) -> Iterator[Seen]:
    """An answer of 2026-07-28 has no session id."""
    for exchange in record.transcript.exchanges:
        said = exchange.said("MCP-Protocol-Version") or ""
        if exchange.verb == "POST" and exchange.status and is_modern(said):
            issued = exchange.header(SESSION)
            repeated = issued is not None and issued == exchange.said(SESSION)
            yield Seen(
                "sessions-none-minted",
                issued is None or repeated,
                exchange.line or None,
                f"no {SESSION}",
                f"the id {brief(issued)}",
            )


@scenario("sessions-header-ignored")
def ignores_a_session_id(talk: Conversation) -> None:
    """A session id on a request is ignored."""
    unknown = "touchstone-no-such-session"
    for method in (talk.wire.ping_method, *talk.spoken.list_methods):
        answer = talk.http.post(talk.wire.build(method), {SESSION: unknown})
        repeated = answer.header(SESSION) == unknown
        talk.judge(
            "sessions-header-ignored",
            answer.reply.result is not None and not repeated,
            expected=f"a result of {method} that does not repeat the session id",
            actual=f"{answer} that repeats the id" if repeated else answer,
            at=answer.line,
        )


@scenario("sessions-last-event-id-ignored")
def ignores_the_id_of_an_event(talk: Conversation) -> None:
    """A Last-Event-ID on a request is ignored."""
    for method in (talk.wire.ping_method, *talk.spoken.list_methods):
        answer = talk.http.post(talk.wire.build(method), {"Last-Event-ID": "1-1"})
        talk.judge.expect(
            answer,
            "sessions-last-event-id-ignored",
            answer.reply.result is not None,
            f"a result of {method}",
        )
