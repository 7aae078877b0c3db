"""Resources that are files, asked for by URIs that the caller has written."""

from mcp_touchstone.suite import Siege, Uris, attack, fetching

TREES = ("base", "siblings", "links")


@attack("resources-file-uri", "resources-template", fixtures=TREES)
def keeps_uris_inside(siege: Siege) -> None:
    """No URI reads a file outside the root, however it is written."""
    uris = Uris(siege)
    uris.name_files("resources-file-uri", "path.uri")
    uris.fill_templates("resources-template", "path.dotdot", "path.absolute", "path.sibling")


@attack("resources-denied", fixtures=(*TREES, "denied"))
def denies_by_uri_too(siege: Siege) -> None:
    """No URI reads a denied file, however it is written."""
    Uris(siege).name_denied("resources-denied", "deny.direct", "deny.spelling", "deny.alias")


@attack("resources-fetched", fixtures=TREES)
def fetches_nothing(siege: Siege) -> None:
    """No URL is fetched where a file is asked for, and no reference beside its path."""
    fetching.nothing(siege, "resources-fetched", "path.uri", "res.schema")
