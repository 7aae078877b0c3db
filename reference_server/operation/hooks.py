"""What is told about each finished request: to the operator's log and to the operator's hooks.

A hook is a callable in ``Settings.hooks``, for metrics. It gets one object per request::

    {"request_id", "method", "tool", "revision", "duration_ms", "status", "code", "bytes"}

``status`` is ``success``, ``error`` or ``cancelled``; ``code`` is that of the error, or None;
``tool`` is the name of a tool this server has, or None; ``bytes`` is the length of the answer.
``method`` and ``revision`` are None for a line that never became a request. It is called once the
answer is out, on the thread that wrote it, maybe on several threads at once; the next answer of
that thread waits for it. One that raises is logged and does no harm.
"""

from __future__ import annotations

import json
import os
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
    from typing import Any, TypeAlias

    from ..protocol.calls import Call
    from ..surface import Surface
    from ..tools.toolbox import Tool

    Outcome: TypeAlias = dict[str, Any] | ProtocolError | None
    Facts: TypeAlias = dict[str, Any]

_NEGOTIATION = {METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION}
"""Errors that are the ordinary way to find out what a server can do."""

_GRAVE = {"ExecutionError", "SystemError"}
"""Types of tool errors where nothing was wrong with the call (``errors.ToolError``)."""


def finished(surface: Surface, call: Call | None, outcome: Outcome, size: int) -> None:
    """Tell of one finished request; never raises.

    Args:
        surface: Where the log and the hooks are.
        call: The request, or None if the line never became one.
        outcome: Its result, its error, or None if it was cancelled.
        size: Length of the answer in bytes.
    """
    log = surface.log
    try:
        level, status, code = _judge(outcome)
        if not (surface.settings.hooks or log.wants(level)):
            return
        facts = _facts(surface, call, status, code, size)
        if log.wants(level):
            _record(surface, level, call, outcome, facts)
    except Exception as defect:  # noqa: BLE001 - the answer is out; what is left must not undo it
        log.error("defect", type=type(defect).__name__)  # noqa: TRY400 - never a trace
        return
    for hook in surface.settings.hooks:
        try:
            hook(dict(facts))
        except Exception as defect:  # noqa: BLE001 - a stranger's code
            log.warning("hook_failed", type=type(defect).__name__)


def _judge(outcome: Outcome) -> tuple[str, str, int | str | None]:
    """Give the level of a request's record, its status and the code of its error."""
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
    """Give the members of a tool error; up to 2025-03-26 they are in its text only."""
    body = result.get("structuredContent")
    if not isinstance(body, dict):
        body = json.loads(result["content"][-1]["text"])
    return body if isinstance(body, dict) else {}


def _facts(
    surface: Surface, call: Call | None, status: str, code: int | str | None, size: int
) -> Facts:
    facts: Facts = {"request_id": f"req_{os.urandom(6).hex()}", "method": None, "tool": None}
    facts["revision"] = facts["duration_ms"] = None
    if call is not None:
        facts["method"] = call.method.name
        facts["revision"] = call.revision
        facts["duration_ms"] = round((time.monotonic() - call.started) * 1000, 3)
        if tool := _tool(surface, call):
            facts["tool"] = tool.name
    return {**facts, "status": status, "code": code, "bytes": size}


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
    answer = outcome.member() if isinstance(outcome, ProtocolError) else outcome
    surface.log.record(level, event, shown, {"params": call.params, "answer": answer})


def _tool(surface: Surface, call: Call) -> Tool | None:
    name = call.params.get("name")
    if call.method.name != "tools/call" or not isinstance(name, str):
        return None
    return surface.toolbox.tools().get(name)
