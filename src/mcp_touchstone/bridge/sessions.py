"""The legacy revisions: one session, one process.

Source: basic/transports#session-management of 2025-03-26 to 2025-11-25.

On a pipe, an unsolicited message of the server belongs to no request; on HTTP it needs a stream.
Progress goes to the request with its token, news of lists and resources to the listening stream,
and all others, above all requests, to the request that was opened last, if one is open.
"""

import secrets
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from mcp_touchstone.bridge.child import Backend
from mcp_touchstone.bridge.exchanges import Exchanges, HttpExchange, is_request
from mcp_touchstone.http_server.refusals import INVALID_REQUEST, NO_SESSION, Refusal
from mcp_touchstone.http_server.streams import EventStream
from mcp_touchstone.transport.pipes import Gone
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import Kind, brief, encode, id_key, kind_of, object_in, value_in

BATCHING: Final = "2025-03-26"
"""The one revision that has batches."""

RESUMED: Final = 32
"""Greatest number of finished streams of a session that can be resumed."""

REPLAYED: Final = 32 * 1024 * 1024
"""Greatest total size in bytes of the messages of those streams."""

IDLE: Final = 3600.0
"""Seconds without a message, an open request or a listener after which a session ends."""

AFTERMATH: Final = 5.0
"""Seconds in which a cancelled request may still be answered."""

NEWS: Final = frozenset(
    {
        "notifications/resources/updated",
        "notifications/resources/list_changed",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/tasks/status",
        "notifications/elicitation/complete",
    }
)
"""Methods of notifications that belong to no request."""


class BridgeSession:
    """One client's session, and the process that serves it.

    Attributes:
        id: the ``Mcp-Session-Id``.
        revision: the negotiated revision; empty before.
        listening: the stream for a GET of the client.
        user: the subject of the access token that opened it; empty without one.
        used: time of the last message of the client, in seconds of ``process.now``.
    """

    def __init__(self, launch: Backend) -> None:
        self.id = secrets.token_urlsafe(24)
        self.revision = ""
        self.user = ""
        self.listening = EventStream(0)
        self.used = now()
        self._exchanges = Exchanges()
        self._questions: dict[Any, HttpExchange | None] = {}
        self._finished: deque[HttpExchange] = deque(maxlen=RESUMED)
        self._finishing = threading.Lock()
        self._log = launch.log
        self._child = launch.begin(self._hear, self._lost)

    @property
    def idle(self) -> bool:
        """Whether it has no open request and no listener."""
        return self._exchanges.idle and not self.listening.attached

    @property
    def running(self) -> bool:
        """Whether its process is running."""
        return self._child.running

    @property
    def resumable(self) -> bool:
        """Whether its clients accept an event without data, which lets them reconnect."""
        return self.revision >= "2025-11-25"

    def say(self, line: bytes, messages: Sequence[Any]) -> HttpExchange | None:
        """Send a line of the client; return the exchange of its answers, None if it needs none.

        Raises:
            Refusal: one of its ids is in use already, too many requests are open, or the server
                has exited.
        """
        self.used = now()
        exchange = None
        if any(map(is_request, messages)):
            exchange = self._exchanges.open(messages)
            if exchange is None:
                raise Refusal(400, INVALID_REQUEST, "the id is in use by a request in flight")
        try:
            self._child.send(line)
        except Gone as error:
            if exchange is not None:
                self._exchanges.drop(exchange)
            raise Refusal(502, NO_SESSION, f"the server {error}") from error
        for one in messages:
            if isinstance(one, dict):
                self._take_note(one)
        if exchange is not None:
            self._keep(exchange)
        return exchange

    def _keep(self, exchange: HttpExchange) -> None:
        """Keep a stream that can be resumed; drop the oldest ones if all are too large."""
        with self._finishing:
            self._finished.append(exchange)
            size = sum(one.size for one in self._finished)
            while size > REPLAYED and len(self._finished) > 1:
                size -= self._finished.popleft().size

    def open(self, exchange: HttpExchange) -> None:
        """Store the revision from the answer to ``initialize``; none if it is no result."""
        revision = value_in(exchange.answer, "result", "protocolVersion")
        self.revision = revision if isinstance(revision, str) else ""

    def stream(self, number: int) -> EventStream | None:
        """Return a stream to resume; None if no stream has that number any more."""
        if number == 0:
            return self.listening
        return next((one for one in list(self._finished) if one.number == number), None)

    def end(self) -> None:
        """End its process."""
        self.listening.close()
        self._child.end()

    def _take_note(self, message: Any) -> None:
        """Record which server request an answer closes, and which request is cancelled."""
        if "method" not in message:
            self._questions.pop(id_key(message.get("id")), None)
        if message.get("method") == "notifications/cancelled":
            key = id_key(value_in(message, "params", "requestId"))
            exchange = self._exchanges.waiting_for(key)
            if exchange is not None:
                exchange.close_after(AFTERMATH)

    def _lost(self, why: str) -> None:
        self._exchanges.drop_all(why)
        self.listening.close()

    # --- messages of the server

    def _hear(self, data: bytes, value: Any) -> None:
        if isinstance(value, list):
            for message in sorted(value, key=_names_a_request):
                self._route(encode(message).rstrip(b"\n"), message)
        else:
            self._route(data, value)

    def _route(self, data: bytes, message: Any) -> None:
        kind = kind_of(message)
        if kind in {Kind.RESULT, Kind.ERROR}:
            key = id_key(message.get("id"))
            if self._exchanges.answered(key, data, message) is None:
                self._stray(data, message)
        elif kind is Kind.ODD or not isinstance(message["method"], str):
            self._log(f"the server wrote a line that is no message: {brief(message)}")
        else:
            (self._for(message, kind) or self.listening).put(data)

    def _stray(self, data: bytes, message: Any) -> None:
        """Send an unexpected answer to an open exchange; a listening stream must not get it."""
        exchange = self._exchanges.newest() if message.get("id") is None else None
        if exchange is not None:
            exchange.put(data)
        else:
            self._log(f"the server answered a request that was not sent: {brief(message)}")

    def _for(self, message: Any, kind: Kind) -> EventStream | None:
        method, params = message["method"], object_in(message, "params")
        if kind is Kind.REQUEST:
            exchange = self._exchanges.newest()
            self._questions[id_key(message["id"])] = exchange
            return exchange
        if method == "notifications/progress":
            return self._exchanges.with_token(id_key(params.get("progressToken")))
        if method == "notifications/cancelled":
            asked_on = self._questions.pop(id_key(params.get("requestId")), None)
            return asked_on if asked_on is not None and not asked_on.closed else None
        return None if method in NEWS else self._exchanges.newest()


def _names_a_request(message: Any) -> bool:
    """Return False for an error without an id, which is sent before other members of a batch."""
    return not isinstance(message, dict) or message.get("id") is not None or "method" in message


class Sessions:
    """The open sessions by their ids, up to a greatest number.

    Attributes:
        used: whether there ever was one.
    """

    def __init__(self, launch: Backend, most: int) -> None:
        self.used = False
        self._launch = launch
        self._most = most
        self._all: dict[str, BridgeSession] = {}
        self._ending: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def begin(self) -> BridgeSession:
        """Start a process for a new session; ``find`` returns it after ``add``.

        Raises:
            LaunchError: it cannot be started.
            Refusal: 503, all are in use.
        """
        self._make_room()
        return BridgeSession(self._launch)

    def add(self, session: BridgeSession) -> None:
        """Make a session available to ``find``."""
        with self._lock:
            self.used = True
            late = self._closed
            if not late:
                self._all[session.id] = session
        if late:
            session.end()

    def find(self, id: str | None) -> BridgeSession:  # noqa: A002  (what it is)
        """Return a session.

        Raises:
            Refusal: 400 without an id, 404 for one that is unknown or ended.
        """
        if not id:
            raise Refusal(400, NO_SESSION, "this request needs an Mcp-Session-Id; send initialize")
        with self._lock:
            session = self._all.get(id)
        if session is None or not session.running:
            if session is not None:
                self.finish(session)
            raise Refusal(404, NO_SESSION, "there is no such session, or it is over")
        session.used = now()
        return session

    def finish(self, session: BridgeSession) -> None:
        """Remove a session at once, and end its process in the background."""
        thread = threading.Thread(target=session.end, daemon=True)
        with self._lock:
            self._all.pop(session.id, None)
            self._ending = [one for one in self._ending if one.is_alive()]
            self._ending.append(thread)
            thread.start()

    def expire(self) -> None:
        """End the sessions that were idle too long."""
        with self._lock:
            over = [one for one in self._all.values() if one.idle and now() - one.used > IDLE]
        for session in over:
            self.finish(session)

    def close(self) -> None:
        """End all sessions, and wait until they have ended."""
        with self._lock:
            self._closed = True
            left = list(self._all.values())
        for session in left:
            self.finish(session)
        for thread in self._ending:
            thread.join()

    def _make_room(self) -> None:
        with self._lock:
            if len(self._all) < self._most:
                return
            idle = [one for one in self._all.values() if one.idle or not one.running]
        if not idle:
            raise Refusal(503, NO_SESSION, f"all {self._most} sessions are in use")
        self.finish(min(idle, key=lambda one: one.used))
