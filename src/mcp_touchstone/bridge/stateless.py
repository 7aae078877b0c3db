"""2026-07-28: stateless requests, all served by one process.

On a pipe every client shares one channel, so ids and progress tokens are replaced by ours on the
way in and restored on the way out. Closing a stream cancels its request
(basic/transports/streamable-http#cancellation).
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_touchstone.bridge.child import Backend
from mcp_touchstone.bridge.exchanges import Exchanges, HttpExchange
from mcp_touchstone.bridge.headers import meta_of
from mcp_touchstone.bridge.parameters import Parameters
from mcp_touchstone.catalog.revision import LATEST_LEGACY, LATEST_MODERN, META
from mcp_touchstone.http_server.hosts import Headers
from mcp_touchstone.http_server.refusals import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    NO_SESSION,
    UNSUPPORTED_VERSION,
    Refusal,
)
from mcp_touchstone.transport.pipes import Gone
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import Kind, brief, encode, id_key, kind_of, object_in, value_in

LISTEN: Final = "subscriptions/listen"
SUBSCRIPTION: Final = META + "subscriptionId"
LOG_LEVEL: Final = META + "logLevel"

REMEMBERED: Final = 100
"""Greatest number of remembered cancelled requests."""

PAGES: Final = 50
"""Pages of tools to read for the arguments that are repeated in headers."""

ASIDE: Final = 10.0
"""Seconds one such page may take."""

_DIGITS: Final = 19
"""More digits than any of our numbers has."""

_META: Final = {
    META + "protocolVersion": LATEST_MODERN,
    META + "clientCapabilities": {},
    META + "clientInfo": {"name": "mcp-touchstone bridge", "version": "1"},
}

_INITIALIZE: Final = {
    "protocolVersion": LATEST_LEGACY,
    "capabilities": {},
    "clientInfo": _META[META + "clientInfo"],
}


class Stateless:
    """The process for all stateless requests; a new one is started after it exits.

    Args:
        startup: seconds it may take until its first answer.
    """

    def __init__(self, launch: Backend, startup: float) -> None:
        self._launch = launch
        self._startup = startup
        self._lock = threading.Lock()
        self._lane: SharedProcess | None = None
        self._legacy = False
        self._alone: bool | None = None

    @property
    def alone(self) -> bool:
        """Whether the server serves stateless requests, and refuses the handshake.

        ``server/discover`` need not list legacy revisions, so a process is asked, once. The client
        may ask before its first request, so the process for stateless requests is started too.

        Raises:
            LaunchError: it cannot be started.
            Refusal: 502, it has exited.
        """
        if self._alone is None:
            try:
                self.lane()
            except Refusal:
                if not self._legacy:
                    raise
        with self._lock:
            if self._alone is None and self._lane is not None:
                other = SharedProcess(self._launch)
                try:
                    asked = other.ask("initialize", _INITIALIZE, self._startup) or {}
                finally:
                    other.end()
                self._alone = "error" in asked
            return bool(self._alone)

    def lane(self) -> "SharedProcess":
        """Return the process, started and checked to support 2026-07-28.

        Raises:
            LaunchError: it cannot be started.
            Refusal: 400, it supports legacy revisions only.
        """
        with self._lock:
            if self._lane is None or not self._lane.running:
                if self._lane is not None:
                    self._lane.end()  # it has exited, but its pipes are still open
                if not self._legacy:
                    self._lane = self._start()
                if self._legacy:
                    why = "Bad Request: this server wants the initialize handshake"
                    raise Refusal(400, NO_SESSION, why)
            assert self._lane is not None  # noqa: S101  (started above, or refused)
            return self._lane

    def _start(self) -> "SharedProcess | None":
        """Start a process and detect its era, as a client on a pipe must.

        A legacy server may answer anything, or nothing (2026-07-28
        basic/transports/stdio#backward-compatibility).
        """
        lane = SharedProcess(self._launch)
        asked = lane.ask("server/discover", {"_meta": _META}, self._startup)
        if asked is None and not lane.running:
            lane.end()
            raise Refusal(502, NO_SESSION, lane.lost or "the server left")
        code = value_in(asked, "error", "code")
        if "supportedVersions" in object_in(asked, "result"):
            return lane
        if code in (UNSUPPORTED_VERSION, MISSING_CAPABILITY, HEADER_MISMATCH):
            return lane
        self._legacy = True
        lane.end()
        return None

    def close(self) -> None:
        """End the process."""
        with self._lock:
            lane, self._lane = self._lane, None
            self._legacy = True
        if lane is not None:
            lane.end()


class SharedProcess:
    """One process, and the requests it serves.

    Attributes:
        lost: the reason it has exited; empty while it runs.
    """

    def __init__(self, launch: Backend) -> None:
        self.lost = ""
        self._numbers = itertools.count(1)
        self._exchanges = Exchanges()
        self._parameters = Parameters()
        # A search in a deque fails if another thread appends; a copy is made in one step.
        self._taken_back: deque[int] = deque(maxlen=REMEMBERED)
        self._learning = threading.Lock()
        self._log = launch.log
        self._child = launch.begin(self._hear, self._gone)

    @property
    def running(self) -> bool:
        """Whether it accepts requests."""
        return self._child.running

    def end(self) -> None:
        """Cancel the open requests, and end the process."""
        for exchange in self._exchanges.all():
            self.cancel(exchange)
        self._child.end()

    def check_parameters(self, headers: Headers, message: Mapping[str, Any]) -> None:
        """Compare the ``Mcp-Param-*`` headers of a ``tools/call`` with its arguments.

        Raises:
            Refusal: 400.
        """
        if message.get("method") != "tools/call":
            return
        with self._learning:
            if not self._parameters.known:
                self._learn(meta_of(message))
        self._parameters.check(headers, message)

    def _learn(self, meta: Mapping[str, Any]) -> None:
        """Read the list of tools with the ``_meta`` of this client."""
        ours = {name: value for name, value in meta.items() if name != "progressToken"}
        params: dict[str, Any] = {"_meta": {**_META, **ours}}
        for _ in range(PAGES):
            cursor = value_in(self.ask("tools/list", params, ASIDE), "result", "nextCursor")
            if not isinstance(cursor, str):
                break
            params = {**params, "cursor": cursor}
        self._parameters.known = True

    def say(self, message: Mapping[str, Any]) -> HttpExchange:
        """Send a request; return its exchange.

        Raises:
            Refusal: 502, the process has exited.
        """
        number = next(self._numbers)
        ours = {**message, "id": number}
        meta = meta_of(message)
        if "progressToken" in meta:
            params = {**message["params"], "_meta": {**meta, "progressToken": number}}
            ours["params"] = params
        exchange = self._exchanges.open([ours])
        assert exchange is not None  # noqa: S101  (our numbers are used once)
        exchange.asked = message
        self._send(ours, exchange)
        return exchange

    def notify(self, message: Mapping[str, Any]) -> None:
        """Forward a notification.

        A cancellation is dropped: its id is not ours, and on HTTP the end of the stream has the
        same meaning.
        """
        if message.get("method") != "notifications/cancelled":
            self._send(message, None)

    def cancel(self, exchange: HttpExchange) -> None:
        """Cancel a request: its client has closed the stream."""
        number = exchange.request["id"]
        if self._exchanges.waiting_for(id_key(number)) is None:
            return
        self._taken_back.append(number)
        self._exchanges.drop(exchange)
        params = {"requestId": number, "reason": "the client closed the stream"}
        taken_back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        try:
            self._child.send(encode(taken_back).rstrip(b"\n"))
        except Gone:
            return

    def ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        """Send a request of our own; return the response, None if there is none in time."""
        exchange = self.say({"jsonrpc": "2.0", "id": 0, "method": method, "params": params})
        until = now() + seconds
        if not exchange.wait_closed(seconds) and now() >= until:
            self.cancel(exchange)
        return exchange.answer

    def _send(self, message: Mapping[str, Any], exchange: HttpExchange | None) -> None:
        try:
            self._child.send(encode(message).rstrip(b"\n"))
        except Gone as error:
            if exchange is not None:
                self._exchanges.drop(exchange)
            raise Refusal(502, NO_SESSION, f"the server {error}") from error

    def _gone(self, why: str) -> None:
        self.lost = why
        self._exchanges.drop_all(why)

    # --- messages of the server

    def _hear(self, _data: bytes, value: Any) -> None:
        for message in value if isinstance(value, list) else [value]:
            kind = kind_of(message)
            if kind in {Kind.RESULT, Kind.ERROR}:
                self._answered(message)
            elif kind is Kind.ODD or not isinstance(message["method"], str):
                self._log(f"the server wrote a line that is no message: {brief(message)}")
            else:
                self._said(message)

    def _answered(self, message: dict[str, Any]) -> None:
        key = id_key(message.get("id"))
        exchange = self._exchanges.waiting_for(key)
        if exchange is None and message.get("id") in list(self._taken_back):
            return
        if exchange is None:
            self._log(f"the server answered a request that was not sent: {brief(message)}")
            return
        asked = exchange.asked
        if asked["method"] == "tools/list":
            self._parameters.learn(message.get("result"))
        ours = {**message, "id": asked["id"]}
        result = object_in(message, "result")
        if SUBSCRIPTION in object_in(result, "_meta"):
            ours["result"] = _with_meta(result, **{SUBSCRIPTION: asked["id"]})
        self._exchanges.answered(key, encode(ours).rstrip(b"\n"), ours)

    def _said(self, message: dict[str, Any]) -> None:
        """Forward a message other than an answer: to the stream it names, or the likeliest one."""
        params = object_in(message, "params")
        meta = object_in(params, "_meta")
        if SUBSCRIPTION in meta:
            exchange = self._exchanges.waiting_for(_number(meta[SUBSCRIPTION]))
            name = meta[SUBSCRIPTION]
            if exchange is not None:
                known = exchange.asked["id"]
                named = str(known) if isinstance(name, str) else known
                params = _with_meta(params, **{SUBSCRIPTION: named})
        elif message["method"] == "notifications/progress":
            exchange = self._exchanges.with_token(id_key(params.get("progressToken")))
            if exchange is not None:
                token = meta_of(exchange.asked)["progressToken"]
                params = {**params, "progressToken": token}
        else:
            exchange = self._likeliest(message["method"])
        if exchange is None:
            named = meta.get(SUBSCRIPTION, params.get("progressToken"))
            if named not in list(self._taken_back):  # otherwise it was sent before that
                self._log(f"the server said what belongs to no request: {brief(message)}")
        else:
            exchange.put(encode({**message, "params": params} if params else message)[:-1])

    def _likeliest(self, method: str) -> HttpExchange | None:
        """Return the exchange for a message that names no request, such as a log message.

        Its addressee is unknown on a pipe. Of several open requests, the newest one that asked for
        log messages gets it; if none did, although it is not allowed then, the newest of all.
        """
        asks: Callable[[HttpExchange], bool] = lambda one: LOG_LEVEL in meta_of(one.request)  # noqa: E731
        calls: Callable[[HttpExchange], bool] = lambda one: one.request["method"] != LISTEN  # noqa: E731
        found = None
        if method == "notifications/message":
            found = self._exchanges.newest(lambda one: calls(one) and asks(one))
        return found or self._exchanges.newest(calls) or self._exchanges.newest()


def _number(value: Any) -> Any:
    """Return the key of our number, even if the server made a string of it."""
    ours = isinstance(value, str) and value.isdecimal() and len(value) < _DIGITS
    return id_key(int(value)) if ours else id_key(value)


def _with_meta(body: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    return {**body, "_meta": {**object_in(body, "_meta"), **members}}
