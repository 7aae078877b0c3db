"""Pages of long lists (server/utilities/pagination).

A cursor contains the last entry of a page, not its number. An entry that is added or removed
between two pages therefore makes no other entry appear twice or never. The signature of a cursor
detects a made-up or changed one, and one for another list. The key is not secret: a cursor shows
nothing that the list does not show, and another process must accept it, because a stateless request
belongs to no process.
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
"""Bytes. A guess among 2**128 values fails."""


def page(
    items: Sequence[Item],
    params: Params,
    key: str,
    size: int,
    place: Callable[[Item], Any] | None = None,
) -> dict[str, Any]:
    """Return the page of a list that a request asks for.

    Args:
        key: The name of the list, and the member of the result with the page.
        place: Returns the unique JSON value by which an entry is sorted. None if the list never
            changes; the index is used then.
    """
    from bisect import bisect_right  # noqa: PLC0415 - not needed at the start-up

    places: Sequence[Any] = range(len(items)) if place is None else [place(one) for one in items]
    start = 0
    if "cursor" in params:
        try:
            start = bisect_right(places, _read(key, params["cursor"]))
        except TypeError:  # anybody can sign a cursor, with a value of another type
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
    from hmac import compare_digest  # noqa: PLC0415 - see ``_signature``

    try:
        raw = _bytes(cursor)
    except (TypeError, ValueError):
        raw = b""
    body = raw[_SIGNATURE:]
    genuine = compare_digest(raw[:_SIGNATURE], _signature(key, body))
    if not genuine or _text(raw) != cursor:  # base64 has several texts for the same bytes
        raise _unknown()
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _unknown() from None


def _unknown() -> ProtocolError:
    return invalid_params("unknown cursor; leave it out to begin with the first page")


def _signature(key: str, body: bytes) -> bytes:
    import hmac  # noqa: PLC0415 - loads OpenSSL, as slow as the start-up

    return hmac.digest(_KEY, key.encode() + b"\0" + body, "sha256")[:_SIGNATURE]


def _text(raw: bytes) -> str:
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - few lists have a second page

    return urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: Any) -> bytes:
    from base64 import urlsafe_b64decode  # noqa: PLC0415 - as above

    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
