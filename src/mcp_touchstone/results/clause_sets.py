"""How many applicable clauses of a frozen set a server keeps, for each revision. Pure.

``clause_sets.json`` has numbered sets of required clauses for each revision. A set never changes,
so that figures of different versions of this program can be compared. ``scripts/clause_sets.py``
adds a set when clauses were added or retired.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome

SETS: Final = Path(__file__).with_name("clause_sets.json")

_BROKEN: Final = {Outcome.FAIL, Outcome.BROKEN}


@dataclass(frozen=True, slots=True)
class Kept:
    """The figure of one revision.

    Attributes:
        number: number of the set.
        applicable: clauses of the set that apply to the server.
        kept: those that it keeps; a clause that could not be judged is not kept.
        unjudged: clauses of the set that the run left out.
    """

    revision: str
    number: int
    applicable: int
    kept: int
    unjudged: int

    @property
    def name(self) -> str:
        """Name of the set."""
        return f"{self.revision}/{self.number}"

    @property
    def figure(self) -> str:
        """The figure, in words; empty if the run left out a part of the set."""
        if self.unjudged or not self.applicable:
            return ""
        return f"{self.kept} of {self.applicable} applicable clauses kept"


@cache
def sets() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    """Return the sets of each revision, in the order of their numbers, which begin with 1."""
    document = json.loads(SETS.read_text("utf-8"))
    return {r: tuple(tuple(ids) for ids in numbered) for r, numbered in document.items()}


def kept(run: Run, renamed: Callable[[], Mapping[str, str]]) -> list[Kept]:
    """Return the figure of each revision that the server speaks, by its newest set.

    A warning is no breach: the rule leaves room, or is no requirement. A clause that only the SDK
    of the server breaks is left out, unless its faults count.

    Args:
        renamed: returns merged ids -> the id they are part of now; called only if it is needed.
    """
    outcomes = {(v.clause.id, v.revision): v.gravest.outcome for v in run.verdicts}
    of_sdk = {(v.clause.id, v.revision) for v in run.verdicts if run.is_of_sdk(v)}
    absent = {(row.clause, row.revision): row.by_choice for row in run.absent}
    found = []
    for revision, numbered in sets().items():
        if revision not in run.subject.revisions:
            continue
        ids = dict.fromkeys(numbered[-1])
        if any((one, revision) not in outcomes and (one, revision) not in absent for one in ids):
            now = renamed()
            ids = dict.fromkeys(now.get(one, one) for one in ids)
        applicable = good = unjudged = 0
        for one in ids:
            outcome = outcomes.get((one, revision))
            if outcome is None:
                unjudged += absent.get((one, revision), True)
            elif outcome is not Outcome.UNSEEN and (one, revision) not in of_sdk:
                applicable += 1
                good += outcome not in _BROKEN
        found.append(Kept(revision, len(numbered), applicable, good, unjudged))
    return found
