"""More than a request and its answer: pending requests, lists of pages, responses to no request."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.connection.connection import META, Connection
from mcp_touchstone.connection.server_profile import Request
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import Kind, id_key, value_in
from mcp_touchstone.wire.lifecycle import LOOSE, Message, Role
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Source

PAGES: Final = 50
"""Greatest number of pages read from a list."""


def tagged(
    connection: Connection, *, token: Any = None, level: str | None = None
) -> dict[str, Any] | None:
    """Build a ``_meta`` with a progress token or, in a stateless request, a log level."""
    more = {} if token is None else {"progressToken": token}
    if not connection.modern:
        return more or None
    return connection.meta(**more, **({} if level is None else {META + "logLevel": level}))


class Pending:
    """One request sent without waiting for its answer.

    Attributes:
        line: the line it was sent on.
        token: its progress token; None if it has none.
        cancelled: the line of its cancellation; None before.
    """

    def __init__(
        self,
        connection: Connection,
        request: Request,
        *,
        token: Any = None,
        level: str | None = None,
        id: Any = None,  # noqa: A002  (the protocol's own word)
    ) -> None:
        """Send it, with a progress token and a log level if given."""
        self._connection = connection
        self.token = token
        meta = tagged(connection, token=token, level=level)
        message = connection.build(request.method, request.params, id=id, meta=meta)
        self.id = message["id"]
        self.sent = now()
        self.line = connection.say(message, required=False)
        self.cancelled: int | None = None

    def reply(self, seconds: float | None = None) -> Reply:
        """Wait for its answer."""
        return self._connection.answer_to(self.line, seconds)

    @property
    def age(self) -> float:
        """Seconds since it was sent."""
        return now() - self.sent

    def cancel(self, reason: str | None = None) -> int:
        """Cancel it; return the line of the cancellation."""
        params = {"requestId": self.id, **({} if reason is None else {"reason": reason})}
        self.cancelled = self._connection.notify("notifications/cancelled", params)
        return self.cancelled

    def progress(self, line: int | None = None) -> list[tuple[Entry, Message]]:
        """Return the progress reported with its token, after a line or since it was sent."""
        return [
            (entry, message)
            for entry, message in heard(self._connection, self.line if line is None else line)
            if message.role is Role.NOTIFICATION
            and message.method == "notifications/progress"
            and self.token is not None
            and id_key(value_in(message.value, "params", "progressToken")) == id_key(self.token)
        ]

    def answers(self, line: int | None = None) -> list[tuple[Entry, Message]]:
        """Return the responses to it, after a line or since it was sent."""
        return [
            (entry, message)
            for entry, message in heard(self._connection, self.line if line is None else line)
            if message.answers == self.line
        ]


class Window:
    """A period of listening; several can overlap.

    Attributes:
        line: the last line before it.
    """

    def __init__(self, connection: Connection, seconds: float | None = None) -> None:
        self._connection = connection
        self._until = now() + (connection.pace.settle if seconds is None else seconds)
        self.line = len(connection.transcript)

    @property
    def over(self) -> bool:
        """Whether its time has passed."""
        return now() >= self._until

    def wait(self) -> list[tuple[Entry, Message]]:
        """Listen until its end; return the server's messages in it."""
        left = self._until - now()
        if left > 0:
            self._connection.quiet(left)
        return heard(self._connection, self.line)


def heard(connection: Connection, line: int) -> list[tuple[Entry, Message]]:
    """Return the server's messages after a line."""
    return [
        (entry, message)
        for entry in connection.transcript.since(line)
        if entry.source is Source.THEM
        for message in entry.messages
    ]


def read_pages(
    connection: Connection,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    most: int = PAGES,
) -> Iterator[Reply]:
    """Yield the pages of a list, until one has no cursor or no result."""
    wanted = dict(params or {})
    for _ in range(most):
        reply = connection.request(method, wanted or None)
        yield reply
        cursor = (reply.result or {}).get("nextCursor")
        if not isinstance(cursor, str):
            return
        wanted["cursor"] = cursor


def strays(connection: Connection, n: int) -> list[tuple[Entry, Message]]:
    """Return the responses after line ``n`` that answer no request of ours.

    A second response to a request is excluded, except an error with the id of a request that was
    answered before line ``n``: some servers use the id of their last request when they answer a
    line they could not read.
    """
    return [
        (entry, message)
        for entry in connection.transcript.since(n)
        for message in entry.messages
        if message.role in LOOSE
        and message.kind is not Kind.ODD
        and (
            message.role is not Role.SECOND_ANSWER
            or (message.kind is Kind.ERROR and (message.answers or 0) <= n)
        )
    ]


def first_response(connection: Connection, line: int) -> tuple[Reply, list[tuple[Entry, Message]]]:
    """Wait for the answer to the only pending request; return it, and strays instead of it.

    A stray may be the answer with a changed id. It ends the long wait, and so does the end of an
    HTTP response; but the answer itself may still come for a short time.
    """

    def came() -> bool:
        since = connection.transcript.since(line)
        answers = (m.answers for entry in since for m in entry.messages)
        over = connection.channel.silence(line)
        return bool(line in answers or over or strays(connection, line))

    connection.wait(came, connection.pace.reply)
    return connection.answer_to(line, connection.pace.silence), strays(connection, line)


def came_instead(connection: Connection, line: int) -> str:
    """Return the HTTP response that came instead of a message, or ``silence``."""
    return connection.channel.silence(line) or "silence"
