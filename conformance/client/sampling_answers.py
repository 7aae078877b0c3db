"""client/sampling: what becomes of the answers of the client's model, good and bad."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Client,
    Conversation,
    Provoked,
    Question,
    answer,
    object_in,
    scenario,
    willing,
)

SAMPLES = "sampling/createMessage"
MARK = "touchstone-never-checked"
"""Stands in answers that are none: where it comes back in a result, it was taken for one."""

HUGE = 1_000_000
"""Characters of a text that is longer than anybody asked for."""

LIMIT = 50
"""Rounds of tool use after which a server is said to have no limit."""


def _sampled(told: Provoked) -> list[Question]:
    return [question for question in told.questions if question.method == SAMPLES]


@scenario("sampling-tools-require-capability", "sampling-include-context", fresh=True)
def asks_a_plain_model_for_plain_text(talk: Conversation) -> None:
    """A client that declares sampling and no more is asked for no tools and no context."""
    clauses = ("sampling-tools-require-capability", "sampling-include-context")
    plain = Client(capabilities={"sampling": {}})
    talk.wire.use(plain)
    talk.need(talk.wire.open(), "an opening that declares sampling")
    asked = _sampled(talk.provoke(talk.example("samples"), plain))
    if not asked:
        for clause in clauses:
            talk.unseen(clause, "it does not sample where only sampling is declared")
        return
    tools = [q for q in asked if q.member.get("tools") or "toolChoice" in q.member]
    talk.judge(
        clauses[0],
        not tools,
        expected="no tools, as sampling.tools is missing",
        actual="a request with tools",
        at=tools[0].entry if tools else None,
    )
    foreign = [q for q in asked if q.member.get("includeContext", "none") != "none"]
    talk.judge(
        clauses[1],
        not foreign,
        expected="no includeContext, as sampling.context is missing",
        actual=f"includeContext {foreign[0].member['includeContext']}" if foreign else "",
        at=foreign[0].entry if foreign else None,
    )


@scenario("sampling-handles-refusal", willing=True)
def copes_with_a_model_that_refuses(talk: Conversation) -> None:
    """The outer request ends, whatever error the client gives."""
    for code in (-1, -32602):
        client = replace(willing(talk.revision), sampling=answer.refuse(code))
        told = talk.provoke(talk.example("samples"), client)
        if not _sampled(told):
            talk.unseen("sampling-handles-refusal", "it did not sample again")
            return
        if not _judge_end(talk, "sampling-handles-refusal", told, f"error {code}"):
            return


@scenario("sampling-validates-content", willing=True, hurts=True)
def checks_what_a_model_says(talk: Conversation) -> None:
    """An answer that is none is not passed on as one, and hurts nobody."""
    clause = "sampling-validates-content"
    for what, result in _answers():
        client = replace(willing(talk.revision), sampling=answer.give(result), tasks=None)
        told = talk.provoke(talk.example("samples"), client)
        if not _sampled(told):
            talk.unseen(clause, "it did not sample again")
            return
        if not _judge_end(talk, clause, told, what):
            return
        outcome = told.reply.result or {}
        final = outcome.get("resultType", "complete") == "complete"
        taken = final and outcome.get("isError") is not True and MARK in json.dumps(outcome)
        talk.judge(
            clause,
            not taken,
            expected=f"an answer with {what} to be turned down",
            actual="a result that goes on with its text",
            at=told.reply,
            mild=Breach.WARN,
        )


def _answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give results of sampling that are none, the text of the first with our mark; then a long one.

    A server that goes on without the answer has checked it, whatever it says.
    """
    text = {"type": "text", "text": MARK}
    good = {"role": "assistant", "content": text, "model": "touchstone-model"}
    yield "the role system", {**good, "role": "system"}
    yield "no content", {"role": "assistant", "model": "touchstone-model"}
    yield "an unknown type of block", {**good, "content": {**text, "type": "touchstone"}}
    long = {"type": "text", "text": "long " * (HUGE // 5)}
    yield "a huge text", {**good, "content": long}


def _judge_end(talk: Conversation, clause: str, told: Provoked, after: str) -> bool:
    """Judge that the request that led to a question has ended, and the server has not."""
    alive = told.reply if told.reply.answered else talk.probe(required=False)
    return talk.judge(
        clause,
        told.reply.answered and not talk.wire.gone,
        expected=f"an end of the request that led to the question, after {after}",
        actual=told.reply if alive.answered else alive,
        at=told.reply,
    )


# --- a loop of tools


@scenario("sampling-tool-results-alone", "sampling-tool-use-balance", willing=True)
def carries_out_what_a_model_asks_for(talk: Conversation) -> None:
    """Two tools used at once get two results, in one message of their own."""
    clauses = ("sampling-tool-results-alone", "sampling-tool-use-balance")
    once = answer.in_turn(answer.use_tools(2), answer.say())
    client = replace(willing(talk.revision), sampling=once, tasks=None)
    told = talk.provoke(talk.example("samples-tools"), client)
    messages = [_blocks(q) for q in _sampled(told)[1:]]
    followed = any("tool_use" in kinds for message in messages for kinds in message)
    for clause in clauses:
        if not followed:
            talk.unseen(clause, "it does not go on with a model that uses tools")
        else:  # the rule on all sampling requests has looked at them
            talk.judge(clause, True, expected="a message of results behind one of tool uses")


def _blocks(question: Question) -> list[set[str]]:
    """Give the types of the blocks of each message."""
    found = []
    for message in question.member.get("messages") or []:
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else [content]
        found.append({str(block.get("type")) for block in blocks if isinstance(block, dict)})
    return found


@scenario("sampling-tool-loop-limit", willing=True)
def ends_a_loop_of_tools(talk: Conversation) -> None:
    """A model that asks for a tool again and again is stopped, or its server is not."""
    clause = "sampling-tool-loop-limit"
    use = answer.use_tools()
    policy = answer.in_turn(*[use] * LIMIT, answer.say())
    client = replace(willing(talk.revision), sampling=policy, tasks=None)
    example = talk.example("samples-tools")
    if talk.modern:
        line = len(talk.wire.transcript)
        reply = talk.rounds(example, client, LIMIT + 2)[-1].reply
        asked = [q for q in talk.questions(line) if q.method == SAMPLES]
    else:
        told = talk.provoke(example, client)
        reply, asked = told.reply, _sampled(told)
    if not any(object_in(q.value, "params").get("tools") for q in asked):
        talk.unseen(clause, "it did not offer tools again")
    elif not reply.answered and len(asked) <= LIMIT:
        talk.unseen(clause, f"it took too long: {len(asked)} rounds")
    else:
        talk.judge(
            clause,
            len(asked) <= LIMIT,
            expected=f"an end before round {LIMIT + 1}",
            actual=f"still asking after {LIMIT} rounds of tool use",
            at=asked[-1].entry,
        )
