"""basic/lifecycle: features that both sides may use in an open session."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Conversation,
    Kind,
    Message,
    Pending,
    Phase,
    Place,
    Record,
    Role,
    Seen,
    ambient,
    object_in,
    scenario,
)

SETTLED = frozenset({Phase.AGREED, Phase.OPERATING, Phase.CLOSING})
CLIENT_CAPABILITY = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
SERVER_CAPABILITY = {
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/tasks/status": ("tasks", ""),
}


@scenario(
    "lifecycle-negotiated-client-capabilities",
    "lifecycle-negotiated-client-capabilities-advisory",
)
def works_without_client_capabilities(talk: Conversation) -> None:
    """The server sends no requests to a client that declared no capabilities.

    The safe features are used: lists, a listed resource, a prompt without arguments, and tools
    that are annotated read-only and need no arguments.
    """
    talk.examples.exercise()
    asked = [
        (entry, message)
        for entry in talk.since(0)
        for message in entry.messages
        if message.role is Role.REQUEST and message.method in CLIENT_CAPABILITY
        if message.phase in SETTLED
    ]
    old = ("elicitation/create",) if talk.revision < "2025-06-18" else ()
    asked = [(entry, message) for entry, message in asked if message.method not in old]
    talk.judge(
        (
            "lifecycle-negotiated-client-capabilities",
            "lifecycle-negotiated-client-capabilities-advisory",
        ),
        not asked,
        expected="no request that needs an undeclared client capability",
        actual=f"a request: {asked[0][1].method}" if asked else "",
        at=asked[0][0] if asked else None,
    )


@ambient("lifecycle-respect-version", "lifecycle-respect-version-advisory")
def sends_only_messages_of_its_revision(record: Record) -> Iterator[Seen]:
    """Every request and notification of the server exists in the agreed revision."""
    for entry, message in record.messages(Role.REQUEST, Role.NOTIFICATION):
        if message.phase not in SETTLED:
            continue
        odd = _foreign_method(record.revision, message)
        for clause in ("lifecycle-respect-version", "lifecycle-respect-version-advisory"):
            yield Seen(clause, not odd, entry.n, f"messages of {record.revision} only", odd)


def _foreign_method(revision: str, message: Message) -> str:
    method = message.method or ""
    foreign = {"notifications/subscriptions/acknowledged"}
    if revision < "2025-11-25":
        foreign |= {"notifications/elicitation/complete", "notifications/tasks/status"}
        if message.role is Role.REQUEST and method.startswith("tasks/"):
            foreign.add(method)
    return f"{method}, which this revision does not have" if method in foreign else ""


@ambient(
    "lifecycle-declared-server-capabilities", "lifecycle-declared-server-capabilities-advisory"
)
def notifies_only_for_declared_capabilities(record: Record) -> Iterator[Seen]:
    """The server sends notifications of a capability only if it declared that capability."""
    declared = _declared(record)
    for entry, message in record.messages(Role.NOTIFICATION):
        needed = SERVER_CAPABILITY.get(message.method or "")
        if declared is None or needed is None or message.phase not in SETTLED:
            continue
        if _foreign_method(record.revision, message):
            continue
        feature, flag = needed
        value = declared.get(feature)
        passed = isinstance(value, dict) and (not flag or value.get(flag) is True)
        name = f"{feature}.{flag}" if flag else feature
        for clause in (
            "lifecycle-declared-server-capabilities",
            "lifecycle-declared-server-capabilities-advisory",
        ):
            actual = f"{message.method} without {name}"
            yield Seen(clause, passed, entry.n, f"{name} declared before it is used", actual)


def _declared(record: Record) -> dict[str, Any] | None:
    """Return the capabilities the server declared; None if it was never asked."""
    for _, message in record.answers(Kind.RESULT):
        if message.method == "initialize" and isinstance(message.value["result"], dict):
            return object_in(message.value["result"], "capabilities")
    return None


@scenario("lifecycle-shutdown-answers-pending", place=Place.OWN_PROCESS, lasts=True)
def answers_what_it_read_before_the_end(talk: Conversation) -> None:
    """A call that the server has read is answered although its input ends meanwhile."""
    clause = "lifecycle-shutdown-answers-pending"
    talk.need(talk.wire.open(), "an ordinary opening")
    call = Pending(talk.wire, talk.examples.best("slow-call"))
    later = talk.wire.ping(required=False)
    if not later.answered or call.answers():
        talk.judge.unseen(clause, "no later request was answered while the call lasted")
        return
    talk.wire.process.pipes.close_input()
    reply = call.reply(talk.pace.reply)
    if not reply.answered and not talk.wire.gone:
        talk.judge.unseen(clause, f"the server lives on: {reply}")
        return
    talk.judge(
        clause,
        reply.answered,
        expected="an answer to the call before the server exits",
        actual=reply,
        at=call.line,
    )
