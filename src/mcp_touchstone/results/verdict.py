"""What a run finds: outcomes, judgements, evidence. Plain values; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mcp_touchstone.transcript import Entry, Source

TEXT_KEPT: Final = 4000
"""Characters of a line kept as evidence."""

CONTEXT: Final = 8
"""Lines of conversation shown with a finding."""


class Outcome(StrEnum):
    """What became of one clause in one revision, gravest first.

    UNSEEN is only for conditional clauses: the server did nothing the rule speaks of. It is
    counted with what is not applicable, never with what passed.
    """

    FAIL = "fail"
    BROKEN = "broken"
    WARN = "warn"
    NOTE = "note"
    PASS = "pass"  # noqa: S105  (an outcome)
    UNSEEN = "unseen"

    @property
    def rank(self) -> int:
        """Position from grave (0) to light."""
        return _RANK[self]


_RANK: Final = {outcome: rank for rank, outcome in enumerate(Outcome)}

ARROWS: Final = {Source.US: "→", Source.THEM: "←", Source.EVENT: "·"}


@dataclass(frozen=True, slots=True)
class WireLine:
    """One line of the conversation, as shown with a finding."""

    n: int
    arrow: str
    text: str
    guilty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One clause judged in one revision by one scenario or ambient rule.

    Attributes:
        clause: id of the clause.
        revision: the revision it was judged in.
        outcome: what was found.
        scenario: id of the scenario or rule.
        expected: what the clause asks for, in a few words.
        actual: what the server did.
        wire: the lines that show it.
        count: how many times (ambient rules look at every message).
        source: file and line of the judgement, ``ping.py:31``.
        process: label of the process it was seen on.
        reproduction: a shell script that shows it again without us; empty where there is none.
        replay: words of the command line that draw again what showed it; empty where nothing was
            drawn.
        because: why it counts for less than its clause says; empty where it does not.
        left: what was not tried because it took too long; empty where all was.
    """

    clause: str
    revision: str
    outcome: Outcome
    scenario: str
    expected: str = ""
    actual: str = ""
    wire: tuple[WireLine, ...] = ()
    count: int = 1
    source: str = ""
    process: str = ""
    reproduction: str = ""
    replay: tuple[str, ...] = ()
    because: str = ""
    left: str = ""


def worst(judgements: Iterable[Judgement]) -> Judgement:
    """Give the gravest of some judgements; of equals the first."""
    return min(judgements, key=lambda judgement: judgement.outcome.rank)


def evidence(
    entries: Sequence[Entry], guilty: int | None, related: Iterable[int] = ()
) -> tuple[WireLine, ...]:
    """Pick the lines that show a finding: the guilty one, what it belongs to, what came before."""
    if not entries:
        return ()
    wanted = set(related)
    if guilty is not None:
        wanted.add(guilty)
    before = [entry.n for entry in entries if guilty is None or entry.n <= guilty]
    for n in reversed(before):
        if len(wanted) >= CONTEXT:
            break
        wanted.add(n)
    return tuple(
        WireLine(entry.n, ARROWS[entry.source], _shown(entry), entry.n == guilty)
        for entry in entries
        if entry.n in wanted
    )


def _shown(entry: Entry) -> str:
    text = (
        entry.text
        if len(entry.raw) <= TEXT_KEPT * 4
        else entry.raw[: TEXT_KEPT * 4].decode("utf-8", "replace")
    )
    if len(text) > TEXT_KEPT or entry.length > len(entry.raw) + 1:
        return f"{text[:TEXT_KEPT]}… ({entry.length:,} bytes)"
    return text
