"""The tools feature: listing and calling (server/tools), whatever the tools are.

A tool is registered once and shown in the form each revision knows.
"""

from __future__ import annotations

import json
import threading

from ..failure import ToolError
from .arguments import check_schema, fault_in
from .errors import REQUEST_ID, invalid_params, quote
from .revisions import ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from .calls import Call
    from .methods import Methods

    Arguments: TypeAlias = dict[str, Any]
    Work: TypeAlias = Callable[[Call, Arguments], dict[str, Any]]

STRUCTURED_SINCE = "2025-06-18"
ANNOTATED_SINCE = "2025-03-26"
ARGUMENT_ERRORS_FOR_THE_MODEL_SINCE = "2025-11-25"
WITH_TASKS = "2025-11-25"
"""The one revision whose core has tasks (2026-07-28 changelog: moved out into an extension)."""

_LONGEST_FIELD = 64
"""Characters of an argument's name; one that no tool has may be of any length."""


class Tool:
    """One tool.

    Args:
        name: ASCII letters, digits, ``_``, ``-`` and ``.``; at most 128 characters
            (2025-11-25 server/tools#tool-names).
        title: For a person's menu.
        description: For the model that chooses.
        input_schema: What ``arguments`` must fit; see ``arguments`` for the keywords allowed.
        output_schema: What ``structuredContent`` fits.
        annotations: Hints (schema.ts#ToolAnnotations).
        work: Does the work on a worker thread: takes the call and checked arguments, gives an
            object that fits ``output_schema``, raises ToolError when it cannot.
        task: Whether it may be called as a task (2025-11-25 basic/utilities/tasks).
    """

    def __init__(
        self,
        name: str,
        *,
        title: str,
        description: str,
        input_schema: dict[str, Any],
        output_schema: dict[str, Any],
        annotations: dict[str, bool],
        work: Work,
        task: bool = False,
    ) -> None:
        check_schema(input_schema)
        self.name = name
        self.title = title
        self.description = description
        self.input_schema = input_schema
        self.output_schema = output_schema
        self.annotations = annotations
        self.work = work
        self.task = task

    def definition(self, revision: str) -> dict[str, Any]:
        """Give the ``Tool`` object (schema.ts#Tool) as a revision knows it."""
        shown: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
        }
        if revision >= ANNOTATED_SINCE:
            shown["annotations"] = {"title": self.title, **self.annotations}
        if revision >= STRUCTURED_SINCE:
            shown["title"] = self.title
            shown["outputSchema"] = self.output_schema
        if self.task and revision == WITH_TASKS:
            shown["execution"] = {"taskSupport": "optional"}
        return shown


class Toolbox:
    """The tools of this server, in the order their families were named.

    Attributes:
        page_size: Most tools in one page of the list.
        changed: Called when the list is no longer what a client has seen; to announce it.
    """

    def __init__(self) -> None:
        self.page_size = 100
        self.changed: Callable[[], None] | None = None
        self._tools: dict[str, Tool] = {}
        self._numbers: dict[str, int] = {}
        self._later: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self._was_listed = False

    def add(self, tool: Tool) -> None:
        """Offer one more tool. Names are unique and case-sensitive.

        Raises:
            ValueError: There is a tool of that name.
        """
        with self._lock:
            if tool.name in self._tools:
                raise ValueError(f"two tools named {tool.name}")
            self._tools[tool.name] = tool
            self._numbers[tool.name] = max(self._numbers.values(), default=0) + 1
        self._announce()

    def remove(self, name: str) -> None:
        """Offer a tool no more, or do nothing if it is not offered."""
        with self._lock:
            gone = self._tools.pop(name, None)
        if gone:
            self._announce()

    def _announce(self) -> None:
        if self._was_listed and self.changed:
            self.changed()

    def later(self, family: Callable[[], None]) -> None:
        """Name a family of tools; it is called to ``add`` them when a client first asks."""
        self._later.append(family)

    def tools(self) -> dict[str, Tool]:
        """Give the tools on offer by name."""
        with self._lock:
            while self._later:
                self._later.pop(0)()
            return dict(self._tools)

    def install(self, methods: Methods) -> None:
        """Add the feature to every revision."""
        methods.capability("tools", {}, ALL)
        methods.request("tools/list", ALL, self.list_tools, cacheable=True)
        methods.request("tools/call", ALL, self.call_tool, slow=True)

    def list_tools(self, call: Call) -> dict[str, Any]:
        """Answer ``tools/list``."""
        from .pages import page  # noqa: PLC0415 - many a client calls a tool it knows already

        with self._lock:
            tools = list(self.tools().values())
            numbers = dict(self._numbers)
            self._was_listed = True
        found = page(
            tools, call.params, "tools", self.page_size, place=lambda tool: numbers[tool.name]
        )
        found["tools"] = [tool.definition(call.revision) for tool in found["tools"]]
        return found

    def call_tool(self, call: Call) -> dict[str, Any]:
        """Answer ``tools/call``."""
        tool, arguments = self.asked_for(call)
        return self.run(call, tool, arguments)

    def asked_for(self, call: Call) -> tuple[Tool, Arguments]:
        """Give the tool that a ``tools/call`` names, and its arguments as they came.

        Raises:
            ProtocolError: -32602, the request does not fit its schema or names no tool of ours
                (server/tools#error-handling).
        """
        name = call.params.get("name")
        if not isinstance(name, str):
            raise invalid_params("name must be a string")
        arguments = call.params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise invalid_params("arguments must be an object")
        tool = self.tools().get(name)
        if tool is None:
            raise invalid_params(f"unknown tool {quote(name)}")
        return tool, arguments

    def run(self, call: Call, tool: Tool, arguments: Arguments) -> dict[str, Any]:
        """Give the result of a tool.

        What goes wrong inside the tool is a result the model can read. Arguments the tool does
        not take stand between that and a malformed request: a protocol error up to 2025-06-18, a
        result since 2025-11-25 (server/tools#error-handling).

        Raises:
            ProtocolError: -32602, as said.
        """
        fault = fault_in(arguments, tool.input_schema)
        if fault:
            field, problem = fault
            if call.revision < ARGUMENT_ERRORS_FOR_THE_MODEL_SINCE:
                raise invalid_params(problem.rstrip("."))
            meant = tool.input_schema.get("properties", {}).get(field, {})
            error = ToolError(
                problem,
                code="INVALID_ARGUMENTS",
                field=field[:_LONGEST_FIELD],
                details=meant.get("description"),
            )
            return self._failure(error, call, tool)
        about = {"tool": tool.name, "request_id": call.request_id}
        call.log("debug", {"event": "called", **about})
        try:
            structured = tool.work(call, arguments)
        except ToolError as error:
            return self._failure(error, call, tool)
        call.log("debug", {"event": "succeeded", **about})
        return _success(structured, call.revision)

    def _failure(self, error: ToolError, call: Call, tool: Tool) -> dict[str, Any]:
        """Give the error: its message for a person or a model, its members for a program."""
        facts = {"tool": tool.name, "code": error.code, "request_id": call.request_id}
        level = "error" if error.type == "SystemError" else "notice"
        call.log(level, {"event": "failed", **facts})
        from .advice import advised  # noqa: PLC0415 - many a client makes no mistake

        body = advised(error, self.tools())
        serialized = _dump(body)
        result: dict[str, Any] = {
            "content": [_text(error.message), _text(serialized)],
            "isError": True,
            "_meta": {REQUEST_ID: call.request_id},
        }
        if call.revision >= STRUCTURED_SINCE:
            result["structuredContent"] = body
        return result


def _success(structured: dict[str, Any], revision: str) -> dict[str, Any]:
    """Give the result: the same value as text for every client, as an object where known.

    Source: server/tools#structured-content, which asks for the serialized copy.
    """
    result = {"content": [_text(_dump(structured))]}
    if revision >= STRUCTURED_SINCE:
        result["structuredContent"] = structured  # type: ignore[assignment]
    return result


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


# Built once: ``json.dumps`` builds an encoder for each call.
_dump = json.JSONEncoder(ensure_ascii=False).encode
