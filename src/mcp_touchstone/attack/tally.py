"""What became of an attack: shots, hits, deaths, and how they are told. Values."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_touchstone.attack.aimer import Shot
from mcp_touchstone.attack.canary import Canary
from mcp_touchstone.connection import Connection
from mcp_touchstone.framing import brief
from mcp_touchstone.reply import Reply

DEATHS: Final = 3
"""Processes lost to one threat after which nothing more is fired."""

HANGS: Final = 2
"""Calls without an answer after which nothing more is fired."""

SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Hit:
    """One effect that must not be.

    Attributes:
        shot: what had it; None where only the end of the attack showed it.
        what: the effect, in words.
        wire: the connection it was seen on.
        reply: the answer of the call.
    """

    shot: Shot | None
    what: str
    wire: Connection
    reply: Reply | None = None


@dataclass(slots=True)
class Tally:
    """What became of an attack."""

    live: int = 0
    dead: int = 0
    tools: set[str] = field(default_factory=set)
    hits: list[Hit] = field(default_factory=list)
    deaths: list[Hit] = field(default_factory=list)
    hangs: list[Hit] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether nothing more is fired."""
        return len(self.deaths) >= DEATHS or len(self.hangs) >= HANGS

    def __str__(self) -> str:
        """Say it in words."""
        words = f"{self.live} live payloads through {', '.join(sorted(self.tools)) or 'no tool'}"
        return words + (f", {self.dead} that no reading makes live" if self.dead else "")


def whose(canary: Canary) -> str:
    """Say whose bytes or names were seen."""
    if canary.is_name:
        return f"the names in {Path(canary.where).parent.as_posix()!r}"
    return f"the bytes of {canary.where}"


def said(found: list[Hit], tally: Tally) -> str:
    """Say what an attack found, its first hit in full."""
    if not found:
        return str(tally)
    first = next((hit for hit in found if hit.shot is not None), found[0])
    if first.shot is None:
        return f"{first.what}, after {tally}"
    method, params = first.shot.call
    call = f"{params.get('name', method)} {brief(params.get('arguments', params), SHOWN)}"
    how = f"{first.what}: {call} ({first.shot.payload.id}: {first.shot.payload.note})"
    others = {hit.shot.payload.id for hit in found if hit.shot} - {first.shot.payload.id}
    return how + (f"; {len(others)} more payloads did the like" if others else "")
