"""The tools feature: listing and calling tools (server/tools).

A tool is registered once and listed in the form of each revision.
"""

from __future__ import annotations

import itertools
import json
import threading

from ..failure import ToolError
from .arguments import check_schema, fault_in
from .envelope import object_of, string_of
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
"""The only revision with tasks in its core (2026-07-28 changelog: moved to an extension)."""

_LONGEST_FIELD = 64
"""Characters of an argument's name. The name of an unknown argument can be of any length."""


class Tool:
    """One tool.

    Args:
        name: ASCII letters, digits, ``_`` and ``-``; at most 64 characters. The specification
            allows ``.`` and 128 characters (2025-11-25 server/tools#tool-names), but many
            clients do not.
        input_schema: Schema of ``arguments``; see ``arguments`` for the keywords allowed.
        output_schema: Schema of ``structuredContent``.
        annotations: Hints (schema.ts#ToolAnnotations).
        work: Runs on a worker thread. Takes the call and the checked arguments, returns an object
            that fits ``output_schema``, raises ToolError if it fails.
        task: Whether it may be called as a task (2025-11-25 basic/utilities/tasks).
        alias: Another name that calls it. It is not listed.
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
        alias: str | None = None,
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
        self.alias = alias

    def definition(self, revision: str) -> dict[str, Any]:
        """Return the ``Tool`` object (schema.ts#Tool) of a revision."""
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
    """The tools of this server, in the order of their families.

    Attributes:
        changed: Called when the list has changed since a client read it.
        listed: Called when a client reads the list.
    """

    def __init__(self) -> None:
        self.page_size = 100
        self.changed: Callable[[], None] | None = None
        self.listed: Callable[[], None] | None = None
        self._tools: dict[str, Tool] = {}
        self._numbers: dict[str, int] = {}  # in the order of the list, never used again
        self._next_number = itertools.count(1)
        self._later: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self._was_listed = False

    def add(self, tool: Tool) -> None:
        """Add a tool. Names are unique and case-sensitive."""
        with self._lock:
            if tool.name in self._tools:
                raise ValueError(f"two tools named {tool.name}")
            self._tools[tool.name] = tool
            self._numbers[tool.name] = next(self._next_number)
        self._announce()

    def remove(self, name: str) -> None:
        with self._lock:
            gone = self._tools.pop(name, None)
        if gone:
            self._announce()

    def _announce(self) -> None:
        if self._was_listed and self.changed:
            self.changed()

    def later(self, family: Callable[[], None]) -> None:
        """Register a family of tools; the first request calls it to ``add`` them."""
        self._later.append(family)

    def tools(self) -> dict[str, Tool]:
        with self._lock:
            while self._later:
                self._later.pop(0)()
            return dict(self._tools)

    def find(self, name: str) -> Tool | None:
        tools = self.tools()
        return tools.get(name) or next((t for t in tools.values() if t.alias == name), None)

    def install(self, methods: Methods) -> None:
        methods.capability("tools", {}, ALL)
        methods.request("tools/list", ALL, self.list_tools, cacheable=True)
        methods.request("tools/call", ALL, self.call_tool, slow=True)

    def list_tools(self, call: Call) -> dict[str, Any]:
        from .pages import page  # noqa: PLC0415 - many clients call tools without listing them

        with self._lock:
            tools = list(self.tools().values())
            numbers = dict(self._numbers)
            self._was_listed = True
        found = page(
            tools, call.params, "tools", self.page_size, place=lambda tool: numbers[tool.name]
        )
        found["tools"] = [tool.definition(call.revision) for tool in found["tools"]]
        if self.listed:
            self.listed()
        return found

    def call_tool(self, call: Call) -> dict[str, Any]:
        tool, arguments = self.asked_for(call)
        return self.run(call, tool, arguments)

    def asked_for(self, call: Call) -> tuple[Tool, Arguments]:
        """Return the tool and the unchecked arguments of a ``tools/call``."""
        name = string_of(call.params, "name")
        arguments = object_of(call.params, "arguments", {})
        tool = self.find(name)
        if tool is None:
            raise invalid_params(f"unknown tool {quote(name)}")
        return tool, arguments

    def run(self, call: Call, tool: Tool, arguments: Arguments) -> dict[str, Any]:
        """Run a tool and return its result.

        An error inside the tool is a result that the model can read. Invalid arguments are a
        protocol error up to 2025-06-18, and such a result since 2025-11-25
        (server/tools#error-handling).
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
        """Return the result for an error: its message for people, its members for programs."""
        facts = {"tool": tool.name, "code": error.code, "request_id": call.request_id}
        level = "error" if error.type == "SystemError" else "notice"
        call.log(level, {"event": "failed", **facts})
        from .advice import advised  # noqa: PLC0415 - only needed for errors

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
    """Return the result as text for every client, and as an object in newer revisions.

    Source: server/tools#structured-content requires the text too.
    """
    result = {"content": [_text(_dump(structured))]}
    if revision >= STRUCTURED_SINCE:
        result["structuredContent"] = structured  # type: ignore[assignment]
    return result


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


# Shared, because ``json.dumps`` builds an encoder for each call.
_dump = json.JSONEncoder(ensure_ascii=False).encode
