"""Servers that break a rule of server/logging."""

import os
from typing import Any, ClassVar

from tests.mutants.kit import (
    META,
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    controls,
    has,
    is_modern,
    meta,
    mutant,
    mutants,
    params,
    refusal,
)

OLD = "2024-11-05"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
NOTED = "versioning-deprecated-features"
"""Trips with every server that has logging in 2026-07-28."""

EVERYWHERE = ("logging-capability-declared", "logging-message-shape", "logging-level-enum")


class _Logs(AskingTool):
    """Has a tool that logs to the client at the requested levels."""

    TOOL: ClassVar[Json] = {
        **AskingTool.TOOL,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    MESSAGES: ClassVar[list[Json]] = [
        {"level": "debug", "logger": "ask", "data": {"step": 1}},
        {"level": "error", "data": None},
        {"level": "emergency", "data": "on fire"},
    ]

    level = "debug"
    stream: Any = None

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict):
            method, level = message.get("method"), params(message).get("level")
            if method == "logging/setLevel" and level in LEVELS:
                self.level = level
            if method == "subscriptions/listen":
                self.stream = message["id"]
        return super().heard(line, message)

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            message["result"]["capabilities"]["logging"] = {}
        answer = super().said(message, request)
        if request.get("method") == "tools/list" and "result" in message:
            tools = message["result"]["tools"]
            tools.insert(0, tools.pop())  # discovery calls the first tools, until one logs
        return answer

    def on_ask(self, request: Json) -> None:
        self.log(request)
        super().on_ask(request)

    def log(self, request: Json) -> None:
        """Log what there is to log."""
        for body in self.MESSAGES:
            if self.wants(request, str(body.get("level"))):
                self.write(body)

    def wants(self, request: Json, level: str) -> bool:
        """Whether the client asked for a level."""
        least = meta(request).get(META + "logLevel") if is_modern(request) else self.level
        return least is not None and (level not in LEVELS or _severity(level) >= _severity(least))

    def write(self, body: Json) -> None:
        """Write one message."""
        self.emit({"jsonrpc": "2.0", "method": "notifications/message", "params": body})


def _severity(level: str) -> int:
    return LEVELS.index(level)


controls(*EVERYWHERE, "logging-no-sensitive-content", "logging-threshold-respected", of=_Logs)(
    LogsAtTheLevelOfTheSession="Logs from the level of the session."
)
controls(
    *EVERYWHERE,
    "logging-no-messages-without-request-level",
    "logging-request-level-threshold",
    "logging-request-scoped",
    "logging-invalid-request-level-error",
    of=_Logs,
    revision=MODERN,
    breaks=(NOTED,),
)(LogsAtTheLevelOfTheRequest="Logs from the level of the request.")


@mutant("logging-capability-declared")
class LogsUndeclared(_Logs):
    """Logs without declaring it."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and "result" in message:
            del message["result"]["capabilities"]["logging"]
        return super().said(message, request)

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "logging/setLevel":
            self.refuse(message, -32601, "Method not found")
            return None
        return super().heard(line, message)


mutants("logging-level-included", of=_Logs)(
    LogsOnlyAboveTheLevel=has(
        "Logs what is more severe than the level of the session, and not the level itself.",
        wants=lambda self, request, level: (
            _Logs.wants(self, request, level)
            if is_modern(request) or self.level == "debug"
            else _severity(level) > _severity(self.level)
        ),
    )
)


class _LogsOne(_Logs, MESSAGES=[]):
    """Logs one message at every level."""

    def wants(self, request: Json, level: str) -> bool:
        return not is_modern(request) or META + "logLevel" in meta(request)


mutants("logging-message-shape", of=_LogsOne)(
    LogsText=has(
        "Logs a message member in place of data.",
        MESSAGES=[{"level": "emergency", "message": "on fire"}],
    )
)
mutants("logging-message-shape", NOTED, of=_LogsOne, revision=MODERN)(
    LogsWithoutALevel=has("Leaves the level out.", MESSAGES=[{"data": "on fire"}])
)
mutants("logging-level-enum", of=_LogsOne, revision=OLD)(
    LogsWarn=has("Uses the level warn.", MESSAGES=[{"level": "warn", "data": "smoke"}])
)
mutants("logging-level-enum", NOTED, of=_LogsOne, revision=MODERN)(
    LogsWithNumericLevels=has(
        "Uses the numeric levels of another system.", MESSAGES=[{"level": 40, "data": "on fire"}]
    )
)


@mutant("logging-no-sensitive-content")
class LogsItsEnvironment(_Logs):
    """Logs its environment for debugging."""

    def log(self, request: Json) -> None:
        if self.wants(request, "debug"):
            self.write({"level": "debug", "data": dict(os.environ)})


class _Sets(Fault):
    """Handles logging/setLevel in its own way."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "logging/setLevel" and not is_modern(request):
            return self.sets(message, request, params(request).get("level"))
        return message  # type: ignore[no-any-return]

    def sets(self, message: Json, request: Json, level: Any) -> Out:
        """Return the answer."""
        return message


mutants("logging-set-level-accepted", of=_Sets)(
    KnowsFourLevels=has(
        "Refuses the levels that its language does not have.",
        sets=lambda self, message, request, level: (
            refusal(request, -32602, f"Unknown level {level}")
            if level in {"notice", "alert", "emergency"}
            else message
        ),
    )
)


@mutant("logging-set-level-accepted", outcome="warn", revision=OLD)
class FailsToSetALevel(_Sets):
    """Answers one level with -32603."""

    def sets(self, message: Json, request: Json, level: Any) -> Out:
        return refusal(request, -32603, "Not configured") if level == "alert" else message


mutants("logging-invalid-level-error-legacy", of=_Sets, revision=OLD)(
    FailsOnAnUnknownLevel=has(
        "Answers an unknown level with -32603.",
        sets=lambda self, message, request, level: (
            refusal(request, -32603, "KeyError") if "error" in message else message
        ),
    )
)
mutants("logging-threshold-respected", of=_Logs)(
    IgnoresTheLevel=has("Logs everything at any level.", wants=lambda *_: True)
)
controls("logging-threshold-respected", of=_Logs, revision=OLD)(
    LogsNothingAtEmergency=has(
        "Logs nothing at the level emergency.", MESSAGES=[{"level": "warning", "data": "smoke"}]
    )
)


@mutant("logging-no-messages-without-request-level", NOTED, revision=MODERN)
class LogsWithoutALevelInTheRequest(_Logs):
    """Logs for a request without a logLevel."""

    def wants(self, request: Json, level: str) -> bool:
        return META + "logLevel" not in meta(request) or super().wants(request, level)


mutants("logging-request-level-threshold", NOTED, of=_Logs, revision=MODERN)(
    LogsBelowTheLevelOfTheRequest=has(
        "Logs everything for a request at level error.",
        wants=lambda self, request, *_: META + "logLevel" in meta(request),
    )
)


@mutant("logging-request-scoped", NOTED, revision=MODERN)
class LogsOnTheStream(_Logs):
    """Logs with the id of an open subscription."""

    def write(self, body: Json) -> None:
        own = {"_meta": {META + "subscriptionId": self.stream}} if self.stream is not None else {}
        super().write({**body, **own})


@mutant("logging-request-scoped=warn", NOTED, revision=MODERN)
class LogsAfterTheResponse(_Logs, MESSAGES=[{"level": "emergency", "data": "on fire"}]):
    """Logs after the response if a subscription is open."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        taken_back = params(message).get("requestId") if isinstance(message, dict) else None
        if taken_back is not None and taken_back == self.stream:
            self.stream = None
        return super().heard(line, message)

    def on_ask(self, request: Json) -> None:
        if self.stream is None:
            super().on_ask(request)
        else:
            AskingTool.on_ask(self, request)
            self.log(request)


class _Levelled(Fault):
    """Answers requests at some levels in its own way."""

    def said(self, message: Any, request: Json) -> Out:
        level = meta(request).get(META + "logLevel")
        if level is None or not is_modern(request):
            return message  # type: ignore[no-any-return]
        return self.levelled(message, request, level)

    def levelled(self, message: Json, request: Json, level: Any) -> Out:
        """Return the answer."""
        return message


mutants("logging-request-level-accepted", of=_Levelled, revision=MODERN)(
    RefusesSomeRequestLevels=has(
        "Refuses a request at a level that its language does not have.",
        levelled=lambda self, message, request, level: (
            refusal(request, -32602, f"Unknown level {level}")
            if level in {"notice", "alert"}
            else message
        ),
    )
)
mutants("logging-invalid-request-level-error", NOTED, of=_Logs, revision=MODERN)(
    FailsOnAnUnknownRequestLevel=has(
        "Answers a request at an unknown level with -32603.",
        said=lambda self, message, request: (
            refusal(request, -32603, "KeyError")
            if meta(request).get(META + "logLevel", "info") not in LEVELS and "error" in message
            else _Logs.said(self, message, request)
        ),
    )
)


@mutant("logging-set-level-removed", revision=MODERN)
class KeepsSetLevel(Fault):
    """Serves logging/setLevel in 2026-07-28."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        if method == "logging/setLevel" and is_modern(message):
            self.answer(message, {})
            return None
        return line
