"""Long lists in pages (server/utilities/pagination).

A cursor says after which entry a page begins, not at which number: entries that come and go
between two pages make none appear twice and none be skipped. It is signed, so one that was made up,
changed or handed out for another list is refused; but not with a secret: it opens nothing that the
list would not show, and another process has to go on with it (a stateless request is bound to
none).
"""

from __future__ import annotations

import json

from .errors import invalid_params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from .errors import ProtocolError
    from .messages import Params

    Item = TypeVar("Item")

_KEY = b"mcp-touchstone-reference/cursor"
_SIGNATURE = 16
"""Bytes. A guess among 2**128 values does not succeed."""


def page(
    items: Sequence[Item],
    params: Params,
    key: str,
    size: int,
    place: Callable[[Item], Any] | None = None,
) -> dict[str, Any]:
    """Give the page of a list that a request asks for.

    Args:
        items: The whole list as it is now.
        params: The request's; ``cursor`` in it names the page, none means the first.
        key: The name of the list: the member of the result that holds the page.
        size: Most entries in it.
        place: Gives the JSON value the list is sorted by, another one for each entry. None for a
            list that never changes: its numbers are as good.

    Returns:
        ``{key: [...]}``, with ``nextCursor`` if there are more.

    Raises:
        ProtocolError: -32602, the cursor is none of ours (#error-handling).
    """
    from bisect import bisect_right  # noqa: PLC0415 - tools are listed without this module's help

    places: Sequence[Any] = range(len(items)) if place is None else [place(one) for one in items]
    start = 0
    if "cursor" in params:
        try:
            start = bisect_right(places, _read(key, params["cursor"]))
        except TypeError:  # signed as we sign, which anybody can, and of another type
            raise _unknown() from None
    end = start + size
    found: dict[str, Any] = {key: list(items[start:end])}
    if end < len(items):
        found["nextCursor"] = _cursor(key, places[end - 1])
    return found


def _cursor(key: str, place: Any) -> str:
    body = json.dumps(place).encode()
    return _text(_signature(key, body) + body)


def _read(key: str, cursor: Any) -> Any:
    """Give the place a cursor holds; nothing in it is looked at before its signature fits."""
    from hmac import compare_digest  # noqa: PLC0415 - see ``_signature``

    try:
        raw = _bytes(cursor)
    except (TypeError, ValueError):
        raw = b""
    body = raw[_SIGNATURE:]
    genuine = compare_digest(raw[:_SIGNATURE], _signature(key, body))
    if not genuine or _text(raw) != cursor:  # the second: base64 has several spellings
        raise _unknown()
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _unknown() from None


def _unknown() -> ProtocolError:
    return invalid_params("unknown cursor; leave it out to begin with the first page")


def _signature(key: str, body: bytes) -> bytes:
    import hmac  # noqa: PLC0415 - loading OpenSSL takes as long as starting this server

    return hmac.digest(_KEY, key.encode() + b"\0" + body, "sha256")[:_SIGNATURE]


def _text(raw: bytes) -> str:
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - as above, few lists have two pages

    return urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: Any) -> bytes:
    from base64 import urlsafe_b64decode  # noqa: PLC0415 - as above

    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
