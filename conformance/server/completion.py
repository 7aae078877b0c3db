"""server/completion: completed values, the shape of results, and refused requests."""

import json
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Entry,
    Kind,
    Record,
    Reply,
    Seen,
    ambient,
    brief,
    integral,
    list_in,
    scenario,
    shapes,
)

METHOD = "completion/complete"
NOBODY = "x-touchstone-no-such-prompt"
NOWHERE = "x-touchstone://no/such/{template}"
MOST = 20
"""Number of arguments and variables that one scenario completes."""

MOST_VALUES = 100
INTERNAL_ERROR = -32603
ODD = ("../" * 8, "a\x00b", "{{7*7}} ${7*7} %s%n", "x" * 8192)


def _complete(
    talk: Conversation, ref: Any, name: str, value: Any = "", *, required: bool = True, **more: Any
) -> Reply:
    params = {"ref": ref, "argument": {"name": name, "value": value}, **more}
    return talk.wire.request(METHOD, params, required=required)


def _values(reply: Reply) -> list[Any]:
    return list_in(reply.result, "completion", "values")


# --- declaration


@scenario("completion-capability-declared", "completion-undeclared-method-not-found")
def declares_the_completions_it_offers(talk: Conversation) -> None:
    """A server that does not declare completions returns no values and lacks the method."""
    capability, method = "completion-capability-declared", "completion-undeclared-method-not-found"
    if "completions" in talk.spoken.capabilities:
        talk.judge(capability, True, expected="the completions capability")
        talk.judge.unseen(method, "the server declares completions")
        return
    if talk.spoken.served:
        talk.judge.unseen(
            (capability, method), "without server/discover the server declares nothing"
        )
        return
    listed = talk.spoken.completable[:MOST]
    if not listed:
        talk.judge.unseen(capability, "no listed item can be completed")
    for ref, name in listed or [({"type": "ref/prompt", "name": NOBODY}, "name")]:
        reply = _complete(talk, ref, name)
        values = _values(reply)
        if listed:
            talk.judge.expect(
                reply, capability, not values, "no values, because completions is not declared"
            )
        talk.judge.expect(
            reply,
            method,
            bool(values) or not reply.answered or reply.refused(-32601),
            f"error -32601 for {METHOD}, because completions is not declared",
        )
        if values or not reply.answered:
            break


# --- results


@ambient("completion-result-shape", "completion-total-has-more-consistent")
def counts_completion_values_correctly(record: Record) -> Iterator[Seen]:
    """A completion lists strings, and total and hasMore agree with their number."""
    yield from shapes(record, "completion-result-shape")
    for entry, completion in _completions(record):
        values, total = completion.get("values"), completion.get("total")
        if isinstance(values, list):
            more = completion.get("hasMore")
            actual = f"{len(values)} values, total {brief(total)}, hasMore {brief(more)}"
            passed = (
                not isinstance(total, int | float)
                or not integral(total)
                or (total == len(values) and more is not True)
                or (total > len(values) and more is not False)
            )
            clause = "completion-total-has-more-consistent"
            yield Seen(
                clause, passed, entry.n, "a total and hasMore that agree with the values", actual
            )


def _completions(record: Record) -> Iterator[tuple[Entry, dict[str, Any]]]:
    for entry, message in record.answers(Kind.RESULT, METHOD):
        result = message.value["result"]
        completion = result.get("completion") if isinstance(result, dict) else None
        if isinstance(completion, dict):
            yield entry, completion


@scenario("completion-max-100-values", "completion-listed-argument")
def suggests_at_most_a_hundred_values(talk: Conversation) -> None:
    """An empty value of a listed argument is completed, with no more than 100 values."""
    clause = "completion-max-100-values"
    listed = talk.spoken.completable[:MOST]
    if not listed:
        talk.judge.unseen("completion-listed-argument", "no listed item has an argument")
    for ref, name in listed:
        reply = _complete(talk, ref, name)
        internal = not reply.answered or reply.refused(INTERNAL_ERROR)
        only = (
            reply.is_error and not internal and _complete(talk, ref, name, "a").result is not None
        )
        talk.judge.expect(
            reply,
            "completion-listed-argument",
            not (internal or only),
            f"a completion of {name}, which the server lists, from an empty value",
        )
        if reply.result is not None:
            count = len(_values(reply))
            expected, actual = f"at most {MOST_VALUES} values", f"{count} values"
            talk.judge(clause, count <= MOST_VALUES, expected=expected, actual=actual, at=reply)
    talk.judge.otherwise_unseen(clause, "no listed item has a completion")


# --- refused requests


@scenario("completion-unknown-prompt-error")
def refuses_to_complete_an_unknown_prompt(talk: Conversation) -> None:
    """A reference to an unknown prompt gets error -32602."""
    reply = _complete(talk, {"type": "ref/prompt", "name": NOBODY}, "name")
    talk.judge.expect_refusal(
        reply, "completion-unknown-prompt-error", (-32602,), "error -32602 for an unknown prompt"
    )


@scenario("completion-missing-arguments-error")
def refuses_to_complete_without_required_params(talk: Conversation) -> None:
    """A request without argument, ref or argument.value gets error -32602."""
    ref, name = _first(talk)
    for missing, params in {
        "argument": {"ref": ref},
        "ref": {"argument": {"name": name, "value": ""}},
        "argument.value": {"ref": ref, "argument": {"name": name}},
    }.items():
        reply = talk.wire.request(METHOD, params)
        talk.judge.expect_refusal(
            reply,
            "completion-missing-arguments-error",
            (-32602,),
            f"error -32602 without {missing}",
        )


def _first(talk: Conversation) -> tuple[dict[str, str], str]:
    """Return something that can be completed, or an invented reference."""
    return next(iter(talk.spoken.completable), ({"type": "ref/prompt", "name": NOBODY}, "name"))


# --- accepted requests


@scenario("completion-context-accepted")
def accepts_a_completion_context(talk: Conversation) -> None:
    """A completion that is served without context is also served with it."""
    clause = "completion-context-accepted"
    offered: dict[str, dict[str, str]] = {}
    for ref, name in talk.spoken.completable[:MOST]:
        key = json.dumps(ref)
        plain = _complete(talk, ref, name)
        if plain.result is None:
            continue
        context = {"arguments": offered.get(key, {})}
        reply = _complete(talk, ref, name, context=context)
        only = reply.is_error and _complete(talk, ref, name).result is not None
        expected = f"a completion of {name} with context {brief(context)}"
        talk.judge.expect(reply, clause, not only, expected)
        values = [value for value in _values(plain) if isinstance(value, str)]
        if values:
            offered.setdefault(key, {})[name] = values[0]
    talk.judge.otherwise_unseen(clause, "no listed item has a completion")


@scenario("completion-resource-ref-forms")
def completes_the_templates_it_lists(talk: Conversation) -> None:
    """A listed uriTemplate as a reference is not refused like an unknown one."""
    templates = [pair for pair in talk.spoken.completable if pair[0]["type"] == "ref/resource"]
    unknown = _complete(talk, {"type": "ref/resource", "uri": NOWHERE}, "template", required=False)
    for ref, name in templates[:MOST]:
        reply = _complete(talk, ref, name)
        text, strange = _wording(reply, ref["uri"]), _wording(unknown, NOWHERE)
        same = reply.is_error and text == strange and (ref["uri"] in _message(reply))
        talk.judge.expect(
            reply,
            "completion-resource-ref-forms",
            not same,
            f"a completion of {name} in {ref['uri']}",
        )


def _message(reply: Reply) -> str:
    return str((reply.error or {}).get("message"))


def _wording(reply: Reply, uri: str) -> tuple[Any, str]:
    return reply.code, _message(reply).replace(uri, "")


# --- values


@scenario("completion-validate-inputs", hurts=True)
def validates_completion_inputs(talk: Conversation) -> None:
    """Ill-typed requests are refused; unusual values get an answer without foreign file names."""
    ref, name = _first(talk)
    for what, reply in (
        (
            "an unknown type of reference",
            _complete(talk, {"type": "ref/tool", "name": "x"}, name, required=False),
        ),
        ("a number as value", _complete(talk, ref, name, 42, required=False)),
    ):
        if not _judge_answered(talk, what, reply):
            return
        talk.judge.expect(
            reply,
            "completion-validate-inputs",
            reply.is_error,
            f"an error for {what}",
            mild=Breach.WARN,
        )
    canary = talk.profile.canary
    outside = [f"{canary.folder}/", f"file://{canary.folder}/"] if canary else []
    for target, argument in talk.spoken.completable[:4] or [(ref, name)]:
        for value in (*ODD, *outside):
            reply = _complete(talk, target, argument, value, required=False)
            if not _judge_answered(talk, brief(value, 40), reply):
                return
            shown = canary is not None and canary.name in json.dumps(reply.result)
            talk.judge.expect(
                reply, "completion-validate-inputs", not shown, "no name of a file outside the root"
            )
    if not any(_complete(talk, *one).result is not None for one in talk.spoken.completable[:4]):
        why = "no completion was served, so a refusal shows nothing"
        talk.judge.take_back("completion-validate-inputs", why)


def _judge_answered(talk: Conversation, what: str, reply: Reply) -> bool:
    return talk.judge.expect_answer(reply, "completion-validate-inputs", f"an answer to {what}")
