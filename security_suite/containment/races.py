"""What changes between the look at a path and its use."""

from mcp_touchstone.suite import CHANGES, Operation, Siege, attack, race

TREES = ("base",)


@attack("races-read", fixtures=TREES)
def reads_inside_whatever_is_exchanged(siege: Siege) -> None:
    """No read leads outside while a folder or file is exchanged with a link."""
    race(siege, "races-read", frozenset({Operation.READ}))


@attack("races-write", fixtures=TREES)
def writes_inside_whatever_is_exchanged(siege: Siege) -> None:
    """Nothing is made or changed outside while a folder or file is exchanged with a link."""
    race(siege, "races-write", CHANGES)
