"""questions/elicitation: how a server handles the user's answer and the client's capabilities."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mcp_touchstone.suite import (
    Client,
    Conversation,
    answer,
    arguments,
    mrtr,
    questions,
    scenario,
    willing,
)

ELICIT = "elicitation/create"
FEW = 2
"""Number of eliciting tools or prompts that one scenario uses."""

ODD: tuple[dict[str, Any], ...] = (
    {"action": "accept", "content": 7},
    {"action": "decline", "content": {"touchstone": 7}},
)
"""Answers with content of another type, or where there is none."""

CALLS = 4
"""Number of tools that are called where none may elicit."""


@scenario("elicitation-not-in-revision", willing=True)
def does_not_elicit_in_older_revisions(talk: Conversation) -> None:
    """A client that declares every capability of this revision gets no elicitation."""
    start = len(talk.wire.transcript)
    talk.examples.exercise()
    for example in talk.examples("callable-tool")[:CALLS]:
        talk.run(example, required=False)
    asked = [one for one in list(questions(talk.since(start))) if one.method == ELICIT]
    talk.judge(
        "elicitation-not-in-revision",
        not asked,
        expected=f"only requests of {talk.revision}",
        actual=f"a request: {ELICIT}",
        at=asked[0].entry if asked else None,
    )


@scenario("elicitation-mode-supported")
def elicits_only_in_modes_of_the_client(talk: Conversation) -> None:
    """A client with forms only gets no URL, and a client with URLs only gets no form."""
    asked_for: tuple[dict[str, Any], ...] = ({}, {"form": {}}, {"url": {}})
    for modes in asked_for:
        client = Client(capabilities={"elicitation": modes}, elicitation=answer.accept())
        talk.server.reopen(client)
        for example in talk.examples("elicits")[:FEW]:
            provoked = mrtr.provoke(talk.wire, example)
            for asked in provoked.questions:
                mode = "url" if asked.member.get("mode") == "url" else "form"
                talk.judge(
                    "elicitation-mode-supported",
                    asked.method != ELICIT or mode in (modes or {"form": {}}),
                    expected=f"only elicitations by {modes}",
                    actual=f"an elicitation by {mode}",
                    at=asked.entry,
                )
            if not provoked.reply.answered:
                break
    talk.judge.unseen(
        "elicitation-mode-supported", "the server does not elicit from a client with one mode"
    )


@scenario("elicitation-handles-refusal-legacy", willing=True, hurts=True)
def survives_every_refusal(talk: Conversation) -> None:
    """The outer request ends, whatever the client answers."""
    clause = "elicitation-handles-refusal-legacy"
    for example in talk.examples("elicits")[:FEW]:
        odd = [answer.give(one) for one in ODD]
        for policy in (answer.decline(), answer.dismiss(), answer.refuse(), *odd):
            client = replace(willing(talk.revision), elicitation=policy)
            provoked = mrtr.provoke(talk.wire, example, client)
            if not any(asked.method == ELICIT for asked in provoked.questions):
                continue
            talk.judge.expect_answer(provoked.reply, clause, "an answer to the outer request")
            if not provoked.reply.answered:
                return
    talk.judge.unseen(clause, "no call elicits again")


@scenario("elicitation-handles-refusal", hurts=True)
def accepts_a_declined_elicitation(talk: Conversation) -> None:
    """A retry is answered if the user declines, dismisses or is never asked."""
    clause = "elicitation-handles-refusal"
    for example in talk.examples("elicits")[:FEW]:
        for policy in (answer.decline(), answer.dismiss(), None):
            client = replace(willing(talk.revision), elicitation=policy or answer.decline())
            first = mrtr.begin(talk.wire, example, client)
            if not first.requests:
                continue
            provoked = (
                mrtr.retry(talk.wire, first)
                if policy
                else mrtr.retry(talk.wire, first, responses={})
            )
            talk.judge.expect_answer(
                provoked.reply, clause, "an answer to the retry without consent"
            )
            if not provoked.reply.answered:
                return
    talk.judge.unseen(clause, "no call elicits again")


# --- content that does not fit the form

Spoilt = Callable[[Mapping[str, Any], Any], dict[str, Any] | None]
"""Turns fitting content into a result that does not fit; None if the form allows everything."""


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
def validates_form_content(talk: Conversation) -> None:
    """Content that does not fit the form does not lead to success."""
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
            provoked = mrtr.provoke(
                talk.wire, example, replace(willing(talk.revision), elicitation=policy)
            )
            asked = [one for one in provoked.questions if one.method == ELICIT]
            if not asked:
                continue
            talk.judge.expect(
                provoked.reply,
                clause,
                len(asked) > 1 or not provoked.reply.succeeded,
                f"an error for a form accepted {how}",
            )
    talk.judge.unseen(clause, "no form has a field with a constraint")
