"""Print how many clauses are checked, which mutants break them, and why the rest is not checked."""

import runpy
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from mcp_touchstone.catalog.clause import Catalogue, Clause, Observable
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.report.text import plural

WIDTH: Final = 96

BROKEN: Final = "●"
"""Judged in a revision, and broken there by a mutant."""

JUDGED: Final = "○"
"""Judged in a revision."""

PUT_OFF: Final = "-"
"""Not judged in a revision, though it applies there."""


class Mutant(Protocol):
    """A server that breaks clauses on purpose."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def breaks(self) -> tuple[str, ...]:
        """The clauses it breaks."""

    @property
    def revision(self) -> str:
        """The revision in which it breaks them."""


@dataclass(frozen=True, slots=True)
class Row:
    """The scenarios, rules and mutants of one clause.

    Attributes:
        cases: ids of the scenarios and rules that judge it.
        mutants: the servers that break it.
    """

    clause: Clause
    cases: tuple[str, ...]
    mutants: tuple[Mutant, ...]

    @property
    def reason(self) -> str:
        """The reason it is not judged; empty if it is judged."""
        return self.clause.deferred or self.clause.unobservable

    def mark(self, revision: str) -> str:
        """Return its state in a revision as one character; empty if it does not apply there."""
        if revision not in self.clause.revisions:
            return ""
        if not self.clause.judged:
            return PUT_OFF
        return BROKEN if any(one.revision == revision for one in self.mutants) else JUDGED


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of a total."""

    judged: int
    clauses: int

    def __str__(self) -> str:
        """Return both counts and the percentage, rounded down."""
        if not self.clauses:
            return "-"
        return f"{self.judged} of {self.clauses} ({100 * self.judged // self.clauses} %)"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The scenarios, rules and mutants of all clauses.

    Attributes:
        catalogue: the clauses.
        rows: by clause id.
        mutants: number of mutants.
    """

    catalogue: Catalogue
    rows: Mapping[str, Row]
    mutants: int

    def share(
        self, observable: Observable | None = None, clauses: Iterable[Clause] | None = None
    ) -> Share:
        """Count the judged clauses of one kind among the given ones, or among those in force."""
        among = [c for c in self.catalogue if not c.draft] if clauses is None else clauses
        chosen = [c for c in among if observable is None or c.observable is observable]
        return Share(sum(clause.judged for clause in chosen), len(chosen))

    def shares(self, clauses: Iterable[Clause] | None = None) -> dict[Observable | None, str]:
        """Return the share of each kind, and of all under None; a count if unobservable."""
        among = [c for c in self.catalogue if not c.draft] if clauses is None else [*clauses]
        return {
            Observable.YES: str(self.share(Observable.YES, among)),
            Observable.CONDITIONAL: str(self.share(Observable.CONDITIONAL, among)),
            Observable.NO: str(self.share(Observable.NO, among).clauses or "-"),
            None: str(self.share(None, among)),
        }

    @property
    def survivors(self) -> list[str]:
        """Judged clauses that no mutant breaks."""
        return [name for name, row in self.rows.items() if row.clause.judged and not row.mutants]


def mutants() -> Mapping[str, Mutant]:
    """Import the servers that break a clause on purpose, by name, with current clause ids."""
    program = Path(__file__).resolve().parents[1] / "tests" / "mutants" / "__main__.py"
    catalogue = load().catalogue
    known = runpy.run_path(str(program), run_name="mutants")["load"]()
    return {name: one.due(lambda c: catalogue[c].judged) for name, one in known.items()}


def measure(registry: Registry, mutants: Mapping[str, Mutant]) -> Coverage:
    """Combine the catalogue, the suite files and the mutants."""
    cases: dict[str, list[str]] = {}
    for case in registry.cases():
        for clause in case.clauses:
            cases.setdefault(clause.id, []).append(case.id)
    breaking: dict[str, list[Mutant]] = {}
    for one in mutants.values():
        for broken in one.breaks:
            breaking.setdefault(broken, []).append(one)
    rows = {
        clause.id: Row(clause, tuple(cases.get(clause.id, ())), tuple(breaking.get(clause.id, ())))
        for clause in registry.catalogue
    }
    return Coverage(registry.catalogue, rows, len(mutants))


# --- on the terminal


def text(coverage: Coverage) -> Iterator[str]:
    """Yield lines for a terminal: the shares, then each unjudged clause with its reason."""
    yield _columns(("judged", "observable: yes", "conditional", "out of reach", "all clauses"))
    for chapter in coverage.catalogue.chapters:
        cells = coverage.shares(chapter.clauses).values()
        yield _columns((f"{chapter.group}/{chapter.name}", *cells))
    yield _columns(("all chapters", *coverage.shares().values()))
    yield ""
    yield (
        f"{plural(coverage.mutants, 'mutant')}; judged clauses that none breaks: "
        f"{', '.join(coverage.survivors) or 'none'}"
    )
    reasons: dict[str, list[str]] = {}
    for name, row in coverage.rows.items():
        if row.reason:
            reasons.setdefault(row.reason, []).append(name)
    if reasons:
        yield "\nnot judged:"
    for reason, names in reasons.items():
        yield from textwrap.wrap(
            ", ".join(names),
            WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        yield from textwrap.wrap(reason, WIDTH, initial_indent="      ", subsequent_indent="      ")


def _columns(cells: tuple[str, ...]) -> str:
    first, *rest = cells
    return f"{first:<22}" + "".join(f"{cell:<20}" for cell in rest).rstrip()


if __name__ == "__main__":
    for line in text(measure(load(), mutants())):
        print(line)
