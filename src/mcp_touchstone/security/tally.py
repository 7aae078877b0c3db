"""Results of an attack: calls, hits, deaths and time, and their descriptions in words."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from mcp_touchstone.bindings.binding import Call
from mcp_touchstone.bindings.canary import Canary
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.results.verdict import AffectedTool
from mcp_touchstone.security.targeting import AttackCall
from mcp_touchstone.wire.framing import brief
from mcp_touchstone.wire.reply import Reply

DEATHS: Final = 3
"""Number of processes that end under one threat after which no more calls are made."""

HANGS: Final = 2
"""Number of unanswered calls after which the attack stops."""

SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Hit:
    """One forbidden effect.

    Attributes:
        shot: the call that caused it; None if it was found only at the end of the attack.
        wire: the connection on which it was seen.
        reply: the reply to the call; None without one.
        names_only: whether it disclosed names of files and nothing else.
    """

    shot: AttackCall | None
    what: str
    wire: Connection
    reply: Reply | None = None
    names_only: bool = False

    @property
    def tool(self) -> str:
        """The called tool or method; empty without a call."""
        return "" if self.shot is None else self.shot.binding.tool or self.shot.call[0]


@dataclass(slots=True)
class TimeBudget:
    """Time limit of the calls of each tool; payloads beyond it are left out and counted.

    Attributes:
        each: seconds that may be spent on one tool; infinite for no limit.
        spent: tool -> seconds spent on it.
        left: tool -> number of payloads left out at it.
    """

    each: float = math.inf
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    left: Counter[str] = field(default_factory=Counter)

    def pays(self, tool: str) -> bool:
        """Return whether a tool may be called again."""
        return self.spent[tool] < self.each

    def __str__(self) -> str:
        """Return the number of payloads left out at each tool, in words."""
        return ", ".join(f"{count} at {tool}" for tool, count in sorted(self.left.items()))


@dataclass(slots=True)
class Tally:
    """Counts and effects of an attack.

    Attributes:
        live: number of live payloads sent.
        dead: number of payloads sent that no reading makes live.
        tools: tools and methods called.
        deaths: calls after which the process had ended.
        hangs: other calls without a reply.
    """

    live: int = 0
    dead: int = 0
    tools: set[str] = field(default_factory=set)
    hits: list[Hit] = field(default_factory=list)
    deaths: list[Hit] = field(default_factory=list)
    hangs: list[Hit] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether no more calls are made."""
        return len(self.deaths) >= DEATHS or len(self.hangs) >= HANGS

    def __str__(self) -> str:
        words = f"{self.live} live payloads through {', '.join(sorted(self.tools)) or 'no tool'}"
        return words + (f", {self.dead} that no reading makes live" if self.dead else "")


def whose(canary: Canary) -> str:
    """Return a description of the bytes or names that a canary marks."""
    if canary.is_name:
        return f"the names in {PurePosixPath(canary.where).parent.as_posix()!r}"
    return f"the bytes of {canary.where}"


def shown(call: Call) -> str:
    """Return a short description of a call: the tool or method, and its arguments."""
    method, params = call
    return f"{params.get('name', method)} {brief(params.get('arguments', params), SHOWN)}"


def said(found: list[Hit], tally: Tally) -> str:
    """Return the result of an attack in words; the first hit with a call is described in full."""
    if not found:
        return str(tally)
    first = next((hit for hit in found if hit.shot is not None), found[0])
    if first.shot is None:
        return f"{first.what}, after {tally}"
    row = first.shot.payload
    how = f"{first.what}: {shown(first.shot.call)} ({row.id}: {row.note})"
    others = {hit.shot.payload.id for hit in found if hit.shot} - {row.id}
    return how + (f"; {len(others)} more payloads have this effect" if others else "")


def by_tool(found: list[Hit]) -> tuple[AffectedTool, ...]:
    """Count the payloads that had an effect, for each tool or method and its arguments."""
    payloads: dict[str, set[str]] = defaultdict(set)
    arguments: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for hit in found:
        if hit.shot is not None:
            payloads[hit.tool].add(hit.shot.payload.id)
            for name in hit.shot.arguments:
                arguments[hit.tool][name].add(hit.shot.payload.id)
    return tuple(
        AffectedTool(
            tool, len(ids), tuple((name, len(its)) for name, its in sorted(arguments[tool].items()))
        )
        for tool, ids in sorted(payloads.items())
    )
