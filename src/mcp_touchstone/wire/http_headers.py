"""The headers of a POST, from the message in its body. Pure.

Sources: basic/transports#protocol-version-header of 2025-06-18 and 2025-11-25, and
basic/transports/streamable-http#request-metadata of 2026-07-28.
"""

import base64
import binascii
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.wire.exchange import Headers
from mcp_touchstone.wire.framing import object_in, value_in

AUTHORIZATION: Final = "Authorization"
VERSION: Final = "MCP-Protocol-Version"
SESSION: Final = "Mcp-Session-Id"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAMETER: Final = "Mcp-Param-"
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Method -> the member of its params that ``Mcp-Name`` repeats."""

DEEPEST: Final = 32
"""Greatest depth of nested objects in a schema that is searched for annotations."""

Path = tuple[str, ...]
"""Property names from the root of an inputSchema down to the one that is repeated."""

VALUE: Final = re.compile(r"[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?")
"""A value that can be sent as it is."""

TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A name of a header."""

FIXED: Final = frozenset({
    "host", "content-length", "content-type", "accept", "connection", "transfer-encoding",
    "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "last-event-id",
})  # fmt: skip
"""Headers whose values the protocol decides, in lower case."""

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_SAFE: Final = re.compile(r"[\t\x20-\x7e]*")


def fits_header(value: str) -> bool:
    """Return whether a text can be the value of a header as it is."""
    return VALUE.fullmatch(value) is not None


def encoded(value: str) -> str:
    """Return a value for ``Mcp-Name`` or ``Mcp-Param-*``, in Base64 where it must be."""
    if fits_header(value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="


def decoded(value: str) -> str | None:
    """Return the decoded header value; None if it is malformed (#value-encoding)."""
    if not _SAFE.fullmatch(value):
        return None
    wrapped = _SENTINEL.fullmatch(value)
    if wrapped is None:
        return value
    try:
        return base64.b64decode(wrapped[1], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def repeated(
    message: Any, revision: str, tools: Mapping[str, tuple[tuple[Path, str], ...]] = {}
) -> Headers:
    """Return the headers that repeat parts of a message of 2026-07-28.

    Args:
        message: the body; anything but an object has no method to repeat.
        revision: the version to name if the body names none.
        tools: name of a tool -> its annotated parameters and their headers.
    """
    params = object_in(message, "params")
    named = value_in(params, "_meta", META_VERSION)
    fits = isinstance(named, str) and fits_header(named)
    found = [(VERSION, named if isinstance(named, str) and fits else revision)]
    method = value_in(message, "method")
    if isinstance(method, str) and fits_header(method):
        found.append((METHOD, method))
        name = params.get(NAMED.get(method, ""))
        if isinstance(name, str):
            found.append((NAME, encoded(name)))
        if method == "tools/call" and isinstance(name, str):
            for path, header in tools.get(name, ()):
                value = _text(value_in(params.get("arguments"), *path))
                if value is not None:
                    found.append((header, encoded(value)))
    return tuple(found)


def annotated(schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the properties of a schema with a valid ``x-mcp-header``, and their headers."""
    if len(path) > DEEPEST:
        return
    for name, inner in object_in(schema, "properties").items():
        header = value_in(inner, "x-mcp-header")
        if isinstance(header, str) and TOKEN.fullmatch(header):
            yield (*path, name), PARAMETER + header
        yield from annotated(inner, (*path, name))


def mark_fault(schema: Any) -> str:
    """Return the first fault of the ``x-mcp-header`` marks of an inputSchema; empty if none.

    A mark counts wherever it is. A missing type, and a union of types, is no fault.
    """
    found = [header.lower() for _, header in annotated(schema)]
    if len(set(found)) < len(found):
        return "two headers of one name"
    for path, _ in annotated(schema):
        kind = value_in(schema, *itertools.chain(*(("properties", name) for name in path)), "type")
        if isinstance(kind, str) and kind not in {"string", "integer", "boolean"}:
            return f"a header for an argument of type {kind}"
    if len(found) < json.dumps(schema).count('"x-mcp-header":'):
        return "a header with an invalid name, or at a place that properties alone do not reach"
    return ""


def parameters(result: Any) -> dict[str, tuple[tuple[Path, str], ...]]:
    """Return the parameters that headers repeat, and the headers, of each tool in a list."""
    tools = value_in(result, "tools")
    return {
        tool["name"]: tuple(annotated(tool.get("inputSchema")))
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    }


def _text(value: Any) -> str | None:
    """Return a primitive value as text (#value-encoding); None if it has no header."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | str) else None
