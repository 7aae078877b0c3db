"""The URIs of resources: ``workspace:///`` and the path of a file, percent-encoded. Pure.

A scheme of our own and not ``file:``: the paths are relative to roots whose place on the disk is
not published, and a client must not try to open them itself. Each listed file has one URI, up to
which characters are percent-encoded; empty, ``.`` and ``..`` segments name nothing.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from ..protocol.errors import invalid_params

PREFIX = "workspace:///"
TEMPLATE = PREFIX + "{+path}"
LINES_TEMPLATE = TEMPLATE + "?lines={first}-{last}"

_SEGMENT_EXTRAS = "!$&'()*+,;=:@"
"""What a segment may hold as it is, beside letters, digits and ``-._~`` (RFC 3986 section 3.3)."""

_CHARACTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})"
_OURS = re.compile(
    rf"{PREFIX}(?P<path>{_CHARACTER}+)(?:\?lines=(?P<first>\d{{1,9}})-(?P<last>\d{{1,9}}))?",
    re.ASCII,
)
_ANY = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{_CHARACTER}|[?#\[\]])*")


class Target:
    """What a URI of ours names.

    Attributes:
        uri: As the client wrote it.
        path: Path of the file, relative to a root.
        lines: The first and the last line wanted, counted from 1; None for the whole file.
    """

    def __init__(self, uri: str, path: str, lines: tuple[int, int] | None) -> None:
        self.uri = uri
        self.path = path
        self.lines = lines


def uri_of(path: str) -> str:
    """Give the URI of a file."""
    return PREFIX + quote(path, safe="/" + _SEGMENT_EXTRAS)


def target_of(uri: object) -> Target | None:
    """Give what a URI names here; None if it is a URI and names nothing of ours.

    Raises:
        ProtocolError: -32602, it is no URI of RFC 3986 at all.
    """
    if not isinstance(uri, str):
        raise invalid_params("uri must be a string")
    if not _ANY.fullmatch(uri):
        raise invalid_params("uri is not a URI")
    match = _OURS.fullmatch(uri)
    if match is None:
        return None
    try:
        parts = [unquote(part, errors="strict") for part in match["path"].split("/")]
    except UnicodeDecodeError:
        return None
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        return None
    lines = (int(match["first"]), int(match["last"])) if match["first"] else None
    return Target(uri, "/".join(parts), lines)
