"""Servers that were started in a mode in which they promise not to write."""

from mcp_touchstone.suite import Siege, attack


@attack("modes-read-only", fixtures=("base",))
def writes_nothing_when_read_only(siege: Siege) -> None:
    """No tool makes, changes, moves or removes a file of a server that is read-only."""
    siege.try_to_write("modes-read-only")
