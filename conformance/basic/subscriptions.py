"""basic/patterns/subscriptions: opening, content and end of subscriptions/listen."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp_touchstone.suite import (
    META,
    Breach,
    Conversation,
    Entry,
    Happened,
    Kind,
    Message,
    Pending,
    Phase,
    Place,
    Record,
    Reply,
    Role,
    Seen,
    Source,
    Subscription,
    Window,
    ambient,
    brief,
    id_key,
    normalised,
    object_in,
    scenario,
    shapes,
    value_in,
)

ID = META + "subscriptionId"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
UPDATED = "notifications/resources/updated"
LISTS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
"""Notification -> member of the filter that asks for it."""

FLAGS = {
    "toolsListChanged": ("tools", "listChanged"),
    "promptsListChanged": ("prompts", "listChanged"),
    "resourcesListChanged": ("resources", "listChanged"),
    "resourceSubscriptions": ("resources", "subscribe"),
}
"""Member of the filter -> the capability and the flag that promise it."""

BESIDE = "touchstone-beside"
OF_REQUESTS = frozenset({"notifications/progress", "notifications/message"})
LOGGED = "notifications/message"
GRACE = 0.5
"""Seconds in which a message may follow once the server has read the cancellation."""

STRAIGHT = 0.3
"""Seconds after its acknowledgment in which a stream has no reason to end by itself."""


# --- traffic


@dataclass(slots=True)
class Stream:
    """One subscriptions/listen in the record.

    Attributes:
        line: the line that opened it.
        wanted: its filter.
        opened: the time of its acknowledgment; None before it.
        carries: whether its acknowledgment names something that may come.
        cancelled: the line on which we cancelled it; None before it.
        read: the time at which the server had provably read that; None before it.
        result: the answer to its request.
        answered: the time of that answer.
        notified: the notification by which the server cancelled it.
    """

    id: Any
    line: int
    wanted: dict[str, Any]
    opened: float | None = None
    carries: bool = False
    first: Entry | None = None
    cancelled: int | None = None
    read: float | None = None
    result: Message | None = None
    answered: float | None = None
    notified: Entry | None = None

    def is_late(self, at: float) -> bool:
        """Whether a message at this time is too late to have crossed with the cancellation.

        The answer to a later request proves that the server has read the cancellation.
        """
        return self.read is not None and at - self.read > GRACE

    def takes(self, at: float) -> bool:
        """Whether the server may still send messages on it."""
        return self.result is None and not self.is_late(at)


def _subscription_id(value: Any) -> Any:
    return value_in(value, "params", "_meta", ID)


class Watch:
    """Follows the streams of one record, line by line, and yields the findings."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._streams: list[Stream] = []
        self._terminated = math.inf

    def walk(self) -> Iterator[Seen]:
        """Yield the findings of the whole record."""
        for entry in self._record.transcript:
            if entry.source is Source.US:
                self._said(entry)
            elif entry.happened is Happened.TERMINATED:
                self._terminated = entry.at
            for message in entry.messages:
                self._proved(entry, message)
                if message.role is Role.NOTIFICATION:
                    yield from self._notified(entry, message)
                elif message.method == LISTEN and message.answers is not None:
                    yield from self._answered(entry, message)
        for stream in self._streams:
            yield from self._ended(stream)

    def _said(self, entry: Entry) -> None:
        value = entry.value
        if not isinstance(value, dict):
            return
        if value.get("method") == LISTEN and id_key(value.get("id")) is not None:
            known = object_in(value, "params", "notifications")
            self._streams.append(Stream(value["id"], entry.n, known))
        elif value.get("method") == CANCELLED:
            stream = self._named(value_in(value, "params", "requestId"))
            if stream is not None and stream.cancelled is None:
                stream.cancelled = entry.n

    def _proved(self, entry: Entry, message: Message) -> None:
        """Note that the answer to a request proves that the server has read all lines before it."""
        for stream in self._streams:
            cancelled = stream.cancelled
            if cancelled is not None and stream.read is None and (message.answers or 0) > cancelled:
                stream.read = entry.at

    def _named(self, own: Any) -> Stream | None:
        key = id_key(own)
        found = [s for s in self._streams if key is not None and id_key(s.id) == key]
        return found[-1] if found else None

    def _notified(self, entry: Entry, message: Message) -> Iterator[Seen]:
        method, value = message.method or "", message.value
        if method == CANCELLED:
            stream = self._named(value_in(value, "params", "requestId"))
            if stream is not None:
                stream.notified = entry
            return
        taking = [s for s in self._streams if s.takes(entry.at)]
        own = _subscription_id(value)
        if method in OF_REQUESTS:
            if taking and method != LOGGED:  # logging-request-scoped judges log messages
                meta = value_in(value, "params", "_meta")
                passed = not (isinstance(meta, dict) and ID in meta)
                expected = f"no {ID} in a notification of a request"
                yield Seen("subscriptions-id-only-on-stream", passed, entry.n, expected, brief(own))
            return
        if method not in LISTS and method not in {UPDATED, ACKNOWLEDGED}:
            return
        stream = self._named(own)
        if stream is not None and not stream.takes(entry.at):
            if stream.cancelled is not None:
                expected = "no notification for a cancelled subscription"
                yield Seen("subscriptions-cancel-ends", False, entry.n, expected, method)
            return
        if not taking:
            return  # stdio-no-unsolicited-notifications judges this
        expected = f"{ID} with the id of an open subscriptions/listen"
        clause, actual = "subscriptions-id-in-meta", f"{method} with {brief(own)}"
        yield Seen(clause, stream is not None, entry.n, expected, actual)
        if stream is not None:
            yield from self._first(stream, entry, message)
        if method != ACKNOWLEDGED:
            yield self._requested(entry, method, value, [stream] if stream else taking)

    def _first(self, stream: Stream, entry: Entry, message: Message) -> Iterator[Seen]:
        acknowledges = message.method == ACKNOWLEDGED
        if stream.first is None:
            stream.first = entry
            expected = "the acknowledgment as the first message of a subscription"
            clause = "subscriptions-ack-first"
            yield Seen(clause, acknowledges, entry.n, expected, brief(message.method))
        elif acknowledges and stream.opened is not None:
            expected = "one acknowledgment per subscription"
            yield Seen("subscriptions-stays-open", False, entry.n, expected, "a second one")
        if acknowledges and stream.opened is None:
            stream.opened = entry.at
            given = value_in(message.value, "params", "notifications")
            if isinstance(given, dict):
                stream.carries = any(given.values())
                extra, mild = _not_requested(given, stream.wanted), None
                if extra and not _not_requested(_normal(given), _normal(stream.wanted)):
                    mild = Breach.WARN
                expected = f"a subset of {brief(stream.wanted)}"
                actual = f"also {brief(extra)}"
                clause = "subscriptions-ack-subset"
                yield Seen(clause, not extra, entry.n, expected, actual, mild=mild)

    def _requested(self, entry: Entry, method: str, value: Any, streams: list[Stream]) -> Seen:
        clause, expected = "subscriptions-only-requested", "only notifications of the filter"
        if method != UPDATED:
            passed = any(stream.wanted.get(LISTS[method]) is True for stream in streams)
            return Seen(clause, passed, entry.n, expected, f"{method}, which the filter lacks")
        wanted = [
            uri
            for stream in streams
            for uri in (stream.wanted.get("resourceSubscriptions") or ())
            if isinstance(uri, str)
        ]
        uri = value_in(value, "params", "uri")
        if not wanted:
            return Seen(clause, False, entry.n, expected, f"{method}; the filter has no resource")
        passed = not isinstance(uri, str) or any(uri.startswith(one) for one in wanted)
        actual = f"an update of {brief(uri, 80)}"
        return Seen(clause, passed, entry.n, expected, actual, mild=Breach.WARN)

    def _answered(self, entry: Entry, message: Message) -> Iterator[Seen]:
        stream = self._named(message.value.get("id"))
        if stream is None or message.kind is not Kind.RESULT or stream.result is not None:
            return
        late = stream.is_late(entry.at)
        stream.result, stream.answered = message, entry.at
        result = message.value["result"]
        if late:
            expected = "no response to a cancelled subscription"
            clause = "subscriptions-cancel-ends"
            yield Seen(clause, False, entry.n, expected, "its result", mild=Breach.WARN)
        meta = result.get("_meta") if isinstance(result, dict) else None
        if isinstance(meta, dict) and ID in meta:
            passed = id_key(meta[ID]) == id_key(stream.id)
            expected = f"{ID}: {brief(stream.id)}, the id of the response"
            clause = "subscriptions-close-result-shape"
            yield Seen(clause, passed, entry.n, expected, brief(meta[ID]))
        over = _closing(message) or entry.at >= self._terminated
        if stream.first is None and stream.cancelled is None and not over:
            stream.first = entry
            expected = "the acknowledgment as the first message of a subscription"
            yield Seen("subscriptions-ack-first", False, entry.n, expected, "its result")

    def _ended(self, stream: Stream) -> Iterator[Seen]:
        """Judge the end of a stream that we did not cancel, while stdin was open."""
        if stream.opened is None or stream.cancelled is not None:
            return
        result, notified = stream.result, stream.notified
        asked = self._terminated  # ends_subscriptions_on_sigterm judges later messages
        if result is not None and (_closing(result) or (stream.answered or 0.0) >= asked):
            result = None
        if notified is not None and (_closing(notified.messages[0]) or notified.at >= asked):
            notified = None
        if result is None and notified is None:
            return
        ends = (stream.answered if result else None, notified.at if notified else None)
        over = [at for at in ends if at is not None]
        if min(over) - stream.opened < STRAIGHT:
            expected = "a subscription that stays open"
            actual = "its end immediately after the acknowledgment"
            if stream.carries:
                yield Seen("subscriptions-stays-open", False, self._line(stream), expected, actual)
            return
        lacking = "no result" if result is None else "no notifications/cancelled"
        clause, expected = "subscriptions-graceful-close", "a result and notifications/cancelled"
        passed = result is not None and notified is not None
        yield Seen(clause, passed, self._line(stream), expected, lacking)

    def _line(self, stream: Stream) -> int:
        """Return the line that shows the end of a stream."""
        if stream.notified is not None:
            return stream.notified.n
        return next(e.n for e in self._record.transcript if stream.result in e.messages)


def _closing(message: Message) -> bool:
    """Whether a message came after we had closed stdin."""
    return message.phase is Phase.CLOSING


def _not_requested(given: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the members of an acknowledgment that the filter did not request."""
    extra: dict[str, Any] = {}
    for member, value in given.items():
        asked = wanted.get(member)
        if member == "resourceSubscriptions" and isinstance(value, list):
            named = asked if isinstance(asked, list) else []
            uris = [uri for uri in value if isinstance(uri, str) and uri not in named]
            if uris:
                extra[member] = uris
        elif member in FLAGS and value is True and asked is not True:
            extra[member] = value
    return extra


def _normal(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return a filter with its URIs normalised as in section 6.2 of RFC 3986."""
    uris = wanted.get("resourceSubscriptions")
    if not isinstance(uris, list):
        return wanted
    plain = [normalised(uri) for uri in uris if isinstance(uri, str)]
    return {**wanted, "resourceSubscriptions": plain}


@ambient(
    "subscriptions-ack-first",
    "subscriptions-only-requested",
    "subscriptions-id-in-meta",
    "subscriptions-id-only-on-stream",
    "subscriptions-ack-subset",
    "subscriptions-stays-open",
    "subscriptions-cancel-ends",
    "subscriptions-graceful-close",
    "subscriptions-close-result-shape",
)
def keeps_subscription_streams_consistent(record: Record) -> Iterator[Seen]:
    """Notifications of a subscription match its filter, have its id, and end with it."""
    yield from Watch(record).walk()


@ambient("subscriptions-close-result-shape")
def adds_nothing_to_the_final_result(record: Record) -> Iterator[Seen]:
    """The final result of a subscription has no members of its own."""
    clause, expected = "subscriptions-close-result-shape", "only resultType and _meta"
    for entry, message in record.answers(Kind.RESULT, LISTEN):
        result = message.value["result"]
        if isinstance(result, dict):
            more = sorted({*result} - {"resultType", "_meta"})
            yield Seen(clause, not more, entry.n, expected, ", ".join(more), mild=Breach.NOTE)


@ambient("subscriptions-ack-subset", "subscriptions-close-result-shape")
def opens_and_closes_streams_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Acknowledgments and final results of subscriptions have the members of their type."""
    yield from shapes(record)


# --- opening and ending


@scenario("subscriptions-graceful-close", place=Place.SEVERAL)
def ends_subscriptions_on_sigterm(talk: Conversation) -> None:
    """A server that receives SIGTERM announces the end of its subscriptions."""
    clause = "subscriptions-graceful-close"
    here = talk.wire
    talk.server.restart()
    stream = Subscription(talk.wire, {"toolsListChanged": True})
    opened = stream.acknowledged() is not None and not stream.refusal.answered
    opened = opened and not talk.server.over_http  # a response on a closing stream proves nothing
    if opened:
        talk.wire.ping(required=False)
        talk.server.terminate()
    if not opened or not talk.wire.gone:
        talk.judge.unseen(clause, "no subscription was open, or the server did not end on SIGTERM")
        talk.server.wire = here
        return
    talk.judge(
        clause,
        stream.refusal.answered,
        expected="a result for an open subscription before the server ends on SIGTERM",
        actual="no result",
        at=stream.line,
        mild=Breach.NOTE,
    )
    talk.server.wire = here


@scenario("subscriptions-listen-supported")
def supports_subscriptions_listen(talk: Conversation) -> None:
    """subscriptions/listen exists; a server that promises change notifications needs it."""
    promised = [member for member, flag in FLAGS.items() if talk.spoken.flag(*flag)]
    stream = Subscription(talk.wire, {})
    found, reply = stream.acknowledged(), stream.refusal
    if found is None and reply.result is None and reply.code != -32601:
        why = f"no acknowledgment, result or -32601 came: {reply}"
        talk.judge.unseen("subscriptions-listen-supported", why)
        return
    talk.judge.expect(
        reply,
        "subscriptions-listen-supported",
        reply.code != -32601,
        f"subscriptions/listen{', which its flags promise' if promised else ''}",
        mild=None if promised else Breach.NOTE,
    )
    if not reply.answered:
        stream.cancel()


@scenario(
    "subscriptions-ack-first",
    "subscriptions-ack-subset",
    "subscriptions-filter-required",
    "subscriptions-concurrent",
    "subscriptions-stays-open",
    "subscriptions-cancel-ends",
    lasts=True,
)
def serves_concurrent_subscriptions(talk: Conversation) -> None:
    """Streams are acknowledged at once, stay open side by side, and end one by one."""
    listed = [item["uri"] for item in talk.spoken.named("resources", "uri")][:1]
    everything: dict[str, Any] = {
        **dict.fromkeys(LIST_MEMBERS, True),
        "resourceSubscriptions": listed,
    }
    wide = Subscription(talk.wire, everything, id="touchstone-listen")
    wide.acknowledged()
    narrow = Subscription(talk.wire, {"toolsListChanged": True})
    window = Window(talk.wire, talk.pace.silence)
    _judge_acknowledgment(talk, wide, everything)
    _judge_second(talk, narrow)
    _judge_filter(talk)
    for call in talk.examples("progress-call") or talk.examples("log-traffic"):
        Pending(talk.wire, call, token=BESIDE, level="debug").reply()
        break
    window.wait()
    _judge_first(talk, wide, narrow)
    carrying = [s for s in (wide, narrow) if _acknowledged(s) and any(s.granted.values())]
    for stream in carrying:
        _judge_open(talk, stream)
    if not carrying:
        talk.judge.unseen("subscriptions-stays-open", "no acknowledgment names what may come")
    if narrow.over or wide.over or not (_acknowledged(narrow) and _acknowledged(wide)):
        why = "no two streams stayed open until one was cancelled"
        talk.judge.unseen("subscriptions-cancel-ends", why)
        return
    narrow.cancel()
    talk.wire.ping(required=False)
    talk.wire.quiet(GRACE)
    talk.judge.expect(
        wide.refusal,
        "subscriptions-concurrent",
        not wide.over,
        "the other stream still open after one is cancelled",
    )
    line = len(talk.wire.transcript)
    wide.cancel()
    talk.wire.quiet()
    late = narrow.heard(line)
    talk.judge(
        "subscriptions-cancel-ends",
        not late,
        expected="no notification for a cancelled subscription",
        actual="a notification with its id",
        at=late[0][0] if late else None,
    )


LIST_MEMBERS = tuple(LISTS.values())


def _acknowledged(stream: Subscription) -> bool:
    return stream.acknowledged(0.0) is not None


def _acknowledgment(talk: Conversation, stream: Subscription) -> tuple[Entry, Message] | None:
    """Wait for an acknowledgment; if none comes, look again after a later request."""
    found = stream.acknowledged()
    if found is None and not stream.refusal.answered:
        talk.wire.ping(required=False)
        found = stream.acknowledged(0.0)
    return found


def _judge_acknowledgment(talk: Conversation, stream: Subscription, wanted: Any) -> None:
    expected, none = "an acknowledgment at once", "no acknowledgment"
    found = _judge_opened(talk, stream, "subscriptions-ack-first", expected, none)
    if found is None:
        talk.judge.unseen("subscriptions-ack-subset", "no subscription was acknowledged")
        return
    given = stream.granted
    false = [member for member, value in given.items() if value is False]
    left_out = [
        member
        for member, flag in FLAGS.items()
        if wanted.get(member) and talk.spoken.flag(*flag) and not given.get(member)
    ]
    undeclared = [
        member
        for member, (feature, flag) in FLAGS.items()
        if given.get(member) and not talk.spoken.flag(feature, flag)
    ]
    for members, what in (
        (false, "given as false"),
        (left_out, "promised and left out"),
        (undeclared, "acknowledged without a declared capability"),
    ):
        talk.judge(
            "subscriptions-ack-subset",
            not members,
            expected="the supported part of the filter",
            actual=f"{', '.join(members)} {what}",
            at=found[0],
            mild=Breach.WARN,
        )


def _judge_second(talk: Conversation, stream: Subscription) -> None:
    expected = "an acknowledgment of a second subscription, or an error"
    _judge_opened(talk, stream, "subscriptions-concurrent", expected, "neither")


def _judge_first(talk: Conversation, first: Subscription, second: Subscription) -> None:
    """Judge that the stream of a subscription outlives the beginning of another one."""
    if talk.wire.gone or not (_acknowledged(first) and _acknowledged(second)):
        return
    ended, other = (talk.wire.channel.silence(one.line) for one in (first, second))
    talk.judge(
        "subscriptions-concurrent",
        not ended or bool(other),
        expected="a subscription that stays open while another one begins",
        actual=ended,
        at=first.line,
        also=(second.line,),
    )


def _judge_opened(
    talk: Conversation, stream: Subscription, clause: str, expected: str, none: str
) -> tuple[Entry, Message] | None:
    """Judge that a subscription was acknowledged or refused; return the acknowledgment."""
    found = _acknowledgment(talk, stream)
    reply = stream.refusal
    talk.judge(
        clause,
        found is not None or reply.is_error,
        expected=expected,
        actual=reply if reply.answered else none,
        at=found[0] if found else stream.line,
    )
    return found


def _judge_filter(talk: Conversation) -> None:
    stream = Subscription(talk.wire, None)
    found = stream.acknowledged()
    reply: Reply = stream.refusal
    talk.judge(
        "subscriptions-filter-required",
        reply.code == -32602,
        expected="error -32602 for subscriptions/listen without notifications",
        actual="an acknowledgment" if found else reply,
        at=reply if reply.answered else stream.line,
    )
    if not reply.answered:
        stream.cancel()


def _judge_open(talk: Conversation, stream: Subscription) -> None:
    reply, over = stream.refusal, stream.over
    if reply.is_error or talk.wire.gone:
        over = ""
    talk.judge(
        "subscriptions-stays-open",
        not over,
        expected="no response, and no end of its stream, while the subscription is open",
        actual=over,
        at=reply,
    )
