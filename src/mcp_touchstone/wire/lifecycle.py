"""The state of one connection: lifecycle table, typed-id matching, both eras. Pure.

Source: basic/lifecycle of the legacy revisions; basic/index#requests and #responses of all.
Two rules: all state of a connection is here; nothing here depends on time or processes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from mcp_touchstone.wire.framing import IdKey, Kind, code_in, id_key, kind_of, value_in


class Phase(StrEnum):
    """Phase of a connection."""

    SILENT = "nothing asked yet"
    INITIALIZING = "initialize is unanswered"
    AGREED = "initialize is answered, initialized not sent"
    OPERATING = "operating"
    CLOSING = "end of input was sent"


class Event(StrEnum):
    """Event that changes the phase of a connection."""

    INITIALIZE_SENT = "we sent initialize"
    INITIALIZE_ACCEPTED = "the server accepted initialize"
    INITIALIZE_REFUSED = "the server refused initialize"
    INITIALIZED_SENT = "we sent notifications/initialized"
    MODERN_REQUEST_SENT = "we sent a stateless request"
    INPUT_CLOSED = "we closed the server's input"


TABLE: Final[dict[tuple[Phase, Event], Phase]] = {
    (Phase.SILENT, Event.INITIALIZE_SENT): Phase.INITIALIZING,
    (Phase.INITIALIZING, Event.INITIALIZE_ACCEPTED): Phase.AGREED,
    (Phase.INITIALIZING, Event.INITIALIZE_REFUSED): Phase.SILENT,
    (Phase.AGREED, Event.INITIALIZED_SENT): Phase.OPERATING,
    (Phase.SILENT, Event.MODERN_REQUEST_SENT): Phase.OPERATING,
    **{(phase, Event.INPUT_CLOSED): Phase.CLOSING for phase in Phase},
}
"""Every transition; a missing pair leaves the phase unchanged."""


class Role(StrEnum):
    """Role of a message of the server, given the messages we sent."""

    ANSWER = "answer"
    SECOND_ANSWER = "second answer"
    ORPHAN = "answer to an id never sent"
    UNADDRESSED = "answer without a readable id"
    REQUEST = "request"
    NOTIFICATION = "notification"
    ODD = "no message"
    REFUSAL = "HTTP error that names no request"


LOOSE: Final = frozenset({Role.ORPHAN, Role.UNADDRESSED, Role.SECOND_ANSWER})
"""Roles of responses that are not the answer to an open request."""


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen, it is made five times as slowly
class Message:
    """One message of the server, read in context.

    Attributes:
        value: the JSON value of the message.
        kind: its kind, by its members.
        role: its role, by the messages we had sent.
        phase: phase of the connection when it arrived.
        answers: number of our line that it answers; None unless role is ANSWER or SECOND_ANSWER,
            or REFUSAL of a request.
        method: its own method, or the method of the request it answers.
        batched: whether it came inside an array.
    """

    value: Any
    kind: Kind
    role: Role
    phase: Phase
    answers: int | None = None
    method: str | None = None
    batched: bool = False

    @property
    def code(self) -> Any:
        """The error code; None if there is none."""
        return code_in(value_in(self.value, "error"))


@dataclass(slots=True)
class Asked:
    """One request of ours.

    Attributes:
        line: number of its line.
        method: its method; None if it had no readable one.
        value: the request as sent.
        phase: phase of the connection when it was sent.
        required: whether silence would break a rule.
        cancelled: number of the line that cancelled it; 0 if none did.
        answers: numbers of the lines that answered it.
        expired: whether the server ended the session in place of an answer.
    """

    line: int
    method: str | None
    value: Any
    phase: Phase
    required: bool
    cancelled: int = 0
    answers: int = 0
    expired: bool = False


class SessionState:
    """The state of one connection, updated with each message of the transcript, in order."""

    def __init__(self) -> None:
        self.phase = Phase.SILENT
        self.asked: list[Asked] = []
        self._by_id: dict[IdKey, Asked] = {}

    def move(self, event: Event) -> None:
        """Apply the lifecycle table."""
        self.phase = TABLE.get((self.phase, event), self.phase)

    def sent(self, value: Any, line: int, *, required: bool = True, modern: bool = False) -> None:
        """Record a message of ours (or an array of them) as sent on a line."""
        for message in value if isinstance(value, list) else [value]:
            self._sent_one(message, line, required=required, modern=modern)

    def _sent_one(self, message: Any, line: int, *, required: bool, modern: bool) -> None:
        if not isinstance(message, dict):
            return
        method = message.get("method")
        key = id_key(message.get("id"))
        if method == "notifications/initialized":
            self.move(Event.INITIALIZED_SENT)
        if method == "notifications/cancelled" and isinstance(message.get("params"), dict):
            taken_back = self._by_id.get(id_key(message["params"].get("requestId")) or ("", None))
            if taken_back:
                taken_back.cancelled = line
        if key is None or "result" in message or "error" in message:
            return
        asked = Asked(
            line, method if isinstance(method, str) else None, message, self.phase, required
        )
        self.asked.append(asked)
        self._by_id[key] = asked
        if method == "initialize":
            self.move(Event.INITIALIZE_SENT)
        elif modern:
            self.move(Event.MODERN_REQUEST_SENT)

    def expired(self, line: int) -> None:
        """Record that the server ended the session in place of an answer to a line of ours."""
        for asked in self.asked:
            asked.expired |= asked.line == line

    def heard(self, value: Any, refused: int | None = None) -> Iterator[Message]:
        """Yield the messages in one JSON value of the server (one for each member of an array).

        Args:
            value: the JSON value.
            refused: number of our line, if the value is the body of an HTTP error to it; 0 if it
                is the body of an HTTP error to a request without a message, such as a GET.
        """
        batched = isinstance(value, list)
        for message in value if batched else [value]:
            if refused is not None and self._is_unnamed_error(message):
                yield self._refusal(message, refused)
            else:
                yield self._heard_one(message, batched=batched)

    def _is_unnamed_error(self, value: Any) -> bool:
        """Return whether an error has no id, or one that we never sent."""
        return kind_of(value) is Kind.ERROR and id_key(value.get("id")) not in self._by_id

    def _refusal(self, value: Any, line: int) -> Message:
        """Return an error that lacks the id of its request; on HTTP its exchange identifies it.

        Source: basic/transports#sending-messages-to-the-server (an error response without id).
        """
        asked = next((one for one in self.asked if one.line == line), None)
        if asked is None:
            return Message(value, Kind.ERROR, Role.REFUSAL, self.phase)
        asked.answers += 1
        if asked.method == "initialize":
            self.move(Event.INITIALIZE_REFUSED)
        return Message(value, Kind.ERROR, Role.REFUSAL, self.phase, line, asked.method)

    def _heard_one(self, value: Any, *, batched: bool) -> Message:
        kind = kind_of(value)
        phase = self.phase
        if kind in {Kind.REQUEST, Kind.NOTIFICATION}:
            method = value["method"]
            role = Role.REQUEST if kind is Kind.REQUEST else Role.NOTIFICATION
            name = method if isinstance(method, str) else None
            return Message(value, kind, role, phase, method=name, batched=batched)
        if kind is Kind.ODD and not (isinstance(value, dict) and "id" in value):
            return Message(value, kind, Role.ODD, phase, batched=batched)
        key = id_key(value.get("id"))
        if key is None:
            return Message(value, kind, Role.UNADDRESSED, phase, batched=batched)
        asked = self._by_id.get(key)
        if asked is None:
            return Message(value, kind, Role.ORPHAN, phase, batched=batched)
        asked.answers += 1
        if asked.method == "initialize" and asked.answers == 1:
            accepted = kind is Kind.RESULT
            self.move(Event.INITIALIZE_ACCEPTED if accepted else Event.INITIALIZE_REFUSED)
        role = Role.ANSWER if asked.answers == 1 else Role.SECOND_ANSWER
        return Message(value, kind, role, phase, asked.line, asked.method, batched)

    def echoes(self, value: Any) -> bool:
        """Return whether a request of the server is an echo of one of ours."""
        asked = self._by_id.get(id_key(value.get("id")) or ("", None))
        return asked is not None and asked.value == value

    def unanswered(self) -> list[Asked]:
        """Return the requests that still require an answer."""
        waiting = [a for a in self.asked if a.required and not a.answers]
        return [a for a in waiting if not a.cancelled and not a.expired]
