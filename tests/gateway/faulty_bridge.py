"""Our bridge with a fault: ``faulty_bridge.py forgets bridge ...``.

It ``forgets`` a deleted session and lets its server go on, or serves ``one`` session only.
"""

import sys

from mcp_touchstone.bridge.sessions import BridgeSession, Sessions
from mcp_touchstone.cli import main
from mcp_touchstone.http_server.refusals import Refusal

begin = Sessions.begin


def forget(self: Sessions, session: BridgeSession) -> None:
    """Do nothing."""


def begin_one(self: Sessions) -> BridgeSession:
    """Begin the first session."""
    if self.used:
        raise Refusal(503, -32000, "one client only")
    return begin(self)


if __name__ == "__main__":
    fault, *words = sys.argv[1:]
    if fault == "one":
        Sessions.begin = begin_one  # type: ignore[method-assign]
    else:
        Sessions.finish = forget  # type: ignore[method-assign]
    sys.exit(main(words))
