"""Repeat scenarios with findings, to distinguish stable findings from chance. Prints nothing.

A scenario with a finding is run again on new processes, and so is the scenario whose traffic broke
a rule on all traffic. Scenarios that shared a process share one in their first repetition too. A
finding that appears there is stable. Any other scenario is repeated more often and alone, and its
judgement says how often the finding appeared. A scenario that races messages has no stable
findings: its race may be lost twice and won the next time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Final

from mcp_touchstone.catalog.scenario import Ambient, Scenario
from mcp_touchstone.client.server_profile import Spoken
from mcp_touchstone.discovery.recon import read_lists
from mcp_touchstone.engine.deadline import Deadline
from mcp_touchstone.engine.plan import is_attack, share
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.worker import Work, run_case
from mcp_touchstone.judging import ambient
from mcp_touchstone.results.run import PlannedCase
from mcp_touchstone.results.verdict import Judgement, Outcome
from mcp_touchstone.runtime.timeouts import SLICE
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.reply import Reply

SECONDS: Final = 30.0
"""Seconds in which repetitions may begin; findings not repeated by then are kept."""

AT_ONCE: Final = 4
"""Scenarios repeated at a time: a failure under load must have a chance to appear again."""

_FINDINGS: Final = frozenset({Outcome.FAIL, Outcome.WARN})


def repeat(cases: list[PlannedCase], work: Work, most: int, deadline: Deadline) -> None:
    """Repeat cases with findings; store in the judgements how often each was tried and found.

    Args:
        cases: the judged cases.
        work: the common values of all conversations.
        most: greatest number of repetitions of one scenario; 0 repeats nothing.
        deadline: the time of the run.
    """
    _mark_races(cases, work)
    suspects = _suspects(cases, work) if most and not work.stop.is_set() else []
    if not suspects:
        return
    until = now() + min(SECONDS, deadline.left)
    pools: list[ProcessPool] = []

    def over() -> bool:
        return work.stop.is_set() or now() > until

    width = 1 if work.pool.is_single else AT_ONCE
    with ThreadPoolExecutor(width, thread_name_prefix="repeat") as threads:
        try:
            together = [
                threads.submit(_try, group, work, pools, over) for group in _groups(suspects)
            ]
            _await(together, work)
            alone = [
                threads.submit(suspect.pursue, most, pools, over)
                for suspect in suspects
                if not suspect.is_stable
            ]
            _await(alone, work)
        except BaseException:
            work.stop.set()
            raise
        finally:
            if work.stop.is_set():
                for pool in pools:
                    pool.expire()
    for suspect in suspects:
        suspect.note()


def _await(waiting: Iterable[Future[None]], work: Work) -> None:
    """Wait for repetitions; return early if the run ends."""
    while wait(waiting, SLICE).not_done:
        if work.stop.is_set():
            return
    for one in waiting:
        one.result()


def _mark_races(cases: Iterable[PlannedCase], work: Work) -> None:
    """Mark the findings that come from scenarios which race messages."""
    scenarios = (one.case for one in work.plan.all_cases if isinstance(one.case, Scenario))
    races = {scenario.id for scenario in scenarios if scenario.races}
    for case in cases:
        case.judgements = [
            replace(judgement, raced=_origin(case, judgement) in races)
            if judgement.outcome in _FINDINGS
            else judgement
            for judgement in case.judgements
        ]


def _suspects(cases: Iterable[PlannedCase], work: Work) -> list["_Suspect"]:
    """Return the scenarios with findings in each revision, in the order of the suite.

    Attacks and properties are skipped, since they repeat their findings themselves, and so are
    findings on the opening and on discovery.
    """
    found: dict[tuple[str, str], _Suspect] = {}
    scenarios = {(one.case.id, one.revision): one for one in work.plan.all_cases}
    for case in cases:
        for judgement in _findings(case):
            key = _origin(case, judgement), case.revision
            scenario = scenarios.get(key)
            if scenario is None or not isinstance(scenario.case, Scenario):
                continue
            if not (scenario.case.drawn or is_attack(scenario.case)):
                found.setdefault(key, _Suspect(scenario, work)).add(case, judgement)
    return list(found.values())


def _groups(suspects: Iterable["_Suspect"]) -> list[list["_Suspect"]]:
    """Group the scenarios that are repeated on one process; harmful ones are last in a group."""
    groups: dict[object, list[_Suspect]] = {}
    for suspect in suspects:
        groups.setdefault(suspect.process, []).append(suspect)
    return [sorted(group, key=lambda one: one.hurts) for group in groups.values()]


def _findings(case: PlannedCase) -> Iterator[Judgement]:
    return (j for j in case.judgements if j.outcome in _FINDINGS)


def _origin(case: PlannedCase, judgement: Judgement) -> str:
    return judgement.origin or case.case.id


_Finding = tuple[str, str, str]
"""The scenario that led to a finding, the case that found it, and the clause."""


class _Suspect:
    """A scenario to repeat, the cases with findings that it led to, and its repetitions."""

    def __init__(self, scenario: PlannedCase, work: Work) -> None:
        assert isinstance(scenario.case, Scenario)  # noqa: S101  (only these are repeated)
        self.planned = scenario
        self.scenario = scenario.case
        self.cases: list[PlannedCase] = []
        self._work = work
        self._wanted: set[_Finding] = set()
        self._shown: Counter[_Finding] = Counter()
        self._tried = 0

    @property
    def process(self) -> object:
        """What it has in common with the scenarios that are repeated on the same process."""
        if self.scenario.fresh or self.scenario.lasts:
            return id(self)
        return self.planned.revision, share(self.planned)

    @property
    def hurts(self) -> bool:
        """Whether it may harm the server."""
        return self.scenario.hurts

    @property
    def is_stable(self) -> bool:
        """Whether all findings appeared in the first repetition."""
        return self._tried == 1 and self._wanted <= self._shown.keys()

    def add(self, case: PlannedCase, judgement: Judgement) -> None:
        """Add a finding."""
        if case not in self.cases:
            self.cases.append(case)
        self._wanted.add((self.scenario.id, case.case.id, judgement.clause))

    def count(self, shown: set[_Finding]) -> None:
        """Count one repetition and its findings."""
        self._tried += 1
        self._shown.update(shown & self._wanted)

    def pursue(self, most: int, pools: list[ProcessPool], over: Callable[[], bool]) -> None:
        """Repeat the scenario alone, up to a number of repetitions in all."""
        while self._tried < most and not over():
            _try([self], self._work, pools, over)

    def note(self) -> None:
        """Store in the judgements how often each was tried and found."""
        for case in self.cases if self._tried else ():
            case.judgements = [
                replace(
                    judgement,
                    tried=self._tried + 1,
                    found=self._shown[self.scenario.id, case.case.id, judgement.clause] + 1,
                )
                if judgement.outcome in _FINDINGS and _origin(case, judgement) == self.scenario.id
                else judgement
                for judgement in case.judgements
            ]


def _try(
    group: Sequence[_Suspect], work: Work, pools: list[ProcessPool], over: Callable[[], bool]
) -> None:
    """Repeat scenarios once, one after the other on a new process, unless time is over."""
    if over():
        return
    own, first = work.pool, group[0]
    pool = ProcessPool(own.target, own.world, own.pace, own.mark)
    pool.knows(work.profile)
    pool.allowance = own.allowance
    pool.is_single = own.is_single
    pools.append(pool)
    if work.stop.is_set():
        pool.expire()
    found: set[_Finding] = set()
    try:
        if not first.scenario.fresh:  # as on the process that discovery opened
            connection = pool.shared(first.planned.revision, share(first.planned))
            read_lists(Spoken(connection.opening or Reply(0)), connection)
        for suspect in group:
            before = suspect.planned
            case = PlannedCase(before.case, before.revision, before.clauses, also=before.also)
            run_case(case, replace(work, pool=pool))
            name = suspect.scenario.id
            found |= {(name, name, judgement.clause) for judgement in _findings(case)}
        pool.settle()
        for rule in {id(c): c for suspect in group for c in suspect.cases}.values():
            if isinstance(rule.case, Ambient):
                records = pool.records(rule.revision)
                broken = ambient.origins(rule.case, records, rule.clauses)
                found |= {(origin, rule.case.id, clause) for clause, origin in broken}
    except Exception:  # noqa: BLE001  (a fault of ours shows nothing again)
        found = set()
    finally:
        pool.close()
        own.count_starts(pool)
    if not work.stop.is_set():
        for suspect in group:
            suspect.count(found)
