"""What came of each scenario that a client was run in. Pure values."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

NAMED: Final = 3
"""Scenarios that are named with what they have in common."""


class ScenarioOutcome(StrEnum):
    """What came of a scenario. An exit status is evidence for it, and no verdict."""

    JUDGED = "judged"
    REFUSED = "refused as it may"
    LEFT_OUT = "left out"
    UNENDED = "did not end"
    UNCONNECTED = "never connected"
    CRASHED = "crashed"

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing: rules on the end of the client were judged, or none apply."""
        return self in {ScenarioOutcome.JUDGED, ScenarioOutcome.REFUSED, ScenarioOutcome.LEFT_OUT}


IN_TROUBLE: Final = tuple(one for one in ScenarioOutcome if not one.is_whole)
"""What comes of a scenario that is not judged to its end."""


@dataclass(frozen=True, slots=True)
class PlayedScenario:
    """A scenario, and what came of it.

    Attributes:
        outcome: what came of it; LEFT_OUT as long as it was not played.
        why: what the client did in place of a whole conversation, or why it was left out, as a
            sentence; empty for neither.
        status: exit status of the client, negative for a signal; None if it has none.
        revision: the only one that our server spoke; empty for those of its era.
        broke: the rules that the client broke in it, sorted.
        played_as: the name by which the client got it, if it had no handler for its own one.
        known: the reason given in the baseline for what came of it; empty without an entry.
    """

    name: str
    outcome: ScenarioOutcome = ScenarioOutcome.LEFT_OUT
    why: str = ""
    status: int | None = None
    revision: str = ""
    broke: tuple[str, ...] = ()
    known: str = ""
    played_as: str = ""

    def document(self) -> dict[str, Any]:
        """Return the member of the JSON report."""
        more = {"why": self.why} if self.why else {}
        known = {} if self.status is None else {"exit_status": self.status}
        told = {"revision": self.revision, "broke": [*self.broke], "known": self.known}
        told["played_as"] = self.played_as
        some = {name: value for name, value in told.items() if value}
        return {"scenario": self.name, "outcome": str(self.outcome), **more, **known, **some}

    @classmethod
    def read(cls, row: dict[str, Any]) -> "PlayedScenario":
        """Return the scenario of a JSON report."""
        return cls(
            row["scenario"],
            ScenarioOutcome(row["outcome"]),
            row.get("why", ""),
            row.get("exit_status"),
            row.get("revision", ""),
            tuple(row.get("broke", ())),
            row.get("known", ""),
            row.get("played_as", ""),
        )


def troubles(played: Iterable[PlayedScenario]) -> Iterator[str]:
    """Yield a sentence for what some scenarios lack, each once, with their names."""
    found: dict[str, list[str]] = {}
    for one in played:
        if not (one.outcome.is_whole or one.known):
            found.setdefault(one.why, []).append(one.name)
    for why, names in found.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{', '.join(names[:NAMED])}{more}: {why}"
