"""questions/sampling: how a server handles good and bad answers of the client's model."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Client,
    Conversation,
    Place,
    Provoked,
    Question,
    answer,
    mrtr,
    object_in,
    questions,
    scenario,
    willing,
)

SAMPLES = "sampling/createMessage"
MARK = "touchstone-never-checked"
"""A text in invalid answers; if a result repeats it, the answer was accepted."""

LONG = 8_192
"""Length of a text that fits in common line buffers; the specification sets no line length."""

LIMIT = 50
"""Number of rounds of tool use after which a server counts as unlimited."""


def _sampled(provoked: Provoked) -> list[Question]:
    return [question for question in provoked.questions if question.method == SAMPLES]


@scenario("sampling-tools-require-capability", "sampling-include-context", place=Place.OWN_SESSION)
def samples_without_undeclared_tools_and_context(talk: Conversation) -> None:
    """A client that declares plain sampling gets no requests with tools or context."""
    clauses = ("sampling-tools-require-capability", "sampling-include-context")
    plain = Client(capabilities={"sampling": {}})
    talk.wire.answers.use(plain)
    talk.need(talk.wire.open(), "an opening that declares sampling")
    asked = _sampled(mrtr.provoke(talk.wire, talk.examples.best("samples"), plain))
    if not asked:
        talk.judge.unseen(clauses, "the server does not sample with a client of plain sampling")
        return
    tools = [q for q in asked if q.member.get("tools") or "toolChoice" in q.member]
    talk.judge(
        clauses[0],
        not tools,
        expected="no tools without sampling.tools",
        actual="a request with tools",
        at=tools[0].entry if tools else None,
    )
    foreign = [q for q in asked if q.member.get("includeContext", "none") != "none"]
    talk.judge(
        clauses[1],
        not foreign,
        expected="no includeContext without sampling.context",
        actual=f"includeContext {foreign[0].member['includeContext']}" if foreign else "",
        at=foreign[0].entry if foreign else None,
    )


@scenario("sampling-handles-refusal", willing=True)
def survives_refused_sampling(talk: Conversation) -> None:
    """The outer request ends after an error for sampling."""
    for code in (-1, -32602):
        client = replace(willing(talk.revision), sampling=answer.refuse(code))
        provoked = mrtr.provoke(talk.wire, talk.examples.best("samples"), client)
        if not _sampled(provoked):
            talk.judge.unseen("sampling-handles-refusal", "the server did not sample again")
            return
        if not _judge_end(talk, "sampling-handles-refusal", provoked, f"error {code}"):
            return


@scenario("sampling-validates-content", willing=True, hurts=True)
def validates_sampling_results(talk: Conversation) -> None:
    """An invalid answer is not passed on and does no harm."""
    clause = "sampling-validates-content"
    for what, result in _answers():
        client = replace(willing(talk.revision), sampling=answer.give(result), tasks=None)
        provoked = mrtr.provoke(talk.wire, talk.examples.best("samples"), client)
        if not _sampled(provoked):
            talk.judge.unseen(clause, "the server did not sample again")
            return
        if not _judge_end(talk, clause, provoked, what):
            return
        outcome = provoked.reply.result or {}
        final = outcome.get("resultType", "complete") == "complete"
        taken = final and outcome.get("isError") is not True and MARK in json.dumps(outcome)
        talk.judge(
            clause,
            not taken,
            expected=f"an error after an answer with {what}",
            actual="a result that contains its text",
            at=provoked.reply,
            mild=Breach.WARN,
        )


def _answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield invalid sampling results that contain the mark, and then a long one.

    A server that continues without the answer has checked it.
    """
    text = {"type": "text", "text": MARK}
    good = {"role": "assistant", "content": text, "model": "touchstone-model"}
    yield "the role system", {**good, "role": "system"}
    yield "no content", {"role": "assistant", "model": "touchstone-model"}
    yield "an unknown type of block", {**good, "content": {**text, "type": "touchstone"}}
    long = {"type": "text", "text": "long " * (LONG // 5)}
    yield "a long text", {**good, "content": long}


def _judge_end(talk: Conversation, clause: str, provoked: Provoked, after: str) -> bool:
    """Judge that the outer request has ended, and that the server still runs."""
    alive = provoked.reply if provoked.reply.answered else talk.wire.ping(required=False)
    return talk.judge(
        clause,
        provoked.reply.answered and not talk.wire.gone,
        expected=f"an answer to the outer request after {after}",
        actual=provoked.reply if alive.answered else alive,
        at=provoked.reply,
    )


# --- tool use


ALONE = "sampling-tool-results-alone"
BALANCE = "sampling-tool-use-balance"


@scenario(ALONE, BALANCE, willing=True)
def returns_results_of_tool_uses(talk: Conversation) -> None:
    """Two tool uses at once get two results in one message of their own."""
    once = answer.in_turn(answer.use_tools(2), answer.say())
    client = replace(willing(talk.revision), sampling=once, tasks=None)
    provoked = mrtr.provoke(talk.wire, talk.examples.best("samples-tools"), client)
    sampled = [_blocks(question) for question in _sampled(provoked)[1:]]
    used = [m[n : n + 2] for m in sampled for n, (_, kinds) in enumerate(m) if "tool_use" in kinds]
    if not used:
        talk.judge.unseen(
            (ALONE, BALANCE), "the server does not continue after tool uses of the model"
        )
        return
    talk.judge(
        BALANCE,
        all("tool_result" in pair[-1][1] and pair[-1][0] == "user" for pair in used),
        expected="a user message of tool results after a message of tool uses",
        actual="another message",
        at=provoked.reply,
    )
    results = [kinds for m in sampled for _, kinds in m if "tool_result" in kinds]
    talk.judge(
        ALONE,
        all(kinds == {"tool_result"} for kinds in results),
        expected="messages with only tool results",
        actual="a message with tool results and other blocks",
        at=provoked.reply,
    )


def _blocks(question: Question) -> list[tuple[Any, set[str]]]:
    """Return the role of each message and the types of its blocks."""
    found = []
    for message in question.member.get("messages") or []:
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else [content]
        kinds = {str(block.get("type")) for block in blocks if isinstance(block, dict)}
        found.append((message.get("role") if isinstance(message, dict) else None, kinds))
    return found


@scenario("sampling-tool-loop-limit", willing=True)
def limits_tool_loops(talk: Conversation) -> None:
    """The server stops a model that requests tools again and again."""
    clause = "sampling-tool-loop-limit"
    use = answer.use_tools()
    policy = answer.in_turn(*[use] * LIMIT, answer.say())
    client = replace(willing(talk.revision), sampling=policy, tasks=None)
    example = talk.examples.best("samples-tools")
    if talk.modern:
        line = len(talk.wire.transcript)
        reply = mrtr.rounds(talk.wire, example, client, LIMIT + 2)[-1].reply
        asked = [q for q in list(questions(talk.since(line))) if q.method == SAMPLES]
    else:
        provoked = mrtr.provoke(talk.wire, example, client)
        reply, asked = provoked.reply, _sampled(provoked)
    if not any(object_in(q.value, "params").get("tools") for q in asked):
        talk.judge.unseen(clause, "the server did not offer tools again")
    elif not reply.answered and len(asked) <= LIMIT:
        talk.judge.unseen(clause, "the rounds took too long")
    else:
        talk.judge(
            clause,
            len(asked) <= LIMIT,
            expected=f"an end of the loop before round {LIMIT + 1}",
            actual=f"another request after {LIMIT} rounds of tool use",
            at=asked[-1].entry,
        )
