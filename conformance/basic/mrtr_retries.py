"""basic/patterns/mrtr: retries that bring what was asked, something else, or nothing."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Example,
    Exchange,
    Round,
    altered,
    brief,
    scenario,
    willing,
)

FEW = 2
"""Things that ask for input which are used to learn one thing."""

MISSING_CAPABILITY = -32021
ELSEWHERE = "touchstone-unexpected"
"""A key that no server has asked for."""

GARBAGE = ("", "touchstone", "A" * 100_000, "\0\x01\x1b[2J\x7f\u202e\uffff", "e30=", "null")
"""Values of requestState that no server has given out."""


def _asked(talk: Conversation, example: Exchange) -> Round | None:
    """Have the server ask; None where it does not, or asks what nobody can answer."""
    first = talk.round(example, willing(talk.revision))
    answered = talk.wire.filled(first.client, first.requests)
    return first if first.asks and set(answered) == set(first.requests) else None


def _asking(talk: Conversation) -> Iterator[tuple[Example, Round]]:
    """Have things ask for input, one after the other."""
    for example in talk.examples("mrtr")[:FEW]:
        first = _asked(talk, example)
        if first is not None:
            yield example, first


# --- as it should be


@scenario("mrtr-retry-served", "mrtr-ignore-extra-responses")
def serves_a_retry(talk: Conversation) -> None:
    """A retry that brings what was asked leads on, also if it brings more."""
    for example, first in _asking(talk):
        second = talk.retry(first, required=True)
        if not second.reply.answered:
            continue  # jsonrpc-request-answered counts it
        held = not second.reply.is_error or second.reply.code == MISSING_CAPABILITY
        talk.judge(
            "mrtr-retry-served",
            held,
            expected="a result of the retry that brings what was asked",
            actual=second.reply,
            at=second.reply,
        )
        again = _asked(talk, example) if held else None
        if again is None:
            continue
        answers = talk.wire.filled(again.client, again.requests)
        more = talk.retry(again, responses={**answers, ELSEWHERE: {"action": "cancel"}})
        talk.judge(
            "mrtr-ignore-extra-responses",
            more.reply.result is not None,
            expected="the same outcome with one more entry in inputResponses",
            actual=more.reply,
            at=more.reply,
        )
    for clause in ("mrtr-retry-served", "mrtr-ignore-extra-responses"):
        talk.unseen(clause, "nothing asked for input that led on")


# --- the state


@scenario("mrtr-request-state-untrusted", hurts=True)
def withstands_a_made_up_state(talk: Conversation) -> None:
    """A requestState that nobody has given out is survived."""
    client = willing(talk.revision)
    for example in (*talk.examples("callable-tool")[:1], *talk.examples("mrtr")[:1]):
        for state in GARBAGE:
            params = {**example.params, "requestState": state}
            reply = talk.round(Exchange(example.method, params), client).reply
            talk.judge(
                "mrtr-request-state-untrusted",
                reply.answered,
                expected=f"an answer to a call with requestState {brief(state, 40)}",
                actual=reply,
                at=reply,
            )
            if not reply.answered:
                return


@scenario("mrtr-request-state-integrity", "mrtr-request-state-untrusted", hurts=True)
def verifies_its_state(talk: Conversation) -> None:
    """A requestState with one character altered does not lead to a normal end."""
    for _, first in _asking(talk):
        if isinstance(first.state, str) and first.state:
            reply = talk.retry(first, state=altered(first.state)).reply
            talk.judge(
                "mrtr-request-state-integrity",
                not reply.succeeded,
                expected="no success with a requestState that was altered",
                actual=reply,
                at=reply,
            )
            talk.judge(
                "mrtr-request-state-untrusted",
                reply.answered,
                expected="an answer to a retry with an altered requestState",
                actual=reply,
                at=reply,
            )
    talk.unseen("mrtr-request-state-integrity", "no question came with a requestState")
    talk.unseen("mrtr-request-state-untrusted", "no question came with a requestState")


@scenario("mrtr-request-state-binding")
def binds_its_state_to_a_request(talk: Conversation) -> None:
    """A requestState of one request does not bring another to its end."""
    for example, first in _asking(talk):
        if not isinstance(first.state, str):
            continue
        for other in _others(talk, example):
            asked = _asked(talk, other)
            if asked is None:
                continue
            reply = talk.retry(asked, state=first.state).reply
            talk.judge(
                "mrtr-request-state-binding",
                not reply.succeeded,
                expected=f"no success of {other} with the state of {example}",
                actual=reply,
                at=reply,
            )
            break
    talk.unseen("mrtr-request-state-binding", "no two requests asked, with a state to confuse")


def _others(talk: Conversation, example: Example) -> Iterator[Exchange]:
    """Give requests that may ask as well: of the same tool with other arguments, of another."""
    for name, value in example.arguments.items():
        if isinstance(value, str) and value:
            arguments = {**example.arguments, name: f"{value}?"}
            yield Exchange(example.method, {**example.params, "arguments": arguments})
    yield from (other for other in talk.examples("mrtr") if other is not example)


# --- what does not fit


@scenario("mrtr-validate-responses", hurts=True)
def validates_what_is_brought(talk: Conversation) -> None:
    """Responses of the wrong shape do not pass for an answer."""
    for example, first in _asking(talk):
        asked: Round | None = first
        for kind in ("an array", "strings"):
            if asked is None or not asked.requests:
                break
            wrong: Any = [] if kind == "an array" else dict.fromkeys(asked.requests, "touchstone")
            reply = talk.retry(asked, responses=wrong).reply
            talk.judge(
                "mrtr-validate-responses",
                reply.answered and not reply.succeeded,
                expected=f"an error for {kind} in place of inputResponses",
                actual=reply,
                at=reply,
                mild=Breach.WARN if reply.answered else None,
            )
            if not reply.answered:
                return
            asked = _asked(talk, example)
    talk.unseen("mrtr-validate-responses", "nothing was asked that could be answered wrongly")


@scenario("mrtr-missing-responses-reprompt", "mrtr-no-assumed-retry")
def asks_again_for_what_is_missing(talk: Conversation) -> None:
    """A retry that brings no answer is asked again, and not refused."""
    for _, first in _asking(talk):
        if not first.requests:
            continue
        reply = talk.retry(first, responses={}).reply
        if reply.answered:
            talk.judge(
                "mrtr-missing-responses-reprompt",
                not reply.is_error,
                expected="the question again, or a result that makes do without the answer",
                actual=reply,
                at=reply,
            )
        elif not _elicits(first):
            talk.judge(
                "mrtr-no-assumed-retry",
                False,
                expected="an answer to a retry without responses",
                actual=reply,
                at=reply,
            )
    for clause in ("mrtr-missing-responses-reprompt", "mrtr-no-assumed-retry"):
        talk.unseen(clause, "no retry without responses was answered")


def _elicits(asked: Round) -> bool:
    """Whether elicitation-handles-refusal counts the silence."""
    return any(
        isinstance(one, dict) and one.get("method") == "elicitation/create"
        for one in asked.requests.values()
    )


@scenario("mrtr-no-assumed-retry")
def goes_on_without_a_retry(talk: Conversation) -> None:
    """A question that is left alone keeps nobody from being served."""
    clause = "mrtr-no-assumed-retry"
    for example in talk.examples("mrtr")[:FEW]:
        first = talk.round(example, willing(talk.revision))
        beside = talk.probe(required=False)
        again = talk.round(example, first.client)
        for reply in (first.reply, beside, again.reply):
            talk.judge(
                clause,
                reply.answered,
                expected="an answer while the question of an earlier request is left alone",
                actual=reply,
                at=reply,
            )
