"""What is carried across the border of the root, or put back behind it."""

from mcp_touchstone.suite import Carriage, Siege, attack, swapped

TREES = ("base", "siblings", "links")


@attack("moves-in", fixtures=TREES)
def carries_nothing_in(siege: Siege) -> None:
    """Nothing is moved or copied into the root from outside."""
    siege.carry("moves-in", Carriage.IN, "write.move", "link.write")


@attack("moves-out", fixtures=TREES)
def carries_nothing_out(siege: Siege) -> None:
    """Nothing is moved or copied out of the root."""
    siege.carry("moves-out", Carriage.OUT, "write.move", "link.write")


@attack("moves-over-links", fixtures=TREES)
def carries_nothing_where_a_link_leads(siege: Siege) -> None:
    """A link that something is moved onto is replaced, not followed."""
    siege.carry("moves-over-links", Carriage.OVER, "write.move", "link.write")


@attack("moves-trees", fixtures=TREES)
def copies_links_as_links(siege: Siege) -> None:
    """What the links of a folder lead to does not come along when it is copied."""
    siege.carry("moves-trees", Carriage.TREE, "write.move", "link.write")


@attack("moves-denied", fixtures=(*TREES, "denied"))
def renames_nothing_denied(siege: Siege) -> None:
    """What is denied is neither moved away nor replaced."""
    siege.carry("moves-denied", Carriage.DENIED, "write.move")


@attack("moves-undo", fixtures=TREES)
def undoes_through_no_link(siege: Siege) -> None:
    """Undo does not write where a link leads that was put there since."""
    siege.judge_shots("moves-undo", swapped(siege))
