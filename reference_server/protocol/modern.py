"""The modern era: no session, every request says all that is needed (2026-07-28 basic/index).

A request is modern if its ``_meta`` has one of the two required keys, or if it is
``server/discover``, which no other era knows. An ``initialize`` that names a version to negotiate
is legacy whatever else it carries; without one it is a method that the modern era has not. Both
eras are served at once: that is allowed (basic/versioning#compatibility-matrix), and a stray first
request must not decide how later ones are read.
"""

from __future__ import annotations

from .envelope import check_capabilities, check_implementation, meta_of
from .errors import UNSUPPORTED_PROTOCOL_VERSION, ProtocolError, invalid_params
from .identity import implementation
from .revisions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .calls import Call
    from .messages import Request
    from .methods import Methods

PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
CLIENT_INFO = PREFIX + "clientInfo"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"

SUPPORTED = MODERN
"""What ``supportedVersions`` and the data of -32022 list: what a modern request may name.

The handshake revisions are served too, but "the client should choose one of these for subsequent
requests" (server/discover#discoverresult), and a request that names one of them gets -32022.
"""

FRESH_MILLISECONDS = 300_000
"""``ttlMs``: lists are fixed for the life of the process; a new one may come with new tools."""

LOG_LEVELS = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
"""schema.ts#LoggingLevel, least severe first."""


def is_modern_request(request: Request) -> bool:
    """Say whether a request is modern, from the request alone."""
    if request.method == "server/discover":
        return True
    meta = request.params.get("_meta")
    opens = request.method == "initialize" and "protocolVersion" in request.params
    if opens or not isinstance(meta, dict):
        return False
    return PROTOCOL_VERSION in meta or CLIENT_CAPABILITIES in meta


def revision_for(request: Request) -> str:
    """Check the ``_meta`` of a modern request and give the revision it names.

    Raises:
        ProtocolError: -32602 for a missing or mistyped member, -32022 for a revision that is not
            served this way. Which of the two comes first is not defined; a request that is wrong
            in itself is refused before its revision is looked at.
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
    """Give the capabilities this one request declares; call it after ``revision_for``."""
    declared: dict[str, Any] = request.params["_meta"][CLIENT_CAPABILITIES]
    return declared


def stamp(result: dict[str, Any], cacheable: bool, revision: str) -> dict[str, Any]:
    """Add what every modern result carries; what the handler has set stays.

    ``resultType`` (basic/index#resulttype), ``_meta`` with our name (basic/index#meta) and, on a
    cacheable result that is complete, the caching hints. ``public``: no list depends on who asks.
    """
    stamped = {"resultType": "complete", **result}
    stamped["_meta"] = {SERVER_INFO: implementation(revision), **result.get("_meta", {})}
    if cacheable and stamped["resultType"] == "complete":
        stamped.setdefault("ttlMs", FRESH_MILLISECONDS)
        stamped.setdefault("cacheScope", "public")
    return stamped


def install(methods: Methods) -> None:
    """Add ``server/discover``, the one method every modern server has."""

    def discover(call: Call) -> dict[str, Any]:
        return {
            "supportedVersions": list(SUPPORTED),
            "capabilities": methods.capabilities(call.revision),
            **methods.introduction(),
        }

    methods.request("server/discover", MODERN, discover, cacheable=True)
