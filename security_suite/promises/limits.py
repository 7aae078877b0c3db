"""Files and answers around a limit that the server promises."""

from mcp_touchstone.suite import Siege, Sizes, attack


@attack("limits-size-read", "limits-size-alias", "limits-size-served", fixtures=("base",))
def reads_nothing_above_its_limit(siege: Siege) -> None:
    """A file above the limit does not come back as a whole, whatever leads to it; others do."""
    sizes = Sizes(siege)
    sizes.read("limits-size-read", "size.boundary", via="session")
    sizes.read("limits-size-alias", "size.evasion", via="path")
    sizes.serve("limits-size-served", "size.boundary", via="session")


@attack("limits-size-write", fixtures=("base",))
def makes_nothing_above_its_limit(siege: Siege) -> None:
    """No file grows above the limit, and none that is above it is changed."""
    Sizes(siege).write("limits-size-write", "size.boundary")


@attack("limits-answer", "limits-answer-served", fixtures=("base",))
def answers_within_its_limit(siege: Siege) -> None:
    """No answer gives more characters of a file than promised, and what is below comes whole."""
    sizes = Sizes(siege)
    sizes.read("limits-answer", "size.readlimit", via="path")
    sizes.serve("limits-answer-served", "size.readlimit", via="path")
