"""The part of the suite that a user chose to run. Runs nothing."""

import fnmatch
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any, Final

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import Tier
from mcp_touchstone.catalog.attack_level import tiers as _tiers
from mcp_touchstone.catalog.clause import Clause, Level, Transport, nearest
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.scenario import DISCOVERY, Case, Place, Registry, Scenario
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.results.threshold import DEFAULT, Floor

EXAMPLES: Final = 10
"""Default number of examples of a property."""
REPEATS: Final = 5
"""Default number of repetitions of a scenario with a finding."""
AT_ONCE: Final = frozenset({needs.Probe.READS, needs.Probe.PROMPTS, needs.Probe.LISTEN})
"""Probes that run even in a quick run, since they take no time."""

ANNOTATED: Final = "2025-03-26"
"""The first revision in which a tool may be annotated as read-only."""

_WILD: Final = re.compile(r"[*?\[]")


class UsageError(UserError):
    """A request of the user is invalid; the message names the fault and the remedy."""


class Traffic(Enum):
    """The scenarios that run to make traffic for the rules on all traffic."""

    SELECTED = auto()
    """Selected scenarios only."""
    DISCOVERED = auto()
    """Also all of discovery, which uses all features of the server."""
    WHOLE = auto()
    """Also every scenario."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The part of the suite to run.

    Attributes:
        select: clause ids, chapters, groups, sections of the specification (``page#anchor``),
            scenario ids or names; globs allowed; empty means all.
        revisions: revisions to judge; empty means all that the server speaks.
        levels: requirement levels to judge; empty means all.
        cases: exact case ids (used by the pytest plugin); None means all.
        strict: whether a broken SHOULD counts as a failure.
        jobs: number of simultaneous conversations; 0 leaves it to the engine.
        examples: number of examples for each property in each revision; 0 skips properties.
        seed: seed of the generated examples; the same seed gives the same examples.
        quick: whether to judge the newest revision only, in one shared conversation, without trial
            calls of tools, without properties, and without listening for seconds.
        calls: whether the user named tools, which are called in a quick run too.
        floor: the least severity of a finding that fails the gate.
        tiers: levels of attacks to run.
        accept_unbound: whether a security run without any tool that handles files counts as judged.
        rules_fed: whether unselected scenarios may run to make traffic for the rules on it.
        repeats: greatest number of repetitions of a scenario with a finding; 0 repeats nothing.
        deadline: seconds after which the run ends with its results so far; 0 sets no limit.
        clients: profiles of clients and directories to apply.
        record: the record of the server in a registry; None if none was named.
        separate: whether each scenario has a process and a world of its own, so that its messages
            do not depend on the scenarios before it.
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
    calls: bool = False
    floor: Floor = DEFAULT
    tiers: frozenset[Tier] = _tiers()
    accept_unbound: bool = False
    rules_fed: bool = True
    repeats: int = REPEATS
    deadline: float = 0.0
    separate: bool = False
    clients: tuple[str, ...] = ()
    record: Mapping[str, Any] | None = None

    def takes(self, case: Case, clause: Clause) -> bool:
        """Return whether a clause judged by a case is chosen, in any revision."""
        if self.levels and clause.level not in self.levels:
            return False
        if not self.select:
            return not clause.draft
        plain, patterns = self._words
        if not (plain.isdisjoint(clause.names) and plain.isdisjoint(case.names)):
            return True
        return bool(patterns) and _matches(patterns, case.names | clause.names)

    @cached_property
    def _words(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """The words of ``select`` that are names, and those that are patterns."""
        patterns = tuple(word for word in self.select if _WILD.search(word))
        return frozenset(self.select) - {*patterns}, patterns

    def draws(self, case: Case) -> bool:
        """Return whether a case can run with the number of examples and in a quick run."""
        if not isinstance(case, Scenario):
            return True
        slow = case.lasts or case.willing or case.hurts or case.place is not Place.SHARED
        if self.quick and slow:
            return False
        return not case.drawn or (self.examples > 0 and not self.quick)

    def hurries_past(self, clause: Clause) -> bool:
        """Return whether ``quick`` skips a clause because it would need probes."""
        if not self.quick:
            return False
        quick = AT_ONCE | ({needs.Probe.CALLS} if self.calls else frozenset())
        return any(needs.probes(clause.words, one) - quick for one in clause.revisions)

    def fires(self, clause: Clause) -> bool:
        """Return whether the levels of attacks include a threat; true for any other clause."""
        return not isinstance(clause, Threat) or clause.tier in self.tiers

    def selects(self, case: Case) -> bool:
        """Return whether any clause of a case is chosen."""
        if self.cases is not None and case.id not in self.cases:
            return False
        return any(self.takes(case, clause) for clause in case.clauses)

    def traffic(self, registry: Registry) -> "Traffic":
        """Return the further scenarios that make traffic for the selected rules on all traffic.

        There are none if a scenario or discovery is selected by name, as in the command that
        reproduces a finding. If all scenarios of its file are selected, a rule is tested as a
        chapter, beside discovery. Otherwise all run, since any of them may break the rule. All run
        for a rule of HTTP too: most of its traffic is that of other chapters.
        """
        restricted = bool(self.select or self.levels) or self.cases is not None
        rules = [rule for rule in registry.ambients if self.selects(rule)]
        named = {name for case in registry.scenarios for name in (case.id, case.name)}
        if DISCOVERY in self.select:
            return Traffic.DISCOVERED
        if not restricted or not self.rules_fed or not rules or named & {*self.select}:
            return Traffic.SELECTED
        for rule in rules:
            together = [one for one in registry.scenarios if one.path == rule.path]
            of_http = all(clause.transports == (Transport.HTTP,) for clause in rule.clauses)
            if of_http or not together or not all(map(self.selects, together)):
                return Traffic.WHOLE
        return Traffic.DISCOVERED

    def asked(self, registry: Callable[[], Registry], known: tuple[str, ...]) -> tuple[str, ...]:
        """Return the revisions to request from a server, oldest first.

        The newest of each era is requested beside the chosen ones if a selected clause applies only
        to a server of both eras, or of one, or concerns the newest it has. A quick run skips this.

        Args:
            registry: returns the suite.
            known: the revisions that can be requested.
        """
        newest = (rev.LATEST_LEGACY, rev.LATEST_MODERN)
        if self.quick:
            return self.revisions[-1:] or newest
        if not self.revisions:
            return known
        rows = [
            (case, clause)
            for case in registry().cases()
            if self.cases is None or case.id in self.cases
            for clause in case.clauses
            if {*clause.revisions} & {*self.revisions} and self.takes(case, clause)
        ]
        if any(case.everywhere for case, _ in rows):
            return known
        eras = self.traffic(registry()) is Traffic.WHOLE or any(
            _compares_eras(case, clause, self.revisions[0]) for case, clause in rows
        )
        return tuple(one for one in known if one in {*self.revisions, *(newest if eras else ())})

    def needs_few(self, registry: Registry) -> bool:
        """Return whether a run in one revision needs few processes: one after the other will do."""
        own = [
            case
            for case in registry.scenarios
            if (case.place is not Place.SHARED or case.willing or case.drawn or case.lasts)
            and self.draws(case)
            and self.selects(case)
        ]
        return len(own) <= 1 and self.traffic(registry) is not Traffic.WHOLE

    def supports(self, case: Case) -> bool:
        """Return whether a case may run only for its traffic; one of a draft never does."""
        is_draft = any(clause.draft for clause in case.clauses)
        return isinstance(case, Scenario) and not (case.is_attack or is_draft) and self.draws(case)

    @property
    def looks_up(self) -> bool:
        """Whether it contains names that must be looked up in a suite."""
        return bool(self.select)

    def check(self, registry: Registry) -> None:
        """Reject a word that selects nothing.

        Raises:
            UsageError: a word is rejected; names it and the closest valid word.
        """
        known = {
            name
            for case in registry.cases()
            for clause in case.clauses
            for name in case.names | clause.names
        }
        for word in self.select:
            if word == DISCOVERY or word in known or _matches((word,), known):
                continue
            if word in registry.catalogue:
                clause = registry.catalogue[word]
                why = clause.deferred or clause.unobservable
                raise UsageError(f"clause {word} is not judged: {why}")
            hint = nearest(word, known)
            if any(name.startswith(f"{word}#") for name in known):
                hint = f"; '{word}#*' means all sections of that page"
            raise UsageError(
                f"--select {word}: no clause, chapter, section or scenario is called that"
                f"{hint}; `mcp-touchstone list` shows them"
            )


def _compares_eras(case: Case, clause: Clause, oldest: str) -> bool:
    """Return whether a clause is judged by what is known of other revisions, too.

    Which tools may be called in a revision without annotations is known from other revisions.
    """
    if {"modern-only", "dual-era"} & clause.words or case.is_attack:
        return True
    calls = {needs.Probe.CALLS, needs.Probe.QUESTIONS} & needs.probes(clause.words, oldest)
    if calls and oldest < ANNOTATED:
        return True
    return case.eras or case.legacy


def _matches(patterns: Collection[str], names: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)
