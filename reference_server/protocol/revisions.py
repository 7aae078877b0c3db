"""The five protocol revisions and the two eras they fall into.

Revisions are ISO dates, so ``revision >= "2025-06-18"`` reads as "since 2025-06-18".

*Legacy* revisions open a session with the ``initialize`` handshake. *Modern* ones have no
session: each request carries its revision in ``_meta`` (2026-07-28 basic/versioning#terminology).
"""

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)
ALL = LEGACY + MODERN

LATEST_LEGACY = LEGACY[-1]


def is_modern(revision: str) -> bool:
    """Say whether requests of this revision are served without a session."""
    return revision in MODERN
