"""The server of an HTTP channel: what is known of its process, if we started it."""

from collections import deque
from typing import Final

from mcp_touchstone.transport.channel import Channel
from mcp_touchstone.transport.deadline import Patience
from mcp_touchstone.transport.http_endpoint import Endpoint
from mcp_touchstone.transport.http_session import HttpSession
from mcp_touchstone.transport.process import ServerProcess, now, sleep
from mcp_touchstone.wire.framing import CUT, Line

LINES_KEPT: Final = 100
"""Lines of the output of an HTTP server that are kept for people."""

LOOK: Final = 0.02
"""Seconds between two attempts to reach a server that starts."""


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


class HttpServer(Channel):
    """The part of an HTTP channel that looks at the process of the server.

    Attributes:
        session: the session, which knows the secrets to hide.
    """

    endpoint: Endpoint
    session: HttpSession
    _server: ServerProcess | None
    _startup: float

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

    @property
    def _owned(self) -> ServerProcess | None:
        """The process that this channel ends; None for none."""
        return None if self.is_guest else self._server

    def addresses(self) -> list[str]:
        """Return the addresses on which a server that we started listens; empty if unknown."""
        return [] if self._server is None else self._server.family.addresses(self.endpoint.port)

    @property
    def running(self) -> bool:
        """Whether the server has not exited, as far as we know."""
        return not self.session.is_left if self._server is None else self._server.running

    @property
    def status(self) -> int | None:
        """Exit status of the server; None while it runs, or if we did not start it."""
        return None if self._server is None else self._server.status

    @property
    def stderr_tail(self) -> bytes:
        """The end of the server's stderr."""
        return b"" if self._server is None else self.session.hide(self._server.pipes.stderr_tail)

    def logs(self, secret: str) -> bool:
        """Return whether the end of the server's stderr, or of its output, has a secret."""
        if self._server is None:
            return False
        return secret.encode() in self._server.pipes.stderr_tail + b"\n" + self._output

    def stderr(self) -> str:
        """Return the end of the server's stderr as text, or that of its output if it has none."""
        if self._server is None:
            return ""
        text = self._server.pipes.stderr() or self._output.decode("utf-8", "replace")
        return self.session.hide(text.encode()).decode()

    @property
    def _output(self) -> bytes:
        """The end of the output of a server that we started."""
        output = self._server.transcript if self._server else None
        return b"\n".join(output.tail) if isinstance(output, ServerOutput) else b""

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit of the server; return None if we did not start it."""
        return None if self._server is None else self._server.wait(seconds)

    def patience(self, seconds: float) -> Patience:
        """Begin to wait for the server."""
        if self._server is None:
            return Patience(seconds, dict, now)
        return self._server.patience(seconds)

    def _await_start(self) -> None:
        """Wait until a server that we started accepts connections, at its first message."""
        until = self.born + self._startup
        while self._startup and now() < until and not self.session.is_left:
            try:
                self.endpoint.connect(until - now()).close()
            except OSError:
                if not self.process.running:
                    break
                sleep(LOOK)
            else:
                break
        self._startup = 0.0
