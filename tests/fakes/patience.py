"""A good server that is held against all there is, foreign systems and sheer size too."""

from typing import Any

from tests.fakes.promises import Denies
from tests.fakes.server import Refused

LONGEST = 4096


class RefusesWhatIsLong(Denies):
    """Looks at no path that is longer than any system takes, and at no line of some megabytes."""

    families = ("traversal", "deny", "injection", "lines", "load")
    tiers = ("deep", "platform")

    def place(self, text: str, *, writing: bool) -> str:
        if len(text) > LONGEST:
            raise Refused("that is too long")
        return super().place(text, writing=writing)

    def parse(self, raw: bytes) -> list[Any]:
        return [] if len(raw) > 1000 * LONGEST else super().parse(raw)
