"""gateways/members: what arrives of lists, results and errors."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.gateway.suite import (
    LISTS,
    Breach,
    ExchangeTalk,
    Seen,
    ambient,
    brief,
    catalogue,
    exchange,
    hops,
    list_in,
    object_in,
    value_in,
)

NEEDS: Final = {"prompts": "prompts", "resources": "resources", "completion": "completions"}
"""First part of a method -> the capability of the server that it needs; others need tools."""

NAMED: Final = ("prompt", "no-resource", "complete", "refuse")
"""Steps whose requests are the last ones of their method with their name or URI."""

TOOLS: Final = ("everything", "fail", "nothing")


@exchange("contents")
def reads_everything(talk: ExchangeTalk) -> None:
    """Read each list and one of each thing, and provoke errors."""
    for name, (method, member) in LISTS.items():
        talk.pages(name, method, member)
    own = talk.expected.prefix
    text = "test://upstream/text%20file.txt"
    reference = {"type": "ref/prompt", "name": f"{own}review"}
    given = {"arguments": {"text": "ü"}}
    about = {"ref": reference, "argument": {"name": "style", "value": "fo"}, "context": given}
    talk.ask("prompt", "prompts/get", {"name": f"{own}review", **given})
    talk.ask("read", "resources/read", {"uri": talk.expected.uri(text)})
    talk.ask("read-bytes", "resources/read", {"uri": talk.expected.uri("test://Upstream/Binary/")})
    talk.ask("complete", "completion/complete", about)
    for tool in TOOLS:
        talk.call(tool, tool)
    talk.ask("refuse", "tools/call", {"name": f"{own}refuse"})
    talk.call("no-tool", "no-such-tool")
    talk.ask("no-resource", "resources/read", {"uri": talk.expected.uri("test://upstream/none")})
    talk.ask("no-cursor", "tools/list", {"cursor": "none"})
    if not talk.modern:
        talk.ask("ping", "ping", {})
    talk.ask("no-method", "com.example.upstream/unknown", {})


MEMBERS: Final = {
    clause.id: [
        (step, path.split("."))
        for one in clause.compares
        for step in one.partition(": ")[0].split()
        for path in [one.partition(": ")[2]]
    ]
    for clause in catalogue()
    if clause.compares
}
"""Clause -> the steps, and the paths of the members in their answers."""

HARMLESS: Final = (("result", "isError"), ("result", "resultType"))
"""Members that may be left out, or written out, if they have their usual value."""


def _declared(side: hops.RecordedExchange) -> dict[str, Any]:
    return object_in(side.steps["opening"].result, "capabilities")


def _need(pair: hops.Pair, step: str) -> str:
    """Return the capability that a step needs; empty for tools, and for none."""
    return NEEDS.get(str(value_in(pair.sent(step), "method")).partition("/")[0], "")


def _is_dropped(pair: hops.Pair, step: str) -> bool:
    """Whether the gateway does not offer what a step needs; another rule says so."""
    need = _need(pair, step)
    return bool(need) and need not in _declared(pair.through)


def _is_unkept(pair: hops.Pair, step: str) -> bool:
    """Whether the gateway declares what a step needs, and does not know its method."""
    works = "result" in (pair.direct.steps[step].value or {})
    return (
        works
        and _need(pair, step) in _declared(pair.through)
        and value_in(pair.through.steps[step].value, "error", "code") == hops.NO_METHOD
    )


def _kind(value: Any) -> str:
    if isinstance(value.get("result"), dict):
        return "a result"
    return "an error" if isinstance(value.get("error"), dict) else "neither a result nor an error"


def _compared(pair: hops.Pair) -> Iterator[str]:
    """Yield the steps whose answers are of one kind, so that their members can be compared."""
    for name in pair.comparable():
        if not _is_dropped(pair, name):
            new = pair.through.steps[name].value
            if new is not None and _kind(new) == _kind(pair.direct.steps[name].value):
                yield name


@ambient(*MEMBERS, of="contents")
def passes_each_member_on(pair: hops.Pair) -> Iterator[Seen]:
    """What the server says in a list, a result or an error arrives unchanged."""
    for name in _compared(pair):
        places = [(c, path) for c, of in MEMBERS.items() for step, path in of if step == name]
        found: dict[str, list[Any]] = {}
        for one in pair.changes(name):
            named = [place for place in places if hops.fits(one.path, place[1])]
            if named and not _is_usual(one):
                found.setdefault(max(named, key=_exactness)[0], []).append(one)
        old = pair.direct.steps[name].value
        for clause in dict.fromkeys(clause for clause, _ in places):
            changed = found.get(clause, [])
            if changed or any(hops.present(old, path) for c, path in places if c == clause):
                actual = hops.in_words(changed)
                seen = pair.judge(clause, name, not changed, "as the server says it", actual)
                yield _weighed(pair, clause, name, seen)


def _exactness(place: tuple[str, list[str]]) -> tuple[int, int]:
    """Return how exact a path is: the clause with the most exact one counts what differs there."""
    return len(place[1]), -place[1].count("*")


def _is_usual(one: Any) -> bool:
    """Whether a member was left out, or written out, with its usual value."""
    alone = [value for value in (one.old, one.new) if value in (False, "complete")]
    one_sided = hops.fate(one) is not hops.Fate.CHANGED
    return one.path in HARMLESS and one_sided and bool(alone)


def _weighed(pair: hops.Pair, clause: str, name: str, seen: Seen) -> Seen:
    """Return an observation that is mild where no MUST of the specification is broken."""
    if clause != "gateway-result-structured" or "tools" not in pair.through.steps:
        return seen
    tools = list_in(pair.through.steps["tools"].result, "tools")
    named = [pair.expected.prefix + name, name]
    binds = any(value_in(one, "outputSchema") and value_in(one, "name") in named for one in tools)
    return seen if binds else replace(seen, mild=Breach.WARN)


@ambient("gateway-answers-come", "gateway-answers-kind", of="contents")
def answers_as_the_server_does(pair: hops.Pair) -> Iterator[Seen]:
    """Each request is answered, with a result where the server gives one."""
    for name in pair.comparable():
        before, after = pair.direct.steps[name], pair.through.steps[name]
        came = after.value is not None
        yield pair.judge("gateway-answers-come", name, came, "an answer", after.why)
        if came and not (_is_dropped(pair, name) or _is_unkept(pair, name)):
            passed = _kind(after.value) == _kind(before.value)
            actual = f"{_kind(after.value)} in place of {_kind(before.value)}: {brief(after.value)}"
            yield pair.judge("gateway-answers-kind", name, passed, _kind(before.value), actual)


@ambient("gateway-request-params", of="contents")
def passes_params_on(pair: hops.Pair) -> Iterator[Seen]:
    """The params of a prompt, a resource and a completion reach the server unchanged."""
    yield from pair.judge_request("gateway-request-params", *NAMED)


@ambient("gateway-features-passed", "gateway-opening-capabilities", of="contents")
def offers_what_the_server_offers(pair: hops.Pair) -> Iterator[Seen]:
    """Each capability of the server is declared, and what is declared is passed on."""
    before, after = _declared(pair.direct), _declared(pair.through)
    must = {name: one for name, one in before.items() if name not in pair.expected.drops}
    old, new = {"capabilities": must}, {"capabilities": after}
    yield pair.judge_nothing_lost("gateway-features-passed", "opening", old, new)
    for step in pair.comparable():
        if (need := _need(pair, step)) in after:
            works, answer = not _is_unkept(pair, step), pair.through.steps[step].value
            actual = f"{need} is declared, and the answer is {brief(answer)}"
            yield pair.judge("gateway-opening-capabilities", step, works, "it works", actual)
