"""Streamable HTTP: each message of ours is a POST; messages of the server come in responses.

``HttpSession`` decides, without sockets, which headers a request has and what a response means.
``HttpRequests`` has the sockets. Here are the threads that resume streams, and the record.
"""

import contextlib
import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.transport import http_advice
from mcp_touchstone.transport.channel import Said
from mcp_touchstone.transport.http_endpoint import PORT, Endpoint
from mcp_touchstone.transport.http_exchange import HttpResponse
from mcp_touchstone.transport.http_requests import HttpRequests, RequestRate
from mcp_touchstone.transport.http_server import LOOK, HttpServer
from mcp_touchstone.transport.http_session import (
    NOT_FOUND,
    HttpSession,
    can_continue,
    delay,
    last_id,
)
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.transport.pipes import Gone
from mcp_touchstone.transport.process import Ending, ServerProcess, Step, left, now
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.exchange import Exchange, Headers, Origin
from mcp_touchstone.wire.framing import Line, read
from mcp_touchstone.wire.http_headers import AUTHORIZATION

EXITING: Final = 0.2
"""Greatest seconds from the loss of a connection to the exit of a server that ends."""

LAST_WORDS: Final = 1.0
"""Greatest seconds for the DELETE of a session."""

MOST_RESUMED: Final = 10
"""Times that a stream is resumed after the server closed it."""

UNAUTHORIZED: Final = 401
NOT_ALLOWED: Final = 405


class HttpChannel(HttpServer):
    """One session over HTTP, or the stateless requests of one connection.

    Args:
        server: the process, if we started it.
        startup: seconds that it may take until it accepts connections.
        secrets: further headers of each request, which are never recorded.
        born: time of the start.
        rate: keeps a distance between requests; None for none.
        is_guest: whether the process serves another channel, which ends it.
    """

    transport = Transport.HTTP

    def __init__(
        self,
        endpoint: Endpoint,
        transcript: LiveTranscript,
        *,
        server: ServerProcess | None = None,
        startup: float = 0.0,
        secrets: Mapping[str, str] = {},
        born: float | None = None,
        rate: RequestRate | None = None,
        is_guest: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.session = HttpSession(transcript.revision, endpoint.authority, secrets)
        self.is_guest = is_guest
        self.born = now() if born is None else born
        self._server = server
        self._startup = startup if server is not None else 0.0
        self.transcript = transcript
        self.ending: Ending | None = None
        self._requests = HttpRequests(
            endpoint,
            self.session,
            transcript.exchanges,
            born=self.born,
            rate=rate,
            started=server is not None,
            heard=self._heard,
            changed=self._changed,
        )
        self.hidden, self.hide = self._requests.hidden, self.session.conceal
        self._responses: dict[int, HttpResponse] = {}
        self._streams: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._sending_get = threading.Lock()

    def another(self, transcript: LiveTranscript) -> "HttpChannel":
        """Return a channel for another session on the same process, which this one ends."""
        return HttpChannel(
            self.endpoint,
            transcript,
            server=self._server,
            secrets=self.session.given,
            rate=self._requests.rate,
            is_guest=True,
        )

    @property
    def session_ended(self) -> bool:
        """Whether the server ended the session, so that no message can be sent any more."""
        return bool(self.session.expired)

    # --- sending

    def say(
        self, said: Sequence[Said], seconds: float, cuts: Sequence[int] = (), pause: float = 0.0
    ) -> None:
        """Send each message as a POST; wait for the response to each that is no proper request.

        Raises:
            Gone: the server cannot be reached, does not read, or has ended the session.
        """
        for one in said:
            body = one.raw.rstrip(b"\n")
            places = [0, *(cut for cut in cuts if cut < len(body)), len(body)]
            self._post(one, seconds, [body[i:j] for i, j in itertools.pairwise(places)], pause)

    def _post(self, said: Said, seconds: float, pieces: Sequence[bytes], pause: float) -> None:
        if closed := self.session.closed:
            raise Gone(closed)
        self._await_start()
        if (line := self.session.withdrawn(said.value)) is not None:
            self._responses[line].leave()
            what = f"we closed the response to line {line}, in place of a message"
            self.transcript.happened(what)
            return
        asks = self.session.asks(said.value, said.n)
        if not asks:
            self._requests.let_arrive()
        headers = self.session.post(said.value, sum(map(len, pieces)))
        response = self._responses[said.n] = self._requests.begin("POST", headers, said.n)
        self._requests.send(response, headers, seconds, pieces, pause=pause)
        if self.transcript[said.n].malformed:  # on a pipe too, it is read before the next message
            response.closed.wait(seconds)
        elif not asks:
            response.headed.wait(seconds)
            self._note(response)
            if not self._streams and self.session.opens_listening(said.value, response.exchange):
                self._listen(None, None)

    # --- requests as a caller writes them

    def ordinary_headers(self, verb: str, value: object, length: int) -> Headers:
        """Return the headers that a request would have, secret values included.

        Args:
            value: the message in its body; None for none.
            length: bytes of its body.
        """
        self._requests.authorize()
        own = {"POST": lambda: self.session.post(value, length), "GET": self.session.get}
        return self.session.complete(own.get(verb, self.session.named)())

    def exchange(
        self,
        verb: str,
        path: str,
        headers: Headers,
        pieces: Sequence[bytes],
        seconds: float,
        *,
        line: int = 0,
        pause: float = 0.0,
        keeps: bool = False,
        after: HttpResponse | None = None,
    ) -> HttpResponse:
        """Send a request exactly as given, and begin to read its response.

        Nothing is checked, added or repaired: two ``Host`` headers, a wrong ``Content-Length`` or
        half a body are sent as they are. A stream that breaks off is not resumed.

        Args:
            path: the target of the request.
            headers: all of its headers, in order.
            pieces: its body, as it is written, with a pause after each piece.
            seconds: limit for the connection, and for each piece.
            line: number of the line of the transcript that it carries; 0 for none.
            keeps: whether its connection stays open for the next request.
            after: the response whose open connection is used; None for one of its own.

        Returns:
            The response. If the server was not reached, it is closed, and its exchange has the
            fault.
        """
        if not self.session.is_left:
            self._await_start()
        response = self._requests.begin(verb, headers, line, crafted=True, keeps=keeps)
        if path != self.endpoint.path:
            response.exchange.target = self._requests.hidden(path)
        if line:
            self._responses[line] = response
        with contextlib.suppress(Gone):
            self._requests.send(
                response, headers, seconds, pieces, pause=pause, path=path, after=after
            )
        return response

    # --- hearing, in the threads that read responses

    def _heard(self, line: Line, origin: Origin) -> bool:
        raw = self.session.hide(line.raw)
        if raw != line.raw:
            line = Line(raw, len(raw))
        exchange = origin.exchange
        if exchange.status == NOT_FOUND:
            self._expire(self.session.expires(exchange, read(line).value), exchange)
        with self.transcript.changing():  # who waits for it sends the next request with its headers
            self.transcript.heard(line, origin)
            if exchange.line and self.session.teaches(line.raw):
                found = self.transcript.answer_to(exchange.line)
                with self._lock:
                    if found is not None:
                        self.session.learn(found[1].method, found[1].value, exchange)
        return not self.transcript.overflow

    def _changed(self, response: HttpResponse) -> None:
        exchange = response.exchange
        if response.closed.is_set():
            self.transcript.took(exchange)
            self._expire(self.session.expires(exchange), exchange)
            if exchange.status == UNAUTHORIZED and not exchange.crafted:
                self.endpoint.tokens.refused()
            is_ours = exchange.line or exchange.crafted
            if is_ours and not exchange.left and not self.session.is_left:
                self._note(response)
                # a resumed stream is resumed again by the thread that follows it
                if self._resumes(exchange):
                    self._listen(exchange.events[-1].id, exchange)
        with self.transcript.changing():
            pass  # wake those that wait for the exchange

    def _resumes(self, exchange: Exchange) -> bool:
        answered = self.transcript.answer_to(exchange.line) is not None
        return self.session.resumes(exchange, answered=answered)

    def _expire(self, why: str, exchange: Exchange) -> None:
        """Record the end of our session, if there is a reason."""
        if why:
            # recorded before anybody can send the next request, which then needs no answer
            self.transcript.session_ended(exchange.line, f"the server {why}")
            with self._lock:
                self.session.expire(why)

    def _note(self, response: HttpResponse) -> None:
        """Record a response without a message, once."""
        exchange = response.exchange
        with self._lock:
            known, response.noted = response.noted, True
        if known or exchange.messages or (exchange.streams and not exchange.fault):
            response.noted = known
            return
        text = exchange.body[:200].decode("utf-8", "replace").strip()
        shown = f": {' '.join(text.split())}" if text else ""
        what = f"line {exchange.line}" if exchange.line else f"that {exchange.verb}"
        self.transcript.happened(f"to {what}: {exchange}{shown}")

    def _listen(self, last: str | None, resumed: Exchange | None) -> None:
        thread = threading.Thread(target=self._follow, args=(last, resumed), daemon=True)
        thread.start()  # before it is listed: a thread that has not started cannot be joined
        self._streams.append(thread)

    def _follow(self, last: str | None, resumed: Exchange | None) -> None:
        """Read the listening stream, or the rest of the response to a request."""
        seconds = 0.0 if resumed is None else delay(resumed)
        for _ in range(MOST_RESUMED):
            if self._left.wait(seconds):
                return
            headers = self.session.get(last)
            with self._sending_get:
                if not self.session.may_listen:
                    return
                line = 0 if resumed is None else resumed.line
                try:
                    response = self._requests.begin("GET", headers, line)
                    if line:
                        self._responses[line] = response
                    self._requests.send(response, headers, LAST_WORDS)
                except Gone:
                    return
            response.headed.wait()
            exchange = response.exchange
            if resumed is None and exchange.status not in {0, NOT_ALLOWED} and not exchange.streams:
                sentence = f"{Happened.REQUESTED}GET {self.endpoint.path}: {exchange}"
                exchange.event_line = self.transcript.happened(self.hidden(sentence))
            response.closed.wait()
            if not can_continue(exchange):
                return
            if resumed is not None and self.transcript.answer_to(line) is not None:
                return
            last, seconds = last_id(exchange, last), delay(exchange)

    # --- no answer

    def silence(self, line: int) -> str:
        """Return why no answer to the request on a line can come any more; empty if it can."""
        response = self._responses.get(line)
        if response is None:
            return f"the server {self.session.expired}" if self.session.expired else ""
        if not response.closed.is_set() or self.transcript.overflow:
            return ""
        exchange = response.exchange
        # this thread may be ahead of the one that read the response
        self._expire(self.session.expires(exchange), exchange)
        if self._resumes(exchange):
            return ""
        if exchange.left:
            return "we closed its response"
        if exchange.fault and self._server is not None:
            status = self._server.wait(EXITING)
            if status is not None:
                return left(status)
        lost = f"; {exchange.lost}" if exchange.lost and exchange.messages else ""
        ended = f"its stream ended without an answer ({exchange}{lost})"
        return ended if exchange.streams else str(exchange)

    @property
    def _first(self) -> Exchange | None:
        return next((one for one in self.transcript.exchanges if one.line), None)

    @property
    def bars(self) -> bool:
        """Whether the status of the first response keeps us out, so that nothing is judged."""
        return self._first is not None and self._first.status in http_advice.BARRED

    def advice(self) -> str:
        """Return why the first request got no answer, and the remedy; empty if it is unknown."""
        first = self._first
        if first is None or not self.running or (first.messages and not self.bars):
            return ""
        if self._server is not None and not first.status and first.fault:
            return (
                f"{self.endpoint.url}: the server that we started was not reached there: "
                f"{first.fault}; does its command take {PORT}?"
            )
        old = first.status in {400, 404, 405} and self._is_old_transport()
        given = self.endpoint.tokens.option if first.said(AUTHORIZATION) else ""
        return http_advice.about(first, self.endpoint.url, given, old=old)

    def _is_old_transport(self) -> bool:
        """Return whether a GET opens the stream of HTTP+SSE (2024-11-05)."""
        headers = self.session.get()
        response = self._requests.begin("GET", headers)
        with contextlib.suppress(Gone):
            self._requests.send(response, headers, LAST_WORDS)
            until = now() + LAST_WORDS
            while not response.exchange.events and now() < until:
                if response.closed.wait(LOOK):
                    break
        response.leave()
        return any(event.name == "endpoint" for event in response.exchange.events)

    # --- the end

    def end(self, patience: float, *, polite: bool = True, hurry: float | None = None) -> Ending:
        """End the session, close every connection, and end the server if we started it."""
        if self.ending is not None:
            return self.ending
        if polite and self.session.id is not None and self.running and not self.session.expired:
            with self._sending_get:
                self.session.is_ending = True
            self._delete(min(LAST_WORDS, patience))
        self._leave(0.5)
        if self._owned is not None:
            ending = self._owned.end(patience, polite=False, hurry=hurry)
            self.transcript.happened(f"the server {ending}")
        else:
            ending = Ending(Step.LEFT, 0, 0.0)
            self.transcript.happened("the connection ended")
        self.ending = ending
        self.transcript.finished()
        return ending

    def _delete(self, seconds: float) -> None:
        headers = self.session.named()
        with contextlib.suppress(Gone):
            response = self._requests.begin("DELETE", headers)
            self._requests.send(response, headers, seconds)
            response.headed.wait(seconds)

    def _leave(self, seconds: float = 0.0) -> None:
        self.session.is_left = True
        self._left.set()
        self._requests.leave(seconds)

    def kill(self) -> None:
        """Close every connection and kill the server if we started it; ``end`` must be called."""
        self._leave()
        if self._owned is not None:
            self._owned.kill()

    def join(self, seconds: float) -> None:
        """Wait for the threads of the channel, after its end."""
        for thread in self._streams:
            thread.join(seconds)
        if self._owned is not None:
            self._owned.pipes.join(seconds)
