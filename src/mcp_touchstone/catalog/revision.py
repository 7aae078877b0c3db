"""The protocol revisions, in order of age, and the two eras they fall into. Pure."""

from typing import Final

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions opened with the ``initialize`` handshake."""

MODERN: Final = ("2026-07-28",)
"""Stateless revisions: every request carries its own ``_meta``; ``server/discover`` exists."""

ALL: Final = LEGACY + MODERN

META: Final = "io.modelcontextprotocol/"
"""Prefix of the protocol's own keys in ``_meta``."""

LATEST_LEGACY: Final = LEGACY[-1]
LATEST_MODERN: Final = MODERN[-1]


def is_modern(revision: str) -> bool:
    """Return whether a revision is modern, that is stateless (2026-07-28 and later)."""
    return revision in MODERN


def since(first: str) -> tuple[str, ...]:
    """Return every known revision from ``first`` on, oldest first."""
    return ALL[ALL.index(first) :]
