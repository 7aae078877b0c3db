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


@dataclass(frozen=True, slots=True)
class PlayedScenario:
    """A scenario, and what came of it.

    Attributes:
        why: what the client did in place of a whole conversation, or why it was left out, as a
            sentence; empty for neither.
        status: exit status of the client, negative for a signal; None if it has none.
    """

    name: str
    outcome: ScenarioOutcome
    why: str = ""
    status: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the member of the JSON report."""
        more = {"why": self.why} if self.why else {}
        known = {} if self.status is None else {"exit_status": self.status}
        return {"scenario": self.name, "outcome": str(self.outcome), **more, **known}

    @classmethod
    def read(cls, row: dict[str, Any]) -> "PlayedScenario":
        """Return the scenario of a JSON report."""
        more = row.get("why", ""), row.get("exit_status")
        return cls(row["scenario"], ScenarioOutcome(row["outcome"]), *more)


def troubles(played: Iterable[PlayedScenario]) -> Iterator[str]:
    """Yield a sentence for what some scenarios lack, each once, with their names."""
    found: dict[str, list[str]] = {}
    for one in played:
        if not one.outcome.is_whole:
            found.setdefault(one.why, []).append(one.name)
    for why, names in found.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{', '.join(names[:NAMED])}{more}: {why}"
