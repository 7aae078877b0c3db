"""Conversations as readable text: short lines, and names for values that vary."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from mcp_touchstone.recordings.scrubber import NAMED, Scrubber, pretty
from tests.reference_client import META

_NAMED = {**NAMED, "confirm_token": "token"}
_VERSION = "io.modelcontextprotocol/protocolVersion"


class TourScrubber(Scrubber):
    """The scrubber of golden recordings, without what differs between our own machines.

    Args:
        places: Texts that stand for directories of this host -> what to call them.
    """

    def __init__(self, places: dict[str, str]) -> None:
        super().__init__(places, datetime.now(UTC), named=_NAMED)

    def _about_server(self, info: Any) -> Any:
        return super()._about_server({**info, "version": "<version>"})

    def _string(self, value: str, member: str) -> Any:
        if value == "made up":
            return value
        shown = super()._string(value, member)
        return re.sub(r"Python \(3\.\d+\)", "Python (<version>)", shown)


def _without_copies(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out the copy of ``structuredContent`` in the text of a result, if it is one."""
    result = message.get("result")
    if not isinstance(result, dict) or "structuredContent" not in result:
        return message
    blocks = [
        {**block, "text": "<structuredContent>"}
        if block.get("text") == {"<JSON>": result["structuredContent"]}
        else block
        for block in result["content"]
    ]
    return {**message, "result": {**result, "content": blocks}}


def line(arrow: str, message: Any) -> str:
    """Show a message: the members of JSON-RPC first, the rest as it came."""
    if isinstance(message, dict):
        message = {name: value for name, value in message.items() if name != "jsonrpc"}
        message = _with_short_meta(_without_copies(message))
    return f"{arrow} {pretty(message, 2)}"


def _with_short_meta(message: dict[str, Any]) -> dict[str, Any]:
    """Show what all requests of 2026-07-28 have in their ``_meta`` as one word."""
    params = message.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("_meta"), dict):
        return message
    meta = params["_meta"]
    if meta.get(_VERSION) != META[_VERSION] or META.keys() - meta.keys():
        return message
    own = {name: value for name, value in meta.items() if value != META.get(name)}
    short = {f"<{META[_VERSION]}>": own} if own else f"<{META[_VERSION]}>"
    return {**message, "params": {**params, "_meta": short}}
