"""The requirements on the headers of a request, in both eras. Pure.

Sources: basic/transports#streamable-http of 2025-03-26 to 2025-11-25 and
basic/transports/streamable-http of 2026-07-28.
"""

import hmac
from collections.abc import Mapping
from typing import Any, Final

from mcp_touchstone.catalog.revision import LEGACY, META, is_modern
from mcp_touchstone.http_server.hosts import Headers, value_of
from mcp_touchstone.http_server.refusals import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    NO_SESSION,
    Refusal,
)
from mcp_touchstone.wire.exchange import JSON
from mcp_touchstone.wire.framing import brief, object_in, value_in
from mcp_touchstone.wire.http_headers import METHOD, NAME, NAMED, VERSION, decoded

WELL_KNOWN: Final = "/.well-known/"


def check_token(headers: Headers, token: str) -> None:
    """Check the bearer token of a request (RFC 6750).

    Raises:
        Refusal: 401.
    """
    scheme, _, given = (value_of(headers, "Authorization") or "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return
    wrong = ', error="invalid_token"' if given else ""
    challenge = {"WWW-Authenticate": f'Bearer realm="mcp-touchstone"{wrong}'}
    raise Refusal(401, NO_SESSION, "Unauthorized: a bearer token is needed", **challenge)


def check_content_type(headers: Headers) -> None:
    """Check that a body is declared as JSON, which web pages cannot do without preflight.

    Raises:
        Refusal: 415.
    """
    kind = (headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refusal(415, INVALID_REQUEST, f"Content-Type must be {JSON}")


def check_accept(headers: Headers, *wanted: str) -> None:
    """Check that the client accepts every kind of answer it may get.

    Raises:
        Refusal: 406.
    """
    accepted = ",".join(headers.get_all("Accept", [])) or "*/*"
    ranges = {part.partition(";")[0].strip().lower() for part in accepted.split(",")}
    for kind in wanted:
        if not ranges & {kind, "*/*", kind.partition("/")[0] + "/*"}:
            raise Refusal(406, INVALID_REQUEST, f"Accept must list {' and '.join(wanted)}")


# --- the era of a request


def meta_of(message: Any) -> dict[str, Any]:
    """Return ``params._meta``, or ``{}`` if there is none."""
    return object_in(message, "params", "_meta")


def is_stateless(headers: Headers, message: Any) -> bool:
    """Return whether a request is of 2026-07-28, judging by its headers and its body.

    ``initialize`` is not checked here: it always gets a process of its own.
    """
    if META + "protocolVersion" in meta_of(message) or is_modern(value_of(headers, VERSION) or ""):
        return True
    return isinstance(message, dict) and message.get("method") == "server/discover"


def lacks_meta(message: Any) -> bool:
    """Return whether a request lacks ``_meta`` members that 2026-07-28 requires."""
    meta = meta_of(message)
    return not {META + "protocolVersion", META + "clientCapabilities"} <= meta.keys()


def check_session_version(headers: Headers) -> None:
    """Check that the revision named in a request of a session is one with sessions.

    It is not compared with the negotiated revision, since equality is only a SHOULD.

    Raises:
        Refusal: 400 (2025-11-25 basic/transports#protocol-version-header).
    """
    named = value_of(headers, VERSION)
    if named is not None and named not in LEGACY:
        raise Refusal(400, INVALID_REQUEST, f"{VERSION} {brief(named)} is not supported")


# --- headers that repeat the body (2026-07-28)


def check_repeated(headers: Headers, message: Mapping[str, Any]) -> None:
    """Compare the standard headers of a stateless request with its body.

    Raises:
        Refusal: 400 with -32020 (2026-07-28 basic/transports/streamable-http#server-validation).
    """
    version = meta_of(message).get(META + "protocolVersion")
    _compare(headers, VERSION, version, message)
    _compare(headers, METHOD, message.get("method"), message)
    member = NAMED.get(str(message.get("method")))
    name = value_in(message, "params", member) if member else None
    if isinstance(name, str):
        _compare(headers, NAME, name, message, encoded=True)


def _compare(
    headers: Headers, header: str, value: Any, message: Mapping[str, Any], *, encoded: bool = False
) -> None:
    found = repeated_value(headers, header, message, encoded=encoded)
    if isinstance(value, str) and found != value:
        shown = f"{brief(found)} does not match {brief(value)} in the body"
        raise mismatch(message, f"{header} {shown}")


def repeated_value(
    headers: Headers, header: str, message: Mapping[str, Any], *, encoded: bool = True
) -> str:
    """Return the value of a header that repeats the body.

    Raises:
        Refusal: 400 with -32020, it is missing or malformed.
    """
    said = value_of(headers, header)
    if said is None:
        raise mismatch(message, f"the header {header} is missing")
    found = decoded(said) if encoded else said
    if found is None:
        raise mismatch(message, f"the value of {header} is malformed")
    return found


def mismatch(message: Mapping[str, Any], why: str) -> Refusal:
    """Return the refusal for headers that differ from the body."""
    return Refusal(400, HEADER_MISMATCH, f"Header mismatch: {why}", id=message.get("id"))
