"""Calls of which each is harmless, and which together are not."""

from mcp_touchstone.suite import Siege, attack, wander


@attack("sequences-escape", fixtures=("base",))
def escapes_by_no_sequence(siege: Siege) -> None:
    """No walk over the tools of a server leads outside, whatever became a link on the way."""
    wander(siege, "sequences-escape")
