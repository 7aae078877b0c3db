"""The other side of a part of our server: it reads, and says nothing by itself."""

from pathlib import Path
from typing import Any


class SilentPeer:
    """Keeps the lines that a part writes.

    Attributes:
        lines: the lines.
    """

    is_first = True
    place: Path | None = None

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.lost: set[str] = set()

    def write(self, raw: bytes) -> None:
        """Keep a line."""
        self.lines.append(raw)

    def __getattr__(self, _name: str) -> Any:
        return lambda *_words, **_named: None
