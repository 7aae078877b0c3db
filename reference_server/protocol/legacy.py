"""The legacy era: one session per process, opened by ``initialize`` (basic/lifecycle).

    start --initialize--> opened --notifications/initialized--> ready

Before ``initialize``, the server handles only ``ping``. Between the two messages it handles
everything. The specification forbids only the *client* to send requests before the answer to
``initialize``. ``initialized`` allows the *server* to send its own requests. An early or missing
``initialized`` therefore does no harm to a client, and never opens a session.
"""

from __future__ import annotations

from .envelope import check_capabilities, check_implementation, string_of
from .errors import invalid_request
from .revisions import LATEST_LEGACY, LEGACY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .messages import Params, Request

ROOTS_CHANGED = "notifications/roots/list_changed"


class Session:
    """The state of the session.

    Attributes:
        revision: The negotiated revision; None before ``initialize``.
        client_info: Name and version of the client; ``{}`` before ``initialize``.
        ready: True once the client has sent ``notifications/initialized``.
    """

    def __init__(self) -> None:
        self.revision: str | None = None
        self.client_capabilities: dict[str, Any] = {}
        self.client_info: dict[str, str] = {}
        self.ready = False

    def revision_for(self, request: Request) -> str:
        """Return the revision that applies to a legacy request.

        ``initialize`` and an early ``ping`` are the same in every revision; the newest is used.

        Raises:
            ProtocolError: -32600, for a second ``initialize`` (it must be the *first* interaction,
                and requests in flight could not follow a renegotiation), and for anything but
                ``ping`` before the first one.
        """
        if request.method == "initialize" and self.revision is not None:
            raise invalid_request("the session is already initialized")
        if self.revision is not None:
            return self.revision
        if request.method not in ("initialize", "ping"):
            raise invalid_request(
                "send initialize first, or the _meta fields that 2026-07-28 wants in each request"
            )
        return LATEST_LEGACY

    def negotiate(self, params: Params) -> str:
        """Open the session with the params of ``initialize``, and return its revision.

        The answer to an unknown revision is the newest handshake revision, not an error
        (basic/lifecycle#version-negotiation). The same applies to 2026-07-28, which has no
        handshake.
        """
        wanted = string_of(params, "protocolVersion")
        capabilities = check_capabilities(params.get("capabilities"), "capabilities")
        client_info = check_implementation(params.get("clientInfo"), "clientInfo")
        self.client_capabilities = capabilities
        self.client_info = client_info
        self.revision = wanted if wanted in LEGACY else LATEST_LEGACY
        return self.revision
