"""The modern era: no session, each request is complete (2026-07-28 basic/index).

A request is modern if its ``_meta`` has one of the two required keys, or if it is
``server/discover``, which only this era has. An ``initialize`` with a ``protocolVersion`` is always
legacy. Without one, it is a method that the modern era does not have. The server handles both eras
at once. This is allowed (basic/versioning#compatibility-matrix), and a wrong first request does not
affect later ones.
"""

from __future__ import annotations

from .envelope import check_capabilities, check_implementation, meta_of
from .errors import UNSUPPORTED_PROTOCOL_VERSION, ProtocolError, invalid_params
from .identity import implementation
from .revisions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .messages import Request

PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
CLIENT_INFO = PREFIX + "clientInfo"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"

SUPPORTED = MODERN
"""Revisions in ``supportedVersions`` and in the data of -32022.

The handshake revisions are supported too, but not listed: "the client should choose one of these
for subsequent requests" (server/discover#discoverresult), and the answer to a modern request with
one of them is -32022.
"""

FRESH_MILLISECONDS = 300_000
"""``ttlMs``: a list does not change in one process, but a new process may have new tools."""

LOG_LEVELS = (*("debug", "info", "notice", "warning"), *("error", "critical", "alert", "emergency"))
"""schema.ts#LoggingLevel, least severe first."""


def is_modern_request(request: Request) -> bool:
    if request.method == "server/discover":
        return True
    meta = request.params.get("_meta")
    opens = request.method == "initialize" and "protocolVersion" in request.params
    if opens or not isinstance(meta, dict):
        return False
    return PROTOCOL_VERSION in meta or CLIENT_CAPABILITIES in meta


def revision_for(request: Request) -> str:
    """Check the ``_meta`` of a modern request and return the revision in it.

    Raises:
        ProtocolError: -32602 for a missing or mistyped member, -32022 for an unsupported revision.
            The specification does not define their order; -32602 comes first here.
    """
    meta = meta_of(request.params)
    wanted = meta.get(PROTOCOL_VERSION)
    if not isinstance(wanted, str):
        raise invalid_params(f"_meta must have the string {PROTOCOL_VERSION}")
    if CLIENT_CAPABILITIES not in meta:
        raise invalid_params(f"_meta must have the object {CLIENT_CAPABILITIES}")
    check_capabilities(meta[CLIENT_CAPABILITIES], CLIENT_CAPABILITIES)
    if CLIENT_INFO in meta:
        check_implementation(meta[CLIENT_INFO], CLIENT_INFO)
    if meta.get(LOG_LEVEL, "info") not in LOG_LEVELS:
        raise invalid_params(f"{LOG_LEVEL} must be a logging level")
    if wanted not in SUPPORTED:
        raise ProtocolError(
            UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
            {"supported": list(SUPPORTED), "requested": wanted},
        )
    return wanted


def client_capabilities(request: Request) -> dict[str, Any]:
    """Return the capabilities that this request declares; call it after ``revision_for``."""
    declared: dict[str, Any] = request.params["_meta"][CLIENT_CAPABILITIES]
    return declared


def stamp(result: dict[str, Any], cacheable: bool, revision: str) -> dict[str, Any]:
    """Add the members of every modern result; the handler's own values take precedence.

    These are ``resultType`` (basic/index#resulttype), ``_meta`` with the server's name
    (basic/index#meta) and, for a complete cacheable result, the caching hints. The scope is
    ``public``, because all clients get the same lists.
    """
    stamped = {"resultType": "complete", **result}
    stamped["_meta"] = {SERVER_INFO: implementation(revision), **result.get("_meta", {})}
    if cacheable and stamped["resultType"] == "complete":
        stamped.setdefault("ttlMs", FRESH_MILLISECONDS)
        stamped.setdefault("cacheScope", "public")
    return stamped
