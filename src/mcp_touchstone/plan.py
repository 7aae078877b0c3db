"""Choose what to judge and fix it before anything runs. Runs nothing."""

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from mcp_touchstone import needs
from mcp_touchstone import revision as rev
from mcp_touchstone.clause import Clause, Level, nearest
from mcp_touchstone.floor import DEFAULT, Floor
from mcp_touchstone.mistake import Mistake
from mcp_touchstone.results import Absent, Run, Slot
from mcp_touchstone.scenario import Case, Registry, Scenario, Share
from mcp_touchstone.threat import Threat
from mcp_touchstone.tier import Tier
from mcp_touchstone.tier import tiers as _tiers

if TYPE_CHECKING:
    from mcp_touchstone.dossier import Dossier


EXAMPLES: Final = 10
"""Examples of a property, where nobody says how many."""
AT_ONCE: Final = frozenset({needs.Probe.READS, needs.Probe.PROMPTS, needs.Probe.LISTEN})
"""What is tried even in a hurry, since it takes a server no time."""

_WILD: Final = re.compile(r"[*?\[]")


class UsageError(Mistake):
    """What was asked for makes no sense; the message says what and how to mend it."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What part of the suite to run.

    Attributes:
        select: clause ids, chapters, groups, scenario ids or names; globs allowed; empty is all.
        revisions: revisions to judge; empty is all the server speaks.
        levels: requirement levels to judge; empty is all.
        cases: exact case ids (the pytest plugin's way); None is all.
        strict: a broken SHOULD counts as a failure.
        jobs: conversations at once; 0 leaves it to the gate.
        examples: what is drawn for each property in each revision; 0 leaves properties out.
        seed: what the drawing starts from; the same seed draws the same.
        quick: judge the newest revision only, in the one conversation everybody shares; no tool is
            tried out, nothing is drawn, and nobody listens for seconds.
        floor: from which gravity on a finding fails the gate.
        tiers: levels of attacks that are fired.
    """

    select: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    cases: frozenset[str] | None = None
    strict: bool = False
    jobs: int = 0
    examples: int = EXAMPLES
    seed: int = 0
    quick: bool = False
    floor: Floor = DEFAULT
    tiers: frozenset[Tier] = _tiers()

    def takes(self, case: Case, clause: Clause) -> bool:
        """Whether a clause judged by a case is chosen, revisions apart."""
        if self.levels and clause.level not in self.levels:
            return False
        return not self.select or _matches(self.select, _names(case, clause))

    def draws(self, case: Case) -> bool:
        """Whether a case can be run with the examples and in the time there are."""
        if not isinstance(case, Scenario):
            return True
        slow = case.lasts or case.fresh or case.willing or case.hurts or case.restarts
        slow = slow or bool(case.fixtures)
        if self.quick and slow:
            return False
        return not case.drawn or (self.examples > 0 and not self.quick)

    def hurries_past(self, clause: Clause) -> bool:
        """Whether ``quick`` leaves a clause out for what would have to be tried first."""
        words = [word for need in clause.needs for word in needs.choices(need)]
        tried = {probe for r in clause.revisions for probe in needs.probes(words, r)}
        return self.quick and bool(tried - AT_ONCE)

    def fires(self, clause: Clause) -> bool:
        """Whether attacks go as far as a threat; what is no threat is judged anyway."""
        return not isinstance(clause, Threat) or clause.tier in self.tiers

    @property
    def looks_up(self) -> bool:
        """Whether it names something that a suite has to have, or not."""
        return bool(self.select)

    def check(self, registry: Registry) -> None:
        """Refuse a word that selects nothing.

        Raises:
            UsageError: naming the word and the nearest right one.
        """
        known = {
            name
            for case in registry.cases()
            for clause in case.clauses
            for name in _names(case, clause)
        }
        for word in self.select:
            if _matches((word,), known):
                continue
            if word in registry.catalogue:
                clause = registry.catalogue[word]
                why = clause.deferred or clause.unobservable
                raise UsageError(f"clause {word} is not judged: {why}")
            raise UsageError(
                f"--select {word}: no clause, chapter or scenario is called that"
                f"{nearest(word, known)}; `mcp-touchstone list` shows them"
            )


def _names(case: Case, clause: Clause) -> tuple[str, ...]:
    return (
        clause.id,
        clause.chapter,
        f"{clause.group}/{clause.chapter}",
        clause.group,
        case.id,
        case.id.partition("::")[0],
        case.name,
    )


def _matches(words: tuple[str, ...], names: Collection[str]) -> bool:
    plain, patterns = _apart(words)
    return not plain.isdisjoint(names) or any(
        fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names
    )


@lru_cache
def _apart(words: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Give the words that are names, and those that are patterns."""
    patterns = tuple(word for word in words if _WILD.search(word))
    return frozenset(words) - frozenset(patterns), patterns


def wanted(dossier: "Dossier", registry: Registry, choice: Choice) -> dict[str, set[str]]:
    """Give, for each revision to be judged, the words its chosen clauses need to have decided."""
    words: dict[str, set[str]] = {}
    for case in registry.cases():
        if choice.cases is not None and case.id not in choice.cases:
            continue
        for clause in case.clauses:
            if clause.needs and choice.takes(case, clause) and choice.draws(case):
                if choice.hurries_past(clause):
                    continue
                for revision in judged(dossier, choice):
                    if revision in clause.revisions:
                        words.setdefault(revision, set()).update(
                            word for need in clause.needs for word in needs.choices(need)
                        )
    return words


def is_attack(case: Case) -> bool:
    """Whether a case is an attack: what it finds is about files, the same in every revision."""
    return isinstance(case, Scenario) and bool(case.fixtures)


def besieged(dossier: "Dossier", registry: Registry, choice: Choice) -> str:
    """Give the revision in which attacks are run; empty where none is chosen."""
    chosen = any(
        is_attack(case)
        and (choice.cases is None or case.id in choice.cases)
        and any(choice.takes(case, clause) and choice.fires(clause) for clause in case.clauses)
        for case in registry.cases()
    )
    return "".join(front(judged(dossier, choice))) if chosen else ""


def front(revisions: Sequence[str]) -> Sequence[str]:
    """Give the revision attacks are run in: a session where there is one, the newest."""
    return [r for r in revisions if not rev.is_modern(r)][-1:] or revisions[-1:]


def judged(dossier: "Dossier", choice: Choice) -> tuple[str, ...]:
    """Give the revisions to judge, oldest first."""
    chosen = choice.revisions or rev.ALL
    spoken = tuple(r for r in rev.ALL if r in dossier.spoken and r in chosen)
    return spoken[-1:] if choice.quick else spoken


def make(run: Run, registry: Registry, choice: Choice, begun: Iterable[Slot] = ()) -> None:
    """Fix what has to be judged: slots and what does not apply go into the run.

    Args:
        run: takes them.
        registry: what there is.
        choice: what part of it.
        begun: slots that were planned before everything was known, and may be under way.
    """
    known = {(slot.case.id, slot.revision): slot for slot in begun}
    dossier = run.dossier
    spoken = tuple(r for r in rev.ALL if r in dossier.spoken)
    if not spoken:
        run.trouble = dossier.trouble or "the server speaks no revision we know"
        _plan_mute(run, registry, choice)
        return
    revisions = judged(dossier, choice)
    cases = registry.cases()
    elsewhere = {clause.id for case in cases if choice.draws(case) for clause in case.clauses}
    for case in cases:
        if not choice.draws(case):
            _leave_out(run, case, elsewhere, choice)
            continue
        for slot in slots(run, case, revisions, choice):
            run.slots.append(known.get((case.id, slot.revision), slot))


def slots(run: Run, case: Case, revisions: Sequence[str], choice: Choice) -> Iterator[Slot]:
    """Plan one case; what does not apply goes into the run.

    Args:
        run: what is known of the server, and takes what does not apply.
        case: which.
        revisions: where it may be judged; all of those a case needs that is run ``once``.
        choice: what part of it.
    """
    if isinstance(case, Scenario) and case.once:
        by_revision = {
            revision: clauses
            for revision in revisions
            if not rev.is_modern(revision) and (clauses := _applicable(run, case, revision, choice))
        }
        if by_revision:
            *others, newest = by_revision
            yield Slot(case, newest, by_revision[newest], also=tuple(others))
        return
    for revision in front(revisions) if is_attack(case) else revisions:
        clauses = _applicable(run, case, revision, choice)
        if clauses:
            yield Slot(case, revision, clauses)


def _leave_out(run: Run, case: Case, elsewhere: Collection[str], choice: Choice) -> None:
    """Note what nobody judges while nothing is drawn, or in a hurry: not ``elsewhere`` either."""
    why = "left out: --quick" if choice.quick else "nothing is drawn: --examples 0"
    for clause in case.clauses:
        if clause.id not in elsewhere and choice.takes(case, clause):
            for revision in judged(run.dossier, choice):
                if revision in clause.revisions:
                    run.absent.append(Absent(clause.id, revision, why, by_choice=True))


def _plan_mute(run: Run, registry: Registry, choice: Choice) -> None:
    """Nobody answered: only rules about what was written can still be judged."""
    tried = [r for r in run.dossier.refused if not rev.is_modern(r)] or list(run.dossier.refused)
    if not tried:
        tried = [rev.LATEST_LEGACY]
    newest = tried[-1]
    reply = run.dossier.refused.get(newest)
    names = {"writes_one_message_a_line"}
    if reply is not None and reply.result is not None:
        names.add("introduces_itself_in_the_right_types")
    if reply is not None and reply.answered and "protocolVersion" not in (reply.result or {}):
        names.add("answers_initialize")
    for case in registry.cases():
        if case.name in names and (choice.cases is None or case.id in choice.cases):
            clauses = tuple(
                c for c in case.clauses if newest in c.revisions and choice.takes(case, c)
            )
            if clauses:
                run.slots.append(Slot(case, newest, clauses))


def _applicable(run: Run, case: Case, revision: str, choice: Choice) -> tuple[Clause, ...]:
    if choice.cases is not None and case.id not in choice.cases:
        return ()
    found = []
    for clause in case.clauses:
        if revision not in clause.revisions or not choice.takes(case, clause):
            continue
        if choice.hurries_past(clause):
            run.absent.append(Absent(clause.id, revision, "left out: --quick", by_choice=True))
            continue
        if isinstance(clause, Threat) and not choice.fires(clause):
            why = f"an attack of level {clause.tier}: --attacks {clause.tier}"
            run.absent.append(Absent(clause.id, revision, why, by_choice=True))
            continue
        if isinstance(clause, Threat) and not clause.applies_to(run.target.promises):
            why = f"the server promises no {clause.promise}: --promise {clause.promise}"
            run.absent.append(Absent(clause.id, revision, why))
            continue
        lacking = run.dossier.lacks(clause.needs, revision)
        if lacking:
            why = f"the server offers no {run.dossier.why(lacking, revision)}"
            run.absent.append(Absent(clause.id, revision, why))
        else:
            found.append(clause)
    return tuple(found)


def share(slot: Slot) -> Share:
    """Say which live process a slot takes part in.

    A session has one process for ordinary clients and one for willing ones. Stateless requests
    declare for themselves, so both share one there. Properties have one of their own, and so has
    what lasts: who comes behind it would have to wait.
    """
    if not isinstance(slot.case, Scenario):
        return Share.ORDINARY
    if slot.case.drawn:
        return Share.DRAWN
    if slot.case.willing and not rev.is_modern(slot.revision):
        return Share.WILLING
    return Share.LASTING if slot.case.lasts else Share.ORDINARY


def needs_of(case: Case) -> set[str]:
    """Give the words a case rests on, in any revision."""
    return {word for c in case.clauses for need in c.needs for word in needs.choices(need)}


def nothing(run: Run, choice: Choice) -> str:
    """Say why a choice leaves nothing to judge."""
    spoken = ", ".join(run.dossier.spoken) or "none"
    asked = ", ".join(choice.revisions)
    if choice.revisions and not set(choice.revisions) & set(run.dossier.spoken):
        return f"--revision {asked}: the server speaks {spoken}"
    reasons = sorted({absent.why for absent in run.absent})
    return "nothing selected applies to this server" + (f": {reasons[0]}" if reasons else "")
