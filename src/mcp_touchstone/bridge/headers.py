"""What the headers of a request must say, in both eras. Pure.

Sources: basic/transports#streamable-http of 2025-03-26 to 2025-11-25 and
basic/transports/streamable-http of 2026-07-28.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from mcp_touchstone.bridge.refusals import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    Refusal,
)
from mcp_touchstone.framing import brief
from mcp_touchstone.revision import LEGACY, META, is_modern

VERSION: Final = "MCP-Protocol-Version"
SESSION: Final = "Mcp-Session-Id"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Method -> the member of its params that ``Mcp-Name`` repeats."""

_LOOPBACK: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_SAFE: Final = re.compile(r"[\t\x20-\x7e]*")


class Headers(Protocol):
    """The headers of a request; a name is looked up whatever its case."""

    def get(self, name: str, /) -> str | None:
        """Give the value of the first header of a name."""


def value_of(headers: Headers, name: str) -> str | None:
    """Give a value without the white space around it (RFC 9110 section 5.5); None without one."""
    said = headers.get(name)
    return None if said is None else said.strip(" \t")


def guard(headers: Headers) -> None:
    """Let only callers of this machine in: the defence against DNS rebinding.

    A page of a stranger reaches loopback under a name of its own, which both headers tell.

    Raises:
        Refusal: 403.
    """
    host = value_of(headers, "Host") or ""
    if not _LOOPBACK.fullmatch(host):
        raise Refusal(403, INVALID_REQUEST, f"Host {brief(host)} is not this machine")
    origin = value_of(headers, "Origin")
    if origin is not None:
        scheme, _, rest = origin.partition("://")
        if scheme not in {"http", "https"} or not _LOOPBACK.fullmatch(rest):
            raise Refusal(403, INVALID_REQUEST, f"Origin {brief(origin)} is not this machine")


def check_content_type(headers: Headers) -> None:
    """See that a body is declared as JSON, which no web page can do without being asked first.

    Raises:
        Refusal: 415.
    """
    kind = (headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refusal(415, INVALID_REQUEST, f"Content-Type must be {JSON}")


def check_accept(headers: Headers, *wanted: str) -> None:
    """See that the client takes every kind of answer it may get.

    Raises:
        Refusal: 406.
    """
    ranges = {part.partition(";")[0].strip().lower() for part in _accept(headers).split(",")}
    for kind in wanted:
        if not ranges & {kind, "*/*", kind.partition("/")[0] + "/*"}:
            raise Refusal(406, INVALID_REQUEST, f"Accept must list {' and '.join(wanted)}")


def _accept(headers: Headers) -> str:
    return headers.get("Accept") or "*/*"


# --- which era a request belongs to


def meta_of(message: Any) -> dict[str, Any]:
    """Give ``params._meta``, ``{}`` where there is none."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def is_stateless(headers: Headers, message: Any) -> bool:
    """Tell whether a request is of 2026-07-28, from what it carries itself.

    ``initialize`` is not looked at here: it always gets a process of its own.
    """
    if META + "protocolVersion" in meta_of(message) or is_modern(value_of(headers, VERSION) or ""):
        return True
    return isinstance(message, dict) and message.get("method") == "server/discover"


def lacks_meta(message: Any) -> bool:
    """Tell whether a request has not the ``_meta`` members that 2026-07-28 requires."""
    meta = meta_of(message)
    return not {META + "protocolVersion", META + "clientCapabilities"} <= meta.keys()


def check_session_version(headers: Headers) -> None:
    """See that the revision a session's request names is one with sessions.

    It is not held against the negotiated one: the page only says that it SHOULD be that.

    Raises:
        Refusal: 400 (2025-11-25 basic/transports#protocol-version-header).
    """
    named = value_of(headers, VERSION)
    if named is not None and named not in LEGACY:
        raise Refusal(400, INVALID_REQUEST, f"{VERSION} {brief(named)} is not supported")


# --- what 2026-07-28 repeats in headers


def check_repeated(headers: Headers, message: Mapping[str, Any]) -> None:
    """Hold the standard headers of a stateless request against its body.

    Raises:
        Refusal: 400 with -32020 (2026-07-28 basic/transports/streamable-http#server-validation).
    """
    version = meta_of(message).get(META + "protocolVersion")
    _compare(headers, VERSION, version, message)
    _compare(headers, "Mcp-Method", message.get("method"), message)
    member = NAMED.get(str(message.get("method")))
    params = message.get("params")
    name = params.get(member) if member and isinstance(params, dict) else None
    if isinstance(name, str):
        _compare(headers, "Mcp-Name", name, message, encoded=True)


def _compare(
    headers: Headers,
    header: str,
    value: Any,
    message: Mapping[str, Any],
    *,
    encoded: bool = False,
) -> None:
    said = value_of(headers, header)
    if said is None:
        raise mismatch(message, f"the header {header} is missing")
    found = decoded(said) if encoded else said
    if found is None:
        raise mismatch(message, f"the value of {header} is malformed")
    if isinstance(value, str) and found != value:
        shown = f"{brief(found)} does not match {brief(value)} in the body"
        raise mismatch(message, f"{header} {shown}")


def mismatch(message: Mapping[str, Any], why: str) -> Refusal:
    """Give the refusal for headers that do not fit the body."""
    return Refusal(400, HEADER_MISMATCH, f"Header mismatch: {why}", id=message.get("id"))


def decoded(value: str) -> str | None:
    """Give what a header value stands for, None if it is malformed (#value-encoding)."""
    if not _SAFE.fullmatch(value):
        return None
    wrapped = _SENTINEL.fullmatch(value)
    if wrapped is None:
        return value
    try:
        return base64.b64decode(wrapped[1], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
