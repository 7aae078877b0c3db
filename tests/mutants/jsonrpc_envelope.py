"""Servers that break a rule of basic/jsonrpc: the members of a message."""

from typing import Any

from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    SaysMore,
    control,
    has,
    mutant,
    mutants,
)

OLD_BATCHES = "2025-03-26"


@mutant("jsonrpc-version-member")
class OmitsJsonrpc(Fault):
    """Writes responses without the jsonrpc member."""

    def said(self, message: Any, request: Json) -> Out:
        del message["jsonrpc"]
        return message  # type: ignore[no-any-return]


mutants("jsonrpc-version-member", of=Fault, revision=MODERN)(
    WritesTheVersionAsANumber=has(
        "Writes jsonrpc as the number 2.0.",
        said=lambda self, message, *_: {**message, "jsonrpc": 2.0},
    )
)


@mutant("jsonrpc-version-member", revision=OLD_BATCHES)
class OmitsJsonrpcInBatches(Fault):
    """Writes the jsonrpc member in single responses, but not in batches."""

    def said(self, message: Any, request: Json) -> Out:
        for member in message if isinstance(message, list) else []:
            del member["jsonrpc"]
        return message  # type: ignore[no-any-return]


@mutant("jsonrpc-message-kind")
class RepeatsTheMethod(Fault):
    """Repeats the method of the request in its response."""

    def said(self, message: Any, request: Json) -> Out:
        pong = request.get("method") == "ping" and isinstance(message["id"], int)
        return {**message, "method": "ping"} if pong else message


mutants("jsonrpc-message-kind", of=SaysMore, revision=MODERN)(
    KeepsAliveWithEmptyObjects=has(
        "Writes objects with only jsonrpc, to keep the connection alive.",
        more=lambda self: self.emit({"jsonrpc": "2.0"}),
    )
)
mutants("jsonrpc-message-kind", of=Fault, outcome="warn")(
    AddsAMemberToMessages=has(
        "Adds a member next to result and error.",
        said=lambda self, message, *_: {**message, "timestamp": "2026-01-01T00:00:00Z"},
    )
)
mutants("jsonrpc-response-result-or-error", of=AskingTool)(
    OmitsEmptyResults=has(
        "Leaves out an empty result.",
        on_ask=lambda self, request: self.emit({"jsonrpc": "2.0", "id": request["id"]}),
    )
)
mutants("jsonrpc-response-not-both", of=Fault)(
    WritesNullResultsWithErrors=has(
        "Writes result null into every error response, like JSON-RPC 1.0.",
        said=lambda self, message, request: (
            {"result": None, **message} if "error" in message else message
        ),
    )
)


@mutant("jsonrpc-response-not-both", revision=MODERN)
class WritesNullErrorsWithResults(Fault):
    """Writes error null into the result of tools/list, like JSON-RPC 1.0."""

    def said(self, message: Any, request: Json) -> Out:
        listed = request.get("method") == "tools/list" and "result" in message
        return {"error": None, **message} if listed else message


@mutant("jsonrpc-result-is-object")
class ReturnsABareString(AskingTool):
    """Returns the text of a tool as the result itself."""

    def on_ask(self, request: Json) -> None:
        self.emit({"jsonrpc": "2.0", "id": request["id"], "result": "nothing to ask"})


mutants("jsonrpc-result-is-object", of=AskingTool, revision=MODERN)(
    ReturnsNull=has(
        "Returns null in place of an empty result.",
        on_ask=lambda self, request: self.emit(
            {"jsonrpc": "2.0", "id": request["id"], "result": None}
        ),
    )
)


class Announces(SaysMore):
    """Declares listChanged for tools, and announces a change after each tools/list."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and "result" in message:
            message["result"]["capabilities"]["tools"]["listChanged"] = True
        return super().said(message, request)

    def announce(self, **more: Any) -> None:
        """Say that the tools have changed."""
        note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", **more}
        self.emit(note)


@control("jsonrpc-notification-no-id", "jsonrpc-params-object")
class AnnouncesItsTools(Announces):
    """Sends a correct notifications/tools/list_changed."""

    def more(self) -> None:
        self.announce()
        self.announce(params={})


mutants("jsonrpc-notification-no-id", of=Announces)(
    NumbersItsNotifications=has(
        "Puts an id on its notifications.", more=lambda self: self.announce(id=self.turn)
    )
)
mutants("jsonrpc-params-object", of=Announces)(
    WritesNullParams=has(
        "Writes the absent params of a notification as null.",
        more=lambda self: self.announce(params=None),
    )
)


class Pings(SaysMore):
    """Sends a few requests to the client."""

    def more(self) -> None:
        if self.turn < 4:
            self.ping()

    def ping(self) -> None:
        """Call it."""


@mutant("jsonrpc-params-object")
class PassesParamsByPosition(Pings):
    """Sends a request with an empty array as params."""

    def ping(self) -> None:
        self.emit({"jsonrpc": "2.0", "id": f"p-{self.turn}", "method": "ping", "params": []})


@control("jsonrpc-server-request-id", "jsonrpc-server-request-id-unique")
class PingsItsClient(Pings):
    """Pings the client sometimes, under the ids 0, "1", 2 and so on."""

    def ping(self) -> None:
        own = str(self.turn) if self.turn % 2 else self.turn
        self.emit({"jsonrpc": "2.0", "id": own, "method": "ping"})


mutants("jsonrpc-server-request-id", of=Pings)(
    PingsUnderIdNull=has(
        "Pings the client under the id null.",
        ping=lambda self: self.emit({"jsonrpc": "2.0", "id": None, "method": "ping"}),
    )
)


@mutant("jsonrpc-server-request-id-unique")
class PingsUnderOneId(Pings):
    """Uses one id for every request of its own."""

    def ping(self) -> None:
        for _ in range(2):
            self.emit({"jsonrpc": "2.0", "id": 1, "method": "ping"})
