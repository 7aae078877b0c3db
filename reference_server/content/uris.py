"""The URIs of resources: ``workspace:///`` and the path of a file, percent-encoded. Pure.

The scheme is not ``file:``, because the directories of the roots are not published, and a client
must not open the files itself. Each listed file has one URI, except that any character may be
percent-encoded. A path with an empty, ``.`` or ``..`` segment is unknown.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from ..protocol.errors import invalid_params

PREFIX = "workspace:///"
TEMPLATE = PREFIX + "{+path}"
LINES_TEMPLATE = TEMPLATE + "?lines={first}-{last}"

_SEGMENT_EXTRAS = "!$&'()*+,;=:@"
"""Unencoded characters in a segment, besides letters, digits, ``-._~`` (RFC 3986 section 3.3)."""

_CHARACTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})"
_OURS = re.compile(
    rf"{PREFIX}(?P<path>{_CHARACTER}+)(?:\?lines=(?P<first>\d{{1,9}})-(?P<last>\d{{1,9}}))?",
    re.ASCII,
)
_ANY = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{_CHARACTER}|[?#\[\]])*")


class Target:
    """The file or the lines that a URI of this server names.

    Attributes:
        uri: The URI as the client wrote it.
        path: Path of the file, relative to a root.
        lines: The first and the last line, counted from 1; None for the whole file.
    """

    def __init__(self, uri: str, path: str, lines: tuple[int, int] | None) -> None:
        self.uri = uri
        self.path = path
        self.lines = lines


def uri_of(path: str) -> str:
    return PREFIX + quote(path, safe="/" + _SEGMENT_EXTRAS)


def target_of(uri: str) -> Target | None:
    """Return the target of a URI, or None for a URI that does not belong to this server.

    Raises:
        ProtocolError: -32602, it is not a URI (RFC 3986).
    """
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
