"""Servers that break a rule of basic/ping."""

import json
import time
from typing import Any

from tests.mutants.kit import (
    LATE,
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    control,
    controls,
    has,
    is_modern,
    mutant,
    mutants,
    on,
    puts,
)


def no_ping(message: Json) -> Json:
    """Turn an answer into the refusal of a server that knows no ping."""
    error = {"code": -32601, "message": "Method not found"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


@mutant("ping-empty-response")
class RefusesPings(Fault):
    """Answers a ping with an error once the session is open."""

    def said(self, message: Any, request: Json) -> Out:
        late = any(r.get("method") == "tools/list" for r in self.asked.values())
        if request.get("method") == "ping" and "result" in message and late:
            error = {"code": -32603, "message": "busy"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return message  # type: ignore[no-any-return]


@mutant("ping-empty-response", outcome="warn")
class AnswersPingsWithAPong(Fault, said=on("ping", puts("pong", True))):
    """Adds a member to the result of a ping."""


@mutant("ping-empty-response", "jsonrpc-result-is-object")
class AnswersPingsWithNull(Fault):
    """Gives null as the result of a ping."""

    def said(self, message: Any, request: Json) -> Out:
        pong = request.get("method") == "ping" and "result" in message
        return {**message, "result": None} if pong else message


@mutant("ping-empty-response", outcome="warn", revision="2025-06-18")
class BlocksWhileItAsks(AskingTool):
    """Reads nothing while a tool waits for the client."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[bytes] = []

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.waiting and isinstance(message, dict) and "method" in message:
            self.late.append(line)
            return None
        return super().heard(line, message)

    def on_ask(self, request: Json) -> None:
        if "roots" in self.client:
            self.ask(request, "roots/list")
        else:
            super().on_ask(request)

    def on_answer(self, request: Json, message: Json) -> None:
        super().on_answer(request, message)
        for line in self.late:
            self._forward(line)
        self.late.clear()


@mutant("ping-during-call")
class RunsOneRequestAtATime(Fault):
    """Reads nothing during a call of a tool."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: set[Any] = set()
        self.late: list[bytes] = []

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.calls:
            self.late.append(line)
            return None
        if isinstance(message, dict) and message.get("method") == "tools/call":
            self.calls.add(message.get("id"))
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") != "tools/call":
            return message  # type: ignore[no-any-return]
        self.emit(message)
        self.calls.discard(request.get("id"))
        while self.late and not self.calls:
            line = self.late.pop(0)
            known = json.loads(line)
            if isinstance(known, dict) and known.get("method") == "tools/call":
                self.calls.add(known.get("id"))
            self._forward(line)
        return None


@control("ping-empty-response")
class AnswersTheFirstPingLate(Fault):
    """Answers the first ping of an open session late, as a busy server may."""

    late = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict):
            self.late |= message.get("method") == "notifications/initialized"
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") != "ping" or not self.late:
            return message  # type: ignore[no-any-return]
        self.late = False
        self.later(LATE, lambda: self.emit(message))
        return None


@control("stdio-carriage-return")
class KnowsNoPing(Fault):
    """Answers each ping with -32601."""

    def said(self, message: Any, request: Json) -> Out:
        return no_ping(message) if request.get("method") == "ping" else message


@mutant("ping-before-initialized")
class RefusesPingsBeforeInitialized(Fault):
    """Refuses pings before notifications/initialized."""

    ready = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict):
            self.ready |= message.get("method") == "notifications/initialized"
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "ping" and not self.ready:
            return no_ping(message)
        return message  # type: ignore[no-any-return]


@mutant("ping-not-excessive")
class PingsAllTheTime(Fault):
    """Pings the client fifty times in a row once the session is open."""

    pings = 50

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "notifications/initialized":
            for number in range(self.pings):
                own = f"mine-{number}-{time.time_ns()}"
                self.emit({"jsonrpc": "2.0", "id": own, "method": "ping"})
        return line


controls("ping-not-excessive", of=PingsAllTheTime)(
    PingsOnce=has("Pings the client once, when the session is open.", pings=1)
)
mutants("ping-removed", of=Fault, revision=MODERN)(
    KeepsPing=has(
        "Answers ping in 2026-07-28.",
        heard=lambda self, line, message: (
            self.answer(message, {})
            if isinstance(message, dict) and message.get("method") == "ping" and is_modern(message)
            else line
        ),
    )
)
