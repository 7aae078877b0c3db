"""Register the scenarios and ambient rules that a suite file declares. Runs nothing.

A scenario is one conversation that judges at least one clause; its name is a present-tense
sentence about the server, its docstring is the published description. An ambient rule checks
every transcript of a run.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypedDict, Unpack

from mcp_touchstone.catalog.clause import Breach, Catalogue, CatalogueError, Clause
from mcp_touchstone.catalog.revision import is_modern


class Share(StrEnum):
    """The live process of a revision that a scenario uses."""

    ORDINARY = "shared"
    WILLING = "willing"
    DRAWN = "drawn"
    LASTING = "lasting"


class Place(StrEnum):
    """The process of the server that a scenario gets. Nothing was sent to an unused one."""

    SHARED = "shared process"
    """That of its share, which others use before and after it."""
    SEVERAL = "shared process, then others"
    LAST = "shared process, last"
    """It ends the process; a finding on a used one counts only if an unused one has it too."""
    FIRST = "unused process, first"
    """It opens the process and leaves it to the other scenarios of its share."""
    OWN_SESSION = "unused session or process"
    OWN_PROCESS = "unused process"
    """It may block the server for seconds, so no session may replace its process."""
    OWN_FOLDER = "unused process in its own folder"
    """It may change the folder."""
    REUSED = "unused process in its own folder, or a clean one"
    """That which an attack without a finding left as it was; a finding there does not count."""

    @property
    def is_unused(self) -> bool:
        """Whether it is no process of a share, but for one that the scenario opens."""
        return self not in (Place.SHARED, Place.SEVERAL, Place.LAST)

    @property
    def has_folder(self) -> bool:
        """Whether its folder is used by nothing else at the time."""
        return self in {Place.OWN_FOLDER, Place.REUSED}


class Unopened(StrEnum):
    """When a case is judged although no process of the server could be opened."""

    ALWAYS = "always"
    AFTER_RESULT = "after a result of the opening request"
    AFTER_OTHER_ANSWER = "after an answer to initialize without a protocolVersion"
    AFTER_NOT_ACCEPTABLE = "after such an answer with HTTP 406"


DISCOVERY: Final = "discovery"
"""Name used for discovery in place of a scenario; it can also be selected."""

# The layer above defines the argument of a body: a Conversation, an AttackSession, a Record.
Body = Callable[[Any], None]
Watch = Callable[[Any], Iterator["Seen"]]


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen, it is made five times as slowly
class Seen:
    """One observation of an ambient rule.

    Attributes:
        passed: whether the line kept the clause.
        n: number of the line.
        expected: the requirement of the clause.
        mild: the most severe way a breach may count here, whatever the weight of the clause.
        silent: whether the breach is a silence, so that it must come again to be a failure.
        regardless: whether a server must keep the clause even in its answer to an invalid value.
        beside: further lines that prove it: the name of a transcript of the record, empty for that
            of ``n``, and the number of the line.
    """

    clause: str
    passed: bool
    n: int | None = None
    expected: str = ""
    actual: str = ""
    mild: Breach | None = None
    silent: bool = False
    regardless: bool = False
    beside: tuple[tuple[str, int], ...] = ()

    def of(self, clause: str) -> "Seen":
        """Return it as an observation of another clause: ``replace``, and four times as fast."""
        own = (self.n, self.expected, self.actual, self.mild)
        return Seen(clause, self.passed, *own, self.silent, self.regardless, self.beside)


@dataclass(frozen=True, kw_only=True)
class Case:
    """The common part of scenarios and ambient rules; a rule has no marks from ``place`` on.

    Attributes:
        id: ``conformance/basic/ping.py::answers_a_ping``; from path and name, never typed.
        title: first line of the docstring.
        why: the rest of the docstring.
        path: its file, relative to the checkout or the package.
        line: first line of the function.
        unopened: when it is judged although no process could be opened; None for never.
        place: the process that it gets.
        share: the users of its shared process; None if its other marks say so.
        hurts: whether it may harm the server; it then runs last on a shared process.
        once: whether its results apply to every revision, as they do not depend on the one agreed.
        legacy: whether it makes the handshake although its clause belongs to a modern revision.
        willing: whether its client declares every capability and answers every request.
        fixtures: trees an attack needs around the root; empty if it is no attack.
        drawn: whether it is a property: it sends generated messages, on processes of its own.
        lasts: whether it mostly listens, for seconds; it then starts before others, and not on
            their shared process.
        everywhere: whether it compares the answers in all revisions; each is then opened, even
            if few are judged.
        eras: whether it uses what is known of other revisions; the newest of each era is then
            opened, even if few are judged.
        unwatched: whether rules on all traffic do not read its processes, since it provokes there
            what they forbid.
        races: whether its result depends on the order in which the server does two things; its
            findings then count as found by chance, however often they appear.
    """

    id: str
    clauses: tuple[Clause, ...]
    title: str
    why: str
    path: str
    line: int
    order: int
    unopened: Unopened | None = None
    place: Place = Place.SHARED
    share: Share | None = None
    hurts: bool = False
    once: bool = False
    legacy: bool = False
    willing: bool = False
    fixtures: tuple[str, ...] = ()
    drawn: bool = False
    lasts: bool = False
    everywhere: bool = False
    eras: bool = False
    races: bool = False
    unwatched: bool = False

    def share_in(self, revision: str) -> Share:
        """Return the users of its shared process in a revision.

        A legacy revision has one process for ordinary clients and one for willing ones. Modern
        requests declare their own capabilities, so both share one there. Properties have a process
        of their own, and so have lasting cases, since later cases would have to wait for them. A
        case that opens a process, or ends it, may name another share.
        """
        if self.drawn:
            return Share.DRAWN
        if self.share is not None:
            return self.share
        if self.willing and not is_modern(revision):
            return Share.WILLING
        return Share.LASTING if self.lasts else Share.ORDINARY

    @property
    def is_attack(self) -> bool:
        """Whether it is an attack; its findings are the same in every revision."""
        return bool(self.fixtures)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names by which it can be selected: its id, its file and its own."""
        return frozenset((self.id, self.id.partition("::")[0], self.name))

    @property
    def name(self) -> str:
        """The function's name."""
        return self.id.rpartition("::")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(Case):
    """One conversation.

    Attributes:
        body: the function that sends messages and judges the answers.
    """

    body: Body

    @property
    def uses_sessions(self) -> bool:
        """Whether an unused session may replace an unused process."""
        is_possible = self.place is not Place.OWN_PROCESS and not self.place.has_folder
        return is_possible and not (self.hurts or self.drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambient(Case):
    """One rule about all traffic.

    Attributes:
        of: the only exchange whose traffic it reads; empty for all traffic.
    """

    watch: Watch
    of: str = ""


@dataclass(slots=True)
class Registry:
    """The declarations of the suite files of one run.

    Attributes:
        parts: name of a scenario for clients -> the ``Part`` of our server.
    """

    catalogue: Catalogue
    scenarios: list[Scenario] = field(default_factory=list)
    ambients: list[Ambient] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)
    file: str = ""

    def cases(self) -> list[Case]:
        """Return all scenarios and ambient rules, in the order of the files."""
        return sorted([*self.scenarios, *self.ambients], key=lambda case: case.order)

    def add(self, function: Callable[..., Any], clauses: Sequence[str], **kind: Any) -> None:
        """Add one declaration; reject an unknown clause and a second use of a name."""
        case_id = f"{self.file}::{function.__name__}"
        if any(case.id == case_id for case in [*self.scenarios, *self.ambients]):
            raise CatalogueError(f"{case_id} is declared twice")
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

    def share(self, rule: Ambient, own: Mapping[str, Clause]) -> None:
        """Add a rule of another suite.

        Args:
            own: id of a clause of that suite -> the clause that it judges here.
        """

        def watch(record: Any) -> Iterator[Seen]:
            for seen in record.lent(rule):
                if seen.clause in own:
                    yield seen.of(own[seen.clause].id)

        order = len(self.scenarios) + len(self.ambients)
        self.ambients.append(replace(rule, clauses=tuple(own.values()), watch=watch, order=order))


_active: Final[list[Registry]] = []


def collecting(registry: Registry | None) -> None:
    """Set the registry for the declarations of the files imported next; None ends it."""
    _active[:] = [] if registry is None else [registry]


def declare_part(name: str, part: Any) -> None:
    """Add the part that our server plays in a scenario for clients under test.

    Raises:
        CatalogueError: there is such a scenario.
    """
    for registry in _active:
        if name in registry.parts:
            raise CatalogueError(f"{registry.file}: the scenario {name} is declared twice")
        registry.parts[name] = part


def catalogue() -> Catalogue:
    """Return the catalogue of the suite file being imported; none if a person imports it."""
    return _active[0].catalogue if _active else Catalogue(())


class Marks(TypedDict, total=False):
    """The marks of a scenario, as ``Scenario`` describes them."""

    place: Place
    share: Share
    hurts: bool
    once: bool
    legacy: bool
    willing: bool
    drawn: bool
    lasts: bool
    everywhere: bool
    eras: bool
    races: bool
    unwatched: bool
    unopened: Unopened | None


def scenario(*clauses: str, **marks: Unpack[Marks]) -> Callable[[Body], Body]:
    """Declare a scenario that judges ``clauses``; ``Scenario`` describes the marks.

    Raises:
        CatalogueError: there is no such clause, or the catalogue marks it as not judged.
    """
    return _declaring(clauses, "body", **marks)


def attack(
    *threats: str,
    fixtures: tuple[str, ...],
    place: Place = Place.OWN_FOLDER,
    lasts: bool = False,
    unwatched: bool = False,
) -> Callable[[Body], Body]:
    """Declare an attack: a scenario with a process and a folder of its own.

    Args:
        fixtures: ids of the trees to build around the root, as in ``fixtures.toml``.
        place: ``Place.REUSED`` if it may use those that another attack left as they were.
        lasts: whether it takes longer than most, so that it starts before others.
        unwatched: whether rules on all traffic do not read its processes.

    Raises:
        CatalogueError: it names no tree, there is no such threat, or it is marked as not judged.
    """
    if not fixtures:
        raise CatalogueError(f"the attack on {threats[0]} has no fixtures; most have base")
    return _declaring(
        threats, "body", fixtures=fixtures, place=place, lasts=lasts, unwatched=unwatched
    )


def ambient(
    *clauses: str, unopened: Unopened | None = None, of: str = ""
) -> Callable[[Watch], Watch]:
    """Declare a rule that watches every transcript; ``Ambient`` describes the marks."""
    return _declaring(clauses, "watch", unopened=unopened, of=of)


def _declaring(clauses: Sequence[str], role: str, **kind: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds a function to the registry, in a role of its declaration."""

    def declare(function: Any) -> Any:
        for registry in _active:
            registry.add(function, clauses, **{role: function}, **kind)
        return function

    return declare
