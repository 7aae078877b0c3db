"""Servers that were started in a mode in which they promise not to write, and dry runs."""

from mcp_touchstone.suite import Modes, Siege, attack


@attack("modes-read-only", "modes-read-only-switch", fixtures=("base",), lasts=True)
def writes_nothing_when_read_only(siege: Siege) -> None:
    """No tool makes, changes, moves or removes a file of a server that is read-only."""
    modes = Modes(siege)
    modes.switch("modes-read-only-switch", "write.readonly")
    modes.write("modes-read-only", "write.readonly")


@attack("modes-dry-run", fixtures=("base",))
def rehearses_without_a_trace(siege: Siege) -> None:
    """A call that asks for a dry run changes nothing."""
    Modes(siege).rehearse("modes-dry-run", "write.dryrun")


@attack("modes-dry-run-default", fixtures=("base",))
def writes_only_when_told_to(siege: Siege) -> None:
    """A call that does not ask for the real run changes nothing."""
    Modes(siege).say_nothing("modes-dry-run-default", "write.dryrun")
