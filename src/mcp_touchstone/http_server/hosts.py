"""Whom a request names as its host: the defence against DNS rebinding. Pure."""

import re
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from mcp_touchstone.http_server.refusals import INVALID_REQUEST, Refusal
from mcp_touchstone.wire.framing import brief

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names of this machine in ``Host`` and ``Origin``."""

PORTS: Final = 65535
"""The highest port."""

_AUTHORITY: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d{1,5})?")


class Headers(Protocol):
    """The headers of a request; names are case-insensitive."""

    def get(self, name: str, /) -> str | None:
        """Return the value of the first header with a name."""

    def get_all(self, name: str, failobj: list[str], /) -> list[str]:
        """Return the values of all headers with a name."""


def value_of(headers: Headers, name: str) -> str | None:
    """Return a value without surrounding white space (RFC 9110 section 5.5); None if absent."""
    said = headers.get(name)
    return None if said is None else said.strip(" \t")


def guard(headers: Headers, names: AbstractSet[str] = frozenset()) -> None:
    """Accept only clients that name this machine: the defence against DNS rebinding.

    A foreign web page reaches loopback under its own host name, which both headers contain.

    Args:
        names: further names of this machine, in lower case.

    Raises:
        Refusal: 403.
    """
    host = value_of(headers, "Host") or ""
    if not _named(host, names):
        raise Refusal(403, INVALID_REQUEST, f"Host {brief(host)} is not this machine")
    origin = value_of(headers, "Origin")
    if origin is not None:
        scheme, _, rest = origin.partition("://")
        if scheme not in {"http", "https"} or not _named(rest, names):
            raise Refusal(403, INVALID_REQUEST, f"Origin {brief(origin)} is not this machine")


def _named(authority: str, names: AbstractSet[str]) -> bool:
    found = _AUTHORITY.fullmatch(authority)
    if found is None or int((found[2] or ":0")[1:]) > PORTS:
        return False
    return found[1].lower() in LOOPBACK | names
