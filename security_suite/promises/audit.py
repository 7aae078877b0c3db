"""Servers that promise a record of each write."""

from mcp_touchstone.suite import Siege, attack, auditing


@attack("audit-writes", "audit-forged", fixtures=("base",))
def records_what_it_writes(siege: Siege) -> None:
    """Each write leaves a record with a time and the name of the file, and no name forges one."""
    auditing.recorded(siege, "audit-writes", "audit.log")
    auditing.unforged(siege, "audit-forged", "audit.log")
