"""Writes that do not come to their end."""

from mcp_touchstone.suite import Siege, attack, filling, killing


@attack("storage-full", fixtures=("base",))
def keeps_the_old_where_there_is_no_room(siege: Siege) -> None:
    """A write that fails half-way leaves no half of a file."""
    filling.fill(siege, "storage-full")


@attack("storage-killed", fixtures=("base",))
def keeps_old_or_new_when_it_is_killed(siege: Siege) -> None:
    """A server that is killed while it writes leaves no half of a file."""
    killing.kill(siege, "storage-killed")
