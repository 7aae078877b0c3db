"""What our server and its issuer saw of a client that gets a token, as rules read it.

A fact has a place (``authorize``, ``token`` and so on), and an object without secrets. The first
one, ``server``, is what our server asks for.
"""

from typing import Any, Final, NamedTuple

from mcp_touchstone.judging import clients
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import loads


class Fact(NamedTuple):
    """A line of a recording, a place, and what our server or its issuer noted of it."""

    line: int
    place: str
    noted: dict[str, Any]


KINDS: Final = {
    **dict.fromkeys(
        ("challenge", "more", "path", "place", "redirect_uri", "request", "version"), str
    ),
    **dict.fromkeys(("method", "resource", "response_type", "scope", "tenant", "token"), str),
    "client_id": str,
    **dict.fromkeys(
        ("bearer", "code", "defaults", "documents", "foreign", "known", "offered"), bool
    ),
    **dict.fromkeys(("redirects", "refreshes", "registered", "state", "stranger"), bool),
    **dict.fromkeys(("metadata", "methods", "places", "redirect_uris", "response"), list),
    **dict.fromkeys(("scopes", "sent"), list),
    **dict.fromkeys(("assertion", "audience", "grant", "grant_type"), str),
    **dict.fromkeys(("requested_token_type", "subject_token_type"), str),
    **dict.fromkeys(("checked", "faults"), list),
    **dict.fromkeys(("at", "error", "fault", "nonce", "workload"), str),
    **dict.fromkeys(("again", "issued", "verified"), bool),
    "status": int,
}
TEXTS: Final = (
    *("checked", "faults", "metadata", "methods", "places", "response", "scopes", "sent"),
)
"""The lists that have texts only."""

REQUIRED: Final = {
    "server": ("resource", "place", "scope", "more", "foreign", "defaults"),
    "document": ("path", "version"),
    "metadata": ("path",),
    "register": ("application_type",),
    "authorize": ("known", "registered", "state", "challenge"),
    "token": ("known",),
    "parameters": ("at", "fault"),
    "exchange": ("known", "requested_token_type", "subject_token_type"),
    "request": ("request", "token"),
    "proof": ("at", "checked", "faults", "nonce", "error"),
}
"""What our server and our issuer note: place -> the facts that are always there."""


def facts(record: Record, *places: str) -> list[Fact]:
    """Return the facts of some places, or all, with the lines that have them.

    Somebody else may have written the recording: what our server does not note is left out, and so
    is everything if there is no note of what the server asks for.
    """
    found = []
    for entry in record.transcript.events(Happened.AUTHORIZATION):
        place, _, text = entry.text.removeprefix(Happened.AUTHORIZATION).partition(" ")
        noted = loads(text)
        known = isinstance(noted, dict) and noted.keys() >= {*REQUIRED.get(place, ("",))}
        if known and all(_is_ours(name, value) for name, value in noted.items()):
            found.append(Fact(entry.n, place, noted))
    is_ours = any(place == "server" for _, place, _ in found)
    return [one for one in found if is_ours and (not places or one.place in places)]


def _is_ours(name: str, value: Any) -> bool:
    """Return whether our server may note this value of a fact."""
    kind: type = KINDS.get(name, object)
    texts = value if name in TEXTS and isinstance(value, list) else ()
    return isinstance(value, kind) and all(isinstance(one, str) for one in texts)


def setup(record: Record) -> dict[str, Any]:
    """Return what our server asks for; empty if it needs no token."""
    return next((noted for _, _, noted in facts(record, "server")), {})


def has_ended(record: Record) -> bool:
    """Whether the client ended; False if that is not known."""
    return clients.event(record, Happened.ENDED, Happened.FAILED) is not None
