"""A subscription (2026-07-28): open it, hear what it carries, end it."""

from collections.abc import Mapping
from typing import Any, Final

from mcp_touchstone import revision as rev
from mcp_touchstone.connection import Connection
from mcp_touchstone.dossier import Exchange
from mcp_touchstone.framing import id_key
from mcp_touchstone.pending import Pending, heard
from mcp_touchstone.reply import Reply
from mcp_touchstone.session import Message, Role
from mcp_touchstone.transcript import Entry

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
ID: Final = rev.META + "subscriptionId"


class Subscription:
    """One ``subscriptions/listen`` and all that belongs to it.

    Attributes:
        request: the request, which stays open as long as the subscription does.
    """

    def __init__(
        self,
        connection: Connection,
        notifications: Mapping[str, Any] | None,
        *,
        id: Any = None,  # noqa: A002  (the protocol's own word)
    ) -> None:
        """Open it; ``notifications`` is the filter, None leaves it out."""
        self._connection = connection
        params = {} if notifications is None else {"notifications": dict(notifications)}
        self.request = Pending(connection, Exchange("subscriptions/listen", params), id=id)

    @property
    def id(self) -> Any:
        """Its id, which is that of its request."""
        return self.request.id

    @property
    def line(self) -> int:
        """The line that opened it."""
        return self.request.line

    def acknowledged(self, seconds: float | None = None) -> tuple[Entry, Message] | None:
        """Wait for its acknowledgment; None where none came, or an error in its place."""
        limit = self._connection.pace.reply if seconds is None else seconds
        self._connection.wait(lambda: self._acknowledgment() or self.request.answers(), limit)
        return self._acknowledgment()

    def _acknowledgment(self) -> tuple[Entry, Message] | None:
        """Find it: under our id, under that in another type, or under one that is nobody's."""
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
        """The part of the filter that was acknowledged; empty where none was."""
        found = self._acknowledgment()
        params = found[1].value.get("params") if found else None
        given = params.get("notifications") if isinstance(params, dict) else None
        return given if isinstance(given, dict) else {}

    @property
    def refusal(self) -> Reply:
        """What answered its request, if anything did."""
        return self.request.reply(0.0)

    def heard(self, line: int | None = None) -> list[tuple[Entry, Message]]:
        """Give the notifications that carry its id, behind a line or since it was opened."""
        return [
            (entry, message)
            for entry, message in heard(self._connection, self.line if line is None else line)
            if message.role is Role.NOTIFICATION and self._is_mine(message)
        ]

    def _is_mine(self, message: Message) -> bool:
        return id_key(_id(message)) == id_key(self.id)

    def cancel(self) -> int:
        """End it; give the line that did."""
        return self.request.cancel()


def _acknowledges(message: Message) -> bool:
    return message.role is Role.NOTIFICATION and message.method == ACKNOWLEDGED


def _id(message: Message) -> Any:
    params = message.value.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(ID) if isinstance(meta, dict) else None
