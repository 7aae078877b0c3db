"""http/authorization: tokens of our own issuer that a server must refuse."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    HttpAnswer,
    attempt,
    challenged,
    harmless_requests,
    scenario,
)

UNAUTHORIZED = 401
FORBIDDEN = 403
BAD_REQUEST = 400

FIRST = "the first guarded request"
FEW = 8
STEPS = 3
"""Greatest number of challenges to which we answer with another token, for one request."""
LONGEST = 1000
HINTS = {"_meta", "ttlMs", "cacheScope"}
Send = Callable[[str], HttpAnswer]
"""Sends a request with an Authorization header."""

NO_UPSTREAM = "the server sent nothing to {upstream}: name it in its command or in --env"
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


def guarded(talk: Conversation, *clauses: str) -> HttpAnswer | None:
    """Return the refusal of a request without a token of our issuer; else they are unseen."""
    if talk.http.flawed("no-scope"):
        return challenged(talk, *clauses)
    talk.judge.unseen(clauses, NO_ISSUER)
    return None


def refused(answer: HttpAnswer) -> bool:
    """Whether a request was kept out."""
    return answer.status in {UNAUTHORIZED, FORBIDDEN}


@scenario(*FLAWS)
def refuses_flawed_tokens_with_401(talk: Conversation) -> None:
    """Tokens of the issuer with one flaw are answered by 401, and the good one is served."""
    if guarded(talk, *FLAWS) is None:
        return
    plain = attempt(talk, talk.http.credentials())
    if not served(plain):
        talk.judge.unseen(tuple(FLAWS), f"the token without a flaw is refused too: {plain}")
        return
    for clause, flaws in FLAWS.items():
        for flaw, what in flaws.items() if talk.judge.covers(clause) else ():
            token = talk.http.flawed(flaw)
            answer = attempt(talk, f"Bearer {token}")
            decided = _decided(talk, token, answer)
            talk.wire.transcript.happened(f"the token {what}: {decided}")
            # the sentence on audiences says "reject", those on other tokens say 401
            rejects = clause == "authorization-audience" and not served(answer)
            talk.judge.expect(
                answer,
                clause,
                answer.status == UNAUTHORIZED,
                f"401 Unauthorized for a token {what}",
                actual=f"{answer}; {decided}",
                mild=Breach.WARN if rejects or answer.status == BAD_REQUEST else None,
                because="another status is for invalid tokens: 401",
            )


def served(answer: HttpAnswer) -> bool:
    """Whether a request was carried out: it got a result, or was refused for another reason."""
    return answer.reply.answered and answer.status < BAD_REQUEST


def _decided(talk: Conversation, token: str, answer: HttpAnswer) -> str:
    """Return which check decided about a token, in words."""
    active = talk.http.called_active(token)
    if served(answer):
        return f"the server serves it as it serves the token without this flaw; {ISSUER[active]}"
    check = "the issuer decided" if active is False else "a check of the server decided"
    instead = "" if answer.status == UNAUTHORIZED else ", in place of 401"
    return f"refused by HTTP {answer.status}{instead}; {check}: {ISSUER[active]}"


ISSUER = {
    None: "the issuer was not asked",
    True: "the issuer called it active",
    False: "the issuer called it inactive",
}
"""What the issuer told the server about a token -> in words."""


@scenario("authorization-audience-list")
def accepts_a_list_of_audiences(talk: Conversation) -> None:
    """A token for several servers is accepted by each."""
    clause = "authorization-audience-list"
    if guarded(talk, clause) is None:
        return
    answer = attempt(talk, f"Bearer {talk.http.flawed('listed-audience')}")
    talk.judge.expect(
        answer,
        clause,
        answer.reply.answered and not refused(answer),
        "an answer to a token whose list of audiences has the server",
    )


@scenario("authorization-revoked-401")
def refuses_revoked_tokens_with_401(talk: Conversation) -> None:
    """A token that the issuer calls inactive is answered by 401, if the server asks."""
    clause = "authorization-revoked-401"
    if guarded(talk, clause) is None:
        return
    token = talk.http.flawed("revoked")
    answer = attempt(talk, f"Bearer {token}")
    if talk.http.called_active(token) is None:
        talk.judge.unseen(clause, "the server does not ask the issuer about tokens")
        return
    talk.judge.expect(
        answer,
        clause,
        answer.status == UNAUTHORIZED,
        "401 Unauthorized for a token that the issuer calls inactive",
    )


def requests(talk: Conversation) -> Iterator[tuple[str, Send]]:
    """Yield the guarded request, lists and a call: what each is, and what sends it with a token."""

    def later(message: dict[str, Any], authorization: str) -> HttpAnswer:
        again = {**message, "id": next(talk.wire.ids)}
        return talk.http.post(again, {"Authorization": authorization})

    yield FIRST, partial(attempt, talk)
    for message in harmless_requests(talk)[1:]:
        yield message["method"], partial(later, message)


@scenario("authorization-insufficient-scope", "authorization-step-up")
def asks_for_the_missing_scope(talk: Conversation) -> None:
    """A token without a scope gets 403, and a challenge with the scope that suffices."""
    clause, step = "authorization-insufficient-scope", "authorization-step-up"
    bare = guarded(talk, clause, step)
    if bare is None:
        return
    named = "scope" in bare.exchange.challenge
    seen = stepped = False
    token = talk.http.flawed("no-scope")
    for where, send in requests(talk):
        answer = send(f"Bearer {token}")
        if not refused(answer) and not (named and where == FIRST):
            continue
        seen = True
        challenge = answer.exchange.challenge
        asked = answer.status == FORBIDDEN and challenge.get("error") == "insufficient_scope"
        talk.judge(
            clause,
            asked,
            expected=f'403 and error="insufficient_scope" for {where} without the scope',
            actual=f"{answer}; {answer.header('WWW-Authenticate') or 'no WWW-Authenticate'}",
            at=answer.line,
        )
        if asked and talk.judge.covers(step):
            stepped = True
            _steps_up(talk, where, send, answer)
    if not seen:
        talk.judge.unseen(clause, "the server serves each request without a scope")
    if not stepped:
        talk.judge.unseen(step, "no request was refused by 403 insufficient_scope")


def _steps_up(talk: Conversation, where: str, send: Send, answer: HttpAnswer) -> None:
    """Send a request with the scopes of its challenges, as a client does."""
    scopes: set[str] = set()
    for _ in range(STEPS):
        asked = {*answer.exchange.challenge.get("scope", "")[:LONGEST].split()}
        if asked <= scopes or not refused(answer):
            break
        scopes |= asked
        answer = send(f"Bearer {talk.http.flawed('', scope=' '.join(sorted(scopes)))}")
    talk.judge(
        "authorization-step-up",
        not refused(answer),
        expected=f"an answer to {where} with the scopes of its challenge",
        actual=f"{answer} with {' '.join(sorted(scopes)) or 'no scope, as the challenge has none'}",
        at=answer.line,
    )


@scenario("authorization-cache-scope")
def calls_private_what_differs(talk: Conversation) -> None:
    """A result that another user gets otherwise is not public."""
    clause = "authorization-cache-scope"
    other = talk.http.other_credentials()
    if other is None:
        talk.judge.unseen(clause, "there is no second user: --issuer mock or --other-token-command")
        return
    messages = [talk.wire.build(method) for method in talk.spoken.list_methods]
    uris = [one["uri"] for one in talk.spoken.named("resources", "uri")[:FEW]]
    messages += [talk.wire.build("resources/read", {"uri": uri}) for uri in uris]
    compared = False
    for message in messages:
        answers = []
        for user in ({}, {"Authorization": other}) * 2:
            again = {**message, "id": next(talk.wire.ids)}
            answers.append(talk.http.post(again, user))
        found = [one.reply.result or {} for one in answers]
        shown = [{k: v for k, v in one.items() if k not in HINTS} for one in found]
        if not all(found) or shown[0] != shown[2] or shown[1] != shown[3]:
            continue  # refused, or it changes by itself
        if shown[0] == shown[1]:
            continue
        compared = True
        public = [one for one in found if one.get("cacheScope") == "public"]
        talk.judge(
            clause,
            not public,
            expected=f"cacheScope private for {message['method']}: its result depends on the user",
            actual="cacheScope public, and two users each got twice a result of their own",
            at=answers[1].line,
            also=(answers[0].line,),
        )
    if not compared:
        talk.judge.unseen(clause, "no result is one for a user and another for a second user")


@scenario("authorization-no-passthrough")
def keeps_the_token_of_the_client(talk: Conversation) -> None:
    """Requests to another service do not have the token of the client."""
    clause = "authorization-no-passthrough"
    own = talk.http.credentials()
    if own is None:  # a header Authorization would make its 401 those of a protected server
        talk.judge.unseen(clause, NO_ISSUER)
        return
    attempt(talk, f"Bearer {own.rpartition(' ')[2]}")
    talk.examples.exercise()
    calls = talk.examples("callable-tool")[:FEW]
    lines = [talk.run(call, required=False).asked for call in calls]
    requests = talk.http.upstream()  # of other sessions too: a server may pass on what it kept
    if not requests:
        why = NO_UPSTREAM if talk.http.flawed("no-scope") else NO_ISSUER
        talk.judge.unseen(clause, why)
        return
    talk.judge(
        clause,
        not any(requests),
        expected="requests to {upstream} without a token that we sent",
        actual=f"{sum(requests)} of {len(requests)} requests had one",
        at=lines[-1] if lines else None,
    )
