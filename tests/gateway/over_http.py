"""A gateway from stdio to HTTP with one fault: ``over_http.py FAULT [WORDS] -- URL``."""

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from mcp_touchstone.catalog.revision import LATEST_LEGACY, LATEST_MODERN
from mcp_touchstone.transport.channel import Said
from mcp_touchstone.transport.http_channel import HttpChannel
from mcp_touchstone.transport.http_endpoint import Endpoint
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.transport.pipes import Gone
from mcp_touchstone.wire.exchange import Origin
from mcp_touchstone.wire.framing import Line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.gateway.faulty import FAULTS, Gateway, Json


class Heard(LiveTranscript):
    """A transcript that passes on what it hears."""

    hear: Callable[[bytes], object]

    def heard(self, line: Line, origin: Origin | None = None) -> None:
        """Pass a message on."""
        super().heard(line, origin)
        self.hear(line.raw)


class OverHttp(Gateway):
    """The same, for a server over HTTP."""

    channel: HttpChannel
    transcript: Heard | None = None
    opening: Json

    def __init__(self, words: list[str], command: list[str]) -> None:
        self.words, self.url = words, command[0]
        self.lock = threading.Lock()
        self.asked = {}

    def _back(self) -> None:
        """Do nothing: each response has a thread of its own."""

    def _begin(self, first: Json) -> Heard:
        self.opening = first
        version = first["params"].get("protocolVersion", LATEST_MODERN)
        self.transcript = Heard(version, lambda: 0.0)
        self.transcript.hear = self._hear
        self.channel = HttpChannel(Endpoint(self.url), self.transcript)
        return self.transcript

    def _hear(self, raw: bytes) -> None:
        for one in self.to_client(json.loads(raw)):
            self.tell_client(one)

    def tell_server(self, message: Json) -> None:
        """Send a message to the server; answer in its place if it ends."""
        transcript = self.transcript or self._begin(message)
        raw = json.dumps(message).encode() + b"\n"
        n = transcript.said(raw, message, required=False)
        with contextlib.suppress(Gone):
            self.channel.say([Said(n, raw, message)], 20.0)
        if "id" in message and "method" in message:
            threading.Thread(target=self._await, args=(n, message), daemon=True).start()

    def _await(self, n: int, message: Json) -> None:
        transcript = self.transcript
        assert transcript is not None
        transcript.wait(lambda: transcript.answer_to(n) or self.channel.silence(n), 60.0)
        if transcript.answer_to(n) is not None:
            return
        why = self.channel.silence(n)
        if "404" in why:
            self._reopen(message)
            return
        error = {"code": -32000, "message": why}
        for one in self.to_client({"jsonrpc": "2.0", "id": message["id"], "error": error}):
            self.tell_client(one)

    def _reopen(self, message: Json) -> None:
        """Open a new session, which only we know of, and send a message there."""
        with contextlib.suppress(Gone):
            self.channel.end(0.0)
        transcript = self._begin(self.opening)
        transcript.hear = lambda _: None
        raw = json.dumps(self.opening).encode() + b"\n"
        n = transcript.said(raw, self.opening, required=False)
        self.channel.say([Said(n, raw, self.opening)], 20.0)
        transcript.wait(lambda: transcript.answer_to(n), 20.0)
        transcript.hear = self._hear
        self.tell_server({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tell_server(message)

    def finish(self) -> None:
        """End the session."""
        if self.transcript is not None:
            self.channel.end(2.0)


class KeepsSession(OverHttp):
    """Sends a call again in a session that is over."""

    def _reopen(self, message: Json) -> None:
        place, own = urlsplit(self.url), {"Mcp-Session-Id": self.channel.session.id or ""}
        own |= {"Content-Type": "application/json", "MCP-Protocol-Version": LATEST_LEGACY}
        own["Accept"] = "application/json, text/event-stream"
        connection = HTTPConnection(place.netloc, timeout=5)
        connection.request("POST", place.path, json.dumps(message), own)
        error = {"code": -32000, "message": f"HTTP {connection.getresponse().status}"}
        self.tell_client({"jsonrpc": "2.0", "id": message["id"], "error": error})


class GivesUp(OverHttp):
    """Answers with an error for ever, once the server did not answer."""

    gone = False

    def tell_client(self, message: Json) -> None:
        """Note an error of ours."""
        self.gone |= message.get("error", {}).get("code") == -32000
        super().tell_client(message)

    def to_server(self, message: Json) -> Iterator[Json]:
        """Answer in place of the server."""
        if self.gone and "id" in message and "method" in message:
            error = {"code": -32000, "message": "the server is gone"}
            self.tell_client({"jsonrpc": "2.0", "id": message["id"], "error": error})
        else:
            yield message


OWN = {"keeps-session": KeepsSession, "gives-up-server": GivesUp}


if __name__ == "__main__":
    at = sys.argv.index("--")
    fault, *words = sys.argv[1:at]
    faulty = OWN.get(fault) or type("Faulty", (OverHttp, FAULTS[fault]), {})
    sys.exit(faulty(words, sys.argv[at + 1 :]).run())
