"""How much of the catalogue is judged: clause, revision, scenario, mutant. Pure."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from mcp_touchstone import revision as rev
from mcp_touchstone.clause import Catalogue, Clause, Observable
from mcp_touchstone.report.text import plural
from mcp_touchstone.scenario import Registry

WIDTH: Final = 96

NO_MUTANTS: Final = (
    "Mutants are not known here: they are tests, and stand in a checkout of the project only."
)

BROKEN: Final = "●"
"""Judged in a revision, and broken there by a mutant."""

JUDGED: Final = "○"
"""Judged in a revision."""

PUT_OFF: Final = "-"
"""Not judged in a revision, though it holds there."""


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
        """The revision it breaks them in."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of the judging of one clause.

    Attributes:
        clause: the clause.
        cases: ids of the scenarios and rules that judge it.
        mutants: the servers that break it.
    """

    clause: Clause
    cases: tuple[str, ...]
    mutants: tuple[Mutant, ...]

    @property
    def reason(self) -> str:
        """Why it is not judged; empty when it is."""
        return self.clause.deferred or self.clause.unobservable

    def mark(self, revision: str) -> str:
        """Say in one character what becomes of it in a revision; empty where it does not hold."""
        if revision not in self.clause.revisions:
            return ""
        if not self.clause.judged:
            return PUT_OFF
        return BROKEN if any(one.revision == revision for one in self.mutants) else JUDGED


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    judged: int
    clauses: int

    def __str__(self) -> str:
        """Give both counts, and the share of whole per cent that is reached for certain."""
        if not self.clauses:
            return "-"
        return f"{self.judged} of {self.clauses} ({100 * self.judged // self.clauses} %)"


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is known of the judging of all clauses.

    Attributes:
        catalogue: the clauses.
        rows: by clause id.
        mutants: how many mutants there are; None where they are not known.
    """

    catalogue: Catalogue
    rows: Mapping[str, Row]
    mutants: int | None

    def share(
        self, observable: Observable | None = None, clauses: Iterable[Clause] | None = None
    ) -> Share:
        """Count the judged among some clauses, or among those of one kind."""
        among = self.catalogue if clauses is None else clauses
        chosen = [c for c in among if observable is None or c.observable is observable]
        return Share(sum(clause.judged for clause in chosen), len(chosen))

    def shares(self, clauses: Iterable[Clause] | None = None) -> dict[Observable | None, str]:
        """Show the share of each kind, and under None of all; of what is out of reach a count."""
        among = tuple(self.catalogue if clauses is None else clauses)
        return {
            Observable.YES: str(self.share(Observable.YES, among)),
            Observable.CONDITIONAL: str(self.share(Observable.CONDITIONAL, among)),
            Observable.NO: str(self.share(Observable.NO, among).clauses or "-"),
            None: str(self.share(None, among)),
        }

    @property
    def survivors(self) -> list[str]:
        """Judged clauses that no mutant breaks; none where mutants are not known."""
        if self.mutants is None:
            return []
        return [name for name, row in self.rows.items() if row.clause.judged and not row.mutants]


def measure(registry: Registry, mutants: Mapping[str, Mutant] | None) -> Coverage:
    """Put together what the catalogue, the suite files and the mutants say."""
    cases: dict[str, list[str]] = {}
    for case in registry.cases():
        for clause in case.clauses:
            cases.setdefault(clause.id, []).append(case.id)
    breaking: dict[str, list[Mutant]] = {}
    for one in (mutants or {}).values():
        for broken in one.breaks:
            breaking.setdefault(broken, []).append(one)
    rows = {
        clause.id: Row(clause, tuple(cases.get(clause.id, ())), tuple(breaking.get(clause.id, ())))
        for clause in registry.catalogue
    }
    return Coverage(registry.catalogue, rows, None if mutants is None else len(mutants))


# --- as a page


def page(coverage: Coverage) -> Iterator[str]:
    """Write it as Markdown."""
    yield "# Coverage\n"
    yield (
        "Which clauses are judged, in which revision, by which scenario or rule, and which mutants "
        "(servers that break a clause on purpose) prove that the judge can find a breach. "
        "`mcp-touchstone coverage` prints the same in short.\n"
    )
    yield "| observable | judged | what that means |\n|---|---|---|"
    for kind, meaning in _MEANINGS.items():
        yield f"| {kind} | {coverage.shares()[kind]} | {meaning} |"
    yield f"| all clauses | {coverage.share()} | |\n"
    if coverage.mutants is None:
        yield f"{NO_MUTANTS}\n"
    else:
        left = ", ".join(f"`{name}`" for name in coverage.survivors) or "none"
        yield f"{plural(coverage.mutants, 'mutant')}. Judged clauses that none breaks: {left}.\n"
    yield (
        f"In the tables: {BROKEN} judged, and a mutant breaks it in this revision; {JUDGED} "
        f"judged; {PUT_OFF} not judged; empty where the clause does not hold.\n"
    )
    yield "| chapter | observable: yes | conditional | out of reach | all clauses |"
    yield "|---|---|---|---|---|"
    for chapter in coverage.catalogue.chapters:
        cells = coverage.shares(chapter.clauses).values()
        yield f"| {chapter.group}/{chapter.name} | {' | '.join(cells)} |"
    for chapter in coverage.catalogue.chapters:
        yield f"\n## {chapter.group}/{chapter.name}\n"
        yield f"| clause | observable | {' | '.join(rev.ALL)} | judged by | broken by |"
        yield "|---|---|" + ":-:|" * len(rev.ALL) + "---|---|"
        rows = [coverage.rows[clause.id] for clause in chapter.clauses]
        yield from map(_line, rows)
        if not all(row.clause.judged for row in rows):
            yield "\nNot judged:\n"
        for row in rows:
            if row.reason:
                yield f"- `{row.clause.id}`: {row.reason}"


def _line(row: Row) -> str:
    clause = row.clause
    marks = " | ".join(map(row.mark, rev.ALL))
    cases = ", ".join(f"`{case.rpartition('::')[2]}`" for case in row.cases)
    mutants = ", ".join(one.name for one in row.mutants)
    name = f"[{clause.id}](clauses.md#{clause.id})"
    return f"| {name} | {clause.observable} | {marks} | {cases} | {mutants} |"


_MEANINGS: Final = {
    Observable.YES: "shows on every server that offers what the clause needs",
    Observable.CONDITIONAL: "shows on servers that do what the clause speaks of",
    Observable.NO: "nothing on the pipe can show it",
}


# --- on the terminal


def text(coverage: Coverage) -> Iterator[str]:
    """Write it for a terminal: the shares, and what is not judged with its reason."""
    yield _columns(("judged", "observable: yes", "conditional", "out of reach", "all clauses"))
    for chapter in coverage.catalogue.chapters:
        cells = coverage.shares(chapter.clauses).values()
        yield _columns((f"{chapter.group}/{chapter.name}", *cells))
    yield _columns(("all chapters", *coverage.shares().values()))
    yield ""
    if coverage.mutants is None:
        yield NO_MUTANTS
    else:
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
            ", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ",
            break_on_hyphens=False,
        )  # fmt: skip
        yield from textwrap.wrap(reason, WIDTH, initial_indent="      ", subsequent_indent="      ")


def _columns(cells: tuple[str, ...]) -> str:
    first, *rest = cells
    return f"{first:<22}" + "".join(f"{cell:<20}" for cell in rest).rstrip()
