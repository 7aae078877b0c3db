"""http/authorization: tokens of our own issuer that a server must refuse."""

from collections.abc import Iterator

from mcp_touchstone.suite import Breach, Conversation, HttpAnswer, scenario

UNAUTHORIZED = 401
FORBIDDEN = 403
BAD_REQUEST = 400
REFUSALS = {BAD_REQUEST, FORBIDDEN}

NO_ISSUER = "there is no issuer of ours: --issuer mock"

FLAWS = {
    "authorization-audience": {
        "other-audience": "of another server",
        "no-audience": "without an audience",
        "other-list": "of two other servers",
        "longer-audience": "whose audience begins with that of the server",
        "nested-audience": "whose audience contains that of the server",
        "id-token": "that is an ID token of a client",
    },
    "authorization-forged-401": {
        "unsigned": "with alg none",
        "unknown-key": "signed by a stranger under the name of the issuer's key",
        "public-key": "with an HMAC by the issuer's public key",
        "own-jwk": "signed by a key in its own header",
        "own-jku": "signed by a key at a URL in its own header",
        "own-x5u": "signed by the key of a certificate at a URL in its own header",
    },
    "authorization-expired-401": {"expired": "that expired an hour ago"},
    "authorization-early-401": {"early": "that is valid in an hour"},
    "authorization-issuer-401": {"other-issuer": "of another issuer"},
}
"""Clause -> the flaws that it is about, and what such a token is called."""


def attempt(talk: Conversation, token: str) -> HttpAnswer:
    """Send the first request of a client with a token."""
    answer = talk.http.first_request({"Authorization": f"Bearer {token}"})
    talk.http.end_session(answer)
    return answer


def guarded(talk: Conversation, *clauses: str) -> bool:
    """Whether there is an issuer, and the server wants its tokens; else the clauses are unseen."""
    why = NO_ISSUER
    if talk.http.flawed("no-scope"):
        answer = talk.http.first_request({"Authorization": None})
        talk.http.end_session(answer)
        if answer.reply.result is None:
            return True
        why = f"the server serves a request without a token: {answer}"
    for clause in clauses:
        if talk.judge.covers(clause):
            talk.judge.unseen(clause, why)
    return False


@scenario(*FLAWS)
def refuses_flawed_tokens_with_401(talk: Conversation) -> None:
    """Tokens of the issuer with one flaw are answered by 401."""
    if not guarded(talk, *FLAWS):
        return
    for clause, flaws in FLAWS.items():
        for flaw, what in flaws.items() if talk.judge.covers(clause) else ():
            answer = attempt(talk, talk.http.flawed(flaw))
            # the sentence on audiences says "reject", those on other tokens say 401
            milder = REFUSALS if clause == "authorization-audience" else {BAD_REQUEST}
            light = answer.status in milder
            talk.judge(
                clause,
                answer.status == UNAUTHORIZED,
                expected=f"401 Unauthorized for a token {what}",
                actual=answer,
                at=answer.line,
                mild=Breach.WARN if light else None,
                because="another status is for invalid tokens: 401" if light else "",
            )


@scenario("authorization-audience-list")
def accepts_a_list_of_audiences(talk: Conversation) -> None:
    """A token for several servers is accepted by each."""
    clause = "authorization-audience-list"
    if not guarded(talk, clause):
        return
    answer = attempt(talk, talk.http.flawed("listed-audience"))
    talk.judge(
        clause,
        answer.reply.result is not None,
        expected="an answer to a token whose list of audiences has the server",
        actual=answer,
        at=answer.line,
    )


@scenario("authorization-revoked-401")
def refuses_revoked_tokens_with_401(talk: Conversation) -> None:
    """A token that the issuer calls inactive is answered by 401, if the server asks."""
    clause = "authorization-revoked-401"
    if not guarded(talk, clause):
        return
    token = talk.http.flawed("revoked")
    answer = attempt(talk, token)
    if not talk.http.is_introspected(token):
        talk.judge.unseen(clause, "the server does not ask the issuer about tokens")
        return
    talk.judge(
        clause,
        answer.status == UNAUTHORIZED,
        expected="401 Unauthorized for a token that the issuer calls inactive",
        actual=answer,
        at=answer.line,
    )


def requests(talk: Conversation, authorization: str) -> Iterator[tuple[str, HttpAnswer]]:
    """Send a first request, lists and a call with a token; yield what each is."""
    change = {"Authorization": authorization}
    opening = talk.http.first_request(change)
    talk.http.end_session(opening)
    yield "a first request", opening
    for method in talk.spoken.listing:
        yield method, talk.http.post(talk.wire.build(method), change)
    for tool in talk.spoken.harmless[:1]:
        call = talk.wire.build("tools/call", {"name": tool, "arguments": {}})
        yield "tools/call", talk.http.post(call, change)


@scenario("authorization-insufficient-scope")
def asks_for_the_missing_scope(talk: Conversation) -> None:
    """A token without a scope gets 403 and a challenge that names the scope."""
    clause = "authorization-insufficient-scope"
    if not guarded(talk, clause):
        return
    bare = talk.http.first_request({"Authorization": None})
    named = "scope=" in (bare.header("WWW-Authenticate") or "")
    seen = False
    token = talk.http.flawed("no-scope")
    for where, answer in requests(talk, f"Bearer {token}"):
        said = (answer.header("WWW-Authenticate") or "").lower()
        refused = answer.status in {UNAUTHORIZED, FORBIDDEN}
        if not refused and not (named and where == "a first request"):
            continue
        seen = True
        talk.judge(
            clause,
            answer.status == FORBIDDEN and "insufficient_scope" in said,
            expected=f'403 and error="insufficient_scope" for {where} without the scope',
            actual=f"{answer}; {said or 'no WWW-Authenticate'}",
            at=answer.line,
        )
    if not seen:
        talk.judge.unseen(clause, "the server serves each request without a scope")
