"""Paths that lead out of the root by what is written in them."""

from mcp_touchstone.suite import IN_PLACE, Siege, attack, opening

TREES = ("base", "siblings", "links")


@attack("traversal-dotdot", fixtures=TREES)
def keeps_climbs_inside(siege: Siege) -> None:
    """Paths that climb with dot-dot neither read, list nor change anything outside the root."""
    siege.assail("traversal-dotdot", "path.dotdot", operations=IN_PLACE)


@attack("traversal-absolute", fixtures=TREES)
def keeps_absolute_paths_inside(siege: Siege) -> None:
    """Absolute paths neither read, list nor change anything outside the root."""
    siege.assail("traversal-absolute", "path.absolute", operations=IN_PLACE)


@attack("traversal-sibling", fixtures=TREES)
def tells_the_root_from_its_siblings(siege: Siege) -> None:
    """Folders whose names begin with the name of the root are outside."""
    siege.assail("traversal-sibling", "path.sibling", operations=IN_PLACE)


@attack("traversal-two-readings", fixtures=TREES)
def opens_what_it_has_checked(siege: Siege) -> None:
    """A path is opened as it was checked: links, dot-dot, blanks and quotes change nothing."""
    siege.assail("traversal-two-readings", "path.canon-split", operations=IN_PLACE)


@attack("traversal-encoded", fixtures=TREES)
def decodes_no_path_behind_its_check(siege: Siege) -> None:
    """Encoded climbs are names, or are decoded before the check."""
    siege.assail("traversal-encoded", "path.encoded", "path.uri", operations=IN_PLACE)


@attack("traversal-unicode", fixtures=TREES)
def normalises_no_path_behind_its_check(siege: Siege) -> None:
    """Look-alikes of dots and slashes do not become dots and slashes behind the check."""
    siege.assail("traversal-unicode", "path.unicode", operations=IN_PLACE)


@attack("traversal-separators", fixtures=TREES)
def strips_no_path_into_a_climb(siege: Siege) -> None:
    """What is left of a path after filters is checked; other separators open no way out."""
    siege.assail("traversal-separators", "path.separators", "path.windows", operations=IN_PLACE)


@attack("traversal-expansion", fixtures=TREES)
def expands_no_path_out_of_the_root(siege: Siege) -> None:
    """A tilde, a variable, a glob or a command in a path leads nowhere outside."""
    siege.assail("traversal-expansion", "path.expansion", operations=IN_PLACE)


@attack("traversal-hostile-names", fixtures=TREES, lasts=True)
def survives_hostile_names(siege: Siege) -> None:
    """Names with NUL and control characters, and endless ones, end no process and leak nothing."""
    siege.assail("traversal-hostile-names", "path.nul-control", "path.limits", operations=IN_PLACE)


@attack("traversal-opened", fixtures=TREES)
def opens_nothing_it_refuses(siege: Siege) -> None:
    """What lies outside is refused before it is opened."""
    opening.nothing_outside(
        siege, "traversal-opened", "path.dotdot", "path.absolute", "path.sibling", "link.read"
    )
