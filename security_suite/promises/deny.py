"""Names inside the root that are not served."""

from mcp_touchstone.suite import (
    CHANGES,
    Carriage,
    Operation,
    Siege,
    attack,
    resembling,
    scripting,
    walking,
)

TREES = ("base", "siblings", "links", "denied")


@attack("deny-direct", fixtures=TREES, lasts=True)
def denies_by_name_at_every_depth(siege: Siege) -> None:
    """What stands on the deny list is not served, however deep it lies."""
    siege.assail("deny-direct", "deny.direct", "deny.dotenv")


@attack("deny-spelling", fixtures=TREES, lasts=True)
def denies_in_every_spelling(siege: Siege) -> None:
    """No spelling of a path leads to a denied file."""
    siege.assail("deny-spelling", "deny.spelling")


@attack("deny-case", fixtures=TREES)
def denies_in_every_case(siege: Siege) -> None:
    """A denied name in capital letters leads to no denied file."""
    siege.assail("deny-case", "deny.case")


@attack("deny-equivalence", fixtures=TREES)
def denies_what_is_taken_for_the_same(siege: Siege) -> None:
    """Characters and endings that some systems read over lead to no denied file."""
    siege.assail("deny-equivalence", "deny.equivalence")


@attack("deny-alias", fixtures=TREES)
def denies_by_any_other_name(siege: Siege) -> None:
    """Links and nested repositories lead to nothing that is denied."""
    siege.assail("deny-alias", "deny.alias")


@attack("deny-write-only", fixtures=TREES)
def keeps_build_output_unwritten(siege: Siege) -> None:
    """Build output is read and not written."""
    siege.assail("deny-write-only", "deny.writeonly", operations=CHANGES)
    if siege.field.denied.written and siege.bindings.of(Operation.MOVE, Operation.COPY):
        siege.carry("deny-write-only", Carriage.DENIED, "deny.writeonly")


@attack("deny-near-miss", fixtures=(*TREES, "nearmiss"))
def serves_what_only_looks_denied(siege: Siege) -> None:
    """Files whose names merely resemble denied ones can be read and made."""
    resembling.serve(siege, "deny-near-miss", "deny.nearmiss")


@attack("deny-scripts", fixtures=(*TREES, "script"))
def denies_in_scripts_too(siege: Siege) -> None:
    """What a script names is denied as what a path names."""
    scripting.lead_to_denied(siege, "deny-scripts", "script.path", "script.exec")


@attack("deny-walk", fixtures=("base", "siblings", "denied"))
def finds_nothing_denied(siege: Siege) -> None:
    """No walk over the root gives back what is denied; what follows links, others find."""
    walking.to_denied(siege, "deny-walk", "walk.escape")
