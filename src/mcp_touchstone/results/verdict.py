"""Outcomes, judgements and their evidence. Plain values; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mcp_touchstone.catalog.threat import Severity
from mcp_touchstone.wire.curl import curl
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.exchange import Exchange
from mcp_touchstone.wire.transcript import Entry, Source

TEXT_KEPT: Final = 4000
"""Characters of a line kept as evidence."""

CONTEXT: Final = 8
"""Lines of conversation shown with a finding."""


class Outcome(StrEnum):
    """The outcome of one clause in one revision, most severe first.

    UNSEEN is only for conditional clauses: the server did nothing that the rule covers. It is
    counted with the clauses that do not apply, never with those that passed.
    """

    FAIL = "fail"
    BROKEN = "broken"
    WARN = "warn"
    NOTE = "note"
    PASS = "pass"  # noqa: S105  (an outcome)
    UNSEEN = "unseen"

    @property
    def rank(self) -> int:
        """Position from most severe (0) to mildest."""
        return _RANK[self]


_RANK: Final = {outcome: rank for rank, outcome in enumerate(Outcome)}

ARROWS: Final = {Source.US: "→", Source.THEM: "←", Source.EVENT: "·"}
_FROM_CLIENT: Final = {Source.US: "←", Source.THEM: "→", Source.EVENT: "·"}


@dataclass(frozen=True, slots=True)
class WireLine:
    """One line of the conversation, as printed with a finding.

    Attributes:
        n: its number.
        text: its beginning.
        guilty: whether it proves the finding.
        http: the HTTP request or response that carried it, in a few words; empty on stdio.
    """

    n: int
    arrow: str
    text: str
    guilty: bool = False
    http: str = ""


@dataclass(frozen=True, slots=True)
class AffectedTool:
    """A tool or method in which a payload had an effect.

    Attributes:
        payloads: number of payloads that had the effect in it.
        arguments: argument -> number of these payloads that it took, as pairs sorted by name;
            empty if it is not known. A payload may go into several arguments.
    """

    name: str
    payloads: int
    arguments: tuple[tuple[str, int], ...] = ()

    def rows(self) -> list[tuple[str, int]]:
        """Return its arguments, as ``tool(argument)``, each with its number of payloads."""
        each = [(f"{self.name}({argument})", count) for argument, count in self.arguments]
        return each or [(self.name, self.payloads)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One clause judged in one revision by one scenario or ambient rule.

    Attributes:
        clause: id of the clause.
        scenario: id of the scenario or rule.
        expected: the behaviour the clause requires, in a few words.
        actual: the behaviour of the server.
        wire: the lines of the conversation that prove it.
        count: number of occurrences (ambient rules check every message).
        source: file and line of the judgement, ``ping.py:31``.
        process: label of the process it was observed on.
        reproduction: a shell script that reproduces it without this program; empty if there is
            none.
        replay: command line options that generate the same input again; empty if nothing was
            generated.
        because: the reason it counts for less than its clause says; empty if it does not.
        left: the checks skipped for lack of time; empty if none were.
        origin: id of the scenario that made the traffic, or ``discovery``, if a rule on all
            traffic found it; empty if the scenario itself judged.
        tried: number of runs of the case, repetitions included; 1 if it was not repeated.
        found: number of these runs in which the finding appeared.
        silent: whether the finding is a silence, so that it must come again to be a failure.
        severity: the severity of the effect, if it is lower than the effect that the threat
            describes; else None.
        raced: whether the scenario races messages, so that the finding may be absent next time.
        tools: the tools and methods in which it was found, sorted by name; empty if it was not
            found by a call.
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
    origin: str = ""
    tried: int = 1
    found: int = 1
    raced: bool = False
    silent: bool = False
    severity: Severity | None = None
    tools: tuple[AffectedTool, ...] = ()

    @property
    def sometimes(self) -> bool:
        """Whether the finding may be absent in another run on the same server."""
        return self.raced or self.found < self.tried


def worst(judgements: Iterable[Judgement]) -> Judgement:
    """Return the most severe judgement; of equals, the first that appeared in every run."""
    return min(judgements, key=lambda judgement: (judgement.outcome.rank, judgement.sometimes))


def evidence(
    entries: Sequence[Entry],
    guilty: int | None,
    related: Iterable[int] = (),
    exchanges: Iterable[Exchange] = (),
    judged: Side = Side.SERVER,
) -> tuple[WireLine, ...]:
    """Select the lines that prove a finding: the guilty one, related ones, the ones before.

    Args:
        guilty: number of the one that proves it; None for none.
        related: numbers of further ones.
        exchanges: the HTTP exchanges of the conversation.
        judged: the side whose lines are THEM; an arrow to the right is from the client.
    """
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
    carried = carriers(exchanges)
    arrows = _FROM_CLIENT if judged is Side.CLIENT else ARROWS
    return tuple(
        WireLine(
            entry.n,
            arrows[entry.source],
            _shown(entry),
            entry.n == guilty,
            carrier(entry, carried),
        )
        for entry in entries
        if entry.n in wanted
    )


def carriers(exchanges: Iterable[Exchange]) -> dict[int, Exchange]:
    """Return the HTTP exchange of each line of ours that was sent in one."""
    found: dict[int, Exchange] = {}
    for exchange in list(exchanges):
        if exchange.line:
            found.setdefault(exchange.line, exchange)
    return found


def by_curl(
    entries: Sequence[Entry],
    guilty: int | None,
    related: Iterable[int],
    exchanges: Iterable[Exchange],
) -> str:
    """Return the shell lines that send the request of a finding again; empty on stdio.

    Args:
        guilty: number of the line that proves it; None for none.
        related: numbers of further lines.
    """
    sent = list(exchanges)
    if not sent:
        return ""
    lines = [n for n in (*related, guilty) if n is not None]
    asked = (one for n in lines for one in sent if n in {one.line, one.event_line})
    answers = (entries[n - 1].origin for n in lines)
    came = (origin.exchange for origin in answers if origin is not None)
    wanted = next(asked, None) or next(came, None)
    return "" if wanted is None else curl(sent, wanted)


def carrier(entry: Entry, carried: Mapping[int, Exchange]) -> str:
    """Return the HTTP request or response that carried a line, in a few words; empty for none."""
    if entry.origin is not None:
        return str(entry.origin)
    exchange = carried.get(entry.n) if entry.source is Source.US else None
    return "" if exchange is None else exchange.request


def _shown(entry: Entry) -> str:
    text = (
        entry.text
        if len(entry.raw) <= TEXT_KEPT * 4
        else entry.raw[: TEXT_KEPT * 4].decode("utf-8", "replace")
    )
    if len(text) > TEXT_KEPT or entry.length > len(entry.raw) + 1:
        return f"{text[:TEXT_KEPT]}… ({entry.length:,} bytes)"
    return text
