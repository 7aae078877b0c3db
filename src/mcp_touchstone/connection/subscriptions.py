"""A subscription (2026-07-28): open it, read its notifications, end it."""

from collections.abc import Mapping
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.pending import Pending, heard
from mcp_touchstone.connection.server_profile import Request
from mcp_touchstone.wire.framing import id_key, object_in, value_in
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
ID: Final = rev.META + "subscriptionId"


class Subscription(Pending):
    """A ``subscriptions/listen`` request, pending while it lasts, and its messages."""

    def __init__(
        self,
        connection: Connection,
        notifications: Mapping[str, Any] | None,
        *,
        id: Any = None,  # noqa: A002  (the protocol's own word)
    ) -> None:
        """Open it; ``notifications`` is the filter, None omits it."""
        params = {} if notifications is None else {"notifications": dict(notifications)}
        super().__init__(connection, Request("subscriptions/listen", params), id=id)

    def acknowledged(self, seconds: float | None = None) -> tuple[Entry, Message] | None:
        """Wait for its acknowledgment; None if none came, or an error instead."""
        limit = self._connection.pace.reply if seconds is None else seconds
        self._connection.wait(lambda: self._acknowledgment() or self.answers(), limit)
        return self._acknowledgment()

    def _acknowledgment(self) -> tuple[Entry, Message] | None:
        """Find it: with our id, with our id in another type, or with an unknown id."""
        found = [pair for pair in heard(self._connection, self.line) if _acknowledges(pair[1])]
        asked = [a.value.get("id") for a in self._connection.transcript.session.asked]
        others = {id_key(one) for one in asked} - {None, id_key(self.id)}
        mine = [pair for pair in found if self._is_mine(pair[1])]
        free = [pair for pair in found if id_key(_id(pair[1])) not in others]
        alike = [pair for pair in free if str(_id(pair[1])) == str(self.id)]
        nobodys = [pair for pair in free if str(_id(pair[1])) not in set(map(str, asked))]
        return next(iter([*mine, *alike, *nobodys]), None)

    @property
    def granted(self) -> dict[str, Any]:
        """The acknowledged part of the filter; empty if there is none."""
        found = self._acknowledgment()
        return object_in(found[1].value, "params", "notifications") if found else {}

    @property
    def refusal(self) -> Reply:
        """The answer to its request, if any."""
        return self.reply(0.0)

    @property
    def over(self) -> str:
        """Why nothing can come on it any more: its answer or its end; empty while it is open."""
        reply = self.refusal
        return str(reply) if reply.answered else self._connection.channel.silence(self.line)

    def heard(self, line: int | None = None) -> list[tuple[Entry, Message]]:
        """Return the notifications with its id, after a line or since it was opened."""
        return [
            (entry, message)
            for entry, message in heard(self._connection, self.line if line is None else line)
            if message.role is Role.NOTIFICATION and self._is_mine(message)
        ]

    def _is_mine(self, message: Message) -> bool:
        return id_key(_id(message)) == id_key(self.id)


def _acknowledges(message: Message) -> bool:
    return message.role is Role.NOTIFICATION and message.method == ACKNOWLEDGED


def _id(message: Message) -> Any:
    return value_in(message.value, "params", "_meta", ID)
