"""Arguments that set the base of relative paths."""

from mcp_touchstone.security.suite import (
    AttackSession,
    attack,
    attack_bases,
    attack_with_extra_arguments,
)

TREES = ("base", "siblings", "links")


@attack("bases-argument", fixtures=TREES)
def keeps_named_bases_inside(session: AttackSession) -> None:
    """A base named in a call lies inside the root or is refused."""
    attack_bases(session, "bases-argument", "root.rebase")


@attack("bases-smuggled", fixtures=TREES)
def takes_no_options_from_calls(session: AttackSession) -> None:
    """Arguments that no schema names do not change which files may be read."""
    attack_with_extra_arguments(session, "bases-smuggled", "root.rebase")
