"""What a server says of itself and of its tools."""

from mcp_touchstone.suite import Definitions, Siege, attack


@attack(
    "definitions-hidden",
    "definitions-instructions",
    "definitions-lookalikes",
    "definitions-drift",
    "annotations-read-only",
    fixtures=("base",),
    lasts=True,
)
def means_what_it_says(siege: Siege) -> None:
    """Definitions hide nothing, give no orders, stay as they are, and annotations are true."""
    definitions = Definitions(siege)
    definitions.hides("definitions-hidden")
    definitions.commands("definitions-instructions")
    definitions.resemble("definitions-lookalikes")
    definitions.lies("annotations-read-only")
    definitions.drift("definitions-drift")
