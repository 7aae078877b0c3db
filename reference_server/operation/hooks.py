"""Reports each request and session to the operator's log and to hooks.

A hook is a callable in ``Settings.hooks``, or one that a feature adds to ``Surface.hooks``, for
metrics and traces. It is called with one object per event::

    {"event": "session_began", "request_id", "revision", "client"}
    {"event": "request_began", "request_id", "method", "tool", "revision"}
    {"event": "request_finished", "request_id", "method", "tool", "revision", "duration_ms",
     "status", "code", "bytes"}
    {"event": "session_ended", "request_id", "revision", "client", "duration_ms"}

``request_began`` is reported before the handler runs, on the reading thread. ``request_finished``
is reported after the answer is sent, on the thread that wrote it. Several threads may call a hook
at once, and each waits for it before it continues. ``session_began`` is reported with the answer to
``initialize``, and ``session_ended`` at the end of the server. 2026-07-28 has no sessions. An
exception of a hook is logged and has no other effect.

``status`` is ``success``, ``error`` or ``cancelled``. ``code`` is that of the error, or None.
``tool`` is the name of a tool of this server, or None. ``bytes`` is the length of the answer.
``client`` is the name and version of the client. A line that is not a request only causes a
``request_finished``, with None for ``method``, ``tool``, ``revision`` and ``duration_ms``.
"""

from __future__ import annotations

import json
import time

from ..protocol.errors import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    from ..protocol.calls import Call, Outcome
    from ..protocol.toolbox import Tool, Toolbox
    from ..settings import Hook
    from .log import Log

    Facts: TypeAlias = dict[str, Any]

    class Surface(Protocol):
        """The attributes of the surface that this module uses."""

        hooks: list[Hook]
        log: Log
        toolbox: Toolbox


_NEGOTIATION = {METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION}
"""Errors that are usual when a client finds out the features of a server."""

_GRAVE = {"ExecutionError", "SystemError"}
"""Types of tool errors that are not caused by the call (``failure.ToolError``)."""


class Hooks:
    """Logs the events of one server and calls its hooks; no method raises."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._session: tuple[float, Facts] | None = None

    def began(self, call: Call) -> None:
        if self._wanted("debug"):
            facts = {"event": "request_began", **_subject(self._surface, call)}
            self._log("debug", facts)
            self._call(facts)

    def finished(self, call: Call | None, outcome: Outcome, size: int, request_id: str) -> None:
        """Report an answered request.

        Args:
            call: The request, or None if the line was not a request.
            outcome: The result or the error, or None if the request was cancelled.
        """
        surface = self._surface
        try:
            level, status, code = _judge(outcome)
            if call is not None and call.method.name == "initialize" and status == "success":
                self._session_began(call)
            if not self._wanted(level):
                return
            facts = _facts(surface, call, request_id)
            facts |= {"status": status, "code": code, "bytes": size}
            if surface.log.wants(level):
                _record(surface, level, call, outcome, facts)
        except Exception as defect:  # noqa: BLE001 - the answer was sent already
            surface.log.error("defect", type=type(defect).__name__)  # noqa: TRY400 - no traceback
            return
        self._call({"event": "request_finished", **facts})

    def ended(self) -> None:
        if self._session is not None:
            began, facts = self._session
            seconds = time.monotonic() - began
            facts = {**facts, "event": "session_ended", "duration_ms": round(seconds * 1000, 3)}
            self._log("info", facts)
            self._call(facts)

    def _session_began(self, call: Call) -> None:
        session = call.session
        if session is not None:
            facts: Facts = {"event": "session_began", "request_id": call.request_id}
            facts |= {"revision": session.revision, "client": dict(session.client_info)}
            self._session = time.monotonic(), facts
            self._log("info", facts)
            self._call(facts)

    def _wanted(self, level: str) -> bool:
        return bool(self._surface.hooks) or self._surface.log.wants(level)

    def _log(self, level: str, facts: Facts) -> None:
        if self._surface.log.wants(level):
            from . import redact  # noqa: PLC0415 - a quiet server has nothing to mask

            shown = {name: fact for name, fact in facts.items() if fact is not None}
            event = shown.pop("event")
            self._surface.log.record(level, event, redact.facts(shown))

    def _call(self, facts: Facts) -> None:
        for hook in self._surface.hooks:
            try:
                hook(dict(facts))
            except Exception as defect:  # noqa: BLE001 - a hook may raise anything
                self._surface.log.warning("hook_failed", type=type(defect).__name__)


def _judge(outcome: Outcome) -> tuple[str, str, int | str | None]:
    """Return the level of a request's log entry, its status and the code of its error."""
    if outcome is None:
        return "info", "cancelled", None
    if isinstance(outcome, ProtocolError):
        level = "info" if outcome.code in _NEGOTIATION else "warning"
        return "error" if outcome.code == INTERNAL_ERROR else level, "error", outcome.code
    if not outcome.get("isError"):
        return "info", "success", None
    body = _tool_error(outcome)
    return "error" if body.get("type") in _GRAVE else "warning", "error", body.get("code")


def _tool_error(result: Facts) -> Facts:
    """Return the members of a tool error; up to 2025-03-26 only its text contains them."""
    body = result.get("structuredContent")
    if not isinstance(body, dict):
        body = json.loads(result["content"][-1]["text"])
    return body if isinstance(body, dict) else {}


def _subject(surface: Surface, call: Call) -> Facts:
    tool = _tool(surface, call)
    return {
        "request_id": call.request_id,
        "method": call.method.name,
        "tool": tool.name if tool else None,
        "revision": call.revision,
    }


def _facts(surface: Surface, call: Call | None, request_id: str) -> Facts:
    facts: Facts = dict.fromkeys(("request_id", "method", "tool", "revision", "duration_ms"))
    facts["request_id"] = request_id
    if call is not None:
        facts |= _subject(surface, call)
        facts["duration_ms"] = round((time.monotonic() - call.started) * 1000, 3)
    return facts


def _record(
    surface: Surface, level: str, call: Call | None, outcome: Outcome, facts: Facts
) -> None:
    from . import redact  # noqa: PLC0415 - a quiet server has nothing to mask

    shown = {name: fact for name, fact in facts.items() if fact is not None}
    if isinstance(outcome, ProtocolError):
        shown["reason"] = redact.sentence(outcome.message)
    if call is None:
        surface.log.record(level, "refused", shown)
        return
    shown["id"] = redact.name(call.id) if isinstance(call.id, str) else call.id
    event = "request"
    if call.method.name == "tools/call":
        event = "tool_called"
        given = call.params.get("arguments", {})
        tool = _tool(surface, call)
        if isinstance(given, dict):
            shown["args"] = redact.arguments(given, tool.input_schema if tool else {})
    else:
        for name in ("uri", "name"):  # of a resource, of a prompt
            if isinstance(given := call.params.get(name), str):
                shown[name] = redact.text(given)
    answer = outcome.member(call.request_id) if isinstance(outcome, ProtocolError) else outcome
    surface.log.record(level, event, shown, {"params": call.params, "answer": answer})


def _tool(surface: Surface, call: Call) -> Tool | None:
    name = call.params.get("name")
    if call.method.name != "tools/call" or not isinstance(name, str):
        return None
    return surface.toolbox.find(name)
