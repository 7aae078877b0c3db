"""What became of an attack: shots, hits, deaths, what it cost, and how they are told. Values."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_touchstone.bindings.binding import Call
from mcp_touchstone.bindings.canary import Canary
from mcp_touchstone.client.connection import Connection
from mcp_touchstone.security.targeting import AttackCall
from mcp_touchstone.wire.framing import brief
from mcp_touchstone.wire.reply import Reply

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

    shot: AttackCall | None
    what: str
    wire: Connection
    reply: Reply | None = None

    @property
    def tool(self) -> str:
        """What was called."""
        return "" if self.shot is None else self.shot.binding.tool or self.shot.call[0]


@dataclass(slots=True)
class TimeBudget:
    """What an attack may cost; what it cannot pay for is left out, and said.

    Attributes:
        each: seconds that may be spent on one tool; endless where nobody looks at the price.
        spent: tool -> seconds spent on it.
        left: tool -> payloads that were not fired at it.
    """

    each: float = math.inf
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    left: Counter[str] = field(default_factory=Counter)

    @property
    def ends(self) -> bool:
        """Whether there is an end to what is spent."""
        return self.each < math.inf

    def pays(self, tool: str) -> bool:
        """Whether a tool may be called once more."""
        return self.spent[tool] < self.each

    def __str__(self) -> str:
        """Say what was left out, tool by tool."""
        return ", ".join(f"{count} at {tool}" for tool, count in sorted(self.left.items()))


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


def shown(call: Call) -> str:
    """Say a call in short: the tool or method, and what it was given."""
    method, params = call
    return f"{params.get('name', method)} {brief(params.get('arguments', params), SHOWN)}"


def said(found: list[Hit], tally: Tally) -> str:
    """Say what an attack found, its first hit in full."""
    if not found:
        return str(tally)
    first = next((hit for hit in found if hit.shot is not None), found[0])
    if first.shot is None:
        return f"{first.what}, after {tally}"
    row = first.shot.payload
    how = f"{first.what}: {shown(first.shot.call)} ({row.id}: {row.note})"
    others = {hit.shot.payload.id for hit in found if hit.shot} - {row.id}
    return how + (f"; {len(others)} more payloads have this effect" if others else "")


def by_tool(found: list[Hit]) -> tuple[tuple[str, int], ...]:
    """Count the payloads that had an effect, for each tool or method, sorted by its name."""
    payloads: dict[str, set[str]] = defaultdict(set)
    for hit in found:
        if hit.shot is not None:
            payloads[hit.tool].add(hit.shot.payload.id)
    return tuple((tool, len(ids)) for tool, ids in sorted(payloads.items()))
