"""The channel of one conversation: it carries our messages, and knows whether the server lives."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.transport.deadline import Patience
from mcp_touchstone.transport.process import Ending, ServerProcess, sleep


class Said(NamedTuple):
    """A message of ours.

    Attributes:
        n: number of its line in the transcript.
        raw: its bytes, with a line feed if it is one line.
        value: its JSON value; None if it has none.
    """

    n: int
    raw: bytes
    value: Any = None


class Channel(Protocol):
    """One way to talk to one server; messages of the server go into a transcript.

    Attributes:
        born: time at which it was opened.
        ending: the end of the process; None while it runs.
        is_guest: whether the process serves another channel, which ends it.
    """

    transport: Transport
    is_guest: bool
    born: float
    ending: Ending | None

    @property
    def session_ended(self) -> bool:
        """Whether the server ended the session, so that no message can be sent any more."""
        return False

    @property
    def process(self) -> ServerProcess:
        """The process of the server.

        Raises:
            LookupError: we did not start it, or it serves another channel.
        """

    @property
    def running(self) -> bool:
        """Whether the server has not exited."""

    @property
    def status(self) -> int | None:
        """Exit status of the server; None while it runs."""

    @property
    def stderr_tail(self) -> bytes:
        """The end of the server's stderr."""

    def stderr(self) -> str:
        """Return the end of the server's stderr as text."""

    def say(
        self, said: Sequence[Said], seconds: float, cuts: Sequence[int] = (), pause: float = 0.0
    ) -> None:
        """Send some messages, in order, waiting at most some seconds until they are taken.

        They are cut at some bytes, with a pause in seconds after each piece.

        Raises:
            Gone: the server does not take them.
        """

    def silence(self, line: int) -> str:  # noqa: ARG002  (on a pipe, a later line may be it)
        """Return why no answer to the request on a line can come any more; empty if it can."""
        return ""

    def advice(self) -> str:
        """Return why the first request got no answer, and the remedy; empty if it is unknown."""
        return ""

    @property
    def bars(self) -> bool:
        """Whether the first response keeps us out by its status, whatever its body says."""
        return False

    def take_unfinished(self) -> bool:
        """Accept a message whose end is missing; return whether there was one."""
        return False

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit of the server; return None if the seconds pass first."""

    def patience(self, seconds: float) -> Patience:
        """Begin to wait for the server."""

    def end(self, patience: float, *, polite: bool = True, hurry: float | None = None) -> Ending:
        """End the conversation, and the server if we started it; see ``ServerProcess.end``."""

    def kill(self) -> None:
        """End everything at once; ``end`` must still be called."""

    def join(self, seconds: float) -> None:
        """Wait for the threads of the channel, after its end."""


class StdioChannel(ServerProcess, Channel):
    """A process whose input and output carry the messages, one per line."""

    transport = Transport.STDIO
    is_guest = False

    @property
    def process(self) -> ServerProcess:
        """The process of the server: this one."""
        return self

    def say(
        self, said: Sequence[Said], seconds: float, cuts: Sequence[int] = (), pause: float = 0.0
    ) -> None:
        """Write some messages in one write, or in pieces."""
        raw = b"".join(one.raw for one in said)
        for begin, end in itertools.pairwise((0, *cuts, len(raw))):
            self.pipes.send(raw[begin:end], seconds)
            if end < len(raw):
                sleep(pause)

    @property
    def stderr_tail(self) -> bytes:
        """The end of its stderr."""
        return self.pipes.stderr_tail

    def stderr(self) -> str:
        """Return the end of its stderr as text, completely read if it has exited."""
        return self.pipes.stderr()

    def take_unfinished(self) -> bool:
        """Accept a message whose line feed is missing."""
        return self.pipes.take_unfinished()

    def join(self, seconds: float) -> None:
        """Wait for the threads of its pipes."""
        self.pipes.join(seconds)
