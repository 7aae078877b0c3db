"""A gateway from stdio to HTTP with one fault: ``over_http.py FAULT [WORDS] -- URL``."""

import contextlib
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.revision import LATEST_MODERN
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

    def __init__(self, words: list[str], command: list[str]) -> None:
        self.words, self.url = words, command[0]
        self.lock = threading.Lock()
        self.asked = {}

    def _back(self) -> None:
        """Do nothing: each response has a thread of its own."""

    def _begin(self, first: Json) -> Heard:
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
            threading.Thread(target=self._await, args=(n, message["id"]), daemon=True).start()

    def _await(self, n: int, number: Any) -> None:
        transcript = self.transcript
        assert transcript is not None
        transcript.wait(lambda: transcript.answer_to(n) or self.channel.silence(n), 60.0)
        if transcript.answer_to(n) is None:
            error = {"code": -32000, "message": self.channel.silence(n)}
            self.tell_client({"jsonrpc": "2.0", "id": number, "error": error})

    def finish(self) -> None:
        """End the session."""
        if self.transcript is not None:
            self.channel.end(2.0)


if __name__ == "__main__":
    at = sys.argv.index("--")
    fault, *words = sys.argv[1:at]
    faulty = type("Faulty", (OverHttp, FAULTS[fault]), {})
    sys.exit(faulty(words, sys.argv[at + 1 :]).run())
