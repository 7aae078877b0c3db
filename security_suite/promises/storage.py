"""No room for what is written."""

from mcp_touchstone.suite import Siege, attack, filling


@attack("storage-full", fixtures=("base",))
def keeps_the_old_where_there_is_no_room(siege: Siege) -> None:
    """A write that fails half-way leaves no half of a file."""
    filling.fill(siege, "storage-full")
