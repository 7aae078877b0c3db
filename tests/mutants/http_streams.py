"""HTTP servers that break a rule of http/streams."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from mcp_touchstone.bridge.exchanges import Exchanges, HttpExchange
from mcp_touchstone.http_server.streams import event
from tests.mutants.http_kit import HttpFault
from tests.mutants.kit import LEGACY, MODERN, control, controls, has, mutant, mutants

OLDER = "2025-06-18"
SESSION = "Mcp-Session-Id"

LATER = 2.0
"""Seconds to a report of progress that comes too late."""

CROSSING = 0.3
"""Seconds for a message on another stream to arrive before the next one of its request."""


controls(
    "streams-primed",
    "streams-end-after-response",
    "streams-no-response-on-get",
    "streams-get-unrelated",
    "streams-post-related",
    "streams-event-ids-unique",
    "streams-replay-own",
    "streams-replay-after",
    "streams-disconnect-is-no-cancellation",
    "streams-dropped-not-on-get",
    "streams-response-own",
    "streams-messages-only",
    of=HttpFault,
)(StreamsOfSessions="Keeps every rule on streams with sessions.")
controls("streams-open-until-response", "streams-end-after-response", of=HttpFault, revision=OLDER)(
    StreamsOfOlderSessions="Keeps every rule on streams of 2025-06-18."
)
controls(
    "streams-end-after-response",
    "streams-notifications-related",
    "streams-listen-scope",
    "streams-no-requests",
    "streams-no-buffering",
    "streams-response-own",
    "streams-messages-only",
    of=HttpFault,
    revision=MODERN,
)(StreamsOfRequests="Keeps every rule on streams without sessions.")
mutants("streams-primed", of=HttpFault, revision=LEGACY)(
    DoesNotPrime=has(
        "Begins a stream with a message.",
        write_stream=lambda self, stream, after, *, resumable: HttpFault.write_stream(
            self, stream, after, resumable=False
        ),
    )
)


@control("streams-primed")
class BeginsWithARetry(HttpFault):
    """Begins each stream with a block that has only retry, and primes the client in the next."""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        self._chunk(b"retry: 1000\n\n: hello\n\n")
        return super().write_stream(stream, after, resumable=resumable)


class ClosesEarly(HttpFault):
    """Closes the stream of a request before its response, and resumes it later."""

    FIRST: ClassVar[bytes] = b""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        if self.command != "POST" or resumable is None:
            return super().write_stream(stream, after, resumable=resumable)
        self._chunk(b"id: %d-%d\n%sdata: \n\n" % (stream.number, after, self.FIRST))
        self._chunk(b"")
        return True


controls("streams-retry-before-close", of=ClosesEarly)(
    ClosesEarlyWithRetry=has(
        "Sends retry before it closes the stream of a request.", FIRST=b"retry: 50\n"
    )
)
mutants("streams-retry-before-close", of=ClosesEarly)(
    ClosesEarlyWithoutRetry="Closes the stream of a request without retry."
)


class ClosesListening(HttpFault):
    """Closes the first stream of a GET, and resumes it later."""

    FIRST: ClassVar[bytes] = b""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        if self.command != "GET" or self.header("Last-Event-ID"):
            return super().write_stream(stream, after, resumable=resumable)
        self._chunk(b"id: %d-%d\n%sdata: \n\n" % (stream.number, after, self.FIRST))
        self._chunk(b"")
        return True


controls("streams-retry-before-close", of=ClosesListening)(
    ClosesListeningWithRetry=has(
        "Sends retry before it closes the stream of a GET.", FIRST=b"retry: 50\n"
    )
)
mutants("streams-retry-before-close", of=ClosesListening, outcome="note")(
    ClosesListeningWithoutRetry="Closes the stream of a GET without retry."
)
mutants("streams-open-until-response", of=ClosesEarly, revision=OLDER)(
    ClosesEarlyInAnOlderSession=has(
        "Closes the stream of a request before its response in 2025-06-18.", FIRST=b"retry: 50\n"
    )
)


class NeverEndsStreams(HttpFault):
    """Leaves the stream of a request open after its response."""

    def _chunk(self, data: bytes) -> None:
        if not data and self.command == "POST":
            self.wait_until_left()
        super()._chunk(data)


mutants("streams-end-after-response", of=NeverEndsStreams)(
    NeverEndsStreamsOfSessions=(
        "Leaves the stream of a request open after its response in a session."
    ),
    NeverEndsStatelessStreams=has(
        "Leaves the stream of a request open after its response in 2026-07-28.", MODERN
    ),
)


@mutant("streams-no-response-on-get", revision=LEGACY)
class AnswersPingsOnTheOtherStream(HttpFault):
    """Sends the answer to a ping on the stream of the GET."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        session = self.header("Mcp-Session-Id")
        if exchange.request.get("method") != "ping" or session is None:
            return super().respond(exchange, *more, **others)
        exchange.wait_closed(10.0)
        listening = self.server.sessions.find(session).listening
        if not listening.attached:
            return super().respond(exchange, *more, **others)
        listening.put(exchange.only())
        time.sleep(0.5)
        self.begin_stream()
        self._chunk(b"")
        return True


class KeepsStreamsAlive(HttpFault):
    """Keeps each stream alive by an event with data that are no message."""

    mark: ClassVar[bytes] = b"data: ping\n\n"

    def _chunk(self, data: bytes) -> None:
        super()._chunk(data or self.mark)
        if not data:
            super()._chunk(data)


mutants("streams-messages-only", of=KeepsStreamsAlive)(
    PingsBySessions="Sends data: ping at the end of each stream of a session.",
    PingsByRequests=has(
        'Sends the data "alive" on each stream of 2026-07-28.', MODERN, mark=b'data: "alive"\n\n'
    ),
)


class _AltersEvents(HttpFault):
    """Answers by streams only, and writes the data of events that are not strict JSON."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        exchange.only = lambda: None
        return super().respond(exchange, *more, **others)

    def _chunk(self, data: bytes) -> None:
        super()._chunk(
            re.sub(rb"(?m)^data: (\{.*)$", lambda one: b"data: " + self.of(one[1]), data)
        )

    def of(self, message: bytes) -> bytes:
        """Return the data of an event."""
        return message


mutants("streams-messages-only", of=_AltersEvents)(
    EncodesEventsTwice=has(
        "Puts the JSON of each message into a JSON string.",
        of=lambda self, message: json.dumps(message.decode()).encode(),
    ),
    WritesNanInEvents=has(
        "Writes NaN into the results of calls, as json.dumps of Python does.",
        LEGACY,
        of=lambda self, message: message.replace(
            b'"content":[', b'"_meta":{"cost":NaN},"content":['
        ),
    ),
)


SERVING = threading.local()
ORDINARY = Exchanges.open


def opened(exchanges: Exchanges, messages: Iterable[Any]) -> HttpExchange | None:
    """Open an exchange, and let the connection of this thread take its messages."""
    exchange = ORDINARY(exchanges, messages)
    if exchange is not None:
        SERVING.connection.take_over(exchange)
    return exchange


class Diverts(HttpFault):
    """Sends some messages of a request on another stream."""

    running: ClassVar[list[Any]] = []
    lock: ClassVar[Any] = threading.Lock()

    def do_POST(self) -> None:  # noqa: N802  (the name in the base class)
        """Take the messages for the request from its beginning: the first may come at once."""
        SERVING.connection = self
        Exchanges.open = opened  # type: ignore[method-assign, assignment]
        super().do_POST()

    def take_over(self, exchange: Any) -> None:
        """Take the messages for an exchange."""
        put = exchange.straight = exchange.put

        def divert(data: bytes, *, last: bool = False) -> None:
            self.divert(exchange, data, put)
            if last:
                exchange.close()

        exchange.put = divert

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        with self.lock:
            self.running.append(exchange)
        try:
            return super().respond(exchange, *more, **others)
        finally:
            with self.lock:
                self.running.remove(exchange)

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        """Take a message for an exchange."""
        put(data)

    def other(self, exchange: Any, fits: Callable[[Any], bool]) -> Any:
        """Return another running exchange that fits; None for none."""
        with self.lock:
            found = [one for one in self.running if one is not exchange and fits(one)]
        return next((one for one in found if not one.closed), None)


@mutant("streams-get-unrelated", revision=LEGACY)
class SendsProgressOnTheOtherStream(Diverts):
    """Sends progress on the stream of the GET."""

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        session = self.header("Mcp-Session-Id")
        if b"notifications/progress" in data and session:
            self.server.sessions.find(session).listening.put(data)
            time.sleep(CROSSING)
        else:
            put(data)


@mutant("streams-response-own", revision=MODERN)
class AnswersOnTheStreamOfAnother(Diverts):
    """Sends a response on the stream of another call that runs."""

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        other = None
        if b'"result"' in data and exchange.tokens:
            other = self.other(exchange, lambda one: one.tokens)
        (put if other is None else other.straight)(data)
        if other is not None:
            time.sleep(CROSSING)  # the response is there before its own stream ends


@mutant("streams-dropped-not-on-get", revision=LEGACY)
class AnswersTheLostOnTheOtherStream(HttpFault):
    """Sends the response to a client that left on the stream of the GET."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        stayed = super().respond(exchange, *more, **others)
        session = self.header(SESSION)
        if not stayed and session and exchange.wait_closed(10.0):
            for _, data in exchange.after(0, 0.0)[-1:]:
                self.server.sessions.find(session).listening.put(data)
        return stayed


@mutant(
    "progress-stops-after-completion",
    revision=LEGACY,
    outcome="warn",
    passes=("tools-list-result-shape",),
)
class RemembersProgress(Diverts):
    """Sends a report of progress on the stream of the GET, seconds after the response."""

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        put(data)
        session = self.header(SESSION)
        if b'"touchstone-progress' in data and b"notifications/progress" in data and session:
            listening = self.server.sessions.find(session).listening
            threading.Timer(LATER, listening.put, [data]).start()


class SwapsProgress(Diverts):
    """Sends progress on the stream of another call that runs."""

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        other = None
        if b"notifications/progress" in data:
            other = self.other(exchange, lambda one: one.tokens)
        (put if other is None else other.straight)(data)


mutants("streams-post-related", of=SwapsProgress)(
    SwapsProgressOfSessions="Sends progress on the stream of another call of the session."
)
mutants("streams-notifications-related", of=SwapsProgress, revision=MODERN)(
    SwapsStatelessProgress="Sends progress on the stream of another call in 2026-07-28."
)


@mutant("jsonrpc-request-answered", revision=MODERN)
class EndsStreamsWithoutTheResponse(HttpFault):
    """Ends the stream of a call of 2026-07-28 without its response."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        named = b'"name":"list_capabilities"' in self.received.replace(b" ", b"")
        if not named or not self.is_modern:
            return super().respond(exchange, *more, **others)
        self.begin_stream()
        self._chunk(b"")
        return True


class FailsToAnswer(HttpFault):
    """Answers a call in some way that is no answer."""

    lost = 0

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        if b'"name":"list_capabilities"' not in self.received.replace(b" ", b""):
            return super().respond(exchange, *more, **others)
        self.fail()
        return True

    def fail(self) -> None:
        """Do not answer."""


def _close_behind_an_event(self: FailsToAnswer) -> None:
    self.begin_stream()
    FailsToAnswer.lost += 1
    self._chunk(b"id: lost-%d\nretry: 20\ndata: \n\n" % FailsToAnswer.lost)
    self._chunk(b"")


mutants("jsonrpc-request-answered", of=FailsToAnswer)(
    LosesTheRestOfAStream=has(
        "Closes the stream of a call after an event, and has nothing after that event.",
        fail=_close_behind_an_event,
    ),
    AnswersWithProgressOnly=has(
        "Answers a call by a body with a report of progress.",
        fail=lambda self: self.answer(
            200,
            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}',
        ),
    ),
)


@mutant("subscriptions-stays-open", "subscriptions-concurrent", revision=MODERN)
class EndsListeningWithoutAnAnswer(HttpFault):
    """Ends the stream of a subscription right after its acknowledgment, without a response."""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        if b'"touchstone-listen"' not in self.received:
            return super().write_stream(stream, after, resumable=resumable)
        for _, data in stream.after(after, 10.0):
            self._chunk(event(data))
        self._chunk(b"")
        return True


@mutant("streams-listen-scope", revision=MODERN)
class SendsProgressToSubscribers(Diverts):
    """Sends progress on the stream of a subscription."""

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        other = None
        if b"notifications/progress" in data:
            other = self.other(
                exchange, lambda one: one.request.get("method") == "subscriptions/listen"
            )
        (put if other is None else other.straight)(data)
        if other is not None:
            time.sleep(CROSSING)


@mutant("subscriptions-concurrent", "subscriptions-stays-open", revision=MODERN)
class HoldsOneSubscription(Diverts):
    """Ends the stream of a subscription when another one begins."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        listens = "subscriptions/listen"
        if exchange.request.get("method") == listens and b'"notifications"' in self.received:
            other = self.other(exchange, lambda one: one.request.get("method") == listens)
            if other is not None:
                other.close()
        return super().respond(exchange, *more, **others)


@mutant("streams-no-requests", revision=MODERN)
class PingsOnStreams(HttpFault):
    """Sends a request on the stream of a call."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        if exchange.request.get("method") == "tools/call" and self.is_modern:
            exchange.put(b'{"jsonrpc":"2.0","id":"own-%d","method":"roots/list"}' % exchange.number)
        return super().respond(exchange, *more, **others)


controls("streams-no-broadcast", of=HttpFault)(
    SendsRequestsOnce=has("Sends each request on the stream of its call.", behind="Samples")
)


@mutant("streams-no-broadcast", revision=LEGACY)
class SendsRequestsEverywhere(Diverts, behind="Samples"):
    """Sends its requests on the stream of the call and on that of the GET."""

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        session = self.header("Mcp-Session-Id")
        if b'"method"' in data and b'"id"' in data and b'"notifications/' not in data and session:
            self.server.sessions.find(session).listening.put(data)
        put(data)


@mutant("streams-no-broadcast", revision=LEGACY)
class SendsProgressEverywhere(Diverts):
    """Sends progress on the stream of the call and on that of the GET."""

    def divert(self, exchange: Any, data: bytes, put: Callable[[bytes], None]) -> None:
        session = self.header("Mcp-Session-Id")
        if b"notifications/progress" in data and session:
            self.server.sessions.find(session).listening.put(data)
        put(data)


@mutant("streams-event-ids-unique", revision=LEGACY)
class NumbersEventsPerStream(HttpFault):
    """Gives the first events of different streams the same id."""

    def _chunk(self, data: bytes) -> None:
        super()._chunk(re.sub(rb"^id: \d+-0\b", b"id: 1-0", data))


@mutant("streams-event-ids-unique", revision=LEGACY)
class NumbersStreams(HttpFault):
    """Gives all events of one stream the same id."""

    def _chunk(self, data: bytes) -> None:
        super()._chunk(re.sub(rb"^id: (\d+)-\d+", rb"id: \1-0", data))


@mutant("streams-replay-own", revision=LEGACY)
class RepeatsEverything(HttpFault):
    """Repeats the messages of all streams on a resumed one."""

    mark: ClassVar[bytes] = b""
    behind_ids: ClassVar[str] = ""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        known = self.header("Last-Event-ID") or ""
        if self.command == "GET" and known and known.startswith(self.behind_ids):
            session = self.server.sessions.find(self.header("Mcp-Session-Id"))
            for other in list(session._finished):
                if other is not stream:
                    for number, data in other.after(0, 0.0):
                        if self.mark in data:
                            self._chunk(event(data, id=f"{other.number}-{number}"))
        return super().write_stream(stream, after, resumable=resumable)


mutants("streams-replay-own", of=RepeatsEverything, revision=LEGACY)(
    RepeatsAnswersOnTheStreamOfAGet=has(
        "Repeats the messages of all streams on the resumed stream of a GET.", behind_ids="0-"
    )
)


@mutant("streams-replay-own", revision=LEGACY)
class RepeatsOnANewGet(HttpFault):
    """Repeats the progress of finished requests on the stream of a new GET."""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        if self.command == "GET" and not self.header("Last-Event-ID") and stream.delivered == 0:
            for other in list(self.server.sessions.find(self.header(SESSION))._finished):
                for number, data in other.after(0, 0.0):
                    if b"notifications/progress" in data:
                        self._chunk(event(data, id=f"{other.number}-{number}-again"))
        return super().write_stream(stream, after, resumable=resumable)


@mutant("streams-replay-after", revision=LEGACY)
class RepeatsTheNamedEvent(HttpFault):
    """Resumes a stream with the event that Last-Event-ID names."""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        named = self.header("Last-Event-ID")
        for number, data in stream.after(max(0, after - 1), 0.0) if named else ():
            if number == after:
                self._chunk(event(data, id=f"{stream.number}-{number}"))
        return super().write_stream(stream, after, resumable=resumable)


@control("streams-disconnect-is-no-cancellation", revision=LEGACY)
class ClosesResumedStreams(HttpFault):
    """Closes each connection on which a stream was resumed, until the response is there."""

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        resumed = self.command == "GET" and self.header("Last-Event-ID")
        if not resumed or stream.closed or not stream.number:
            return super().write_stream(stream, after, resumable=resumable)
        self._chunk(b"id: %d-%d\nretry: 300\ndata: \n\n" % (stream.number, after))
        self._chunk(b"")
        return True


@mutant("streams-disconnect-is-no-cancellation", revision=LEGACY)
class CancelsAfterADisconnection(HttpFault):
    """Takes the end of a connection for a cancellation."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        stayed = super().respond(exchange, *more, **others)
        session = self.header("Mcp-Session-Id")
        if not stayed and session and not exchange.closed:
            exchange.close()
        return stayed


@control("cancellation-notification-shape")
class CancelsALostRequest(HttpFault):
    """Cancels a request that it sent while no stream was open."""

    def respond(self, exchange: Any, *more: Any, **others: Any) -> bool:
        if exchange.request.get("method") == "tools/list" and not self.is_modern:
            exchange.put(
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
            )
        return super().respond(exchange, *more, **others)


@mutant("streams-no-buffering", revision=MODERN)
class LetsProxiesBuffer(HttpFault):
    """Sends streams without X-Accel-Buffering."""

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "X-Accel-Buffering":
            super().send_header(keyword, value)
