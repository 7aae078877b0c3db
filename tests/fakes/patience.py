"""A correct server for all payloads, also those for other systems and of large size."""

from typing import Any

from tests.fakes.promises import Denies
from tests.fakes.server import LONGEST, Refused


class RefusesLongPaths(Denies, families=("traversal", "deny", "injection", "lines", "load")):
    """Refuses paths above the limit of any system, and lines of several megabytes."""

    tiers = ("deep", "platform")

    def place(self, text: str, *, writing: bool) -> str:
        if len(text) > LONGEST:
            raise Refused("that is too long")
        return super().place(text, writing=writing)

    def parse(self, raw: bytes) -> list[Any]:
        return [] if len(raw) > 1000 * LONGEST else super().parse(raw)
