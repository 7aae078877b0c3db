"""An address of ours that a client may know and need not visit: what arrives there is noted."""

import http.server
import json
import socket
import threading
from collections.abc import Callable
from email.message import Message
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from mcp_touchstone.wire.events import CREDENTIALS, Happened

HEADERS: Final = ("Authorization", "Mcp-Session-Id", "Cookie")
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


class Canary:
    """Notes what is fetched from it, with the names of credentials, and answers 404.

    Args:
        note: gets the event.
        listening: its socket.
    """

    def __init__(self, note: Callable[[str], None], listening: socket.socket) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                length = self.headers.get("Content-Length") or ""
                size = min(int(length), MOST_BODY) if length.isdecimal() else 0
                named = credentials(self.headers, self.path, self.rfile.read(size))
                path = self.path.partition("?")[0]
                note(f"{Happened.FETCHED}{path}{CREDENTIALS * bool(named)}{', '.join(named)}")
                self.send_error(404)

            do_HEAD = do_POST = do_GET  # noqa: N815  (names of the base class)

            def log_message(self, *_words: Any) -> None:
                """Write nothing to stderr."""

        self._server = http.server.HTTPServer(("", 0), Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listening

    def start(self) -> str:
        """Serve; return its URL."""
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return f"http://127.0.0.1:{self._server.socket.getsockname()[1]}/"

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
