"""properties/generated: requests, notifications and cancellations sent without waiting."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_touchstone.suite import (
    BrokenClause,
    Conversation,
    Draw,
    Heard,
    Property,
    Reply,
    Say,
    brief,
    drawn,
    outcome,
    same_outcome,
    scenario,
)

SURVIVED, SAME = "generated-survived", "generated-same-answer"
UNKNOWN = "x-touchstone/does-not-exist"
NOTICES: tuple[dict[str, Any], ...] = (
    {"method": "notifications/x-touchstone/unknown", "params": {"n": 1}},
    {"method": "notifications/cancelled", "params": {"requestId": "never-sent"}},
    {"method": "notifications/x-touchstone/unknown"},
)
DOZEN = 12


@scenario(SURVIVED, SAME, drawn=True)
def keeps_answers_apart(talk: Conversation) -> None:
    """Requests sent without waiting get the same answers as one by one."""
    methods = [talk.wire.ping_method, UNKNOWN, *talk.spoken.declared_list_methods]
    alone = {method: talk.wire.request(method, required=False) for method in methods}
    steady = {m: r for m, r in alone.items() if _agrees(talk, m, r)}

    def build(steps: Sequence[drawn.InterleavingStep]) -> Sequence[Say]:
        return list(_lines(talk, steps, methods))

    def check(_steps: Any, heard: Heard, _twin: Heard) -> Iterator[BrokenClause]:
        for say, reply in zip(heard.said, heard.replies, strict=True):
            method = say.message["method"]
            plain = steady.get(method)
            shed = reply.is_error and _is_of_the_server(reply.code)
            if (
                say.owed
                and reply.answered
                and plain
                and not shed
                and not same_outcome(reply, plain)
            ):
                now = talk.wire.request(method, required=False)
                if now.answered and same_outcome(reply, now):
                    steady[method] = now  # The answer to a single request has changed.
                    continue
                yield BrokenClause(
                    SAME,
                    expected=f"the answer of the single request: {brief(outcome(plain), 80)}",
                    actual=f"{reply}, among {heard.quoted}",
                    at=reply,
                )

    request, digits = (
        drawn.InterleavingStep("request"),
        drawn.InterleavingStep("request", text=True),
    )
    notices = [drawn.InterleavingStep("notification", n) for n in range(len(NOTICES))]
    plain = ([request] * DOZEN, [request], [request, *notices], [digits], [digits, request, digits])
    Property(
        talk, Draw("interleavings", (len(methods),)), build, plain, check, survival=SURVIVED
    ).hold(SURVIVED, compared=SAME)


def _is_of_the_server(code: Any) -> bool:
    """Whether an error code is one that a server defines, such as for too many requests."""
    return isinstance(code, int) and (code > 0 or -32099 <= code <= -32000)


def _agrees(talk: Conversation, method: str, reply: Reply) -> bool:
    return reply.answered and same_outcome(reply, talk.wire.request(method, required=False))


def _lines(
    talk: Conversation, steps: Sequence[drawn.InterleavingStep], methods: Sequence[str]
) -> Iterator[Say]:
    """Yield the lines; a cancelled request needs no answer."""
    requests: list[tuple[int, dict[str, Any]]] = []
    made: list[dict[str, Any]] = []
    taken_back: set[int] = set()
    for step in steps:
        if step.kind == "request":
            number = next(talk.wire.ids)
            own = str(number) if step.text else number
            requests.append((len(made), talk.wire.build(methods[step.which], id=own)))
            made.append(requests[-1][1])
        elif step.kind == "cancel" and step.which < len(requests):
            place, request = requests[-1 - step.which]
            taken_back.add(place)
            params = {"requestId": request["id"]}
            made.append({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        else:
            made.append({"jsonrpc": "2.0", **NOTICES[step.which % len(NOTICES)]})
    for place, message in enumerate(made):
        owed = "id" in message and place not in taken_back
        yield Say(message, owed=owed, awaited=owed)
