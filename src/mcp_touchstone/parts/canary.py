"""An address of ours that a client may know and need not visit: what arrives there is noted."""

import json
import socket
from collections.abc import Callable
from email.message import Message
from typing import Final
from urllib.parse import parse_qs, urlsplit

from mcp_touchstone.http_server.responses import Responses
from mcp_touchstone.http_server.server import BoundedServer
from mcp_touchstone.wire.events import CREDENTIALS, Happened

HEADERS: Final = ("Authorization", "Mcp-Session-Id", "Cookie", "X-Api-Key")
PARAMETERS: Final = (
    "access_token",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "refresh_token",
)
"""Headers, and parameters of a query or a form, that are credentials."""

MOST_BODY: Final = 1 << 16


def credentials(headers: Message, target: str, body: bytes) -> list[str]:
    """Return the names of the credentials in a request."""
    asked = urlsplit(target).query + "&" + body.decode("utf-8", "replace")
    given = set(parse_qs(asked))
    try:
        sent = json.loads(body or b"null")
    except (ValueError, RecursionError):
        sent = None
    given |= set(sent) if isinstance(sent, dict) else set()
    named = [name for name in HEADERS if headers.get(name)]
    return named + [name for name in PARAMETERS if name in given]


class FetchCanary(BoundedServer):
    """Notes what is fetched from it, with the names of credentials, and answers 404.

    Args:
        note: gets the event.
        listening: its socket.
    """

    path = "/"

    def __init__(self, note: Callable[[str], None], listening: socket.socket) -> None:
        super().__init__(_Fetched, listening=listening)
        self.note = note


class _Fetched(Responses):
    server: FetchCanary

    def serve(self) -> None:
        """Note a request, also one with a longer body than we read."""
        body = bytearray()
        for piece in self.body:
            body += piece
            if len(body) >= MOST_BODY:
                break
        named = credentials(self.headers, self.path, bytes(body))
        path = self.path.partition("?")[0]
        self.server.note(f"{Happened.FETCHED}{path}{CREDENTIALS * bool(named)}{', '.join(named)}")
        self.answer(404)
