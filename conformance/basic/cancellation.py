"""basic/cancellation: cancellations by the server."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mcp_touchstone.suite import (
    ASKED,
    Breach,
    Client,
    ClientTasks,
    Conversation,
    Entry,
    Example,
    Kind,
    Message,
    Pending,
    Record,
    Role,
    Seen,
    Source,
    ambient,
    answer,
    brief,
    id_key,
    is_modern,
    object_in,
    scenario,
    shapes,
    strays,
)

CANCELLED = "notifications/cancelled"
LISTEN = "subscriptions/listen"
GRACE = 1.0
"""Seconds in which a message may cross with a cancellation."""

REASON = "no longer needed"


# --- cancellations by the server


@dataclass(slots=True)
class Own:
    """One request of the server.

    Attributes:
        augmented: whether it asks for a task.
        task: the id of the task we answered with; None if we did not.
        answered: the time of another answer of ours; None before it.
        line: the line of that answer.
        read: the time at which the server had provably read it; None before it.
    """

    augmented: bool
    task: Any = None
    answered: float | None = None
    line: int = 0
    read: float | None = None


@dataclass(slots=True)
class Listening:
    """One subscriptions/listen.

    Attributes:
        ended: the line of its answer, or of our cancellation; None before it.
        by_us: whether we cancelled it.
        known: whether the server has answered a request that we sent after the end.
    """

    ended: int | None = None
    by_us: bool = False
    known: bool = False


class Watch:
    """Follows the requests of one record that can be cancelled, and judges the cancellations."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._own: dict[Any, Own] = {}
        self._streams: dict[Any, Listening] = {}

    def walk(self) -> Iterator[Seen]:
        """Yield the findings of the whole record."""
        for entry in self._record.transcript:
            if entry.source is Source.US:
                for said in entry.value if isinstance(entry.value, list) else [entry.value]:
                    self._said(entry, said)
            for message in entry.messages:
                self._answered(entry, message)
                if message.role is Role.REQUEST:
                    yield from self._asked(entry, message)
                elif message.role is Role.NOTIFICATION and message.method == CANCELLED:
                    yield from self._took_back(entry, object_in(message.value, "params"))

    def _said(self, entry: Entry, value: Any) -> None:
        if not isinstance(value, dict):
            return
        key = id_key(value.get("id"))
        if value.get("method") == LISTEN:
            self._streams[key] = Listening()
        elif value.get("method") == CANCELLED:
            self._end_stream(object_in(value, "params").get("requestId"), entry, by_us=True)
        own = self._own.get(key) if "method" not in value else None
        if own is None:
            return
        task = object_in(value, "result", "task").get("taskId")
        if own.augmented and task is not None:
            own.task = task
        else:
            own.answered, own.line = entry.at, entry.n

    def _end_stream(self, own: Any, entry: Entry, *, by_us: bool) -> None:
        stream = self._streams.get(id_key(own))
        if stream is not None and stream.ended is None:
            stream.ended, stream.by_us = entry.n, by_us

    def _answered(self, entry: Entry, message: Message) -> None:
        """Record the end of a stream, or the proof that the server knows an earlier end."""
        if message.answers is None:
            return
        for own in self._own.values():
            if own.answered is not None and own.read is None and message.answers > own.line:
                own.read = entry.at
        for stream in self._streams.values():
            stream.known |= stream.ended is not None and message.answers > stream.ended
        if message.method == LISTEN:
            self._end_stream(message.value.get("id"), entry, by_us=False)

    def _asked(self, entry: Entry, message: Message) -> Iterator[Seen]:
        params = object_in(message.value, "params")
        if message.method == "tasks/cancel" and params.get("taskId") in self._tasks():
            yield Seen("cancellation-tasks-use-cancel", True, entry.n)
        self._own[id_key(message.value.get("id"))] = Own(isinstance(params.get("task"), dict))

    def _tasks(self) -> list[Any]:
        return [own.task for own in self._own.values() if own.task is not None]

    def _took_back(self, entry: Entry, params: dict[str, Any]) -> Iterator[Seen]:
        key = id_key(params.get("requestId"))
        named = f"{CANCELLED} for {brief(params.get('requestId'), 60)}"
        if key is None:
            # In 2025-11-25 the schema makes it optional and the text requires it.
            passed = "requestId" in params or self._record.revision != "2025-11-25"
            expected, actual = "the id of a request", f"{CANCELLED} without requestId"
            yield Seen("cancellation-notification-shape", passed, entry.n, expected, actual)
        elif is_modern(self._record.revision):
            clause, expected = "cancellation-server-only-for-listen", f"the id of a {LISTEN}"
            yield Seen(clause, key in self._streams, entry.n, expected, named)
            stream = self._streams.get(key)
            if stream is not None and stream.known:
                mild, expected = Breach.WARN if stream.by_us else None, "the id of an open stream"
                actual = f"{named}, which had ended before"
                yield Seen(clause, False, entry.n, expected, actual, mild=mild)
        else:
            yield from self._took_own_back(entry, self._own.get(key), named)

    def _took_own_back(self, entry: Entry, own: Own | None, named: str) -> Iterator[Seen]:
        if own is not None and own.task is not None:
            clause, expected = "cancellation-tasks-use-cancel", "tasks/cancel for a task"
            yield Seen(clause, False, entry.n, expected, named)
            return
        clause, expected = "cancellation-server-own-requests", "an open request of the server"
        if own is None:
            if entry.origin is None:  # over HTTP a request is lost while no stream is open
                yield Seen(clause, False, entry.n, expected, f"{named}, which it never sent")
        elif own.answered is None:
            yield Seen(clause, True, entry.n)
        elif entry.at - own.answered > GRACE:
            actual = f"{named}, which was answered {entry.at - own.answered:.1f} s before"
            known = own.read is not None and entry.at - own.read > GRACE
            mild = None if known else Breach.WARN
            yield Seen(clause, False, entry.n, expected, actual, mild=mild)


@ambient(
    "cancellation-server-own-requests",
    "cancellation-notification-shape",
    "cancellation-server-only-for-listen",
    "cancellation-tasks-use-cancel",
)
def cancels_only_its_own_requests(record: Record) -> Iterator[Seen]:
    """The server cancels only its own requests and the streams that it ends."""
    yield from Watch(record).walk()
    yield Seen("cancellation-server-only-for-listen", True)


@ambient("cancellation-notification-shape")
def writes_cancellations_in_the_right_types(record: Record) -> Iterator[Seen]:
    """A cancellation names a request by its id; a reason is a string."""
    yield from shapes(record, "cancellation-notification-shape")


# --- requests of the server after the call was cancelled


@scenario("cancellation-ignore-late-response", willing=True)
def ignores_late_answers(talk: Conversation) -> None:
    """A late answer to a cancelled request of the server has no effect."""
    clause = "cancellation-ignore-late-response"
    client = replace(talk.wire.answers.client, tasks=None)
    talk.wire.answers.use(client)
    given_up = _give_up(talk, clause, "elicits", "samples", "lists-roots")
    if given_up is None:
        return
    asked, cancelled = given_up
    talk.wire.wait(lambda: _taken_back(talk, cancelled, asked()), talk.pace.silence)
    taken = _taken_back(talk, cancelled, asked())
    for message in asked():
        if message is not taken:
            talk.wire.say(_answer(client, message))  # Do not leave the server waiting.
    if taken is None:
        talk.judge.unseen(
            clause, "the server still waits for the answer after the call was cancelled"
        )
        return
    # Sent as a malformed line, so that this clause judges an error in reply to it.
    line = talk.wire.say(_answer(client, taken), malformed=True)
    talk.wire.quiet()
    errors = [pair for pair in strays(talk.wire, line) if pair[1].kind is Kind.ERROR]
    talk.judge(
        clause,
        not errors,
        expected="no reply to a late answer",
        actual=f"error {brief(errors[0][1].code)}" if errors else "",
        at=errors[0][0] if errors else None,
    )
    alive = talk.wire.ping(required=False)
    talk.judge.expect_answer(alive, clause, "an answer to an ordinary request after a late answer")


@scenario("cancellation-tasks-use-cancel", willing=True)
def cancels_tasks_with_tasks_cancel(talk: Conversation) -> None:
    """A server request that the client runs as a task is cancelled with tasks/cancel."""
    clause = "cancellation-tasks-use-cancel"
    talk.wire.answers.use(replace(talk.wire.answers.client, tasks=ClientTasks(polls=None)))
    given_up = _give_up(talk, clause, "elicits", "samples", augmented=True)
    if given_up is None:
        return
    asked, cancelled = given_up
    own = asked()[-1].value.get("id")
    named = _takes_back(talk, cancelled, lambda m: _names(m, own) or m.method == "tasks/cancel")
    if named is None:
        talk.judge.unseen(
            clause, "the server still waits for the task after the call was cancelled"
        )
        return
    talk.judge(
        clause,
        named.messages[0].method == "tasks/cancel",
        expected="tasks/cancel for the task",
        actual=f"{CANCELLED} for {brief(own, 60)}",
        at=named,
    )


def _give_up(
    talk: Conversation, clause: str, *words: str, augmented: bool = False
) -> tuple[Callable[[], list[Message]], int] | None:
    """Cancel a call that waits for the client; return its requests so far and the cancelling line.

    The client does not answer the requests, or creates a task for each if ``augmented``. Some may
    not belong to the call: a server can be slow to request the roots after the handshake.
    """
    calls: list[Example] = [call for word in words for call in talk.examples(word) if call.method]
    if not calls:
        talk.judge.unseen(clause, "the server sends its requests without a call that causes them")
        return None
    methods = {one["method"] for one in calls[0].asked}
    if not augmented:
        mute: dict[str, Any] = {ASKED[method]: answer.silence() for method in methods}
        talk.wire.answers.use(replace(talk.wire.answers.client, **mute))
    pending = Pending(talk.wire, calls[0])

    def asked() -> list[Message]:
        messages = [m for entry in talk.since(pending.line) for m in entry.messages]
        return [
            m
            for m in messages
            if m.role is Role.REQUEST
            and m.method in methods
            and (not augmented or "task" in object_in(m.value, "params"))
        ]

    talk.wire.wait(lambda: asked() or pending.answers(), talk.pace.reply)
    if not asked():
        why = "the server sent no request" + (" for a task" if augmented else "")
        talk.judge.unseen(clause, why)
        return None
    talk.wire.quiet()
    cancelled = pending.cancel(REASON)
    talk.wire.ping(required=False)  # A server that answers it has read the cancellation.
    return asked, cancelled


def _taken_back(talk: Conversation, line: int, asked: list[Message]) -> Message | None:
    """Return the request that the server cancelled after a line; None if it cancelled none."""
    later = [message for entry in talk.since(line) for message in entry.messages]
    return next((a for a in asked for m in later if _names(m, a.value.get("id"))), None)


def _answer(client: Client, asked: Message) -> dict[str, Any]:
    """Return the ordinary answer of a client to a request."""
    said = client.answer(asked.method or "", object_in(asked.value, "params"))
    return {"jsonrpc": "2.0", "id": asked.value.get("id"), **(said.body or {"result": {}})}


def _takes_back(talk: Conversation, line: int, fits: Callable[[Message], bool]) -> Entry | None:
    """Wait for a matching message after a line."""

    def came() -> Entry | None:
        return next((e for e in talk.since(line) if any(fits(m) for m in e.messages)), None)

    found: Entry | None = talk.wire.wait(came, talk.pace.silence)
    return found


def _names(message: Message, own: Any) -> bool:
    named = object_in(message.value, "params").get("requestId")
    return message.method == CANCELLED and id_key(named) == id_key(own)
