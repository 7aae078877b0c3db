"""Tool arguments that 2026-07-28 repeats in ``Mcp-Param-*`` headers. Pure.

Source: 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

import threading
from collections.abc import Mapping
from typing import Any

from mcp_touchstone.bridge.headers import mismatch, repeated_value
from mcp_touchstone.http_server.hosts import Headers, value_of
from mcp_touchstone.wire.framing import brief, value_in
from mcp_touchstone.wire.http_headers import Path, parameters


class Parameters:
    """The annotations of the listed tools; safe to share between threads."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[tuple[Path, str], ...]] = {}
        self._lock = threading.Lock()
        self.known = False
        """Whether the list was read to its end, so that no tool is missing."""

    def learn(self, result: Any) -> None:
        """Add the tools of one page of ``tools/list``."""
        if not isinstance(value_in(result, "tools"), list):
            return
        with self._lock:
            self._tools |= parameters(result)
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
            _check_one(headers, header, value_in(params.get("arguments"), *path), message)


def _check_one(headers: Headers, header: str, value: Any, message: Mapping[str, Any]) -> None:
    if value is None and value_of(headers, header) is None:
        return
    found = repeated_value(headers, header, message)
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
