"""http/streams: when streams begin and end, what they carry, and how they are resumed."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Entry,
    Example,
    Fault,
    HttpAnswer,
    HttpExchange,
    Kind,
    Pending,
    Place,
    Record,
    Role,
    Seen,
    Subscription,
    Unopened,
    ambient,
    beside_json,
    brief,
    id_key,
    mrtr,
    object_in,
    scenario,
    tagged,
)

SUCCESS = range(200, 300)
LAST_EVENT = "Last-Event-ID"
SESSION = "Mcp-Session-Id"
PROGRESS = "notifications/progress"
LOGGED = "notifications/message"
GRACE = 2.0
"""Seconds in which a stream ends after its response."""

SHORTEST, LONGEST = 0.3, 5.0
"""Seconds between two attempts to resume a stream."""

OVER = 1.15
"""A call is over after this many times its earlier duration."""


def streams(record: Record, verb: str) -> Iterator[HttpExchange]:
    """Yield the streams that requests with an HTTP method opened."""
    for exchange in record.transcript.exchanges:
        if exchange.verb == verb and exchange.streams and exchange.status in SUCCESS:
            yield exchange


def entries_of(record: Record, exchange: HttpExchange) -> list[Entry]:
    """Return the lines that came in a response."""

    def by_exchange() -> dict[int, list[Entry]]:
        found: dict[int, list[Entry]] = defaultdict(list)
        for entry in record.lines():
            if entry.origin is not None:
                found[id(entry.origin.exchange)].append(entry)
        return found

    return record.transcript.once(entries_of, by_exchange).get(id(exchange), [])


def answered_in(record: Record, exchange: HttpExchange) -> Entry | None:
    """Return the line with the last response in a stream; None if there is none."""
    answers = [
        entry
        for entry in entries_of(record, exchange)
        for message in entry.messages
        if message.answers == exchange.line
    ]
    return answers[-1] if answers else None


def closed_early(record: Record, exchange: HttpExchange) -> bool:
    """Whether the server closed the stream of a request that it still had to answer."""
    if not exchange.line or exchange.left or exchange.fault or exchange.ended is None:
        return False
    if exchange.lost:  # something came that we could not read: jsonrpc-request-answered says so
        return False
    for one in streams(record, "GET"):  # streams-no-response-on-get counts that
        listens = one.said(LAST_EVENT) is None
        if listens and exchange.line in [
            m.answers for e in entries_of(record, one) for m in e.messages
        ]:
            return False
    asked = next((a for a in record.transcript.session.asked if a.line == exchange.line), None)
    if asked is None or asked.cancelled or answered_in(record, exchange) is not None:
        return False
    ends = [one.began for one in record.transcript.exchanges if one.verb == "DELETE"]
    return not any(began <= exchange.ended for began in ends)


# --- the beginning and the end of the stream of a request


@ambient("streams-primed")
def primes_the_client(record: Record) -> Iterator[Seen]:
    """The stream of a request begins with an event that has an id and empty data."""
    for exchange in streams(record, "POST"):
        other = exchange.crafted and exchange.said("MCP-Protocol-Version") != record.revision
        other = other or _offers_another_revision(record, exchange)
        if other or not any(event.id is not None for event in exchange.events):
            continue
        first = next(
            event for event in exchange.events if event.data is not None or event.id is not None
        )
        holding = [e for e in entries_of(record, exchange) if e.origin and e.origin.event is first]
        primed = first.id is not None and not holding
        yield Seen(
            "streams-primed",
            primed,
            exchange.line or None,
            "an event with an id and empty data first",
            "a message in the first event" if holding else "a first event without an id",
        )


def _offers_another_revision(record: Record, exchange: HttpExchange) -> bool:
    """Whether a request is an initialize whose client may not know events without data."""
    sent = record.transcript[exchange.line].value if exchange.line else None
    if not isinstance(sent, dict) or sent.get("method") != "initialize":
        return False
    return object_in(sent, "params").get("protocolVersion") != record.revision


@ambient("streams-retry-before-close")
def sends_retry_before_it_closes(record: Record) -> Iterator[Seen]:
    """A stream that is closed before the response has an event with retry."""
    for exchange in streams(record, "POST"):
        if closed_early(record, exchange) and any(event.id for event in exchange.events):
            yield Seen(
                "streams-retry-before-close",
                any(event.retry is not None for event in exchange.events),
                exchange.line,
                "an event with retry before the connection is closed",
                "no retry in the stream",
            )
    for exchange in streams(record, "GET"):
        if _goes_on_without(record, exchange) and any(event.id for event in exchange.events):
            yield Seen(
                "streams-retry-before-close",
                any(event.retry is not None for event in exchange.events),
                exchange.event_line or None,
                "an event with retry before the connection of a GET is closed",
                "no retry in the stream of a GET",
                mild=Breach.NOTE,
            )


def _goes_on_without(record: Record, get: HttpExchange) -> bool:
    """Whether the server closed the stream of a GET in a session that went on."""
    if get.left or get.fault or get.ended is None or get.line:
        return False
    session = get.said("Mcp-Session-Id")
    later = [
        one
        for one in record.transcript.exchanges
        if one.said("Mcp-Session-Id") == session and one.began >= get.ended
    ]
    return any(one.verb == "POST" and one.status in SUCCESS for one in later)


@ambient("streams-open-until-response")
def keeps_the_stream_open_until_the_response(record: Record) -> Iterator[Seen]:
    """The stream of a request is open until its response."""
    for exchange in streams(record, "POST"):
        if exchange.line and exchange.ended is not None and not exchange.left:
            early = closed_early(record, exchange)
            if early or answered_in(record, exchange) is not None:
                yield Seen(
                    "streams-open-until-response",
                    not early,
                    exchange.line,
                    "the response before the end of the stream",
                    "the server closed the stream",
                )


@scenario("streams-end-after-response")
def ends_the_stream_after_the_response(talk: Conversation) -> None:
    """The stream of a request ends after its response."""
    answer = streamed(talk)
    if not answer.exchange.streams or not answer.reply.answered:
        talk.judge.unseen("streams-end-after-response", f"it answers without a stream: {answer}")
        return
    closed = answer.wait_closed(GRACE)
    if not closed:  # a server that has answered since had time to end the stream
        talk.need(talk.wire.ping(), "an answer while the stream is open")
        closed = answer.wait_closed(GRACE)
    talk.judge(
        "streams-end-after-response",
        closed,
        expected="the end of the stream after the response",
        actual=f"a stream that is still open {GRACE:.0f} s after a later answer",
        at=answer.line,
    )
    answer.close()


# --- the messages of a stream


@ambient("streams-no-response-on-get")
def sends_no_response_on_the_stream_of_a_get(record: Record) -> Iterator[Seen]:
    """The stream of a GET carries no responses."""
    for exchange in streams(record, "GET"):
        if exchange.said(LAST_EVENT) is not None or exchange.line:
            continue
        yield Seen("streams-no-response-on-get", True, None)
        for entry in entries_of(record, exchange):
            for message in entry.messages:
                yield Seen(
                    "streams-no-response-on-get",
                    message.kind not in {Kind.RESULT, Kind.ERROR},
                    entry.n,
                    "requests and notifications only",
                    f"a {message.kind} on the stream of a GET",
                )


@ambient("streams-response-own")
def sends_each_response_on_the_stream_of_its_request(record: Record) -> Iterator[Seen]:
    """The stream or the body of a response carries no response to another request."""
    for exchange in record.transcript.exchanges:
        for entry in entries_of(record, exchange) if exchange.line else ():
            for message in entry.messages:
                if message.role is Role.ANSWER:
                    yield Seen(
                        "streams-response-own",
                        message.answers == exchange.line,
                        entry.n,
                        f"the response to the request of line {exchange.line}",
                        f"the response to line {message.answers}",
                    )


@ambient("streams-messages-only", unopened=Unopened.ALWAYS)
def sends_messages_only(record: Record) -> Iterator[Seen]:
    """Each event with data is a JSON-RPC message."""
    for entry in record.lines():
        reading = entry.reading
        if entry.origin is None or entry.origin.event is None or reading is None:
            continue
        if {Fault.TOO_LONG, Fault.TOO_DEEP, Fault.TOO_MANY} & reading.faults:
            continue
        odd = beside_json(entry)
        yield Seen(
            "streams-messages-only",
            isinstance(reading.value, dict | list) and not odd,
            entry.n,
            "a JSON-RPC message in each event with data; `: ping` keeps a connection alive",
            odd or f"an event with the data {brief(entry.text.strip(), 60)}",
        )


@ambient("streams-no-requests")
def sends_no_requests(record: Record) -> Iterator[Seen]:
    """No response of 2026-07-28 carries a request of the server."""
    for exchange in record.transcript.exchanges:
        if exchange.status in SUCCESS:
            yield Seen("streams-no-requests", True, exchange.line or None)
    for entry, message in record.messages(Role.REQUEST):
        yield Seen(
            "streams-no-requests",
            False,
            entry.n,
            "notifications and the response only",
            f"the request {message.method}",
        )


@ambient("streams-no-buffering")
def asks_proxies_not_to_buffer(record: Record) -> Iterator[Seen]:
    """A stream has the header X-Accel-Buffering: no."""
    for exchange in streams(record, "POST"):
        said = exchange.header("X-Accel-Buffering") or ""
        yield Seen(
            "streams-no-buffering",
            said.strip().lower() == "no",
            exchange.line or None,
            "X-Accel-Buffering: no",
            f"X-Accel-Buffering: {said}" if said else "no X-Accel-Buffering",
        )


@ambient("streams-event-ids-unique")
def gives_events_unique_ids(record: Record) -> Iterator[Seen]:
    """The id of an event is unique in its session."""
    used: dict[tuple[str | None, str], tuple[int, int]] = {}
    for exchange in record.transcript.exchanges:
        if not exchange.streams or exchange.said(LAST_EVENT) is not None:
            continue
        session = exchange.said("Mcp-Session-Id") or exchange.header("Mcp-Session-Id")
        for place, event in enumerate(list(exchange.events)):
            if event.id:
                own = exchange.number, place
                first = used.setdefault((session, event.id), own)
                again = first != own
                yield Seen(
                    "streams-event-ids-unique",
                    not again,
                    exchange.line or None,
                    "an event id that no other event has",
                    f"the id {event.id} of an event of exchange {first[0]}",
                )


def progress_of(talk: Conversation, token: Any, line: int) -> list[tuple[Entry, HttpExchange]]:
    """Return the progress with a token after a line, and the responses it came in."""
    return [
        (entry, entry.origin.exchange)
        for entry in talk.since(line)
        for message in entry.messages
        if entry.origin is not None
        and message.method == PROGRESS
        and id_key((message.value.get("params") or {}).get("progressToken")) == id_key(token)
    ]


def shortest(talk: Conversation) -> Example:
    """Return the fastest call that reports progress."""
    talk.examples.best("progress-call")
    return min(talk.examples("progress-call"), key=lambda example: example.seconds)


@scenario(
    "streams-get-unrelated",
    "streams-post-related",
    "streams-notifications-related",
    "streams-no-broadcast",
)
def sends_progress_on_the_stream_of_its_request(talk: Conversation) -> None:
    """Progress comes on the stream of the request that has its token, and on no other."""
    if not talk.examples("progress-call"):
        talk.judge.unseen("streams-no-broadcast", "no call reports progress")
        return
    call = shortest(talk)
    tokens = ("touchstone-one", "touchstone-two")
    calls = [Pending(talk.wire, call, token=token) for token in tokens]
    for pending in calls:
        talk.need_answer(pending.reply(), "a call that reports progress")
    for pending in calls:
        _judge_progress(talk, pending)


def _judge_progress(talk: Conversation, pending: Pending) -> None:
    found = progress_of(talk, pending.token, pending.line)
    own = {entry.raw for entry, exchange in found if exchange.line == pending.line}
    on_get = [e for e, exchange in found if exchange.verb == "GET" and not exchange.line]
    on_get = [entry for entry in on_get if entry.raw not in own]
    on_other = [
        entry for entry, exchange in found if exchange.line and exchange.line != pending.line
    ]
    again = [entry for entry, exchange in found if exchange.line != pending.line]
    again = [entry for entry in again if entry.raw in own]
    if talk.judge.covers("streams-no-broadcast"):
        on_other = [entry for entry in on_other if entry.raw not in own]
        talk.judge(
            "streams-no-broadcast",
            not again,
            expected="each message on one stream only",
            actual="the same progress on two streams",
            at=again[0] if again else pending.line,
        )
    if talk.judge.covers("streams-get-unrelated"):
        talk.judge(
            "streams-get-unrelated",
            not on_get,
            expected="progress on the stream of its request",
            actual="progress on the stream of the GET",
            at=on_get[0] if on_get else pending.line,
        )
    for clause in ("streams-post-related", "streams-notifications-related"):
        if talk.judge.covers(clause):
            talk.judge(
                clause,
                not on_other,
                expected="progress on the stream of its request",
                actual="progress on the stream of another request",
                at=on_other[0] if on_other else pending.line,
            )


@scenario("streams-listen-scope")
def sends_no_progress_on_a_subscription(talk: Conversation) -> None:
    """The stream of a subscription carries no progress and no log messages."""
    stream = Subscription(talk.wire, {"toolsListChanged": True})
    stream.acknowledged()
    pending = Pending(talk.wire, shortest(talk), token="touchstone-beside", level="debug")  # noqa: S106
    talk.need_answer(pending.reply(), "a call that reports progress")
    wrong = [
        entry
        for entry in talk.since(stream.line)
        for message in entry.messages
        if entry.origin is not None
        and entry.origin.exchange.line == stream.line
        and message.method in {PROGRESS, LOGGED}
    ]
    stream.cancel()
    talk.judge(
        "streams-listen-scope",
        not wrong,
        expected="only news that the subscription asked for",
        actual="a notification of another request",
        at=wrong[0] if wrong else stream.line,
    )


@scenario("streams-no-broadcast", willing=True)
def sends_each_request_on_one_stream(talk: Conversation) -> None:
    """A request of the server comes on one stream only."""
    words = ("elicits", "samples", "lists-roots")
    example = next((e for word in words for e in talk.examples(word)), None)
    if example is None:
        talk.judge.unseen("streams-no-broadcast", "the server sends no requests")
        return
    start = len(talk.wire.transcript)
    mrtr.provoke(talk.wire, example)
    talk.wire.quiet()
    seen: dict[Any, tuple[Entry, HttpExchange]] = {}
    for entry in talk.since(start):
        for message in entry.messages:
            if message.role is not Role.REQUEST or entry.origin is None:
                continue
            exchange = entry.origin.exchange
            key = id_key(message.value.get("id"))
            first = seen.setdefault(key, (entry, exchange))
            again = first[1] is not exchange and exchange.said(LAST_EVENT) is None
            talk.judge(
                "streams-no-broadcast",
                not again or entry.raw != first[0].raw,
                expected="each request on one stream only",
                actual=f"the request {message.method} on two streams",
                at=entry,
                also=(first[0].n,),
            )
    if not seen:
        talk.judge("streams-no-broadcast", True, expected="each request on one stream only")


# --- resuming a stream


def streamed(talk: Conversation, *, ids: bool = False) -> HttpAnswer:
    """Send a request whose answer is a stream, if there is one; ``ids`` wants ids of events."""
    answer = talk.http.post(talk.wire.build(talk.wire.ping_method))
    if _ids(answer) if ids else answer.exchange.streams:
        return answer
    return reporting(talk) or answer


def reporting(talk: Conversation, session: str | None = None) -> HttpAnswer | None:
    """Make the fastest call that reports progress, with a token of its own; None without one.

    Args:
        session: the session of the call; None for that of the conversation.
    """
    calls = talk.examples("progress-call")
    if not calls:
        return None
    call = min(calls, key=lambda example: example.seconds)
    meta = tagged(talk.wire, token=f"touchstone-{len(talk.wire.transcript)}")
    change = {} if session is None else {SESSION: session}
    return talk.http.post(talk.wire.build(call.method, call.params, meta=meta), change)


def messages_in(answer: HttpAnswer) -> set[bytes]:
    """Return the messages of a response, without what is none."""
    return {e.raw for e in answer.entries if any(m.kind is not Kind.ODD for m in e.messages)}


def _ids(answer: HttpAnswer) -> list[str]:
    return [event.id for event in answer.exchange.events if event.id]


def _delay(stream: HttpAnswer) -> float:
    """Return the seconds before a stream is resumed, as the server wishes it."""
    wishes = [event.retry for event in stream.exchange.events if event.retry is not None]
    return min(LONGEST, wishes[-1] / 1000) if wishes else SHORTEST


def resumed(talk: Conversation, last: str, session: str | None = None) -> HttpAnswer | None:
    """Resume a stream after an event; return the stream, None if the server refuses."""
    own = {} if session is None else {SESSION: session}
    stream = talk.http.get({LAST_EVENT: last, **own})
    return stream if stream.status in SUCCESS and stream.exchange.streams else None


@scenario("streams-replay-own", "streams-replay-after", place=Place.OWN_SESSION, unwatched=True)
def repeats_messages_of_the_resumed_stream_only(talk: Conversation) -> None:
    """A resumed stream repeats no messages of another stream."""
    talk.wire.open()
    first, second = streamed(talk, ids=True), reporting(talk) or streamed(talk, ids=True)
    _judge_the_resumed_event(talk, second)
    if not _ids(first) or not second.reply.answered:
        talk.judge.unseen("streams-replay-own", "the events of the server have no ids")
        return
    stream = resumed(talk, _ids(first)[0])
    if stream is None:
        talk.judge.unseen("streams-replay-own", "the server resumes no streams")
        return
    stream.wait_messages()
    talk.wire.quiet()
    stream.close()
    own = messages_in(second)
    repeated = [entry for entry in stream.entries if entry.raw in own]
    talk.judge(
        "streams-replay-own",
        not repeated,
        expected="no message of another request in a resumed stream",
        actual=f"a message of the stream of line {second.line}",
        at=repeated[0] if repeated else second.line,
        also=(first.line, second.line, stream.line),
    )


def _judge_the_resumed_event(talk: Conversation, answer: HttpAnswer) -> None:
    """Resume a stream after its first message, and judge whether that message comes again."""
    clause = "streams-replay-after"
    entries = answer.entries
    ids = [one.origin.event.id for one in entries if one.origin and one.origin.event]
    alike = [entry for entry in entries if entry.raw == entries[0].raw]
    named = len(entries) > 1 == len(alike) and len(set(ids)) == len(ids) == len(entries)
    stream = resumed(talk, ids[0]) if named and ids[0] else None
    if stream is None:
        talk.judge.unseen(clause, "the server resumes no stream of several messages with ids")
        return
    stream.wait_messages()
    talk.wire.quiet()
    stream.close()
    again = [entry for entry in stream.entries if entry.raw == entries[0].raw]
    talk.judge(
        clause,
        not again,
        expected="the messages after the event that Last-Event-ID names",
        actual="the message of that event again",
        at=again[0] if again else stream.line,
        also=(answer.line, stream.line),
    )


@scenario("streams-replay-own", place=Place.OWN_SESSION, unwatched=True)
def repeats_no_answers_on_the_stream_of_a_get(talk: Conversation) -> None:
    """The stream of a GET, resumed or new, repeats no messages of the stream of a request."""
    clause = "streams-replay-own"
    talk.wire.open()
    opening = talk.http.first_request()  # the stream of our own session stays open
    session = opening.header(SESSION)
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    if session is None or talk.http.post(ready, {SESSION: session}).refused:
        talk.judge.unseen(clause, "the server opens no second session")
        return
    listening = talk.http.get({SESSION: session})
    ping = talk.wire.build(talk.wire.ping_method)
    answer = reporting(talk, session) or talk.http.post(ping, {SESSION: session})
    listening.close()
    talk.http.post(ping, {SESSION: session})  # by now it has seen that the stream is closed
    fresh = talk.http.get({SESSION: session})
    talk.wire.quiet()
    fresh.close()
    again = [entry for entry in fresh.entries if entry.raw in messages_in(answer)]
    if again:
        talk.judge(
            clause,
            False,
            expected="no message of a request on the stream of a new GET",
            actual=f"a message of the stream of line {answer.line}",
            at=again[0],
            also=(answer.line, fresh.line),
        )
        talk.http.end_session(opening)
        return
    stream = resumed(talk, _ids(listening)[-1], session) if _ids(listening) else None
    if stream is None or not answer.reply.answered:
        talk.judge.unseen(clause, "the server resumes no stream of a GET")
    else:
        stream.wait_messages()
        stream.close()
        own = messages_in(answer)
        repeated = [entry for entry in stream.entries if entry.raw in own]
        talk.judge(
            clause,
            not repeated,
            expected="no message of a request in the resumed stream of a GET",
            actual=f"a message of the stream of line {answer.line}",
            at=repeated[0] if repeated else answer.line,
            also=(answer.line, stream.line),
        )
    talk.http.end_session(opening)


def _leaves_a_call_alone(talk: Conversation) -> None:
    """Close the connection of a call, and look for its response on the stream of the GET."""
    clause = "streams-dropped-not-on-get"
    call = min(talk.examples("slow-call"), key=lambda example: example.seconds)
    meta = tagged(talk.wire, token="touchstone-left")  # noqa: S106
    answer = talk.http.post(talk.wire.build(call.method, call.params, meta=meta), wait=False)
    talk.wire.wait(lambda: answer.closed or answer.exchange.events, call.seconds / 2)
    answer.close()
    listening = [one for one in talk.wire.transcript.exchanges if one.verb == "GET"]
    if answer.reply.answered or not any(one.streams and not one.line for one in listening):
        talk.judge.unseen(clause, "no stream of a GET is open, or the call was answered at once")
        return
    over = talk.wire.transcript[answer.line].at + OVER * call.seconds
    late = max(0.0, over - talk.wire.transcript.clock()) + talk.pace.settle
    talk.wire.wait(lambda: answer.reply.answered, late)
    came = next((e for e in talk.since(answer.line) if e.n == answer.reply.entry), None)
    origin = came.origin.exchange if came is not None and came.origin is not None else None
    talk.judge(
        clause,
        origin is None or origin.verb != "GET" or origin.said(LAST_EVENT) is not None,
        expected="no response on the stream of a GET that does not resume that of its request",
        actual="the response to a call whose connection was closed",
        at=came or answer.line,
        also=(answer.line,),
    )


@scenario(
    "streams-disconnect-is-no-cancellation",
    "streams-dropped-not-on-get",
    place=Place.OWN_PROCESS,
    lasts=True,
    unwatched=True,
)
def goes_on_after_a_disconnection(talk: Conversation) -> None:
    """A call goes on after its connection was closed, and its stream can be resumed."""
    clause = "streams-disconnect-is-no-cancellation"
    talk.wire.open()
    if talk.judge.covers("streams-dropped-not-on-get"):
        _leaves_a_call_alone(talk)
    if not talk.judge.covers(clause):
        return
    call = max(talk.examples("slow-call"), key=lambda example: example.seconds)
    meta = tagged(talk.wire, token="touchstone-closed")  # noqa: S106
    answer = talk.http.post(talk.wire.build(call.method, call.params, meta=meta), wait=False)
    talk.wire.wait(lambda: _ids(answer) or answer.closed, call.seconds + talk.pace.reply)
    if answer.reply.answered or not _ids(answer):
        talk.judge.unseen(clause, "there was no event with an id before the response")
        return
    answer.close()
    found = resumed(talk, _ids(answer)[-1])
    if found is None:
        talk.judge.unseen(clause, "the server resumes no streams")
        return
    stream: HttpAnswer = found

    def decided() -> bool:
        return answer.reply.answered or stream.closed

    # A server that sends nothing there is not judged, so a longer wait would be wasted.
    over = talk.wire.transcript[answer.line].at + OVER * call.seconds
    is_last = False
    while talk.wire.wait(decided, max(0.0, over - talk.wire.transcript.clock())):
        # It may close a connection whose stream goes on, and have the client ask again.
        if answer.reply.answered or is_last:
            break
        talk.wire.quiet(_delay(stream))
        is_last = talk.wire.transcript.clock() > over
        stream = resumed(talk, [*_ids(answer), *_ids(stream)][-1]) or stream
    if not decided():
        talk.wire.ping(required=False)  # A busy server writes its late messages before this answer.
        talk.wire.wait(decided, talk.pace.settle)
    if not decided():
        talk.judge.unseen(clause, "the resumed stream is open and has no response yet")
        stream.close()
        return
    talk.judge(
        clause,
        answer.reply.answered,
        expected="the response in the resumed stream",
        actual="the end of the stream without a response",
        at=answer.line,
        also=(stream.line,),
        mild=Breach.WARN,
    )
