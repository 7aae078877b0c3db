"""basic/patterns/mrtr: retries with correct, wrong and missing responses."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Example,
    Request,
    Round,
    altered,
    brief,
    mrtr,
    scenario,
    willing,
)

FEW = 2
"""Number of tools or prompts that one scenario uses."""

MISSING_CAPABILITY = -32021
ELSEWHERE = "touchstone-unexpected"
"""A key that no server asks for."""

LONG = 8_192
"""Length of a text that fits in common line buffers; the specification sets no line length."""

GARBAGE = ("", "touchstone", "A" * LONG, "\0\x01\x1b[2J\x7f\u202e\uffff", "e30=", "null")
"""Values of requestState that no server sends."""


def _asked(talk: Conversation, example: Request) -> Round | None:
    """Return a round with input requests that the client can answer; None if there is none."""
    first = mrtr.begin(talk.wire, example, willing(talk.revision))
    answered = talk.wire.answers.filled(first.client, first.requests)
    return first if first.asks and set(answered) == set(first.requests) else None


def _asking(talk: Conversation) -> Iterator[tuple[Example, Round]]:
    """Yield examples that ask for input, each with its first round."""
    for example in talk.examples("mrtr")[:FEW]:
        first = _asked(talk, example)
        if first is not None:
            yield example, first


# --- correct retries


@scenario("mrtr-retry-served", "mrtr-ignore-extra-responses")
def serves_a_retry(talk: Conversation) -> None:
    """A retry with the requested responses is served, also if it has more responses."""
    for example, first in _asking(talk):
        second = mrtr.retry(talk.wire, first, required=True)
        if not second.reply.answered:
            continue  # jsonrpc-request-answered judges this
        passed = not second.reply.is_error or second.reply.code == MISSING_CAPABILITY
        talk.judge.expect(
            second.reply,
            "mrtr-retry-served",
            passed,
            "a result of a retry with the requested responses",
        )
        again = _asked(talk, example) if passed else None
        if again is None:
            continue
        answers = talk.wire.answers.filled(again.client, again.requests)
        more = mrtr.retry(talk.wire, again, responses={**answers, ELSEWHERE: {"action": "cancel"}})
        talk.judge.expect_result(
            more.reply,
            "mrtr-ignore-extra-responses",
            "the same outcome with one more entry in inputResponses",
        )
    talk.judge.unseen(
        ("mrtr-retry-served", "mrtr-ignore-extra-responses"),
        "no tool or prompt asked for input and served the retry",
    )


# --- requestState


@scenario("mrtr-request-state-untrusted", hurts=True)
def survives_an_invented_request_state(talk: Conversation) -> None:
    """A call with an invented requestState is answered."""
    client = willing(talk.revision)
    for example in (*talk.examples("callable-tool")[:1], *talk.examples("mrtr")[:1]):
        for state in GARBAGE:
            params = {**example.params, "requestState": state}
            reply = mrtr.begin(talk.wire, Request(example.method, params), client).reply
            talk.judge.expect_answer(
                reply,
                "mrtr-request-state-untrusted",
                f"an answer to a call with requestState {brief(state, 40)}",
            )
            if not reply.answered:
                return


@scenario("mrtr-request-state-integrity", "mrtr-request-state-untrusted", hurts=True)
def rejects_an_altered_request_state(talk: Conversation) -> None:
    """A retry with one character of its requestState altered does not succeed."""
    for _, first in _asking(talk):
        if isinstance(first.state, str) and first.state:
            reply = mrtr.retry(talk.wire, first, state=altered(first.state)).reply
            talk.judge.expect(
                reply,
                "mrtr-request-state-integrity",
                not reply.succeeded,
                "an error for an altered requestState",
            )
            talk.judge.expect_answer(
                reply,
                "mrtr-request-state-untrusted",
                "an answer to a retry with an altered requestState",
            )
    talk.judge.unseen(
        ("mrtr-request-state-integrity", "mrtr-request-state-untrusted"),
        "no result that asks has a requestState",
    )


@scenario("mrtr-request-state-binding")
def binds_request_state_to_its_request(talk: Conversation) -> None:
    """A retry with the requestState of another request does not succeed."""
    for example, first in _asking(talk):
        if not isinstance(first.state, str):
            continue
        for other in _others(talk, example):
            asked = _asked(talk, other)
            if asked is None:
                continue
            reply = mrtr.retry(talk.wire, asked, state=first.state).reply
            talk.judge.expect(
                reply,
                "mrtr-request-state-binding",
                not reply.succeeded,
                f"an error for {other} with the requestState of {example}",
            )
            break
    talk.judge.unseen(
        "mrtr-request-state-binding", "there are no two requests that ask with a state"
    )


def _others(talk: Conversation, example: Example) -> Iterator[Request]:
    """Yield other requests that may ask: the same tool with other arguments, other tools."""
    for name, value in example.arguments.items():
        if isinstance(value, str) and value:
            arguments = {**example.arguments, name: f"{value}?"}
            yield Request(example.method, {**example.params, "arguments": arguments})
    yield from (other for other in talk.examples("mrtr") if other is not example)


# --- wrong and missing responses


DECLINED = "refusals with content"
ODD_RESPONSES: dict[str, Any] = {
    "an array": None,
    "strings": "touchstone",
    "a number as content": {"action": "accept", "content": 7},
    DECLINED: {"action": "decline", "content": {"touchstone": 7}},
}
"""What is in place of inputResponses -> the value of each; None for no object at all."""


@scenario("mrtr-validate-responses", hurts=True)
def validates_input_responses(talk: Conversation) -> None:
    """A retry with responses of the wrong shape does not succeed."""
    for example, first in _asking(talk):
        asked: Round | None = first
        for kind, odd in ODD_RESPONSES.items():
            if asked is None or not asked.requests:
                break
            wrong: Any = [] if odd is None else dict.fromkeys(asked.requests, odd)
            reply = mrtr.retry(talk.wire, asked, responses=wrong).reply
            talk.judge.expect(
                reply,
                "mrtr-validate-responses",
                reply.answered and (kind == DECLINED or not reply.succeeded),
                f"an error for {kind} in place of inputResponses",
                mild=Breach.WARN if reply.answered else None,
            )
            if not reply.answered:
                return
            asked = _asked(talk, example)
    talk.judge.unseen("mrtr-validate-responses", "no input request could be answered wrongly")


@scenario("mrtr-missing-responses-reprompt", "mrtr-no-assumed-retry")
def asks_again_for_missing_responses(talk: Conversation) -> None:
    """A retry without responses gets the input request again, not an error."""
    for _, first in _asking(talk):
        if not first.requests:
            continue
        reply = mrtr.retry(talk.wire, first, responses={}).reply
        if reply.answered:
            talk.judge.expect(
                reply,
                "mrtr-missing-responses-reprompt",
                not reply.is_error,
                "the same input request, or a result without the response",
            )
        elif not _elicits(first):
            talk.judge.expect(
                reply, "mrtr-no-assumed-retry", False, "an answer to a retry without responses"
            )
    talk.judge.unseen(
        ("mrtr-missing-responses-reprompt", "mrtr-no-assumed-retry"),
        "no retry without responses was answered",
    )


def _elicits(asked: Round) -> bool:
    """Whether elicitation-handles-refusal judges a missing answer."""
    return any(
        isinstance(one, dict) and one.get("method") == "elicitation/create"
        for one in asked.requests.values()
    )


@scenario("mrtr-no-assumed-retry")
def serves_others_while_a_retry_is_missing(talk: Conversation) -> None:
    """Other requests are served while a retry is missing."""
    clause = "mrtr-no-assumed-retry"
    for example in talk.examples("mrtr")[:FEW]:
        first = mrtr.begin(talk.wire, example, willing(talk.revision))
        beside = talk.wire.ping(required=False)
        again = mrtr.begin(talk.wire, example, first.client)
        for reply in (first.reply, beside, again.reply):
            talk.judge.expect_answer(
                reply, clause, "an answer while an earlier input request stays unanswered"
            )
