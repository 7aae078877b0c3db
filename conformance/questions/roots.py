"""questions/roots: how a server requests and uses the roots of its client."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from mcp_touchstone.suite import (
    NOTE,
    Breach,
    Conversation,
    Example,
    Place,
    Record,
    Request,
    SafePath,
    Seen,
    Source,
    ambient,
    answer,
    id_key,
    mrtr,
    questions,
    scenario,
    shapes,
    willing,
)

ROOTS = "roots/list"
CHANGED = "notifications/roots/list_changed"

ERROR = "roots-handles-error"
UNUSABLE = "roots-handles-unavailable"


@ambient("roots-list-request-shape")
def writes_roots_requests_in_the_right_types(record: Record) -> Iterator[Seen]:
    """The params of roots/list are an object or left out."""
    yield from shapes(record, "roots-list-request-shape")
    for question in questions(record.transcript):
        if question.method == ROOTS and "params" not in question.value:
            yield Seen("roots-list-request-shape", True, question.entry.n)


def _asked(talk: Conversation, line: int) -> bool:
    return any(question.method == ROOTS for question in list(questions(talk.since(line))))


def _owes(talk: Conversation) -> bool:
    """Whether another scenario left a roots/list request unanswered."""
    ours = (e.value for e in talk.wire.transcript if e.source is Source.US)
    given = {id_key(v.get("id")) for v in ours if isinstance(v, dict) and "method" not in v}
    return any(
        q.method == ROOTS and id_key(q.key) not in given for q in list(questions(talk.since(0)))
    )


@dataclass(frozen=True, slots=True)
class _Unusable:
    """An answer to roots/list.

    Attributes:
        what: the situation after it, for people.
        deleted: a folder to delete after it.
    """

    what: str
    policy: answer.Policy
    deleted: SafePath | None = None


def _offer(talk: Conversation, policy: answer.Policy) -> bool | None:
    """Make the server send roots/list, and answer it by a policy.

    Some servers send it when a session opens, and again when the roots change. They may take as
    long as for an answer.

    Returns:
        Whether the call that caused roots/list has ended; True without such a call, and None if
        the server does not send roots/list.
    """
    example = talk.examples.here(talk.examples.best("lists-roots"))
    client = replace(willing(talk.revision), roots=policy)
    talk.wire.answers.use(client)
    line = len(talk.wire.transcript)
    if not line:
        talk.need(talk.wire.open(), "an opening that declares roots")
    elif not example.method:
        talk.wire.notify(CHANGED)
    ended = mrtr.provoke(talk.wire, example, client).reply.answered if example.method else True
    patience = talk.pace.silence if example.method else talk.pace.reply
    talk.wire.wait(lambda: _asked(talk, line), patience)
    talk.wire.quiet()
    return ended if _asked(talk, line) else None


def _judge_served(talk: Conversation, clause: str, ended: bool, after: str) -> bool:
    """Judge that the server still answers a cheap request, a list and a call."""
    served: list[Request] = [Request(method) for method in talk.spoken.list_methods[:1]]
    served += [talk.examples.here(call) for call in talk.examples("callable-tool")[:1]]
    reply = talk.wire.ping(required=False)
    for exchange in served:
        if reply.answered:
            reply = talk.run(exchange, required=False)
    return talk.judge(
        clause,
        ended and reply.answered,
        expected=f"answers to requests after {after}",
        actual=reply if ended else "no answer to the call that caused roots/list",
        at=reply,
    )


@scenario(ERROR, UNUSABLE, place=Place.OWN_SESSION, willing=True, lasts=True)
def survives_unusable_roots(talk: Conversation) -> None:
    """Requests are answered after an error for roots/list, and without a usable root.

    There is no root, then one that does not exist, then one that was deleted.
    """
    beside = talk.root.with_name("roots")
    beside.mkdir(exist_ok=True)
    gone = beside / secrets.token_hex(4)
    gone.mkdir()
    errors = [_Unusable(f"error {n} for {ROOTS}", answer.refuse(n)) for n in (-32601, -32603)]
    roots = [
        _Unusable(f"{ROOTS} gave no root at all", answer.offer()),
        _Unusable(
            f"{ROOTS} gave a root that does not exist",
            answer.offer((beside / "never").as_uri()),
        ),
        _Unusable(f"{ROOTS} gave a root that was deleted", answer.offer(gone.as_uri()), gone),
    ]
    if not talk.modern:  # an error for roots/list has no place there
        _judge_offers(talk, ERROR, errors)
        talk.server.restart()  # a server may request the roots only when a session opens
    _judge_offers(talk, UNUSABLE, roots)


def _judge_offers(talk: Conversation, clause: str, offers: Iterable[_Unusable]) -> None:
    """Judge that the server works after each of some answers to roots/list, until it fails."""
    asked = False
    for offer in offers:
        ended = _offer(talk, offer.policy)
        if ended is None:
            break
        asked = True
        if offer.deleted is not None:
            offer.deleted.rmdir()
        if not _judge_served(talk, clause, ended, offer.what):
            return
    if not asked:
        talk.judge.unseen(clause, "the server did not request the roots again")


@scenario("roots-handles-list-changes", willing=True, hurts=True)
def handles_changed_roots(talk: Conversation) -> None:
    """The server works after a change of the roots, and requests them again if it did before.

    A server that still waits for the old roots need not send another request.
    """
    clause = "roots-handles-list-changes"
    before = any(not example.method for example in talk.examples("lists-roots"))
    if before:
        talk.wire.wait(lambda: list(questions(talk.wire.transcript)), talk.pace.reply)
        talk.wire.quiet()
        before = not _owes(talk) and talk.server.hears_notifications()
    line = talk.wire.notify(CHANGED)
    talk.wire.wait(lambda: _asked(talk, line), talk.pace.reply if before else 0.0)
    talk.wire.quiet()
    reply = talk.wire.ping(required=False)
    for method in talk.spoken.list_methods[:1]:
        if reply.answered:
            reply = talk.wire.request(method, required=False)
    alive = talk.judge.expect_answer(reply, clause, f"answers to requests after {CHANGED}")
    if alive and before:
        talk.judge(
            clause,
            _asked(talk, line),
            expected=f"{ROOTS} again, because the server sent it before",
            actual="no such request",
            at=line,
            mild=Breach.NOTE,
        )


# --- files outside the roots


@scenario("roots-respects-boundaries", place=Place.OWN_FOLDER, willing=True)
def stays_within_the_client_roots(talk: Conversation) -> None:
    """A file outside the only root is not returned: not by its name, by .. or by a link."""
    clause = "roots-respects-boundaries"
    beside = talk.root.with_name("beside")
    secret = f"beside {beside.parent.name}"
    beside.mkdir()
    (beside / "secret.txt").write_text(secret)
    (talk.root / "link").symlink_to(beside)
    if any(PurePath(str(beside)).is_relative_to(folder) for folder in talk.profile.granted):
        talk.judge.unseen(clause, "the server's command line allows files beside the root")
        return
    if _offer(talk, answer.offer(talk.root.as_uri())) is None:
        talk.judge.unseen(clause, "the server did not request the roots again")
        return
    tried = 0
    for call in talk.examples("file-tool"):
        if not _works(talk, talk.examples.here(call)):
            continue
        for way, aimed in _ways(talk, call, beside / "secret.txt"):
            tried += 1
            reply = mrtr.provoke(talk.wire, aimed).reply
            talk.judge(
                clause,
                secret not in str(reply.value),
                expected="no content of a file outside the roots",
                actual=f"{call.name} returned it {way}",
                at=reply,
                mild=Breach.NOTE if talk.modern else None,
            )
    if not tried:
        talk.judge.unseen(clause, "no tool reads a file of this root")


def _works(talk: Conversation, call: Example) -> bool:
    reply = mrtr.provoke(talk.wire, call).reply
    return reply.result is not None and not reply.is_tool_error


def _ways(talk: Conversation, call: Example, secret: SafePath) -> Iterator[tuple[str, Request]]:
    """Yield three calls that try to read a file beside the root."""
    moved = talk.examples.here(call)
    for name, value in moved.arguments.items():
        if not isinstance(value, str) or not value.endswith(NOTE):
            continue
        start = value.removesuffix(NOTE)
        below = f"{secret.parent.name}/{secret.name}"
        for way, path in (
            ("by its name", secret.as_uri() if start.startswith("file:") else str(secret)),
            ("through ..", f"{start}../{below}"),
            ("through a link", f"{start}link/{secret.name}"),
        ):
            arguments: dict[str, Any] = {**moved.arguments, name: path}
            yield way, Request(moved.method, {**moved.params, "arguments": arguments})
