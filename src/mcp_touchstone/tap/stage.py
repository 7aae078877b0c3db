"""Where our server plays a part on stdio: in this process, so no file of a client is a recording.

A client starts a stand-in, which passes its pipes on over a socket.
"""

import contextlib
import hashlib
import hmac
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from mcp_touchstone.parts.part import ClientGone, Part, listening
from mcp_touchstone.tap import stand_in
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.stdio import StdioPeer
from mcp_touchstone.transport.process import now, signal_name
from mcp_touchstone.wire.events import Happened

CONVERSATIONS: Final = 64
"""Conversations with a client that are recorded; later ones are refused."""

GREETING: Final = 10.0
"""Seconds that a stand-in has for the secret."""

PATIENCE: Final = 3.0
"""Seconds for the end of a part after that of its client."""

SECRET: Final = 32
"""Bytes of the secret that a stand-in shows, as hexadecimal digits: twice as many."""


PROGRAM: Final = (sys.executable, "-I", "-S", stand_in.__file__)
"""The program of a stand-in."""


def known_secret(port: int) -> str:
    """Return the secret of a stage on a port that a client knows beforehand."""
    return hashlib.sha256(f"mcp-touchstone {port}".encode()).hexdigest()


@dataclass
class StdioConversation:
    """One conversation on stdio.

    Attributes:
        end: how it ends if its client does not close the input.
    """

    line: socket.socket
    recorder: Recorder
    thread: threading.Thread
    end: Happened = Happened.KILLED

    def hang_up(self) -> None:
        """End the connection; what reads or writes there stops."""
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)


class Stage:
    """Plays a part for each stand-in that a client starts; use it as a context manager.

    Args:
        folder: a folder of ours that the client can read, for its socket.
        port: a port on loopback in its place, for a client that was configured before; its secret
            is known, so every program of this machine can be that client. 0 for none.
        most: conversations that are recorded; later ones are refused.

    Attributes:
        path: its socket; None where a socket has no path.
        program: the program of the stand-in.
        command: the same with its arguments.
        refused: whether a conversation was not recorded.
    """

    def __init__(self, folder: Path, port: int = 0, most: int = CONVERSATIONS) -> None:
        self._most = most
        self._secret = known_secret(port) if port else secrets.token_hex(SECRET)
        self._place = folder
        self._talks: list[StdioConversation] = []
        self._lost: set[str] = set()
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(most)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._closing = False
        self.refused = False
        self.path: Path | None = None
        if hasattr(socket, "AF_UNIX") and not port:
            self.path = folder / "stage"
            address = str(self.path)
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(address)
            self._listener.listen(most)
        else:
            self._listener = listening(port)
            address = str(self._listener.getsockname()[1])
        self.program = PROGRAM
        self.command = (*self.program, address, self._secret)

    def begin(
        self,
        part: type[Part],
        record: Callable[[], Recorder],
        listen: Callable[[], socket.socket],
    ) -> None:
        """Accept stand-ins.

        Args:
            part: what is played.
            record: makes a recorder.
            listen: returns a socket that listens where the client is.
        """
        self._part, self._record, self._listen = part, record, listen
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all conversations."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)
        for talk in self._talks:
            talk.hang_up()
        for talk in self._talks:
            talk.thread.join(PATIENCE)

    def await_ends(self) -> None:
        """Wait until all parts have ended after their client; end those that go on."""
        until = now() + PATIENCE
        for talk in self._talks:
            talk.thread.join(max(0.0, until - now()))
        for talk in self._talks:
            if talk.thread.is_alive():
                talk.end = Happened.LEFT_RUNNING
                talk.hang_up()
                talk.thread.join(PATIENCE)

    def abandon(self) -> None:
        """Say that we end the client: what its processes do then is not its own doing."""
        for talk in self._talks:
            talk.end = Happened.CUT_OFF

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closing:
                line, _ = self._listener.accept()
                if self._free.acquire(blocking=False):
                    threading.Thread(target=self._greet, args=(line,), daemon=True).start()
                else:
                    line.close()
                    self.refused = True

    def _greet(self, line: socket.socket) -> None:
        """Play for a connection that knows the secret."""
        with line, contextlib.suppress(OSError, EOFError):
            line.settimeout(GREETING)
            said = stand_in.exactly(line.recv, 2 * SECRET)
            line.settimeout(None)
            if hmac.compare_digest(said, self._secret.encode()):
                self._talk(line)
        self._free.release()

    def _talk(self, line: socket.socket) -> None:
        with self._lock:
            if len(self._talks) >= self._most:
                self.refused = True
                return
            talk = StdioConversation(line, self._record(), threading.current_thread())
            talk.recorder.is_first = not self._talks
            self._talks.append(talk)
        status = _StandIn(talk, self._listen, self._place, self._lost).converse(self._part)
        line.sendall(stand_in.frame(stand_in.EXIT, bytes([status & 0xFF])))


class _StandIn(StdioPeer):
    """The client behind a stand-in."""

    def __init__(self, talk: StdioConversation, *about: Any) -> None:
        super().__init__(talk.recorder, *about)
        self._talk, self._line = talk, talk.line

    def take(self, seconds: float) -> bytes | None:
        """Return the next bytes."""
        self._line.settimeout(seconds or 0.001)
        try:
            first = self._line.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return None
        except OSError:
            first = b""
        self._line.settimeout(None)
        try:
            kind, data = stand_in.next_frame(self._line.recv) if first else (b"", b"")
        except (OSError, EOFError, ValueError):
            kind = b""
        if kind == stand_in.DATA and data:
            return data
        if kind == stand_in.LOG:
            self._talk.recorder.event(Happened.STDERR_READ)
            return None
        if kind == stand_in.END:
            return b""
        if kind == stand_in.SIGNAL and data:
            raise ClientGone(f"{Happened.SIGNALLED}{signal_name(data[0])}")
        raise ClientGone(self._talk.end)

    def put(self, raw: bytes) -> None:
        """Write bytes."""
        self._send(stand_in.DATA, raw)

    def shout(self, raw: bytes) -> None:
        """Write bytes to standard error; an event says when the client has read them."""
        self._send(stand_in.LOG, raw)
        with contextlib.suppress(OSError):
            self._line.sendall(stand_in.frame(stand_in.LOG))

    def _send(self, kind: bytes, raw: bytes) -> None:
        rest = memoryview(raw)
        with contextlib.suppress(OSError):
            while rest:
                piece, rest = rest[: stand_in.LONGEST], rest[stand_in.LONGEST :]
                self._line.sendall(stand_in.frame(kind, bytes(piece)))
