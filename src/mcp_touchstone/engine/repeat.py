"""Repeat scenarios with findings, to distinguish stable findings from chance. Prints nothing.

A scenario with a finding is run again on new processes, and so is the scenario whose traffic broke
a rule on all traffic. Scenarios that shared a process share one in their first repetition too. A
finding that appears there is stable. Any other scenario is repeated more often and alone, and its
judgement says how often the finding appeared. A scenario that races messages has no stable
findings: its race may be lost twice and won the next time.

The first repetition begins when the scenario has ended, while others go on. A scenario with the
same finding in a session before (``lease``) is repeated already. Findings of rules on all
traffic, and further repetitions, come at the end of the run.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final, TypeGuard

from mcp_touchstone.catalog.scenario import Ambient, Case, Scenario
from mcp_touchstone.connection.server_profile import Spoken
from mcp_touchstone.discovery.recon import read_lists
from mcp_touchstone.engine.deadline import Deadline
from mcp_touchstone.engine.start_limiter import StartPriority
from mcp_touchstone.engine.worker import Work, Worker, run_case
from mcp_touchstone.judging import ambient
from mcp_touchstone.results.events import Found, Repeated
from mcp_touchstone.results.run import CaseResult, PlannedCase
from mcp_touchstone.results.verdict import Judgement, Outcome
from mcp_touchstone.runtime.timeouts import SLICE
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.reply import Reply

SECONDS: Final = 30.0
"""Seconds in which repetitions may begin; findings not repeated by then are kept."""

AT_ONCE: Final = 4
"""Scenarios repeated at a time: a failure under load must have a chance to appear again."""

LANES: Final = 64
"""Processes on which scenarios are repeated, most of which wait for the next one."""

_FINDINGS: Final = frozenset({Outcome.FAIL, Outcome.WARN})

_Key = tuple[str, str]
"""The id and the revision of a case."""

_Finding = tuple[str, str, str]
"""The scenario that led to a finding, the case that found it, and the clause."""


class Repetitions:
    """The repetitions of one run.

    Args:
        most: greatest number of repetitions of one scenario; 0 repeats nothing.
        deadline: the time of the run.
        jobs: greatest number of simultaneous conversations; 0 for the default. With 1, scenarios
            are repeated at the end of the run, one after the other.
    """

    def __init__(self, work: Work, most: int, deadline: Deadline, jobs: int = 0) -> None:
        self._work = work
        self._most = most
        self._deadline = deadline
        self._early: list[tuple[list[_Key], _Trial]] = []
        self._begun: dict[_Key, Future[set[_Finding]]] = {}
        self._width = 1 if jobs == 1 or work.pool.is_single else AT_ONCE
        self._threads = ThreadPoolExecutor(LANES, thread_name_prefix="repeat")
        self._at_once = threading.Semaphore(AT_ONCE)

    @property
    def _are_early(self) -> bool:
        """Whether a repetition may begin before the end of the run."""
        pool, stop = self._work.pool, self._work.stop
        several = self._width > 1 and not pool.target.gentle
        return bool(self._most) and several and not stop.is_set()

    @contextmanager
    def lane(self) -> Iterator[Callable[[CaseResult], None]]:
        """Give the function to call after each case of a lane.

        It repeats the scenarios with findings, as they end, on one process for the lane.
        """
        queue, keys = Worker(), list[_Key]()
        try:
            yield lambda result: self.repeat(result, queue, keys)
        finally:
            queue.close()

    def repeat(self, result: CaseResult, queue: Worker, keys: list[_Key]) -> None:
        """Begin to repeat a scenario that has ended, if it has findings.

        Args:
            result: what came of the scenario.
            queue: the scenarios of its lane to repeat.
            keys: those that were in it.
        """
        planned, clauses = result.planned, {judgement.clause for judgement in _findings(result)}
        if planned.support or not clauses:
            return
        is_repeated = _is_repeated(planned.case)
        self._tell(result, result.before if is_repeated else None)
        if self._are_early and is_repeated and not clauses <= result.before:
            queue.add([planned])
            key = _key(planned)
            if keys:
                self._begun[key] = self._begun[keys[0]]
            else:
                turn = StartPriority.MANY if self._early else StartPriority.FIRST
                trial = _Trial(self._work, self._at_once, turn)
                self._early.append((keys, trial))
                self._begun[key] = self._threads.submit(trial.hold, queue, self._tell_again)
            keys.append(key)

    def _tell_again(self, planned: PlannedCase, clauses: Collection[str]) -> None:
        self._tell(self._work.log.results[planned], clauses)

    def _tell(self, result: CaseResult, clauses: Collection[str] | None) -> None:
        """Tell which findings of a case are certain: those of some clauses, or all."""
        sure = [j for j in _findings(result) if clauses is None or j.clause in clauses]
        if sure and not self._work.stop.is_set():
            self._work.log.add(Found(result.planned, sure))

    def finish(self) -> None:
        """Repeat cases with findings; their judgements say how often each was tried and found."""
        work, most = self._work, self._most
        _await(self._begun.values(), work)
        self._threads.shutdown(wait=False)
        for result in _raced(work):
            work.log.add(Repeated(result))
        if not most or work.stop.is_set():
            return
        suspects = _suspects(work)
        if suspects:
            self._pursue(suspects)
        for suspect in suspects:
            for planned in suspect.cases:
                work.log.add(Repeated(suspect.counted(work.log.results[planned])))

    def _pursue(self, suspects: list["_Suspect"]) -> None:
        """Repeat scenarios, those that shared a process on one first, then each alone."""
        work, most = self._work, self._most
        until = now() + min(SECONDS, self._deadline.left)

        def over() -> bool:
            return work.stop.is_set() or now() > until

        for suspect in suspects:
            suspect.count_session()
        known = {_key(suspect.planned): suspect for suspect in suspects}
        for repeated, trial in self._early:
            trial.count([known[key] for key in repeated if key in known])
        groups = _groups(suspect for suspect in suspects if not suspect.is_tried)
        with ThreadPoolExecutor(self._width, thread_name_prefix="repeat") as threads:
            try:
                _await([threads.submit(_try, group, work, over) for group in groups], work)
                alone = [
                    threads.submit(suspect.pursue, most, over)
                    for suspect in suspects
                    if not suspect.is_stable
                ]
                _await(alone, work)
            except BaseException:
                work.stop.set()
                raise
            finally:
                if work.stop.is_set():
                    work.pool.expire("")


def _key(case: PlannedCase) -> _Key:
    return case.case.id, case.revision


def _await(waiting: Collection[Future[Any]], work: Work) -> None:
    """Wait for repetitions; return early if the run ends."""
    while wait(waiting, SLICE).not_done:
        if work.stop.is_set():
            return
    for one in waiting:
        one.result()


def _raced(work: Work) -> Iterator[CaseResult]:
    """Yield the results with findings that come from scenarios which race messages."""
    scenarios = (one.case for one in work.plan.all_cases if isinstance(one.case, Scenario))
    races = {scenario.id for scenario in scenarios if scenario.races}
    for result in work.log.of(work.plan.cases):
        changed = _changed(result, lambda one: replace(one, raced=True), races.__contains__)
        if changed is not result:
            yield changed


def _changed(
    result: CaseResult,
    change: Callable[[Judgement], Judgement],
    concerns: Callable[[str], bool],
) -> CaseResult:
    """Return a result with a change of the findings that certain scenarios led to."""
    if not any(concerns(_origin(result, one)) for one in _findings(result)):
        return result
    changed = (
        change(one) if one.outcome in _FINDINGS and concerns(_origin(result, one)) else one
        for one in result.judgements
    )
    return replace(result, judgements=tuple(changed))


def _suspects(work: Work) -> list["_Suspect"]:
    """Return the scenarios with findings in each revision, in the order of the suite.

    Findings on the opening and on discovery are skipped.
    """
    found: dict[_Key, _Suspect] = {}
    scenarios = {_key(one): one for one in work.plan.all_cases}
    for result in work.log.of(work.plan.cases):
        for judgement in _findings(result):
            key = _origin(result, judgement), result.planned.revision
            scenario = scenarios.get(key)
            if scenario is not None and _is_repeated(scenario.case):
                suspect = found.setdefault(key, _Suspect(scenario, work))
                suspect.add(result.planned, judgement)
    return list(found.values())


def _is_repeated(case: Case) -> TypeGuard[Scenario]:
    """Return whether a case is repeated here: attacks and properties repeat their findings."""
    return isinstance(case, Scenario) and not (case.drawn or case.is_attack)


def _groups(suspects: Iterable["_Suspect"]) -> list[list["_Suspect"]]:
    """Group the scenarios that are repeated on one process; harmful ones are last in a group."""
    groups: dict[object, list[_Suspect]] = {}
    for suspect in suspects:
        groups.setdefault(suspect.process, []).append(suspect)
    return [sorted(group, key=lambda one: one.scenario.hurts) for group in groups.values()]


def _findings(result: CaseResult) -> Iterator[Judgement]:
    return (j for j in result.judgements if j.outcome in _FINDINGS)


def _origin(result: CaseResult, judgement: Judgement) -> str:
    return judgement.origin or result.planned.case.id


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
        if self.scenario.place.is_unused or self.scenario.lasts:
            return id(self)
        return self.planned.revision, self.planned.share

    @property
    def is_stable(self) -> bool:
        """Whether all findings appeared in the first repetition."""
        return self._tried == 1 and self._wanted <= self._shown.keys()

    @property
    def is_tried(self) -> bool:
        """Whether it was repeated."""
        return self._tried > 0

    def add(self, case: PlannedCase, judgement: Judgement) -> None:
        """Add a finding."""
        if case not in self.cases:
            self.cases.append(case)
        self._wanted.add((self.scenario.id, case.case.id, judgement.clause))

    def count_session(self) -> None:
        """Count the conversation in a session before the judged one on an unused process."""
        name, result = self.scenario.id, self._work.log.results.get(self.planned)
        if result is not None and result.before:
            self.count({(name, name, clause) for clause in result.before})

    def count(self, shown: set[_Finding]) -> None:
        """Count one repetition and its findings."""
        self._tried += 1
        self._shown.update(shown & self._wanted)

    def pursue(self, most: int, over: Callable[[], bool]) -> None:
        """Repeat the scenario alone, up to a number of repetitions in all."""
        while self._tried < most and not over():
            _try([self], self._work, over)

    def counted(self, result: CaseResult) -> CaseResult:
        """Return a result whose judgements say how often each was tried and found."""
        name = self.scenario.id

        def change(one: Judgement) -> Judgement:
            found = self._shown[name, result.planned.case.id, one.clause] + 1
            return _counted(one, self._tried + 1, found)

        return _changed(result, change, lambda origin: origin == name) if self._tried else result


def _counted(judgement: Judgement, tried: int, found: int) -> Judgement:
    """Return a judgement with its repetitions; a silence that did not come again is a warning."""
    counted = replace(judgement, tried=tried, found=found)
    if found == 1 and judgement.silent and judgement.outcome is Outcome.FAIL:
        return replace(counted, outcome=Outcome.WARN, because="the silence did not come again")
    return counted


class _Trial:
    """One repetition of scenarios, one after the other on another process.

    Args:
        at_once: entered for each conversation.
        turn: the priority of its start; the first finding of a run is made certain first.
    """

    def __init__(
        self,
        work: Work,
        at_once: AbstractContextManager[object],
        turn: StartPriority = StartPriority.MANY,
    ) -> None:
        self._at_once = at_once
        self._turn = turn
        self._pool = work.pool.branch()
        self._work = replace(work, pool=self._pool)
        self._found: set[_Finding] = set()

    def hold(
        self,
        cases: Iterable[PlannedCase],
        tell: Callable[[PlannedCase, Collection[str]], None] = lambda _case, _clauses: None,
    ) -> set[_Finding]:
        """Repeat the conversations, end the process, and return the findings.

        Args:
            cases: what is repeated.
            tell: called with each case and the clauses of its findings this time.
        """
        pool, is_open = self._pool, False
        try:
            for planned in cases:
                with self._at_once:
                    if not (
                        is_open or planned.case.place.is_unused
                    ):  # as on the process of discovery
                        revision = planned.revision
                        connection = pool.lender.get(revision, planned.share, self._turn)
                        read_lists(Spoken(connection.opening or Reply(0)), connection)
                        is_open = True
                    result = run_case(planned, self._work)
                if result is not None:
                    name, clauses = planned.case.id, {one.clause for one in _findings(result)}
                    self._found |= {(name, name, clause) for clause in clauses}
                    tell(planned, clauses)
            pool.settle()
        except Exception:  # noqa: BLE001  (a fault of ours shows nothing again)
            self._found.clear()
        finally:
            pool.close()
        return self._found

    def count(self, suspects: Sequence[_Suspect]) -> None:
        """Count this repetition, with the findings of rules on its traffic, unless the run ends."""
        found = self._found | self._on_traffic(suspects)
        if not self._work.stop.is_set():
            for suspect in suspects:
                suspect.count(found)

    def _on_traffic(self, suspects: Sequence[_Suspect]) -> set[_Finding]:
        found: set[_Finding] = set()
        for rule in {id(c): c for suspect in suspects for c in suspect.cases}.values():
            if isinstance(rule.case, Ambient):
                records = self._pool.records(rule.revision)
                try:
                    broken = ambient.origins(rule.case, records, rule.clauses)
                    found |= {(origin, rule.case.id, clause) for clause, origin in broken}
                except Exception:  # noqa: BLE001  (as above)
                    return set()
        return found


def _try(group: Sequence[_Suspect], work: Work, over: Callable[[], bool]) -> None:
    """Repeat scenarios once, unless time is over."""
    if over():
        return
    trial = _Trial(work, nullcontext())
    trial.hold([suspect.planned for suspect in group])
    trial.count(group)
