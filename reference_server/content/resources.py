"""The files below the roots as resources (server/resources).

The list contains the readable files: regular files that no rule denies and that do not exceed the
size limit. All other files are treated as missing. A text that does not fit into one answer is
listed too, because a client can read its lines.
"""

from __future__ import annotations

from ..failure import ToolError
from ..protocol.envelope import string_of
from ..protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from ..protocol.pages import page
from ..protocol.revisions import is_modern
from ..tools.text import LONGEST_TEXT, advice, read_text
from ..workspace.refusals import NotPermitted, Refusal, TooLarge
from . import uris
from .media_types import OCTETS, PLAIN, is_binary, media_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.calls import Call
    from ..surface import Surface
    from ..tools.text import Text
    from ..workspace import Entry, Snapshot
    from .uris import Target

NOT_FOUND_IN_SESSIONS = -32002
"""Code for an unknown resource up to 2025-11-25; 2026-07-28 forbids it and requires -32602."""

TITLED_SINCE = "2025-06-18"
DATED_SINCE = "2025-06-18"

FRESH_MILLISECONDS = 1000
"""``ttlMs``. Files change at any time, and only subscribers are notified."""

_MOST_BYTES = LONGEST_TEXT // 4 * 3
"""Maximum number of bytes whose base64 fits into one answer."""

_HINTS = {"ttlMs": FRESH_MILLISECONDS, "cacheScope": "private"}

_TEMPLATES = (
    {
        "uriTemplate": uris.TEMPLATE,
        "name": "file",
        "title": "File",
        "description": "A file below the root; path is relative to it, with forward slashes.",
    },
    {
        "uriTemplate": uris.LINES_TEMPLATE,
        "name": "lines",
        "title": "Lines of a file",
        "description": "Lines of a text file, first to last, both included and counted from 1.",
    },
)


class Resources:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._limit = surface.settings.max_file_size
        self._page_size = surface.settings.page_size

    def list_resources(self, call: Call) -> dict[str, Any]:
        entries = sorted(self.files(call), key=_place)
        found = page(*(entries, call.params, "resources", self._page_size), place=_place)
        if self._surface.resources_listed:
            self._surface.resources_listed(call, frozenset(one.path for one in entries))
        found["resources"] = [_resource(entry, call.revision) for entry in found["resources"]]
        return _with_hints(found, call)

    def files(self, call: Call | None = None) -> list[Entry]:
        check = call.check if call else None
        try:
            walk = self._surface.workspace.walk(check=check)
            return [entry for entry in walk if self._fits(entry)]
        except Refusal:  # the roots are missing, or the client's roots exclude them
            return []

    def _fits(self, entry: Entry) -> bool:
        most = min(self._limit, _MOST_BYTES) if is_binary(entry.path) else self._limit
        return entry.size <= most

    def list_templates(self, call: Call) -> dict[str, Any]:
        found = page(_TEMPLATES, call.params, "resourceTemplates", self._page_size)
        if call.revision < TITLED_SINCE:
            found["resourceTemplates"] = [
                {name: value for name, value in template.items() if name != "title"}
                for template in found["resourceTemplates"]
            ]
        return found

    def read(self, call: Call) -> dict[str, Any]:
        target = asked_for(call)
        try:
            snapshot = self._surface.workspace.read(target.path, check=call.check)
        except (TooLarge, NotPermitted) as refusal:
            code = INVALID_PARAMS if isinstance(refusal, TooLarge) else INTERNAL_ERROR
            raise ProtocolError(code, refusal.message, {"uri": target.uri}) from None
        except Refusal:
            raise not_found(target.uri, call) from None
        contents = {"uri": target.uri, **_contents(snapshot, target, call)}
        return _with_hints({"contents": [contents]}, call)


def build(surface: Surface) -> Resources:
    """Build the part ``resources``."""
    return Resources(surface)


def asked_for(call: Call) -> Target:
    """Return the target of the ``uri`` of a request."""
    target = uris.target_of(string_of(call.params, "uri"))
    if target is None:
        raise not_found(call.params["uri"], call)
    return target


def not_found(uri: str, call: Call) -> ProtocolError:
    """Build the error for a resource that does not exist (server/resources#error-handling)."""
    code = INVALID_PARAMS if is_modern(call.revision) else NOT_FOUND_IN_SESSIONS
    return ProtocolError(code, "Resource not found", {"uri": uri})


def _place(entry: Entry) -> list[str]:
    return entry.path.split("/")


def _with_hints(result: dict[str, Any], call: Call) -> dict[str, Any]:
    return {**result, **_HINTS} if is_modern(call.revision) else result


def _resource(entry: Entry, revision: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"uri": uris.uri_of(entry.path), "name": entry.path, "size": entry.size}
    kind = media_type(entry.path)
    if kind:
        shown["mimeType"] = kind
    if revision >= DATED_SINCE:
        shown["annotations"] = {"lastModified": _timestamp(entry.mtime_ns)}
    return shown


def _timestamp(nanoseconds: int) -> str:
    """Return a time as RFC 3339 in UTC; the year 1970 for a time that no calendar has."""
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415 - subscriptions import this too

    start = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        moment = start + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        moment = start
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _contents(snapshot: Snapshot, target: Target, call: Call) -> dict[str, str]:
    """Return the content of a file: as text if it is text, else as base64."""
    text = _text(snapshot)
    kind = media_type(snapshot.path)
    if text is not None:
        first, last = target.lines or (1, text.line_count)
        if target.lines and not 1 <= first <= min(last, text.line_count):
            raise not_found(target.uri, call)
        part = text.part(first, last) if target.lines else text.text
        if len(part) > LONGEST_TEXT:
            way = f"Read {uris.uri_of(snapshot.path)}?lines={{first}}-{{last}} first."
            raise _too_long(len(part), target, advice(text, first, way))
        return {"mimeType": kind or PLAIN, "text": part}
    if target.lines:
        raise not_found(target.uri, call)
    from base64 import b64encode  # noqa: PLC0415 - most files are text

    if len(snapshot.data) > _MOST_BYTES:
        length = -(-len(snapshot.data) // 3) * 4
        raise _too_long(length, target, "Only text is read in parts.")
    kind = kind if is_binary(snapshot.path) else None
    return {"mimeType": kind or OCTETS, "blob": b64encode(snapshot.data).decode()}


def _too_long(length: int, target: Target, what_to_do: str) -> ProtocolError:
    message = f"This has {length} characters; one answer holds {LONGEST_TEXT}. {what_to_do}"
    return ProtocolError(INVALID_PARAMS, message, {"uri": target.uri})


def _text(snapshot: Snapshot) -> Text | None:
    """Return the text of a file, or None if its suffix or its bytes are binary."""
    if is_binary(snapshot.path):
        return None
    try:
        text = read_text(snapshot)
    except ToolError:
        return None
    return None if "\0" in text.text else text
