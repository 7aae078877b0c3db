"""Choose the cases to judge and plan them before they run. Runs nothing."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import option
from mcp_touchstone.catalog.clause import Clause, Transport
from mcp_touchstone.catalog.scenario import (
    Ambient,
    Case,
    Registry,
    Scenario,
    Share,
    Unopened,
)
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.engine.choice import Choice, Traffic
from mcp_touchstone.results.run import Absent, CaseResult, PlannedCase, unasked

if TYPE_CHECKING:
    from mcp_touchstone.connection.server_profile import ServerProfile
    from mcp_touchstone.target.target import Target


def wanted(profile: "ServerProfile", registry: Registry, choice: Choice) -> dict[str, set[str]]:
    """Return, for each revision to judge, the words that discovery must decide."""
    words: dict[str, set[str]] = {}
    traffic = choice.traffic(registry)
    for case in registry.cases():
        feeds = traffic is not Traffic.SELECTED and choice.supports(case)
        if not choice.draws(case) or not (feeds or choice.selects(case)):
            continue
        for clause in case.clauses:
            if not clause.needs or choice.hurries_past(clause):
                continue
            if feeds or choice.takes(case, clause):
                for revision in judged(profile, choice):
                    if revision in clause.revisions:
                        words.setdefault(revision, set()).update(clause.words)
    return words


def besieged(profile: "ServerProfile", registry: Registry, choice: Choice) -> str:
    """Return the revision in which attacks run; empty if no attack is chosen."""
    chosen = any(
        case.is_attack
        and (choice.cases is None or case.id in choice.cases)
        and any(choice.takes(case, clause) and choice.fires(clause) for clause in case.clauses)
        for case in registry.cases()
    )
    return "".join(front(judged(profile, choice))) if chosen else ""


def front(revisions: Sequence[str]) -> Sequence[str]:
    """Return the revision for attacks: the newest legacy one, else the newest of all."""
    return [r for r in revisions if not rev.is_modern(r)][-1:] or revisions[-1:]


def judged(profile: "ServerProfile", choice: Choice) -> tuple[str, ...]:
    """Return the revisions to judge, oldest first."""
    chosen = choice.revisions or rev.ALL
    spoken = tuple(r for r in rev.ALL if r in profile.spoken and r in chosen)
    return spoken[-1:] if choice.quick else spoken


@dataclass(frozen=True, slots=True)
class _Entry:
    """A case in the revisions that are planned together, and its needs.

    Attributes:
        words: revision and word of each need.
        bound: whether it depends on the effects of tools on files.
    """

    case: Case
    revisions: tuple[str, ...]
    words: frozenset[tuple[str, str]]
    bound: bool


class Plan:
    """The plan of a run: each case is planned once, as soon as its needs are decided.

    Attributes:
        trouble: the reason nothing can be judged; empty if something can.
        unbound: the reason no tool that handles files is attacked; empty if one is.
        settled: the results of cases that a fault of ours in discovery leaves undecided.
    """

    def __init__(
        self, target: "Target", profile: "ServerProfile", registry: Registry, choice: Choice
    ) -> None:
        self._target = target
        self.profile = profile
        self._choice = choice
        self._whole = choice.traffic(registry) is Traffic.WHOLE
        self._revisions = judged(profile, choice)
        self._entries: tuple[_Entry, ...] = ()
        self._waiting: dict[int, _Entry] = {}
        self._undecided: set[tuple[str, str]] = set()
        self._planned: dict[int, list[PlannedCase]] = {}
        self._absent: dict[int, list[Absent]] = {}
        self.trouble = ""
        self.unbound = ""
        self.settled: list[CaseResult] = []
        if any(r in profile.spoken for r in rev.ALL):
            self._entries = tuple(filter(self._runs, self._possible(registry.cases())))
            self._waiting = dict(enumerate(self._entries))
            self._undecided = {word for entry in self._waiting.values() for word in entry.words}
            self._absent[-1] = list(self._left_out(registry.cases()))
        else:
            self.trouble = profile.trouble or "the server speaks no revision we know"
            if not profile.is_excused:
                self._planned[0] = list(_mute(target, profile, registry, choice))

    @property
    def cases(self) -> list[PlannedCase]:
        """The cases planned so far to be judged, in the order of the suite."""
        return [case for case in self.all_cases if not case.support]

    @property
    def all_cases(self) -> list[PlannedCase]:
        """All cases planned so far: those to judge, and those that only make traffic."""
        return [case for index in sorted(self._planned) for case in self._planned[index]]

    @property
    def absent(self) -> list[Absent]:
        """The clauses found so far not to apply, in the order of the suite."""
        return [absent for index in sorted(self._absent) for absent in self._absent[index]]

    @property
    def owed(self) -> list[PlannedCase]:
        """Each chosen case in each revision that was met, with the clauses not left out there."""
        left_out = {(absent.clause, absent.revision) for absent in self.absent}
        return [
            PlannedCase(entry.case, revision, clauses)
            for entry in self._entries
            for revision in entry.revisions
            if (
                clauses := tuple(
                    clause
                    for clause in self._chosen(entry.case, revision)
                    if (clause.id, revision) not in left_out
                )
            )
        ]

    @property
    def judges_traffic(self) -> bool:
        """Whether a rule on all traffic is planned, or may still be."""
        waiting = [
            (entry.case, revision)
            for entry in self._waiting.values()
            for revision in entry.revisions
        ]
        return any(
            isinstance(case, Ambient) and any(self._chosen(case, revision))
            for case, revision in [*waiting, *((one.case, one.revision) for one in self.cases)]
        )

    def rules(self, revision: str) -> list[tuple[Ambient, tuple[Clause, ...]]]:
        """Return the rules on all traffic planned in a revision, each with its clauses."""
        return [
            (planned.case, planned.clauses)
            for planned in self.cases
            if isinstance(planned.case, Ambient) and planned.revision == revision
        ]

    def ready(
        self, decided: Callable[[str, str], bool], free: Callable[[str, Share], bool]
    ) -> list[PlannedCase]:
        """Plan the cases whose needs have become decided.

        A property is planned after the rules on all traffic of its revision: they judge its
        examples.

        Args:
            decided: (revision, word) -> whether discovery has decided the word there.
            free: (revision, share) -> whether discovery has finished with that process.
        """
        before = set(self._planned)
        self._undecided -= {word for word in self._undecided if decided(*word)}
        met = [one for one in self._waiting.items() if one[1].words.isdisjoint(self._undecided)]
        for index, entry in sorted(met, key=lambda one: one[1].case.drawn):
            if self._is_ready(entry, free):
                self._take(index)
        return self._since(before)

    def rest(self) -> list[PlannedCase]:
        """Plan all remaining cases: discovery has ended."""
        before = set(self._planned)
        for index in list(self._waiting):
            self._take(index)
        return self._since(before)

    def _since(self, before: Collection[int]) -> list[PlannedCase]:
        settled = {one.planned for one in self.settled}
        return [
            case
            for index in sorted(self._planned)
            if index not in before
            for case in self._planned[index]
            if case not in settled
        ]

    def _is_ready(self, entry: _Entry, free: Callable[[str, Share], bool]) -> bool:
        case = entry.case
        if entry.bound and self.profile.bindings is None:
            return False
        if not isinstance(case, Scenario):
            return True
        if case.drawn and any(
            isinstance(other.case, Ambient) and {*other.revisions} & {*entry.revisions}
            for other in self._waiting.values()
        ):
            return False
        return case.place.is_unused or all(
            free(revision, case.share_in(revision)) for revision in entry.revisions
        )

    def _take(self, index: int) -> None:
        entry = self._waiting.pop(index)
        case = entry.case
        absent = self._absent.setdefault(index, [])
        found: dict[str, tuple[Clause, ...]] = {}
        faulty: list[CaseResult] = []
        for revision in entry.revisions:
            clauses = []
            for clause in self._chosen(case, revision):
                fault = self.profile.fault(clause.needs, revision)
                why = self._absence(clause, revision)
                if fault and why is not None and not why.by_choice:
                    faulty.append(_judged_broken(case, revision, clause, fault))
                elif why is not None:
                    absent.append(why)
                else:
                    clauses.append(clause)
            if clauses:
                found[revision] = tuple(clauses)
        self.settled += faulty
        own = _together(case, found, support=False)
        self._planned[index] = [*own, *(one.planned for one in faulty)]
        if not found and self._whole and self._choice.supports(case):
            met = {
                revision: some
                for revision in entry.revisions
                if (some := tuple(self._supporting(case, revision)))
            }
            self._planned[index] += _together(case, met, support=True)

    def _supporting(self, case: Case, revision: str) -> Iterator[Clause]:
        """Yield the clauses of an unselected case whose needs the server meets."""
        for clause in case.clauses:
            if revision in clause.revisions and self._absence(clause, revision) is None:
                yield clause

    def _runs(self, entry: _Entry) -> bool:
        """Return whether a clause of a case is chosen, or the case may run for its traffic."""
        if self._whole and self._choice.supports(entry.case):
            return True
        return any(clause for one in entry.revisions for clause in self._chosen(entry.case, one))

    def _possible(self, cases: Iterable[Case]) -> Iterator[_Entry]:
        for case in cases:
            if not self._choice.draws(case) or self._spared(case):
                continue
            revisions: Sequence[str] = self._revisions
            if case.is_attack:
                revisions = front(revisions)
            for where in [tuple(revisions)] if case.once else [(one,) for one in revisions]:
                yield _Entry(case, where, _words(case, where), _rests_on_bindings(case))

    def _left_out(self, cases: Sequence[Case]) -> Iterator[Absent]:
        """Yield the clauses that no case judges without properties, or in a quick run."""
        choice = self._choice
        runs = {case.id for case in cases if choice.draws(case) and not self._spared(case)}
        elsewhere = {clause.id for case in cases if case.id in runs for clause in case.clauses}
        for case in cases:
            why = "left out: --quick" if choice.quick else "nothing is drawn: --examples 0"
            why = self._spared(case) or why
            for clause in case.clauses if case.id not in runs else ():
                if clause.id not in elsewhere and choice.takes(case, clause):
                    for revision in self._revisions:
                        if revision in clause.revisions:
                            yield Absent(clause.id, revision, why, by_choice=True)

    def _spared(self, case: Case) -> str:
        """Return why a case is not run on a server that we did not start; empty if it is."""
        if self._target.started or self._target.bundled:
            return ""
        if case.is_attack:
            alone = all(clause.transports == (Transport.HTTP,) for clause in case.clauses)
            return "" if alone else "it needs a server that we start: --http URL -- COMMAND"
        if case.place.has_folder:
            return "it needs a server that we start: --http URL -- COMMAND"
        harsh = case.hurts or case.drawn or case.fixtures
        if harsh and self._target.gentle:
            return "malformed or heavy traffic to a server of somebody: --intrusive"
        return ""

    def _chosen(self, case: Case, revision: str) -> Iterator[Clause]:
        if self._choice.cases is not None and case.id not in self._choice.cases:
            return
        for clause in case.clauses:
            if revision in clause.revisions and self._choice.takes(case, clause):
                yield clause

    def _absence(self, clause: Clause, revision: str) -> Absent | None:
        """Return the reason a chosen clause is not judged in a revision; None if it is."""
        if self._target.transport not in clause.transports:
            why = f"other transport: a rule of {clause.transports[0]} only"
            return Absent(clause.id, revision, why)
        if self._choice.hurries_past(clause):
            return Absent(clause.id, revision, "left out: --quick", by_choice=True)
        if isinstance(clause, Threat) and not self._choice.fires(clause):
            why = f"an attack of level {clause.tier}: {option(clause.tier)}"
            return Absent(clause.id, revision, why, by_choice=True)
        if isinstance(clause, Threat) and not clause.applies_to(frozenset(self._target.promise)):
            why = f"the server promises no {clause.promise}: --promise {clause.promise}"
            return Absent(clause.id, revision, why)
        lacking = self.profile.lacks(clause.needs, revision)
        if lacking:
            why = f"the server offers {self.profile.why(lacking, revision)}"
            self.unbound = self.unbound or _unbound(self.profile, clause, revision)
            return Absent(clause.id, revision, why)
        return None


def _together(
    case: Case, clauses: Mapping[str, tuple[Clause, ...]], *, support: bool
) -> list[PlannedCase]:
    """Plan a case in each revision, or once for all of them."""
    if clauses and case.once:
        *others, newest = clauses
        return [PlannedCase(case, newest, clauses[newest], also=tuple(others), support=support)]
    return [
        PlannedCase(case, revision, some, support=support) for revision, some in clauses.items()
    ]


def _judged_broken(case: Case, revision: str, clause: Clause, why: str) -> CaseResult:
    """Return the result of a clause whose needs are unknown because of a fault of ours."""
    planned = PlannedCase(case, revision, (clause,))
    return CaseResult(planned, (unasked(planned, clause, why),))


def _words(case: Case, revisions: Iterable[str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (revision, word)
        for clause in case.clauses
        for revision in revisions
        if revision in clause.revisions
        for word in clause.words
    )


def _rests_on_bindings(case: Case) -> bool:
    return case.is_attack or any(c.words & needs.OPERATIONS.keys() for c in case.clauses)


def _mute(
    target: "Target", profile: "ServerProfile", registry: Registry, choice: Choice
) -> Iterator[PlannedCase]:
    """Plan the cases for a server that never answered: rules about its output."""
    tried = [r for r in profile.refused if not rev.is_modern(r)] or list(profile.refused)
    if not tried:
        tried = [rev.LATEST_LEGACY]
    newest = profile.diagnosis.revision if profile.diagnosis else tried[-1]
    reply = profile.refused.get(newest)
    marks = {Unopened.ALWAYS}
    if reply is not None and reply.result is not None:
        marks.add(Unopened.AFTER_RESULT)
    if reply is not None and reply.answered and "protocolVersion" not in (reply.result or {}):
        marks |= {Unopened.AFTER_OTHER_ANSWER, Unopened.AFTER_NOT_ACCEPTABLE}
    explained = profile.diagnosis.clause if profile.diagnosis else ""
    for case in registry.cases():
        if choice.cases is not None and case.id not in choice.cases:
            continue
        clauses = tuple(
            c
            for c in case.clauses
            if newest in c.revisions
            and target.transport in c.transports
            and choice.takes(case, c)
            and (case.unopened in marks or c.id == explained)
        )
        if clauses:
            yield PlannedCase(case, newest, clauses)


def nothing(plan: Plan, choice: Choice) -> str:
    """Return the reason a choice leaves nothing to judge."""
    known = plan.profile.spoken
    spoken = ", ".join(known) or "none"
    asked = ", ".join(choice.revisions)
    if choice.revisions and not set(choice.revisions) & set(known):
        return f"--revision {asked}: the server speaks {spoken}"
    reasons = sorted({absent.why for absent in plan.absent})
    newest = max(known, default="")
    where = f" in {newest}, the only revision that --quick judges" if choice.quick else ""
    return f"nothing selected applies to this server{where}" + (
        f": {reasons[0]}" if reasons else ""
    )


def _unbound(profile: "ServerProfile", clause: Clause, revision: str) -> str:
    """Return the reason no tool that handles files is attacked; empty if none applies."""
    bindings, spoken = profile.bindings, profile.spoken[revision]
    if not isinstance(clause, Threat) or bindings is None or bindings.found:
        return ""
    return bindings.why if spoken.named("tools") or spoken.named("templates", "uriTemplate") else ""
