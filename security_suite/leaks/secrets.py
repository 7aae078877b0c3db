"""Keys in the environment, in arguments and in contents, and what errors tell of the machine."""

from mcp_touchstone.suite import Leaks, Siege, attack


@attack(
    "secrets-environment", "secrets-logs", "secrets-errors", fixtures=("base", "links"), lasts=True
)
def keeps_secrets(siege: Siege) -> None:
    """Neither results nor errors nor logs hold what was not meant for them."""
    leaks = Leaks(siege)
    leaks.errors("secrets-errors")
    leaks.logs("secrets-logs")
    leaks.environment("secrets-environment")
