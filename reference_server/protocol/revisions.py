"""The five protocol revisions and their two eras.

Revisions are ISO dates, so ``revision >= "2025-06-18"`` reads as "since 2025-06-18".

*Legacy* revisions open a session with the ``initialize`` handshake. *Modern* revisions have no
session: each request contains its revision in ``_meta`` (2026-07-28
basic/versioning#terminology).
"""

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)
ALL = LEGACY + MODERN

LATEST_LEGACY = LEGACY[-1]


def is_modern(revision: str) -> bool:
    return revision in MODERN
