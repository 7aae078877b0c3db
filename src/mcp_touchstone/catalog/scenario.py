"""Register scenarios and ambient rules: what a suite file declares at import. Runs nothing.

A scenario is one conversation that judges at least one clause; its name is a present-tense
sentence about the server, its docstring is the published description. An ambient rule looks at
every transcript of a run.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone import revision as rev
from mcp_touchstone.clause import Breach, Catalogue, CatalogueError, Clause

if TYPE_CHECKING:
    from mcp_touchstone.ambient import Record
    from mcp_touchstone.attack.siege import Siege
    from mcp_touchstone.conversation import Conversation


class Share(StrEnum):
    """Which live process of a revision a scenario takes part in."""

    ORDINARY = "shared"
    WILLING = "willing"
    DRAWN = "drawn"
    LASTING = "lasting"


Body = Callable[["Conversation"], None]
Assault = Callable[["Siege"], None]
Watch = Callable[["Record"], Iterator["Seen"]]


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing an ambient rule looked at.

    Attributes:
        clause: the clause it belongs to.
        held: whether the clause held there.
        n: number of the line.
        expected: what the clause asks for.
        actual: what stood there.
        mild: a breach that counts as this at most, whatever the clause's own weight.
    """

    clause: str
    held: bool
    n: int | None = None
    expected: str = ""
    actual: str = ""
    mild: Breach | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What scenarios and ambient rules have in common.

    Attributes:
        id: ``conformance/basic/ping.py::answers_a_ping``; from path and name, never typed.
        clauses: what it judges.
        title: first line of the docstring.
        why: the rest of the docstring.
        path: file, below the checkout or the package.
        line: first line of the function.
    """

    id: str
    clauses: tuple[Clause, ...]
    title: str
    why: str
    path: str
    line: int
    order: int

    @property
    def revisions(self) -> tuple[str, ...]:
        """Revisions in which at least one of its clauses holds."""
        held = {revision for clause in self.clauses for revision in clause.revisions}
        return tuple(revision for revision in rev.ALL if revision in held)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.id.rpartition("::")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(Case):
    """One conversation.

    Attributes:
        body: what is said and judged.
        fresh: needs a process nobody has spoken to; nothing has been sent on it.
        apart: fresh, and in a world of its own, which it may change.
        hurts: may leave the server worse than it found it; runs last on a shared process.
        once: what it finds holds for every legacy revision, since it happens before one is agreed.
        legacy: speaks the handshake although the clause belongs to a stateless revision.
        willing: talks as a client that declares everything and can answer everything.
        fixtures: trees an attack needs around the root; empty for what is no attack.
        drawn: a property: says what is drawn for it, on processes where nothing else is said.
        lasts: listens for seconds, mostly; is begun before others, and apart from the process they
            share.
        restarts: goes on with further processes, beside the one it shares.
        everywhere: looks at what the server answered to each revision; all are asked for, however
            few are judged.
    """

    body: Body | Assault
    fresh: bool = False
    apart: bool = False
    hurts: bool = False
    once: bool = False
    legacy: bool = False
    willing: bool = False
    fixtures: tuple[str, ...] = ()
    drawn: bool = False
    lasts: bool = False
    restarts: bool = False
    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambient(Case):
    """One rule about all traffic."""

    watch: Watch


@dataclass(slots=True)
class Registry:
    """What the suite files of one run declared."""

    catalogue: Catalogue
    scenarios: list[Scenario] = field(default_factory=list)
    ambients: list[Ambient] = field(default_factory=list)
    place: str = ""

    def cases(self) -> list[Case]:
        """Give everything that judges, in the order of the files."""
        return sorted([*self.scenarios, *self.ambients], key=lambda case: case.order)

    def add(self, function: Callable[..., Any], clauses: Sequence[str], **kind: Any) -> None:
        """Take one declaration; an unknown clause or a second use of a name is refused."""
        case_id = f"{self.place}::{function.__name__}"
        if any(case.id == case_id for case in [*self.scenarios, *self.ambients]):
            raise CatalogueError(f"{case_id} stands twice")
        if not clauses:
            raise CatalogueError(f"{case_id} judges no clause")
        doc = inspect.getdoc(function) or ""
        title, _, why = doc.partition("\n")
        if not title:
            raise CatalogueError(f"{case_id} has no docstring; it is the published description")
        rows = []
        for clause_id in clauses:
            try:
                clause = self.catalogue[clause_id]
            except CatalogueError as error:
                raise CatalogueError(f"{case_id}: {error}") from None
            if not clause.judged:
                raise CatalogueError(f"{case_id} judges {clause_id}, which the catalogue excludes")
            if clause in rows:
                raise CatalogueError(f"{case_id} judges {clause_id} twice")
            rows.append(clause)
        common: dict[str, Any] = {
            "id": case_id,
            "clauses": tuple(rows),
            "title": title,
            "why": " ".join(why.split()),
            "path": function.__code__.co_filename,
            "line": function.__code__.co_firstlineno,
            "order": len(self.scenarios) + len(self.ambients),
        }
        if "watch" in kind:
            self.ambients.append(Ambient(**common, **kind))
        else:
            self.scenarios.append(Scenario(**common, **kind))


_active: Final[list[Registry]] = []


def collecting(registry: Registry | None) -> None:
    """Direct the declarations of the files imported next; None ends it."""
    _active[:] = [] if registry is None else [registry]


def catalogue() -> Catalogue:
    """Give the catalogue a suite file is held against while it is imported; none by hand."""
    return _active[0].catalogue if _active else Catalogue(())


def scenario(
    *clauses: str,
    fresh: bool = False,
    apart: bool = False,
    hurts: bool = False,
    once: bool = False,
    legacy: bool = False,
    willing: bool = False,
    drawn: bool = False,
    lasts: bool = False,
    restarts: bool = False,
    everywhere: bool = False,
) -> Callable[[Body], Body]:
    """Declare a scenario that judges ``clauses``; ``Scenario`` says what the marks mean.

    Raises:
        CatalogueError: no such clause, or the catalogue says it is not judged.
    """

    def declare(body: Body) -> Body:
        for registry in _active:
            registry.add(
                body,
                clauses,
                body=body,
                fresh=fresh or apart,
                apart=apart,
                hurts=hurts,
                once=once,
                legacy=legacy,
                willing=willing,
                drawn=drawn,
                lasts=lasts,
                restarts=restarts,
                everywhere=everywhere,
            )
        return body

    return declare


def attack(
    *threats: str, fixtures: tuple[str, ...], lasts: bool = False
) -> Callable[[Assault], Assault]:
    """Declare an attack: a scenario with a process and a field of its own.

    Args:
        threats: what it judges.
        fixtures: ids of the trees to build around the root, as in ``fixtures.toml``.
        lasts: it takes longer than most, and is begun before others.
    """

    def declare(body: Assault) -> Assault:
        for registry in _active:
            registry.add(
                body, threats, body=body, fresh=True, apart=True, fixtures=fixtures, lasts=lasts
            )
        return body

    return declare


def ambient(*clauses: str) -> Callable[[Watch], Watch]:
    """Declare a rule that watches every transcript and judges ``clauses``."""

    def declare(watch: Watch) -> Watch:
        for registry in _active:
            registry.add(watch, clauses, watch=watch)
        return watch

    return declare
