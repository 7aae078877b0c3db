"""What can be judged already, while the rest of a server is still being learnt. Runs nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcp_touchstone import needs, plan
from mcp_touchstone.dossier import Dossier
from mcp_touchstone.plan import Choice
from mcp_touchstone.results import Run, Slot
from mcp_touchstone.scenario import Registry, Scenario, Share
from mcp_touchstone.traffic import may_last

LASTING: Final = frozenset({"slow-call", "slow-task"})
"""Words for work that takes seconds."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A scenario where it may be judged, and what has to be decided before: revision and word.

    Attributes:
        bound: whether bindings have to be known, too.
    """

    scenario: Scenario
    revisions: tuple[str, ...]
    words: frozenset[tuple[str, str]]
    bound: bool


class Agenda:
    """Plans scenarios as soon as what they need is decided; ``plan.make`` does the rest.

    Attributes:
        begun: what was planned so far.
    """

    def __init__(self, run: Run, registry: Registry, choice: Choice) -> None:
        self._draft = Run(run.target, run.dossier)  # what does not apply is noted by plan.make
        self._choice = choice
        self._waiting = _entries(run.dossier, registry, choice)
        self.begun: list[Slot] = []
        self._foreseen: set[tuple[str, str]] = set()

    def likely(self, decided: Callable[[str, str], bool]) -> list[tuple[str, Scenario]]:
        """Give what will need a process apart if a call lasts, while that is still tried.

        Each once, with its revision, when it is known which tools can be called.

        Args:
            decided: (revision, word) -> whether it is known what that comes to.
        """
        found = []
        for entry in self._waiting:
            case = entry.scenario
            if not case.apart or not plan.needs_of(case) & LASTING:
                continue
            if not any(self._choice.takes(case, clause) for clause in case.clauses):
                continue
            for revision in entry.revisions:
                if (revision, case.id) not in self._foreseen and decided(revision, "callable-tool"):
                    self._foreseen.add((revision, case.id))
                    calls = self._draft.dossier.spoken[revision].examples("callable-tool")
                    if any(may_last(call.item) for call in calls):
                        found.append((revision, case))
        return found

    def ready(
        self, decided: Callable[[str, str], bool], free: Callable[[str, Share], bool]
    ) -> list[Slot]:
        """Plan what can be judged now and could not before.

        Args:
            decided: (revision, word) -> whether it is known what that comes to.
            free: (revision, share) -> whether nothing is tried on that process any more.
        """
        found: list[Slot] = []
        left = []
        bound = self._draft.dossier.bindings is not None
        for entry in self._waiting:
            shared = [] if entry.scenario.fresh else entry.revisions
            if (
                (bound or not entry.bound)
                and all(decided(*word) for word in entry.words)
                and all(
                    free(revision, plan.share(Slot(entry.scenario, revision, ())))
                    for revision in shared
                )
            ):
                found += plan.slots(self._draft, entry.scenario, entry.revisions, self._choice)
            else:
                left.append(entry)
        self._waiting = left
        self.begun += found
        return found


def _entries(dossier: Dossier, registry: Registry, choice: Choice) -> list[_Entry]:
    return [
        _Entry(case, where, _words(case, where), _rests_on_bindings(case))
        for case in registry.cases()
        if isinstance(case, Scenario) and choice.draws(case)
        for where in _places(case, plan.judged(dossier, choice))
    ]


def _places(case: Scenario, revisions: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Give the revisions a case is planned in, those together that are planned together."""
    if case.once:
        return [revisions]
    chosen = plan.front(revisions) if plan.is_attack(case) else revisions
    return [(revision,) for revision in chosen]


def _words(case: Scenario, revisions: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (revision, word)
        for clause in case.clauses
        for revision in revisions
        if revision in clause.revisions
        for need in clause.needs
        for word in needs.choices(need)
    )


def _rests_on_bindings(case: Scenario) -> bool:
    return plan.is_attack(case) or bool(plan.needs_of(case) & needs.OPERATIONS.keys())
