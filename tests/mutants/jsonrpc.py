"""Servers that break a rule of basic/jsonrpc: who is answered, and under which id."""

import os
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    SaysMore,
    controls,
    has,
    mutant,
    mutants,
    notifies,
)


def is_ping(message: Any) -> bool:
    """Whether a message of the client is a ping."""
    return isinstance(message, dict) and message.get("method") == "ping" and "id" in message


def own_text(message: Any) -> str:
    """Return the id of a message of the client, if it is a text."""
    own = message.get("id") if isinstance(message, dict) else None
    return own if isinstance(own, str) else ""


def own_number(message: Any) -> int:
    """Return the id of a message of the client, if it is a number."""
    own = message.get("id") if isinstance(message, dict) else None
    return own if isinstance(own, int) else 0


@mutant(
    "jsonrpc-base-protocol-support",
    elsewhere=("jsonrpc-request-answered", "ping-empty-response=warn"),
)
class IsNotReadyAfterTheHandshake(Fault):
    """Loses a ping with a number directly after initialized, before its handlers are in place."""

    ready = True

    def heard(self, line: bytes, message: Any) -> bytes | None:
        lost = not self.ready and is_ping(message) and isinstance(message.get("id"), int)
        self.ready = not (
            notifies(message)
            and message["method"] == "notifications/initialized"
            and len(self.asked) == 1
        )
        return None if lost else line


@mutant("jsonrpc-response-id-echo")
class TreatsFalsyIdsAsMissing(Fault):
    """Writes null for the ids 0 and "", which are false in its language."""

    def said(self, message: Any, request: Json) -> Out:
        return {**message, "id": message["id"] or None} if "id" in message else message


@mutant("jsonrpc-response-id-echo", revision=MODERN)
class ReadsDigitsAsNumbers(Fault):
    """Answers the id "7" under the id 7."""

    def said(self, message: Any, request: Json) -> Out:
        own = message.get("id")
        return {**message, "id": int(own)} if isinstance(own, str) and own.isdigit() else message


mutants("jsonrpc-response-id-echo", of=Fault)(
    KeepsIdsAsText=has(
        "Answers one-digit integer ids as strings, under an id that was answered before.",
        said=lambda self, message, request: (
            {**message, "id": "7"} if message.get("id") == 7 else message
        ),
    )
)


@mutant("jsonrpc-response-id-echo")
class ExchangesIds(Fault):
    """Exchanges the ids of a ping and of a refused request that it reads together."""

    held: Json | None = None

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        ping, self.held = self.held, None
        if ping is None and is_ping(message) and message.get("jsonrpc") == "2.0":
            self.held = message
            self.later(0.1, lambda: self.release(message))
            return None
        if ping is not None and method == "x-touchstone/unknown":
            self.answer({**ping, "id": message["id"]}, {})
            self.refuse({**message, "id": ping["id"]}, -32601, "Unknown method")
            return None
        if ping is not None:
            self.pass_on(ping)
        return line

    def release(self, ping: Json) -> None:
        if self.held is ping:
            self.held = None
            self.pass_on(ping)


mutants("jsonrpc-response-id-echo", of=Fault)(
    RefusesWithoutTheId=has(
        "Sends every error with the id null.",
        said=lambda self, message, request: (
            {**message, "id": None}
            if "error" in message and str(request.get("method")).startswith("x-")
            else message
        ),
    )
)
mutants("jsonrpc-request-answered", of=Fault)(
    DropsRequestZero=has(
        "Treats a request with the id 0 as a notification and never answers it.",
        heard=lambda self, line, message: (
            None if isinstance(message, dict) and message.get("id") == 0 else line
        ),
    ),
    DropsLongIds=has(
        "Never answers a request whose id has more than 64 characters.",
        heard=lambda self, line, message: None if len(own_text(message)) > 64 else line,
    ),
    DropsIdsOf64KiB=has(
        "Never answers a request whose id does not fit into a length of 16 bits.",
        heard=lambda self, line, message: None if len(own_text(message)) >= 1 << 16 else line,
    ),
    DropsIdsBeyond32Bits=has(
        "Never answers a request whose id does not fit into 32 bits.",
        heard=lambda self, line, message: (
            None if not -(1 << 31) <= own_number(message) < 1 << 31 else line
        ),
    ),
    DropsVeryNegativeIds=has(
        "Never answers a request whose id is below the smallest number of 32 bits.",
        heard=lambda self, line, message: None if own_number(message) < -(1 << 31) else line,
    ),
)
controls("jsonrpc-request-answered", of=Fault)(
    DropsLongLines=has(
        "Never answers a request of more than 64 KiB, whatever its id is.",
        heard=lambda self, line, message: None if len(line) > 1 << 16 else line,
    ),
    EndsAtALongLine=has(
        "Ends at a line of more than 64 KiB, as its reader has room for no more.",
        heard=lambda self, line, message: os._exit(3) if len(line) > 1 << 16 else line,
    ),
)
mutants("jsonrpc-request-answered", of=Fault, revision=MODERN)(
    DropsUnknownMethods=has(
        "Does not answer requests for unknown methods.",
        said=lambda self, message, request: (
            None if str(request.get("method")).startswith("x-") else message
        ),
    )
)


@mutant("jsonrpc-no-orphan-response", revision=MODERN)
class AnswersEverythingTwice(Fault):
    """Sends each response twice, from the handler and from the framework."""

    def said(self, message: Any, request: Json) -> Out:
        if request:
            self.emit(message)
        return message  # type: ignore[no-any-return]


mutants("jsonrpc-no-orphan-response", of=SaysMore)(
    ReportsJobsAsResponses=has(
        "Reports the end of a job of its own as an unsolicited response.",
        more=lambda self: self.emit({"jsonrpc": "2.0", "id": "job-1", "result": {"done": True}}),
    )
)


@mutant("jsonrpc-notification-no-response")
class AnswersEveryNotification(Fault):
    """Answers notifications with an empty result without an id."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if notifies(message):
            self.emit({"jsonrpc": "2.0", "result": {}})
        return line


@mutant("jsonrpc-notification-no-response", revision=MODERN)
class RefusesUnknownNotifications(Fault):
    """Answers an unknown notification with -32601 and id null."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if notifies(message) and "unknown" in message["method"]:
            error = {"code": -32601, "message": "Method not found"}
            self.emit({"jsonrpc": "2.0", "id": None, "error": error})
        return line


@mutant("jsonrpc-notification-no-response")
class AcknowledgesInitialized(Fault):
    """Answers the first notifications/initialized, and no other notification."""

    answered = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if notifies(message) and not self.answered:
            self.answered = True
            self.emit({"jsonrpc": "2.0", "id": None, "result": {}})
        return line


mutants("jsonrpc-request-answered", of=Fault)(
    DiesOfUnknownNotifications=has(
        "Exits at a notification without a handler.",
        heard=lambda self, line, message: (
            os._exit(1) if notifies(message) and "unknown" in message["method"] else line
        ),
    )
)
mutants("jsonrpc-invalid-request", of=Fault)(
    DiesOfMalformedNotifications=has(
        "Exits at a notification whose params are a list.",
        heard=lambda self, line, message: (
            os._exit(1) if notifies(message) and isinstance(message.get("params"), list) else line
        ),
    )
)


@mutant("jsonrpc-notification-no-response", outcome="warn")
class RefusesMalformedNotifications(Fault):
    """Answers a notification with unreadable params with -32600 and id null."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if notifies(message) and isinstance(message.get("params"), list):
            error = {"code": -32600, "message": "Invalid request"}
            self.emit({"jsonrpc": "2.0", "id": None, "error": error})
        return line


class RemembersIds(Fault):
    """Remembers the used ids."""

    spent: ClassVar[set[Any]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        own = message.get("id") if isinstance(message, dict) else None
        if isinstance(own, str) and own in self.spent:
            self.on_spent(message)
            return None
        self.spent.add(own)
        return line

    def on_spent(self, request: Json) -> None:
        """Handle a request whose id was used before; drop it."""


mutants("jsonrpc-id-reuse-after-response", of=RemembersIds, revision=MODERN)(
    RefusesReusedIds=has(
        "Refuses an id that was used before, although its request was answered.",
        on_spent=lambda self, request: self.refuse(
            request, -32600, "Invalid request: duplicate id"
        ),
    ),
    DropsReusedIds="Drops a request under a used id as a retransmission.",
)
