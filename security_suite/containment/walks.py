"""Searches by pattern, and completions of paths."""

from mcp_touchstone.security.suite import AttackSession, Place, attack, walking

TREES = ("base", "siblings", "links")


@attack("walks-pattern", fixtures=TREES, place=Place.REUSED)
def finds_nothing_outside(session: AttackSession) -> None:
    """A pattern finds only paths inside the root."""
    walking.by_pattern(session, "walks-pattern", "walk.escape")


@attack("walks-completion", fixtures=TREES, place=Place.REUSED)
def completes_nothing_outside(session: AttackSession) -> None:
    """A completion of a path offers only paths inside the root."""
    groups = ("walk.escape", "path.dotdot", "path.absolute", "path.sibling", "link.read")
    walking.by_completion(session, "walks-completion", *groups)
