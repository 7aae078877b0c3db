"""Requests for names that are not yet known."""

from mcp_touchstone.security.suite import AttackSession, attack, walking

TREES = ("base", "siblings", "links")


@attack("walks-pattern", fixtures=TREES, shares=True)
def finds_nothing_outside(session: AttackSession) -> None:
    """What a pattern finds lies inside the root."""
    walking.by_pattern(session, "walks-pattern", "walk.escape")


@attack("walks-completion", fixtures=TREES, shares=True)
def completes_nothing_outside(session: AttackSession) -> None:
    """What is offered to complete a path lies inside the root."""
    groups = ("walk.escape", "path.dotdot", "path.absolute", "path.sibling", "link.read")
    walking.by_completion(session, "walks-completion", *groups)
