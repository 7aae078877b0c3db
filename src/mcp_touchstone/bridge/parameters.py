"""Tool arguments that 2026-07-28 repeats in ``Mcp-Param-*`` headers. Pure.

Source: 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.bridge.headers import Headers, decoded, mismatch, value_of
from mcp_touchstone.wire.framing import brief

DEEPEST: Final = 32
"""Greatest depth of nested objects."""

Path = tuple[str, ...]
"""Property names from the root of an inputSchema down to the one that is repeated."""


def annotated(schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the properties with an ``x-mcp-header``, and the name of each header.

    Only properties reached by ``properties`` alone: other annotations are invalid.
    """
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if len(path) > DEEPEST:
        return
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        header = inner.get("x-mcp-header") if isinstance(inner, dict) else None
        if isinstance(header, str) and header:
            yield (*path, name), f"Mcp-Param-{header}"
        yield from annotated(inner, (*path, name))


class Parameters:
    """The annotations of the listed tools; safe to share between threads."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[tuple[Path, str], ...]] = {}
        self._lock = threading.Lock()
        self.known = False
        """Whether the list was read to its end, so that no tool is missing."""

    def learn(self, result: Any) -> None:
        """Add the tools of one page of ``tools/list``."""
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list):
            return
        with self._lock:
            for tool in tools:
                if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                    self._tools[tool["name"]] = tuple(annotated(tool.get("inputSchema")))
            self.known = self.known or "nextCursor" not in result

    def check(self, headers: Headers, message: Mapping[str, Any]) -> None:
        """Compare the headers of a ``tools/call`` with its arguments.

        Raises:
            Refusal: 400 with -32020.
        """
        params = message.get("params")
        if not isinstance(params, dict):
            return
        with self._lock:
            found = self._tools.get(str(params.get("name")), ())
        for path, header in found:
            _check_one(headers, header, _value(params.get("arguments"), path), message)


def _value(arguments: Any, path: Path) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def _check_one(headers: Headers, header: str, value: Any, message: Mapping[str, Any]) -> None:
    said = value_of(headers, header)
    if said is None and value is None:
        return
    if said is None:
        raise mismatch(message, f"the header {header} is missing")
    found = decoded(said)
    if found is None:
        raise mismatch(message, f"the value of {header} is malformed")
    if value is None or not _same(found, value):
        raise mismatch(message, f"{header} {brief(found)} does not match {brief(value)}")


def _same(said: str, value: Any) -> bool:
    if isinstance(value, bool):
        return said == str(value).lower()
    if isinstance(value, int | float):
        try:
            return float(said) == float(value)
        except (ValueError, OverflowError):
            return False
    return isinstance(value, str) and said == value
