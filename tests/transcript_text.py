"""Conversations as text for people to read: short lines, and names for what changes every time."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.reference_client import META

WIDTH = 100
"""Columns."""

_NAMED = {
    "nextCursor": "cursor",
    "cursor": "cursor",
    "confirm_token": "token",
    "requestState": "state",
    "taskId": "task",
}
"""Members whose values are random; each value gets a name, the same wherever it stands."""

_TIMES = {"lastModified", "createdAt", "lastUpdatedAt"}
_SERVER = "io.modelcontextprotocol/serverInfo"
_VERSION = "io.modelcontextprotocol/protocolVersion"


class Scrubber:
    """Gives names to what changes from run to run, and leaves out what is said over and over.

    Args:
        places: Texts that stand for directories of this host -> what to call them.
    """

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._server: Any = None

    def scrub(self, value: Any, member: str = "") -> Any:
        """Give a JSON value as it is shown."""
        if isinstance(value, dict):
            return {name: self._member(name, inner, value) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.scrub(inner, member) for inner in value]
        if not isinstance(value, str):
            return value
        if member in _NAMED and value not in ("", "made up"):
            return self._name(_NAMED[member], value)
        if member in _TIMES:
            return "<time>"
        for place, name in self._places.items():
            value = value.replace(place, name)
        return re.sub(r"Python \(3\.\d+\)", "Python (<version>)", value)

    def _member(self, name: str, value: Any, whole: dict[str, Any]) -> Any:
        if name in ("serverInfo", _SERVER):
            told = {**value, "version": "<version>"}
            known, self._server = self._server == told, told
            return "<as before>" if known else told
        if name == "text" and whole.get("type") == "text":
            return self._text(value)
        return self.scrub(value, name)

    def _text(self, text: str) -> Any:
        """Show a serialized object as what it is."""
        try:
            inside = json.loads(text)
        except ValueError:
            inside = None
        return {"<JSON>": self.scrub(inside)} if isinstance(inside, dict) else self.scrub(text)

    def _name(self, kind: str, value: str) -> str:
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"<{kind} {self._counts[kind]}>"
        return self._names[value]


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


def pretty(value: Any, indent: int) -> str:
    """Write a JSON value on as many lines as it needs."""
    plain = json.dumps(value)
    if indent + len(plain) <= WIDTH:
        return plain
    pad = " " * (indent + 2)
    if isinstance(value, dict) and value:
        rows = [
            f"{pad}{json.dumps(name)}: {pretty(inner, indent + 2)}" for name, inner in value.items()
        ]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    if isinstance(value, list) and value:
        rows = [pad + pretty(inner, indent + 2) for inner in value]
        return "[\n" + ",\n".join(rows) + "\n" + " " * indent + "]"
    if isinstance(value, str) and "\n" in value[:-1]:
        return "".join(
            f"\n{pad}{json.dumps(part)}" for part in re.findall(r"[^\n]*\n|[^\n]+", value)
        )
    return plain


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
