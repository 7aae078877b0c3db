"""The methods by which a client opens a connection and looks whether it is alive."""

from __future__ import annotations

from .identity import implementation
from .legacy import ROOTS_CHANGED
from .modern import SUPPORTED
from .revisions import LEGACY, MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .calls import Call
    from .legacy import Session
    from .messages import Params
    from .methods import Methods


def install(methods: Methods, session: Session) -> None:

    def initialize(call: Call) -> dict[str, Any]:
        revision = session.negotiate(call.params)
        return {
            "protocolVersion": revision,
            "capabilities": methods.capabilities(revision),
            "serverInfo": implementation(revision),
            **methods.introduction(),
        }

    def initialized(_params: Params) -> None:
        if session.revision is None or session.ready:
            return
        session.ready = True
        # A listener for changes of the roots needs the first list too.
        refresh = methods.listener(ROOTS_CHANGED, session.revision)
        if refresh is not None and "roots" in session.client_capabilities:
            refresh({})

    def discover(call: Call) -> dict[str, Any]:
        return {
            "supportedVersions": list(SUPPORTED),
            "capabilities": methods.capabilities(call.revision),
            **methods.introduction(),
        }

    methods.request("initialize", LEGACY, initialize)
    methods.request("ping", LEGACY, lambda _call: {})
    methods.notification("notifications/initialized", LEGACY, initialized)
    methods.request("server/discover", MODERN, discover, cacheable=True)
