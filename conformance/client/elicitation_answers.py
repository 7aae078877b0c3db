"""client/elicitation: what a server makes of the user's answer, and of what a client can do."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mcp_touchstone.suite import (
    Client,
    Conversation,
    answer,
    arguments,
    scenario,
    willing,
)

ELICIT = "elicitation/create"
FEW = 2
"""Things that elicit which are used to learn one thing."""

CALLS = 4
"""Tools called where no elicitation may come of it."""


@scenario("elicitation-not-in-revision", willing=True)
def does_not_elicit_yet(talk: Conversation) -> None:
    """A client that answers all there is in this revision is asked for no more."""
    start = len(talk.wire.transcript)
    talk.exercise()
    for example in talk.examples("callable-tool")[:CALLS]:
        talk.run(example, required=False)
    asked = [one for one in talk.questions(start) if one.method == ELICIT]
    talk.judge(
        "elicitation-not-in-revision",
        not asked,
        expected=f"requests that {talk.revision} has",
        actual=f"a request: {ELICIT}",
        at=asked[0].entry if asked else None,
    )


@scenario("elicitation-mode-supported")
def keeps_to_the_modes_of_the_client(talk: Conversation) -> None:
    """A client with forms alone gets no URL, and one with URLs alone no form."""
    asked_for: tuple[dict[str, Any], ...] = ({}, {"form": {}}, {"url": {}})
    for modes in asked_for:
        client = Client(capabilities={"elicitation": modes}, elicitation=answer.accept())
        talk.session(client)
        for example in talk.examples("elicits")[:FEW]:
            told = talk.provoke(example)
            for asked in told.questions:
                mode = "url" if asked.member.get("mode") == "url" else "form"
                talk.judge(
                    "elicitation-mode-supported",
                    asked.method != ELICIT or mode in (modes or {"form": {}}),
                    expected=f"nothing but what {modes} covers",
                    actual=f"an elicitation by {mode}",
                    at=asked.entry,
                )
            if not told.reply.answered:
                break
    talk.unseen("elicitation-mode-supported", "it asks no client that has one mode alone")


@scenario("elicitation-handles-refusal-legacy", willing=True, hurts=True)
def survives_every_refusal(talk: Conversation) -> None:
    """The outer request ends, whatever becomes of the question."""
    clause = "elicitation-handles-refusal-legacy"
    for example in talk.examples("elicits")[:FEW]:
        for policy in (answer.decline(), answer.dismiss(), answer.refuse()):
            client = replace(willing(talk.revision), elicitation=policy)
            told = talk.provoke(example, client)
            if not any(asked.method == ELICIT for asked in told.questions):
                continue
            talk.judge(
                clause,
                told.reply.answered,
                expected="an end of the request that led to the question",
                actual=told.reply,
                at=told.reply,
            )
            if not told.reply.answered:
                return
    talk.unseen(clause, "nothing elicits any more")


@scenario("elicitation-handles-refusal", hurts=True)
def takes_no_for_an_answer(talk: Conversation) -> None:
    """A retry is answered, whether the user declines, dismisses or is never asked."""
    clause = "elicitation-handles-refusal"
    for example in talk.examples("elicits")[:FEW]:
        for policy in (answer.decline(), answer.dismiss(), None):
            client = replace(willing(talk.revision), elicitation=policy or answer.decline())
            first = talk.round(example, client)
            if not first.requests:
                continue
            told = talk.retry(first) if policy else talk.retry(first, responses={})
            talk.judge(
                clause,
                told.reply.answered,
                expected="an answer to the retry that brings no consent",
                actual=told.reply,
                at=told.reply,
            )
            if not told.reply.answered:
                return
    talk.unseen(clause, "nothing elicits any more")


# --- what does not fit the form

Spoilt = Callable[[Mapping[str, Any], Any], dict[str, Any] | None]
"""Makes a result that does not fit out of content that does; None where the form allows all."""


def _incomplete(good: Mapping[str, Any], schema: Any) -> dict[str, Any] | None:
    less = arguments.incomplete(schema, good)
    return None if less is None else {"action": "accept", "content": less[1]}


def _mistyped(good: Mapping[str, Any], schema: Any) -> dict[str, Any] | None:
    odd = arguments.mistyped(schema, good)
    return None if odd is None else {"action": "accept", "content": odd[1]}


def _missing(good: Mapping[str, Any], schema: Any) -> dict[str, Any] | None:
    return {"action": "accept"} if arguments.incomplete(schema, good) else None


SPOILT: dict[str, Spoilt] = {
    "without a required property": _incomplete,
    "with an object for a plain value": _mistyped,
    "without content": _missing,
}


@scenario("elicitation-validates-content", willing=True)
def validates_what_was_filled_in(talk: Conversation) -> None:
    """A form that was not filled in as it asks for does not pass for one that was."""
    clause = "elicitation-validates-content"
    for example in talk.examples("elicits")[:FEW]:
        forms = [
            params.get("requestedSchema")
            for one in example.asked
            if one.get("method") == ELICIT and isinstance(params := one.get("params"), dict)
        ]
        for how, spoil in SPOILT.items():
            wrong = spoil(arguments.form(forms[0]), forms[0]) if forms and forms[0] else None
            if wrong is None:
                continue
            policy = answer.in_turn(answer.give(wrong), answer.decline())
            told = talk.provoke(example, replace(willing(talk.revision), elicitation=policy))
            asked = [one for one in told.questions if one.method == ELICIT]
            if not asked:
                continue
            talk.judge(
                clause,
                len(asked) > 1 or not told.reply.succeeded,
                expected=f"no success with a form accepted {how}",
                actual=told.reply,
                at=told.reply,
            )
    talk.unseen(clause, "no form asks for anything in particular")
