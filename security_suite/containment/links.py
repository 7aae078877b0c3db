"""Links inside the root that point out of it."""

from mcp_touchstone.security.suite import (
    CHANGING,
    IN_PLACE,
    AttackSession,
    Operation,
    Place,
    attack,
    attack_paths,
    walking,
)

LOOKS = {Operation.READ, Operation.LIST, Operation.SEARCH, Operation.GLOB}
TREES = ("base", "siblings", "links")


@attack("links-read", fixtures=TREES, place=Place.REUSED)
def reads_through_no_link_outwards(session: AttackSession) -> None:
    """Neither files nor folders outside come back through a link inside the root."""
    attack_paths(session, "links-read", "link.read", operations=LOOKS)


@attack("links-write", fixtures=TREES, place=Place.REUSED)
def writes_through_no_link_outwards(session: AttackSession) -> None:
    """Nothing outside is made or changed through a link inside the root."""
    attack_paths(session, "links-write", "link.write", "link.read", operations=CHANGING & IN_PLACE)


@attack("links-walk", fixtures=TREES, place=Place.REUSED)
def walks_through_no_link_outwards(session: AttackSession) -> None:
    """A walk of the whole root shows no name and no byte from outside."""
    walking.from_the_top(session, "links-walk", "walk.escape")
