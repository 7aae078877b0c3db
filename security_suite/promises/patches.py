"""Diffs that name other files, ask for more than lines, or are not true."""

from mcp_touchstone.suite import Patches, Siege, attack

TREES = ("base", "siblings", "links")


@attack("patches-target", fixtures=TREES)
def patches_the_file_of_the_call(siege: Siege) -> None:
    """No header of a diff leads to a file outside the root."""
    Patches(siege).lead_astray("patches-target", "patch.target")


@attack("patches-denied", fixtures=(*TREES, "denied"))
def patches_nothing_that_is_denied(siege: Siege) -> None:
    """No header of a diff leads to a denied file."""
    Patches(siege).lead_astray("patches-denied", "patch.target", "patch.special", denied=True)


@attack("patches-special", fixtures=TREES)
def applies_lines_alone(siege: Siege) -> None:
    """A diff makes no link, sets no dangerous mode, brings nothing in and runs nothing."""
    Patches(siege).ask_for_more("patches-special", "patch.special")


@attack("patches-one-file", "patches-true", "patches-newlines", fixtures=("base",))
def applies_what_is_true(siege: Siege) -> None:
    """A diff changes one file, all of it or nothing, and no line it does not name."""
    patches = Patches(siege)
    patches.name_others("patches-one-file", "patch.target", "patch.special")
    patches.lie("patches-true", "patch.malformed")
    patches.mix_newlines("patches-newlines", "patch.eol")


@attack("patches-hash", fixtures=("base",))
def changes_what_was_read(siege: Siege) -> None:
    """What takes the hash of a file changes that file only under its hash."""
    Patches(siege).guess_hashes("patches-hash", "hash.guard")
