"""Several writes of one file at the same moment."""

from mcp_touchstone.suite import Siege, attack, crowding


@attack("crowds-whole", fixtures=("base",))
def leaves_one_content_as_a_whole(siege: Siege) -> None:
    """A file that is written by several calls at once is what one of them wrote."""
    crowding.overwrite(siege, "crowds-whole")


@attack("crowds-confirmed", fixtures=("base",))
def keeps_every_edit_it_confirmed(siege: Siege) -> None:
    """Of edits of one line at the same moment, those that are confirmed are in the file."""
    crowding.edit(siege, "crowds-confirmed")
