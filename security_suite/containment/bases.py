"""Arguments by which the caller says what paths are relative to."""

from mcp_touchstone.suite import Siege, attack

TREES = ("base", "siblings", "links")


@attack("bases-argument", fixtures=TREES)
def keeps_named_bases_inside(siege: Siege) -> None:
    """A base named in a call lies inside the root or is refused."""
    siege.rebase("bases-argument", "root.rebase")


@attack("bases-smuggled", fixtures=TREES)
def takes_no_options_from_calls(siege: Siege) -> None:
    """Arguments that no schema names change nothing about what may be read."""
    siege.smuggle("bases-smuggled", "root.rebase")
