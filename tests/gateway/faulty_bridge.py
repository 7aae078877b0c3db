"""Our bridge with a fault: ``faulty_bridge.py forgets bridge ...``.

It ``forgets`` that a session was deleted, ``leaves`` the server of a deleted session, resumes
streams of ``others``, or serves ``one`` session only.
"""

import sys

from mcp_touchstone.bridge import endpoint
from mcp_touchstone.bridge.sessions import BridgeSession, Sessions
from mcp_touchstone.cli import main
from mcp_touchstone.http_server.refusals import Refusal
from mcp_touchstone.http_server.streams import EventStream

begin = Sessions.begin
wanted = endpoint.ClientConnection._wanted


def forget(self: Sessions, session: BridgeSession) -> None:
    """Do nothing."""


def leave(self: Sessions, session: BridgeSession) -> None:
    """Remove the session only."""
    self._all.pop(session.id, None)


def wanted_of_others(
    self: endpoint.ClientConnection, session: BridgeSession
) -> tuple[EventStream, int]:
    """Return a stream of any session, the oldest first."""
    if "Last-Event-ID" in self.headers:
        session = next(iter(self.server.sessions._all.values()))
    return wanted(self, session)


def begin_one(self: Sessions) -> BridgeSession:
    """Begin the first session."""
    if self.used:
        raise Refusal(503, -32000, "one client only")
    return begin(self)


if __name__ == "__main__":
    fault, *words = sys.argv[1:]
    if fault == "one":
        Sessions.begin = begin_one  # type: ignore[method-assign]
    elif fault == "others":
        endpoint.ClientConnection._wanted = wanted_of_others  # type: ignore[method-assign]
    elif fault == "leaves":
        Sessions.finish = leave  # type: ignore[method-assign]
    else:
        Sessions.finish = forget  # type: ignore[method-assign]
    sys.exit(main(words))
