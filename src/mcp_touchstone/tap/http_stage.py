"""Our server over HTTP: it plays a part for each session, and records what passes."""

import contextlib
import itertools
import json
import queue
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.bridge.child import Hear
from mcp_touchstone.bridge.endpoint import PATH, ClientConnection
from mcp_touchstone.bridge.exchanges import HttpExchange
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.http_server.hosts import guard as check_host
from mcp_touchstone.http_server.reading import BODY_LIMIT
from mcp_touchstone.http_server.refusals import Refusal
from mcp_touchstone.http_server.server import BoundedServer
from mcp_touchstone.http_server.streams import EventStream
from mcp_touchstone.parts.part import (
    COMMENTS,
    DROPS,
    END,
    FORGETS,
    LOSES,
    STATUSES,
    ClientGone,
    Part,
    call_of,
    lose,
)
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.tape import REFUSED, HeardBody, Tape
from mcp_touchstone.transport import pipes
from mcp_touchstone.transport.process import left
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.framing import Line, read

if TYPE_CHECKING:
    from mcp_touchstone.tap.guard import Guard  # joserfc is an extra

RETRY: Final = 3000
"""Milliseconds before a client may ask for a stream again; more than clients wait by themselves."""

COMMENT: Final = b": a comment\n:{}\n\n"
"""Lines that a client must ignore (HTML standard, #event-stream-interpretation)."""


def reshaped(event: bytes) -> bytes:
    """Return an event in other forms of the standard: CR LF, two lines of data, a new field."""
    return event.replace(b"data: {", b"new: x\ndata:{\ndata:").replace(b"\n", b"\r\n")


LOOPBACK: Final = "127.0.0.1"

SESSIONS: Final = 8
"""Greatest number of sessions at a time."""

PATIENCE: Final = 3.0
"""Seconds for the end of a part."""


class PartConnection(ClientConnection):
    """One connection of a client, with the fault of the server; all of it is recorded.

    Attributes:
        number: number of the request; 0 between requests.
    """

    server: "PartServer"
    number = 0
    _said: bytes | None = None
    _reshapes = False

    def serve(self) -> None:
        """Answer a request, and record it."""
        tape, self._said, self.left = self.server.tape, None, False
        with tape.exchange(self) as self.number:
            with self.refusing():
                super().serve()
            end = Happened.CLIENT_LEFT if self.left else ""
            tape.recorder.http(Side.EVENT, self.number, end)
        self.number = 0

    @property
    def _is_ours(self) -> bool:
        """Whether a request is for our server; others have secrets, as for an issuer."""
        return self.path.partition("?")[0] == PATH

    def read_body(self, most: int = BODY_LIMIT) -> bytes:
        """Read and record the body, once."""
        if self._said is None:
            self._said = super().read_body(most)
            if self._said and self._is_ours:
                line = Line(self._said, len(self._said))
                self.server.tape.recorder.http(Side.CLIENT, self.number, line)
        return self._said

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Record the head of a response, and write it."""
        recorder, head = self.server.tape.recorder, tuple(headers.items())
        if self.number:
            text = f"{status} {HTTPStatus(status).phrase}"
            recorder.http(Side.SERVER, self.number, text, head)
        self._heard = HeardBody(recorder, self.number, head)
        super().begin(status, headers)

    def sending(self, content: bytes, *, last: bool) -> None:
        """Record content before it is sent."""
        if self.number and self._is_ours:
            self._heard.feed(content, last=last)

    def _chunk(self, data: bytes) -> None:
        super()._chunk(reshaped(data) if self._reshapes else data)

    def refuse(self, refusal: Refusal) -> None:
        """Answer with an error; what is no request is an event."""
        if not self.number:
            self.server.tape.recorder.event(f"{REFUSED}{refusal.status}, {refusal.message}")
        super().refuse(refusal)

    def do_GET(self) -> None:  # noqa: N802  (the base class's name)
        """Answer with metadata, or as the bridge."""
        guard, path = self.server.guard, self.path.partition("?")[0]
        if guard is None or path == PATH:
            super().do_GET()
        elif guard.serves(path):
            self._relay(guard)
        elif (found := guard.document(self.headers, path)) and path in guard.moved:
            self.answer(307, extra={"Location": guard.moved[path]})
        else:
            self.answer(200 if found else 404, json.dumps(found).encode())

    def do_POST(self) -> None:  # noqa: N802  (as above)
        """Answer as our issuer, or as the bridge."""
        guard = self.server.guard
        if guard is not None and guard.serves(self.path):
            self._relay(guard)
        else:
            super().do_POST()

    def _relay(self, guard: "Guard") -> None:
        with self.refusing():
            check_host(self.headers)
            body = self._body() if self.command == "POST" else b""
            self.answer(*guard.relay(self.command, self.path, body))

    def _check(self) -> None:
        self.read_body()  # what is refused is recorded too
        super()._check()
        guard = self.server.guard
        if guard is not None and self.command != "POST":
            guard.admit(self.headers, self.command, [])

    def _post(self, line: bytes, messages: list[dict[str, Any]]) -> None:
        server, method = self.server, messages[0].get("method")
        if server.guard is not None:
            server.guard.admit(self.headers, "POST", messages)
        if server.fault == FORGETS and server.called and method and "id" in messages[0]:
            server.fault = ""
            server.sessions.finish(self._session())
        server.called |= method == "tools/call"
        is_new = method == "tools/call" and call_of(messages[0]) not in server.lost
        if server.fault == LOSES and is_new:
            lose(server, messages[0])
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if server.elsewhere and method == "tools/call":
            status, host = next(server.redirects)
            place = server.elsewhere.replace(LOOPBACK, host)
            self.answer(status, extra={"Location": f"{place}{PATH[1:]}"})
            return
        super()._post(line, messages)

    def write_stream(self, stream: EventStream, after: int, *, resumable: bool | None) -> bool:
        """Write a stream, or its beginning."""
        called = isinstance(stream, HttpExchange) and stream.asked.get("method") == "tools/call"
        self._reshapes = called and self.server.fault == COMMENTS and self.server.streamed
        self.server.streamed |= called
        if self._reshapes:
            self._chunk(COMMENT)
        if called and self.command == "POST" and self.server.fault == DROPS:
            self.server.fault = ""
            begun, stream = stream.after(0, 0.0), EventStream(stream.number)
            stream.put(begun[0][1] + f"\nretry: {RETRY}".encode())  # a further field of the event
            stream.close()
        return super().write_stream(stream, after, resumable=resumable)


class PartServer(Listener):
    """Our server in one scenario; use it as a context manager.

    Args:
        part: what it plays, for each session.
        recorder: makes a recorder for the URL.
        listen: returns a socket that listens where the client is.
        startup: seconds for the first answer.
        place: a folder of ours that the client can read.

    Attributes:
        fault: DROPS or FORGETS; empty once it happened.
        called: whether a tool was called.
        streamed: whether an answer to a call was a stream.
        guard: asks for tokens; None if none is needed.
        elsewhere: the origin to which calls are redirected; empty for none.
        redirects: their statuses, each with the host by which the other origin is named.
        tape: what is recorded.
    """

    handler = PartConnection

    def __init__(
        self,
        part: type[Part],
        record: Callable[[str], Recorder],
        listen: Callable[[], socket.socket],
        startup: float,
        place: Path,
    ) -> None:
        self.part, self.listen, self.place, self.begun = part, listen, place, False
        super().__init__(self, most=SESSIONS, startup=startup, listening=listen())
        self.tape = Tape(record(self.url))
        self.fault, self.called, self.streamed = part.http_fault, False, False
        self.guard: Guard | None = None
        self.elsewhere, self.lost = "", set[str]()
        hosts = [(status, LOOPBACK) for status in STATUSES]
        self.redirects = itertools.cycle([*hosts, (STATUSES[0], "localhost")])

    def note(self, sentence: str) -> None:
        """Record an event."""
        self.tape.recorder.event(sentence)

    def begin(self, hear: Hear, gone: Callable[[str], object]) -> "PlayedPart":
        """Begin to play."""
        return PlayedPart(self, hear, gone)

    def sweep(self) -> None:
        """Do nothing: it started no process."""

    def log(self, sentence: str) -> None:
        """Do nothing: the recording of the part has the message."""

    def stop(self) -> None:
        """Accept no more requests, and wait until those under way are recorded."""
        BoundedServer.stop(self)
        self.tape.wait()
        super().stop()


class PlayedPart:
    """The part of one session, in a thread: its peer, and the ``RunningServer``."""

    def __init__(self, server: PartServer, hear: Hear, gone: Callable[[str], object]) -> None:
        self.is_first, server.begun = not server.begun, True
        self.listen, self.lost = server.listen, server.lost
        self.place: Path | None = server.place
        self._server, self._hear, self._gone = server, hear, gone
        self._inbox: queue.SimpleQueue[Sequence[Any]] = queue.SimpleQueue()
        self._part = server.part(self)
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it still accepts messages."""
        return self._part.gone is None

    def send(self, line: bytes) -> None:
        """Pass a message on.

        Raises:
            Gone: it has exited.
        """
        if not self.running:
            raise pipes.Gone("closed its input")
        self._inbox.put(read(Line(line, len(line))).messages)

    def end(self) -> None:
        """Close its input, and wait for its end."""
        self._inbox.put([END])
        self._thread.join(PATIENCE)

    def read(self, seconds: float) -> Sequence[Any]:
        """Return the next messages."""
        with contextlib.suppress(queue.Empty):
            return self._inbox.get(timeout=seconds)
        return ()

    def write(self, raw: bytes) -> None:
        """Pass a message of the part on; HTTP has no place for what is none."""
        with contextlib.suppress(ValueError):
            message = json.loads(raw)
            self._hear(raw.rstrip(b"\n"), message)

    def note(self, sentence: str) -> None:
        """Record what the client did at the canary."""
        self._server.note(sentence)

    def log(self, raw: bytes) -> None:
        """Ignore it: no client reads our standard error over HTTP."""

    def _play(self) -> None:
        with contextlib.suppress(ClientGone):
            self._part.run()
        self._gone(left(self._part.gone or 0))
