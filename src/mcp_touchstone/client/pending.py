"""A request under way: start it, go on talking, cancel it, look at what came after."""

from typing import Any

from mcp_touchstone.connection import Connection
from mcp_touchstone.dossier import Exchange
from mcp_touchstone.framing import id_key
from mcp_touchstone.process import now
from mcp_touchstone.reply import Reply
from mcp_touchstone.session import Message, Role
from mcp_touchstone.transcript import Entry, Source


class Pending:
    """One request that was sent and is not waited for.

    Attributes:
        id: its id.
        line: the line it was sent on.
        token: its progress token; None where it has none.
        cancelled: the line it was taken back on; None while it was not.
    """

    def __init__(
        self,
        connection: Connection,
        exchange: Exchange,
        *,
        token: Any = None,
        level: str | None = None,
        id: Any = None,  # noqa: A002  (the protocol's own word)
    ) -> None:
        """Send it, with a progress token and a log level where they are given."""
        self._connection = connection
        self.token = token
        meta = connection.tagged(token=token, level=level)
        message = connection.build(exchange.method, exchange.params, id=id, meta=meta)
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
        """Take it back; give the line that did."""
        params = {"requestId": self.id, **({} if reason is None else {"reason": reason})}
        self.cancelled = self._connection.notify("notifications/cancelled", params)
        return self.cancelled

    def progress(self, line: int | None = None) -> list[tuple[Entry, Message]]:
        """Give the progress reported with its token, behind a line or since it was sent."""
        return [
            (entry, message)
            for entry, message in heard(self._connection, self.line if line is None else line)
            if message.role is Role.NOTIFICATION
            and message.method == "notifications/progress"
            and self.token is not None
            and id_key(_params(message).get("progressToken")) == id_key(self.token)
        ]

    def answers(self, line: int | None = None) -> list[tuple[Entry, Message]]:
        """Give the responses to it, behind a line or since it was sent."""
        return [
            (entry, message)
            for entry, message in heard(self._connection, self.line if line is None else line)
            if message.answers == self.line
        ]


class Window:
    """A time to listen that has begun: several of them pass at once.

    Attributes:
        line: the last line before it.
    """

    def __init__(self, connection: Connection, seconds: float) -> None:
        self._connection = connection
        self._until = now() + seconds
        self.line = len(connection.transcript)

    @property
    def over(self) -> bool:
        """Whether its time has passed."""
        return now() >= self._until

    def wait(self) -> list[tuple[Entry, Message]]:
        """Listen until it is over; give the server's messages that came in it."""
        left = self._until - now()
        if left > 0:
            self._connection.quiet(left)
        return heard(self._connection, self.line)


def heard(connection: Connection, line: int) -> list[tuple[Entry, Message]]:
    """Give the server's messages behind a line."""
    return [
        (entry, message)
        for entry in connection.transcript.since(line)
        if entry.source is Source.THEM
        for message in entry.messages
    ]


def _params(message: Message) -> dict[str, Any]:
    found = message.value.get("params") if isinstance(message.value, dict) else None
    return found if isinstance(found, dict) else {}
