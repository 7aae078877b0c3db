"""The headers of a POST, from the message in its body. Pure.

Sources: basic/transports#protocol-version-header of 2025-06-18 and 2025-11-25, and
basic/transports/streamable-http#request-metadata of 2026-07-28.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

MARK: Final = "x-mcp-header"
"""Keyword of a property whose value a header repeats (2026-07-28, server/tools#x-mcp-header)."""

PRIMITIVE: Final = frozenset({"integer", "string", "boolean"})
"""Types of a property that a header can repeat."""

DEEPEST: Final = 64
"""Greatest depth of subschemas in a schema that is searched for marks."""

_ONE: Final = frozenset(
    {
        "items",
        "additionalItems",
        "contains",
        "additionalProperties",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)
_MANY: Final = frozenset({"items", "prefixItems", "allOf", "anyOf", "oneOf"})
_NAMED: Final = frozenset({"patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose subschemas are not the schemas of properties, by the shape of their value."""

Path = tuple[str, ...]
"""Property names from the root of an inputSchema down to the one that is repeated."""

VALUE: Final = re.compile(r"[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?")
"""A value that can be sent as it is."""

TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A name of a header."""

FIXED: Final = frozenset(
    {
        "host",
        "content-length",
        "content-type",
        "accept",
        "connection",
        "transfer-encoding",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-method",
        "mcp-name",
        "last-event-id",
    }
)
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


@dataclass(frozen=True, slots=True)
class Mark:
    """One ``x-mcp-header`` of a schema.

    Attributes:
        place: its path in the message.
        path: the property it is on, from the root; empty if it is on none.
        schema: the schema that contains it.
        reachable: whether only ``properties`` lead there.
    """

    place: str
    path: Path
    schema: dict[str, Any]
    reachable: bool

    @property
    def value(self) -> Any:
        """The name of the header, without ``Mcp-Param-``."""
        return self.schema[MARK]

    @property
    def is_token(self) -> bool:
        """Whether the name can be part of the name of a header (RFC 9110)."""
        return isinstance(self.value, str) and TOKEN.fullmatch(self.value) is not None


def marks(
    schema: Any, place: str = "", path: Path = (), *, reachable: bool = True, depth: int = 0
) -> Iterator[Mark]:
    """Yield the marks of a schema; data in it (default, const, enum, examples) is skipped."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return
    if MARK in schema:
        yield Mark(place, path, schema, reachable and bool(path))
    for keyword, below in schema.items():
        at, named = f"{place}.{keyword}", below if isinstance(below, dict) else {}
        inner: list[tuple[Any, str, Path]] = []
        if keyword == "properties":
            inner = [(one, f"{at}.{key}", (*path, key)) for key, one in named.items()]
        elif keyword in _NAMED:
            inner = [(one, f"{at}.{key}", ()) for key, one in named.items()]
        elif keyword in _MANY and isinstance(below, list):
            inner = [(one, f"{at}[{index}]", path) for index, one in enumerate(below)]
        elif keyword in _ONE:
            inner = [(below, at, path)]
        direct = reachable and keyword == "properties"
        for one, where, leads in inner:
            yield from marks(one, where, leads, reachable=direct, depth=depth + 1)


def annotated(schema: Any) -> Iterator[tuple[Path, str]]:
    """Yield the properties of a schema with a valid ``x-mcp-header``, and their headers."""
    for mark in marks(schema):
        if mark.reachable and mark.is_token:
            yield mark.path, PARAMETER + mark.value


def mark_fault(schema: Any) -> str:
    """Return the first fault of the ``x-mcp-header`` marks of an inputSchema; empty if none.

    A missing type, and a union of types, is no fault.
    """
    found = list(marks(schema))
    names = [mark.value.lower() for mark in found if mark.is_token]
    if len(set(names)) < len(names):
        return "two headers of one name"
    if not all(mark.is_token for mark in found):
        return "a header with an invalid name"
    if not all(mark.reachable for mark in found):
        return "a header at a place that properties alone do not reach"
    kinds = (mark.schema.get("type") for mark in found)
    odd = next((kind for kind in kinds if isinstance(kind, str) and kind not in PRIMITIVE), "")
    return odd and f"a header for an argument of type {odd}"


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
