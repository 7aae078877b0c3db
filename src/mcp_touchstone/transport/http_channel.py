"""Streamable HTTP: each message of ours is a POST; messages of the server come in responses.

Sources: basic/transports#streamable-http of 2025-03-26 to 2025-11-25, and
basic/transports/streamable-http of 2026-07-28.
"""

import contextlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.transport import http_advice
from mcp_touchstone.transport.channel import Said
from mcp_touchstone.transport.deadline import Patience
from mcp_touchstone.transport.http_endpoint import PORT, Endpoint
from mcp_touchstone.transport.http_exchange import HttpResponse, request_bytes
from mcp_touchstone.transport.process import (
    Ending,
    Gone,
    ServerProcess,
    Step,
    now,
    signal_name,
    sleep,
)
from mcp_touchstone.transport.tokens import AUTHORIZATION, TokenError
from mcp_touchstone.wire.exchange import EVENTS, JSON, Exchange, Headers, Origin
from mcp_touchstone.wire.framing import CUT, Line, id_key, read
from mcp_touchstone.wire.http_headers import SESSION, VERSION, Path, annotated, repeated
from mcp_touchstone.wire.transcript import Transcript

AGENT: Final = f"mcp-touchstone/{__version__}"

WITH_VERSION: Final = "2025-06-18"
"""The first revision with the header ``MCP-Protocol-Version``."""

ARRIVING: Final = 0.05
"""Seconds a request has to arrive before a notification is sent: each has its own connection."""

LINES_KEPT: Final = 100
"""Lines of the output of an HTTP server that are kept for people."""

HIDDEN: Final = b"(hidden)"
"""Replaces a secret in a record."""

SECRET_LENGTH: Final = 8
"""Least characters of a part of a header that is hidden; a shorter one could be a common word."""

LOOK: Final = 0.02
"""Seconds between two attempts to reach a server that starts."""

EXITING: Final = 0.2
"""Greatest seconds from the loss of a connection to the exit of a server that ends."""

LAST_WORDS: Final = 1.0
"""Greatest seconds for the DELETE of a session."""

MOST_RESUMED: Final = 10
"""Times that a stream is resumed after the server closed it."""

LONGEST_RETRY: Final = 5.0
"""Greatest delay in seconds before a stream is resumed."""

OK: Final = range(200, 300)
UNAUTHORIZED: Final = 401
NOT_FOUND: Final = 404
NOT_ALLOWED: Final = 405

OF_THE_REQUEST: Final = frozenset({-32601, -32602, -32002})
"""Codes of errors about a method, its parameters or a resource; some servers send them with 404."""


class RequestRate:
    """Keeps a distance between the requests of all channels to one server.

    Args:
        most: greatest number of requests a second.
        clock: returns the time in seconds.
        pause: waits some seconds.
    """

    def __init__(
        self,
        most: float,
        clock: Callable[[], float] = now,
        pause: Callable[[float], object] = sleep,
    ) -> None:
        self._distance = 1 / most
        self._clock = clock
        self._pause = pause
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        with self._lock:
            begin = max(self._clock(), self._next)
            self._next = begin + self._distance
        if (left := begin - self._clock()) > 0:
            self._pause(left)


class ServerOutput:
    """The standard output of an HTTP server: no messages, but it may say why it does not start.

    Attributes:
        tail: the last lines.
    """

    def __init__(self) -> None:
        self.ended = False
        self.overflow = ""
        self.tail: deque[bytes] = deque(maxlen=LINES_KEPT)

    def heard(self, line: Line) -> None:
        """Keep a line."""
        self.tail.append(line.raw[:CUT])

    def happened(self, sentence: str) -> None:
        """Ignore it."""

    def input_closed(self) -> None:
        """Ignore it."""

    def finished(self) -> None:
        """Record the end of the output."""
        self.ended = True


class Session:
    """The facts of a session that later requests repeat.

    Attributes:
        id: the session id; None for none.
        version: the negotiated revision; empty before.
        tools: name of a tool -> its parameters that headers repeat.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.version = ""
        self.tools: dict[str, tuple[tuple[Path, str], ...]] = {}


class HttpChannel:
    """One session over HTTP, or the stateless requests of one connection.

    Args:
        endpoint: the server.
        transcript: the record of the connection.
        server: the process, if we started it.
        startup: seconds that it may take until it accepts connections.
        secrets: further headers of each request, which are never recorded.
        born: time of the start.
        rate: keeps a distance between requests; None for none.
        is_guest: whether the process serves another channel, which ends it.

    Attributes:
        session: the session.
        is_guest: as above.
    """

    transport = Transport.HTTP

    def __init__(
        self,
        endpoint: Endpoint,
        transcript: Transcript,
        *,
        server: ServerProcess | None = None,
        startup: float = 0.0,
        secrets: Mapping[str, str] = {},
        born: float | None = None,
        rate: RequestRate | None = None,
        is_guest: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.is_guest = is_guest
        self._rate = rate
        self.transcript = transcript
        self.session = Session()
        self.born = now() if born is None else born
        self.ending: Ending | None = None
        self._server = server
        self._startup = startup if server is not None else 0.0
        self._secrets = dict(secrets)
        self._hidden: list[bytes] = []
        self.hide(*secrets.values())
        self._numbers = itertools.count(1)
        self._responses: dict[int, HttpResponse] = {}
        self._asked: dict[Any, int] = {}
        self._open: set[HttpResponse] = set()
        self._streams: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._leaving = threading.Event()
        self._sending_get = threading.Lock()
        self._no_more_gets = False
        self._expired = ""

    @property
    def started(self) -> bool:
        """Whether we started the server."""
        return self._server is not None

    @property
    def process(self) -> ServerProcess:
        """The process of the server.

        Raises:
            LookupError: we did not start it, or it serves another channel.
        """
        if self._server is None:
            raise LookupError("the server was not started by us")
        if self.is_guest:
            raise LookupError("the process serves another session, too")
        return self._server

    def addresses(self) -> list[str]:
        """Return the addresses on which a server that we started listens; empty if unknown."""
        return [] if self._server is None else self._server.addresses(self.endpoint.port)

    def another(self, transcript: Transcript) -> "HttpChannel":
        """Return a channel for another session on the same process, which this one ends."""
        return HttpChannel(
            self.endpoint,
            transcript,
            server=self._server,
            secrets=self._secrets,
            rate=self._rate,
            is_guest=True,
        )

    @property
    def _owned(self) -> ServerProcess | None:
        """The process that this channel ends; None for none."""
        return None if self.is_guest else self._server

    @property
    def running(self) -> bool:
        """Whether the server has not exited, as far as we know."""
        if self._server is not None:
            return self._server.running
        return not self._leaving.is_set()

    @property
    def session_ended(self) -> bool:
        """Whether the server ended the session, so that no message can be sent any more."""
        return bool(self._expired)

    @property
    def status(self) -> int | None:
        """Exit status of the server; None while it runs, or if we did not start it."""
        return None if self._server is None else self._server.status

    @property
    def stderr_tail(self) -> bytes:
        """The end of the server's stderr."""
        return b"" if self._server is None else self._hide(self._server.stderr_tail)

    def logs(self, secret: str) -> bool:
        """Return whether the end of the server's stderr, or of its output, has a secret."""
        if self._server is None:
            return False
        output = self._server.transcript
        lines = output.tail if isinstance(output, ServerOutput) else ()
        return secret.encode() in b"\n".join((self._server.stderr_tail, *lines))

    def stderr(self) -> str:
        """Return the end of the server's stderr as text, or that of its output if it has none."""
        if self._server is None:
            return ""
        output = self._server.transcript
        lines = output.tail if isinstance(output, ServerOutput) else ()
        text = self._server.stderr() or b"\n".join(lines).decode("utf-8", "replace")
        return self._hide(text.encode()).decode()

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit of the server; return None if we did not start it."""
        return None if self._server is None else self._server.wait(seconds)

    def patience(self, seconds: float) -> Patience:
        """Begin to wait for the server."""
        if self._server is None:
            return Patience(seconds, dict, now)
        return self._server.patience(seconds)

    def take_unfinished(self) -> bool:
        """Return False: a body ends with its response."""
        return False

    @property
    def modern(self) -> bool:
        """Whether the connection is stateless."""
        return rev.is_modern(self.transcript.revision)

    # --- sending

    def say(self, said: Sequence[Said], seconds: float) -> None:
        """Send each message as a POST; wait for the response to each that is no proper request.

        Raises:
            Gone: the server cannot be reached, does not read, or has ended the session.
        """
        for one in said:
            self._post(one, seconds, [one.raw.rstrip(b"\n")])

    def say_in_pieces(self, said: Said, cuts: Sequence[int], pause: float, seconds: float) -> None:
        """Send a message as the body of a POST, in pieces.

        Raises:
            Gone: the server cannot be reached, or does not read.
        """
        body = said.raw.rstrip(b"\n")
        places = [0, *(cut for cut in cuts if cut < len(body)), len(body)]
        pieces = [body[begin:end] for begin, end in itertools.pairwise(places)]
        self._post(said, seconds, pieces, pause)

    def _post(
        self, said: Said, seconds: float, pieces: Sequence[bytes], pause: float = 0.0
    ) -> None:
        if self._leaving.is_set():
            raise Gone("gets no more messages: we closed the connection")
        if self._expired:
            raise Gone(self._expired)
        self._await_start()
        if self._takes_back(said):
            return
        keys = list(_requests(said.value))
        if not keys:
            self._let_arrive()
        for key in keys:
            self._asked[key] = said.n
        headers = (*_post_headers(sum(map(len, pieces))), *self._headers(said.value))
        response = self._begin("POST", self._shown(headers), said.n)
        self._responses[said.n] = response
        self._send(response, headers, pieces, seconds, pause)
        if self.transcript[said.n].malformed:  # on a pipe too, it is read before the next message
            response.closed.wait(seconds)
        elif not keys:
            response.headed.wait(seconds)
            self._note(response)
            self._after(said, response.exchange)

    def _send(
        self,
        response: HttpResponse,
        headers: Headers,
        pieces: Sequence[bytes],
        seconds: float,
        pause: float = 0.0,
    ) -> None:
        head = request_bytes(response.exchange.verb, self.endpoint.path, self._complete(headers))
        self._write(response, head, pieces, seconds, pause)

    def _shown(self, headers: Headers) -> Headers:
        """Return headers for the record."""
        return (*headers, *((name, HIDDEN.decode()) for name in self._credentials()))

    def _credentials(self) -> dict[str, str]:
        """Return the headers that are never recorded.

        Raises:
            Gone: there is no token.
        """
        tokens = self.endpoint.tokens
        if tokens is None:
            return self._secrets
        try:
            own = tokens.own()
        except TokenError as error:
            raise Gone(f"got no request: {error}") from error
        if not own:
            return self._secrets
        self.hide(own)
        return {**self._secrets, AUTHORIZATION: f"Bearer {own}"}

    def hide(self, *values: str) -> None:
        """Keep values out of all records from now on."""
        parts = {*_secret_parts(values)}.difference(self._hidden)
        if parts:
            self._hidden = sorted({*self._hidden, *parts}, key=len, reverse=True)

    def _complete(self, headers: Headers) -> Headers:
        """Return the headers of a request with those that every request has."""
        return (
            ("Host", self.endpoint.authority),
            ("User-Agent", AGENT),
            *headers,
            *self._credentials().items(),
            ("Connection", "close"),
        )

    def _write(
        self,
        response: HttpResponse,
        head: bytes,
        pieces: Sequence[bytes],
        seconds: float,
        pause: float,
    ) -> None:
        if self._rate is not None:
            self._rate.wait()
        exchange = response.exchange
        first, *rest = pieces or [b""]
        try:
            response.send([head + first, *rest], seconds, lambda: sleep(pause))
        except OSError as error:
            raise Gone(f"was not reached: {exchange.fault}") from error

    # --- requests as a caller writes them

    def ordinary_headers(self, verb: str, value: Any, length: int) -> Headers:
        """Return the headers that a request would have, secret values included.

        Args:
            verb: the HTTP method.
            value: the message in its body; None for none.
            length: bytes of its body.
        """
        if verb == "POST":
            return self._complete((*_post_headers(length), *self._headers(value)))
        accept = (("Accept", EVENTS),) if verb == "GET" else ()
        return self._complete((*accept, *self._session_headers()))

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
    ) -> HttpResponse:
        """Send a request exactly as given, and begin to read its response.

        Nothing is checked, added or repaired: two ``Host`` headers, a wrong ``Content-Length`` or
        half a body are sent as they are. A stream that breaks off is not resumed.

        Args:
            verb: the HTTP method.
            path: the target of the request.
            headers: all of its headers, in order.
            pieces: its body, as it is written, with a pause after each piece.
            seconds: limit for the connection, and for each piece.
            line: number of the line of the transcript that it carries; 0 for none.
            pause: seconds.

        Returns:
            The response. If the server was not reached, it is closed, and its exchange has the
            fault.
        """
        if not self._leaving.is_set():
            self._await_start()
        shown = tuple((name, self.hidden(value)) for name, value in headers)
        response = self._begin(verb, shown, line)
        response.exchange.crafted = True
        if line:
            self._responses[line] = response
        with contextlib.suppress(Gone):
            self._write(response, request_bytes(verb, path, headers), pieces, seconds, pause)
        return response

    def _begin(self, verb: str, sent: Headers, line: int) -> HttpResponse:
        with self._lock:
            exchange = Exchange(
                number=next(self._numbers),
                verb=verb,
                line=line,
                sent=sent,
                began=now() - self.born,
            )
            self.transcript.exchanges.append(exchange)
            response = HttpResponse(
                exchange,
                self.endpoint,
                lambda: now() - self.born,
                self._heard,
                lambda: self._changed(response),
                hidden=self.hidden,
            )
            self._open.add(response)
        return response

    def _changed(self, response: HttpResponse) -> None:
        if response.closed.is_set():
            exchange = response.exchange
            exchange.body = self._hide(exchange.body)
            with self._lock:
                self._open.discard(response)
            self._check_expiry(exchange)
            if exchange.status == UNAUTHORIZED and not exchange.crafted and self.endpoint.tokens:
                self.endpoint.tokens.refused()
            is_ours = exchange.line or exchange.crafted
            if is_ours and not exchange.left and not self._leaving.is_set():
                self._note(response)
                # a resumed stream is resumed again by the thread that follows it
                first = exchange.verb == "POST" and not exchange.crafted
                if first and self._resumes(exchange):
                    self._listen(exchange.events[-1].id, exchange)
        self.transcript.changed()

    def _check_expiry(self, exchange: Exchange, answer: Any = None) -> None:
        """Record the end of our session, if a response says that the server ended it.

        A GET may get 404 from a server that has no listening stream.

        Source: 2025-11-25 basic/transports#session-management.

        Args:
            exchange: the request and its response.
            answer: the message in the response; None for none.
        """
        known = self.session.id
        if exchange.status != NOT_FOUND or exchange.verb != "POST" or exchange.crafted:
            return
        if known is None or exchange.said(SESSION) != known or self._leaving.is_set():
            return
        if answer is None and exchange.messages:
            return  # it was checked when the message came
        said = answer if isinstance(answer, dict) else {}
        error = said.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        if "result" in said or (isinstance(code, int) and code in OF_THE_REQUEST):
            return
        why = f"ended the session: HTTP 404 to line {exchange.line}"
        # recorded before anybody can send the next request, which then needs no answer
        self.transcript.session_ended(exchange.line, f"the server {why}")
        self._expired = self._expired or why

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

    def _headers(self, value: Any) -> Headers:
        if self.modern:
            return repeated(value, self.transcript.revision, self.session.tools)
        opening = isinstance(value, dict) and value.get("method") == "initialize"
        return () if opening else tuple(self._session_headers())

    def _session_headers(self) -> Iterator[tuple[str, str]]:
        if self.session.id is not None:
            yield SESSION, self.session.id
        if self.session.version >= WITH_VERSION:
            yield VERSION, self.session.version

    def _let_arrive(self) -> None:
        """Give open requests a moment to arrive: a notification may concern one of them."""
        until = now() + ARRIVING
        with self._lock:
            waiting = [one for one in self._open if one.exchange.line]
        for response in waiting:
            response.headed.wait(max(0.0, until - now()))

    def _await_start(self) -> None:
        """Wait until a server that we started accepts connections, at its first message.

        Raises:
            Gone: it has exited, or accepts none in time.
        """
        if not self._startup:
            return
        until = self.born + self._startup
        while now() < until and not self._leaving.is_set():
            try:
                self.endpoint.connect(until - now()).close()
            except OSError:
                if not self.process.running:
                    break
                sleep(LOOK)
            else:
                self._startup = 0.0
                return
        self._startup = 0.0

    def _takes_back(self, said: Said) -> bool:
        """Close the stream of a request that is cancelled in 2026-07-28, in place of a message.

        Source: 2026-07-28 basic/transports/streamable-http#cancellation.
        """
        value = said.value if isinstance(said.value, dict) else {}
        if not self.modern or value.get("method") != "notifications/cancelled":
            return False
        params = value.get("params")
        key = id_key(params.get("requestId")) if isinstance(params, dict) else None
        line = self._asked.get(key)
        if line is None:
            return False
        self._responses[line].leave()
        self.transcript.happened(f"we closed the response to line {line}, in place of a message")
        return True

    # --- hearing

    def _heard(self, line: Line, origin: Origin) -> bool:
        raw = self._hide(line.raw)
        if raw != line.raw:
            line = Line(raw, len(raw))
        exchange = origin.exchange
        if exchange.status == NOT_FOUND:
            self._check_expiry(exchange, read(line).value)
        self.transcript.heard(line, origin)
        if self.modern:
            if b"x-mcp-header" in line.raw:
                self._learn(exchange.line)
        elif exchange.line and not self.session.version:
            self._open_session(exchange)
        return not self.transcript.overflow

    def _hide(self, raw: bytes) -> bytes:
        """Replace secrets that the server repeats, so that no record has them."""
        for secret in self._hidden:
            raw = raw.replace(secret, HIDDEN)
        return raw

    def hidden(self, text: str) -> str:
        """Return a text for the record, with secrets replaced."""
        return self._hide(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")

    def _open_session(self, exchange: Exchange) -> None:
        found = self.transcript.answer_to(exchange.line)
        if found is None or found[1].method != "initialize":
            return
        result = found[1].value.get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        if isinstance(version, str):
            self.session.version = version
            self.session.id = exchange.header(SESSION)

    def _learn(self, line: int) -> None:
        found = self.transcript.answer_to(line) if line else None
        result = found[1].value.get("result") if found is not None else None
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self.session.tools[tool["name"]] = tuple(annotated(tool.get("inputSchema")))

    def _after(self, said: Said, exchange: Exchange) -> None:
        value = said.value if isinstance(said.value, dict) else {}
        opened = value.get("method") == "notifications/initialized" and exchange.status in OK
        if opened and not self.modern and not self._streams:
            self._listen(None, None)

    def _resumes(self, exchange: Exchange) -> bool:
        """Return whether a stream ended before its answer and can be resumed."""
        if self.modern or self._expired or not exchange.streams or not exchange.events:
            return False
        unanswered = self.transcript.answer_to(exchange.line) is None
        return unanswered and exchange.events[-1].id is not None

    def _listen(self, last: str | None, resumed: Exchange | None) -> None:
        thread = threading.Thread(target=self._follow, args=(last, resumed), daemon=True)
        thread.start()  # before it is listed: a thread that has not started cannot be joined
        self._streams.append(thread)

    def _follow(self, last: str | None, resumed: Exchange | None) -> None:
        """Read the listening stream, or the rest of the response to a request."""
        delay = 0.0 if last is None else _delay(resumed)
        for _ in range(MOST_RESUMED):
            if self._leaving.wait(delay) or self._expired:
                return
            headers: Headers = (("Accept", EVENTS), *self._session_headers())
            if last is not None:
                headers = (*headers, ("Last-Event-ID", last))
            with self._sending_get:
                if self._no_more_gets:
                    return
                response = self._begin(
                    "GET", self._shown(headers), 0 if resumed is None else resumed.line
                )
                if resumed is not None:
                    self._responses[resumed.line] = response
                try:
                    self._send(response, headers, (), LAST_WORDS)
                except Gone:
                    return
            response.headed.wait()
            exchange = response.exchange
            if resumed is None and exchange.status not in {0, NOT_ALLOWED} and not exchange.streams:
                sentence = f"we sent GET {self.endpoint.path}: {exchange}"
                exchange.event_line = self.transcript.happened(self.hidden(sentence))
            response.closed.wait()
            if exchange.status not in OK or not exchange.streams or exchange.left:
                return
            if resumed is not None and self.transcript.answer_to(resumed.line) is not None:
                return
            last = next((one.id for one in reversed(exchange.events) if one.id), last)
            delay = _delay(exchange)

    def silence(self, line: int) -> str:
        """Return why no answer to the request on a line can come any more; empty if it can."""
        response = self._responses.get(line)
        if response is None:
            return f"the server {self._expired}" if self._expired else ""
        if not response.closed.is_set() or self.transcript.overflow:
            return ""
        exchange = response.exchange
        self._check_expiry(exchange)  # this thread may be ahead of the one that read the response
        if (
            not exchange.crafted
            and exchange.verb == "POST"
            and self._resumes(exchange)
            and not self._leaving.is_set()
        ):
            return ""
        if exchange.left:
            return "we closed its response"
        if exchange.fault and self._server is not None:
            status = self._server.wait(EXITING)
            if status is not None:
                how = f"status {status}" if status >= 0 else signal_name(-status)
                return f"the server left ({how})"
        is_cut = exchange.streams and exchange.messages
        lost = f"; {exchange.lost}" if exchange.lost else ""
        return f"its stream ended without an answer ({exchange}{lost})" if is_cut else str(exchange)

    def advice(self) -> str:
        """Return why the first request got no answer, and the remedy; empty if it is unknown."""
        first = next((one for one in self.transcript.exchanges if one.line), None)
        if first is None or not self.running:
            return ""
        if first.messages and first.status not in http_advice.BARRED:
            return ""
        if self._server is not None and not first.status and first.fault:
            return (
                f"{self.endpoint.url}: the server that we started was not reached there: "
                f"{first.fault}; does its command take {PORT}?"
            )
        old = first.status in {400, 404, 405} and self._is_old_transport()
        given = f"--header {AUTHORIZATION}" if first.said(AUTHORIZATION) else ""
        if given and self.endpoint.tokens is not None:
            given = self.endpoint.tokens.option
        return http_advice.about(first, self.endpoint.url, given, old=old)

    @property
    def bars(self) -> bool:
        """Whether the status of the first response keeps us out, so that nothing is judged."""
        first = next((one for one in self.transcript.exchanges if one.line), None)
        return first is not None and first.status in http_advice.BARRED

    def _is_old_transport(self) -> bool:
        """Return whether a GET opens the stream of HTTP+SSE (2024-11-05)."""
        headers: Headers = (("Accept", EVENTS),)
        response = self._begin("GET", self._shown(headers), 0)
        with contextlib.suppress(Gone):
            self._send(response, headers, (), LAST_WORDS)
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
        if polite and self.session.id is not None and self.running and not self._expired:
            with self._sending_get:  # a GET that follows the DELETE would name an ended session
                self._no_more_gets = True
            self._delete(min(LAST_WORDS, patience))
        self._leave()
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
        headers = tuple(self._session_headers())
        response = self._begin("DELETE", self._shown(headers), 0)
        with contextlib.suppress(Gone):
            self._send(response, headers, (), seconds)
            response.headed.wait(seconds)

    def _leave(self) -> None:
        self._leaving.set()
        with self._lock:
            still = list(self._open)
        for response in still:
            response.leave()
        for response in still:
            response.join(0.5)

    def kill(self) -> None:
        """Close every connection and kill the server if we started it; ``end`` must be called."""
        self._leaving.set()
        with self._lock:
            still = list(self._open)
        for response in still:
            response.leave()
        if self._owned is not None:
            self._owned.kill()

    def join(self, seconds: float) -> None:
        """Wait for the threads of the channel, after its end."""
        for thread in self._streams:
            thread.join(seconds)
        if self._owned is not None:
            self._owned.join(seconds)


def _post_headers(length: int) -> Headers:
    return (
        ("Content-Type", JSON),
        ("Content-Length", str(length)),
        ("Accept", f"{JSON}, {EVENTS}"),
    )


def _secret_parts(values: Iterable[str]) -> Iterator[bytes]:
    """Yield each secret, and its parts: ``Bearer TOKEN`` is two."""
    for value in values:
        for part in (value, *value.split()):
            if len(part) >= SECRET_LENGTH:
                yield part.encode()


def _requests(value: Any) -> Iterator[Any]:
    """Yield the ids of the requests in a message or a batch."""
    for message in value if isinstance(value, list) else [value]:
        if isinstance(message, dict) and "method" in message:
            key = id_key(message.get("id"))
            if key is not None:
                yield key


def _delay(exchange: Exchange | None) -> float:
    """Return the seconds before a stream is resumed: the last ``retry``, or a second."""
    events = [] if exchange is None else exchange.events
    retry = next((one.retry for one in reversed(events) if one.retry is not None), 1000)
    return min(LONGEST_RETRY, retry / 1000)
