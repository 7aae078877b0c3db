"""Send requests as other callers of an HTTP server: strangers, other web pages, raw bytes."""

import contextlib
import json
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.connection.raw_http import Change, HttpAnswer, RawHttp
from mcp_touchstone.security.attack_session import AttackSession
from mcp_touchstone.transport.http_channel import HttpChannel
from mcp_touchstone.transport.http_exchange import request_bytes
from mcp_touchstone.transport.process import now, sleep
from mcp_touchstone.wire.exchange import Headers
from mcp_touchstone.wire.framing import encode
from mcp_touchstone.wire.http_headers import SESSION, repeated

READ: Final = 1 << 20
"""Maximum number of bytes read from a raw connection."""


NARROW: Final = 4096
"""Bytes of a narrow connection that wait to be read."""


@dataclass(frozen=True)
class RawAnswer:
    """The bytes that a server wrote on one connection.

    Attributes:
        line: number of the line of the transcript that records the request.
    """

    data: bytes
    line: int

    @property
    def library(self) -> str:
        """The value of the ``Server`` header: the HTTP library; empty without one."""
        head, _, _ = self.data.partition(b"\r\n\r\n")
        found = re.search(rb"(?im)^server:[ \t]*([^\r\n]{1,60})", head)
        return found[1].decode("latin-1").strip() if found else ""

    @property
    def results(self) -> set[Any]:
        """The text ids of the results in the bytes."""
        found = set()
        for text in self.data.replace(b"data:", b"").splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                for one in _members(json.loads(text)):
                    if isinstance(one, dict) and "result" in one and isinstance(one.get("id"), str):
                        found.add(one["id"])
        return found


class HttpCaller:
    """Sends requests of other callers over the connection of an attack.

    Args:
        session: the attack, which is ``unwatched``.
    """

    def __init__(self, session: AttackSession) -> None:
        self.session = session

    @property
    def http(self) -> RawHttp:
        """The endpoint."""
        return self.session.http

    @property
    def _channel(self) -> HttpChannel:
        channel = self.session.wire.channel
        assert isinstance(channel, HttpChannel)  # noqa: S101  (the threats are of HTTP)
        return channel

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Names of the headers with secrets of the user; a stranger does not have them."""
        return tuple(self._channel.endpoint.secrets)

    @property
    def stranger(self) -> dict[str, Change]:
        """The changes that remove the headers for the session and the secrets of the user."""
        return {SESSION: None, **dict.fromkeys(self.secret_names)}

    def marker(self, word: str) -> str:
        """Return a unique id that begins with a word."""
        return f"{word}-{secrets.token_hex(6)}"

    def opening(self) -> dict[str, Any]:
        """Return an ``initialize`` request with a unique id."""
        info, version = {"name": "mcp-touchstone", "version": "1"}, self.session.revision
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        return self.request("initialize", params)

    def request(self, method: str, params: Any = None, marker: str = "") -> dict[str, Any]:
        """Return a request with the id ``marker``, by default a unique one."""
        given = {} if params is None else {"params": params}
        known = marker or self.marker("call")
        return {"jsonrpc": "2.0", "id": known, "method": method, **given}

    def stateless(
        self, method: str, revision: str, marker: str, params: Mapping[str, Any] = {}
    ) -> tuple[dict[str, Any], dict[str, Change]]:
        """Return a request of 2026-07-28 with the id ``marker``, and its headers."""
        wire = self.session.wire
        meta = wire.meta(version=revision, capabilities={})
        own = params.get("_meta", {})
        message = self.request(method, {**params, "_meta": {**own, **meta}}, marker)
        return message, {SESSION: None, **dict(repeated(message, revision))}

    def together(
        self, *requests: tuple[Any, Mapping[str, Change]], pause: float = 0.0
    ) -> list[HttpAnswer]:
        """POST messages with their headers at once: each last byte is sent after all others.

        Args:
            requests: each message, and the changes of its headers.
            pause: seconds before the last bytes, in which a server may connect all of them.
        """
        answers = []
        for message, change in requests:
            body = self.http.body(message)
            whole = {**change, "Content-Length": str(len(body))}
            answers.append((self.http.post(message, whole, body=body[:-1], wait=False), body[-1:]))
        sleep(pause)
        for answer, rest in answers:
            answer.write(rest)
        return [answer for answer, _ in answers]

    def begin(self, change: Mapping[str, Change] | None = None) -> HttpAnswer:
        """Send an ``initialize`` request without a session."""
        return self.http.post(self.opening(), {SESSION: None, **(change or {})})

    def another(self) -> str | None:
        """Open another session of the user; return its id, or None if it has none."""
        return (self.join({}) or {}).get(SESSION)

    def join(self, change: Mapping[str, str | None]) -> dict[str, str | None] | None:
        """Open a session with other headers; return them with its id, None if it is refused."""
        opened = self.begin(change)
        if not served(opened):
            return None
        headers = {**change, SESSION: opened.header(SESSION)}
        self.http.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
        return headers

    def leave(self, known: str | None) -> None:
        """End a session that ``begin`` or ``another`` opened."""
        if known is not None:
            self.http.delete({SESSION: known}, seconds=2.0)

    def raw(
        self, headers: Headers, body: bytes, message: Any, note: str, seconds: float
    ) -> RawAnswer:
        """POST bytes on a new connection; read until it ends or the time limit is reached.

        Args:
            message: the message in the body, for the transcript.
            note: the unusual part of the request, for the transcript.

        Raises:
            OSError: the connection could not be opened.
        """
        transcript, modern = self.session.wire.transcript, self.session.modern
        transcript.happened(note)
        line = transcript.said(
            encode(message), message, malformed=True, required=False, modern=modern
        )
        data = b""
        with self._channel.endpoint.connect(seconds) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(request_bytes("POST", self.http.path, headers) + body)
            until = now() + seconds
            with contextlib.suppress(OSError):
                while len(data) < READ and now() < until:
                    connection.settimeout(max(0.01, until - now()))
                    piece = connection.recv(65_536)
                    if not piece:
                        break
                    data += piece
        return RawAnswer(data, line)

    def whole(self, message: Any) -> bytes:
        """Return a POST of a message as it is written on a connection that stays open."""
        body = self.http.body(message)
        ordinary = self.http.headers("POST", message, len(body))
        kept = [one for one in ordinary if one[0].lower() != "connection"]
        return request_bytes("POST", self.http.path, kept, body)

    def connect(self, seconds: float, *, narrow: bool = False) -> socket.socket:
        """Open a connection and send nothing.

        Args:
            seconds: limit for it.
            narrow: whether it has little room for what the server writes.

        Raises:
            OSError: it could not be opened.
        """
        connection = self._channel.endpoint.connect(seconds)
        if narrow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
        return connection

    def head(self, *lines: tuple[str, str], drop: tuple[str, ...] = ()) -> Headers:
        """Return the headers of a POST of the user, without ``drop`` and followed by ``lines``."""
        ordinary = self.http.headers("POST", self.request("ping"), 0)
        out = {name.lower() for name in drop}
        return (*(one for one in ordinary if one[0].lower() not in out), *lines)


def served(answer: HttpAnswer) -> bool:
    """Return whether a response contains a result."""
    messages = [one for value in answer.messages for one in _members(value)]
    return any(isinstance(one, dict) and "result" in one for one in messages)


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
