"""The legacy era: one session per process, opened by ``initialize`` (basic/lifecycle).

    start --initialize--> opened --notifications/initialized--> ready

Before ``initialize``, the server handles only ``ping``. Between the two messages it handles
everything. The specification forbids only the *client* to send requests before the answer to
``initialize``. ``initialized`` allows the *server* to send its own requests. An early or missing
``initialized`` therefore does no harm to a client, and never opens a session.
"""

from __future__ import annotations

from .envelope import check_capabilities, check_implementation
from .errors import invalid_params, invalid_request
from .identity import implementation
from .revisions import LATEST_LEGACY, LEGACY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .calls import Call
    from .messages import Params, Request
    from .methods import Methods

ROOTS_CHANGED = "notifications/roots/list_changed"


class Session:
    """The state of the session.

    Attributes:
        revision: The negotiated revision; None before ``initialize``.
        client_capabilities: The capabilities that the client declared.
        client_info: Name and version of the client; ``{}`` before ``initialize``.
        ready: True once the client has sent ``notifications/initialized``.
        hold: Called with each slow request; returns True if it has taken the request, to run it
            later (``roots``).
    """

    def __init__(self) -> None:
        self.revision: str | None = None
        self.client_capabilities: dict[str, Any] = {}
        self.client_info: dict[str, str] = {}
        self.ready = False
        self.hold: Callable[[Call], bool] = _hold_nothing

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


def _hold_nothing(_call: Call) -> bool:
    return False


def install(methods: Methods, session: Session) -> None:
    """Add the session's own methods to the legacy revisions."""

    def initialize(call: Call) -> dict[str, Any]:
        return _initialize(call.params, session, methods)

    def initialized(_params: Params) -> None:
        if session.revision is None or session.ready:
            return
        session.ready = True
        # A listener for changes of the roots needs the first list too.
        refresh = methods.listener(ROOTS_CHANGED, session.revision)
        if refresh is not None and "roots" in session.client_capabilities:
            refresh({})

    methods.request("initialize", LEGACY, initialize)
    methods.request("ping", LEGACY, _ping)
    methods.notification("notifications/initialized", LEGACY, initialized)


def _initialize(params: Params, session: Session, methods: Methods) -> dict[str, Any]:
    """Negotiate the revision (basic/lifecycle#version-negotiation).

    The answer to an unknown revision is the newest handshake revision, not an error. The same
    applies to 2026-07-28, which has no handshake.
    """
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        raise invalid_params("protocolVersion must be a string")
    capabilities = check_capabilities(params.get("capabilities"), "capabilities")
    client_info = check_implementation(params.get("clientInfo"), "clientInfo")
    revision = wanted if wanted in LEGACY else LATEST_LEGACY
    session.client_capabilities = capabilities
    session.client_info = client_info
    session.revision = revision
    return {
        "protocolVersion": revision,
        "capabilities": methods.capabilities(revision),
        "serverInfo": implementation(revision),
        **methods.introduction(),
    }


def _ping(_call: Call) -> dict[str, Any]:
    """Answer ``ping`` (basic/utilities/ping). 2026-07-28 has no ping."""
    return {}
