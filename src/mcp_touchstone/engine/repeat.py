"""Repeat scenarios with findings, to distinguish stable findings from chance. Prints nothing.

A scenario with a finding is run again on new processes, and so is the scenario whose traffic broke
a rule on all traffic. Scenarios that shared a process share one in their first repetition too. A
finding that appears there is stable. Any other scenario is repeated more often and alone, and its
judgement says how often the finding appeared. A scenario that races messages has no stable
findings: its race may be lost twice and won the next time.

The first repetition begins when the scenario has ended, while others go on. A scenario with the
same finding in a session before (``session_host``) is repeated already. Findings of rules on all
traffic, and further repetitions, come at the end of the run.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeGuard

from mcp_touchstone.catalog.scenario import Ambient, Case, Scenario
from mcp_touchstone.client.server_profile import Spoken
from mcp_touchstone.discovery.recon import read_lists
from mcp_touchstone.engine.deadline import Deadline
from mcp_touchstone.engine.plan import share
from mcp_touchstone.engine.start_limiter import StartPriority
from mcp_touchstone.engine.worker import Work, Worker, run_case
from mcp_touchstone.judging import ambient
from mcp_touchstone.results.events import Found
from mcp_touchstone.results.run import PlannedCase
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
        self._ended: dict[_Key, PlannedCase] = {}
        self._width = 1 if jobs == 1 or work.pool.is_single else AT_ONCE
        self._threads = ThreadPoolExecutor(LANES, thread_name_prefix="repeat")
        self._at_once = threading.Semaphore(AT_ONCE)
        self._lock = threading.Lock()

    @property
    def _are_early(self) -> bool:
        """Whether a repetition may begin before the end of the run."""
        pool, stop = self._work.pool, self._work.stop
        several = self._width > 1 and not pool.target.gentle
        return bool(self._most) and several and not stop.is_set()

    @contextmanager
    def lane(self) -> Iterator[Callable[[PlannedCase], None]]:
        """Give the function to call after each case of a lane.

        It repeats the scenarios with findings, as they end, on one process for the lane.
        """
        queue, keys = Worker(), list[_Key]()
        try:
            yield lambda case: self.repeat(case, queue, keys)
        finally:
            queue.close()

    def repeat(self, case: PlannedCase, queue: Worker, keys: list[_Key]) -> None:
        """Begin to repeat a scenario that has ended, if it has findings.

        Args:
            case: the scenario.
            queue: the scenarios of its lane to repeat.
            keys: those that were in it.
        """
        key, clauses = _key(case), {judgement.clause for judgement in _findings(case)}
        self._ended[key] = case
        if case.support or not clauses:
            return
        is_repeated = _is_repeated(case.case)
        self._tell(case, case.before if is_repeated else None)
        if key in self._begun:
            self._begun[key].add_done_callback(partial(self._tell_again, case))
        elif self._are_early and is_repeated and not clauses <= case.before:
            queue.add([case])
            if keys:
                self._begun[key] = self._begun[keys[0]]
            else:
                turn = StartPriority.MANY if self._early else StartPriority.FIRST
                trial = _Trial(self._work, self._at_once, turn)
                self._early.append((keys, trial))
                self._begun[key] = self._threads.submit(trial.hold, queue, self._tell)
            keys.append(key)

    def _tell_again(self, case: PlannedCase, held: Future[set[_Finding]]) -> None:
        name = case.case.id
        self._tell(case, {clause for _, found_by, clause in held.result() if found_by == name})

    def _tell(self, case: PlannedCase, clauses: Collection[str] | None) -> None:
        """Tell which findings of a case are certain: those of some clauses, or all."""
        sure = [j for j in _findings(case) if clauses is None or j.clause in clauses]
        if sure and not self._work.stop.is_set():
            self._work.on_event(Found(case, sure))

    def finish(self, cases: list[PlannedCase]) -> None:
        """Repeat cases with findings; their judgements say how often each was tried and found."""
        work, most = self._work, self._most
        _await(self._begun.values(), work)
        self._threads.shutdown(wait=False)
        _mark_races(cases, work)
        suspects = _suspects(cases, work) if most and not work.stop.is_set() else []
        if not suspects:
            return
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
                    work.pool.expire()
        for suspect in suspects:
            suspect.note()


def _key(case: PlannedCase) -> _Key:
    return case.case.id, case.revision


def _await(waiting: Collection[Future[Any]], work: Work) -> None:
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

    Findings on the opening and on discovery are skipped.
    """
    found: dict[_Key, _Suspect] = {}
    scenarios = {(one.case.id, one.revision): one for one in work.plan.all_cases}
    for case in cases:
        for judgement in _findings(case):
            key = _origin(case, judgement), case.revision
            scenario = scenarios.get(key)
            if scenario is not None and _is_repeated(scenario.case):
                found.setdefault(key, _Suspect(scenario, work)).add(case, judgement)
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


def _findings(case: PlannedCase) -> Iterator[Judgement]:
    return (j for j in case.judgements if j.outcome in _FINDINGS)


def _origin(case: PlannedCase, judgement: Judgement) -> str:
    return judgement.origin or case.case.id


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
        name = self.scenario.id
        if self.planned.before:
            self.count({(name, name, clause) for clause in self.planned.before})

    def count(self, shown: set[_Finding]) -> None:
        """Count one repetition and its findings."""
        self._tried += 1
        self._shown.update(shown & self._wanted)

    def pursue(self, most: int, over: Callable[[], bool]) -> None:
        """Repeat the scenario alone, up to a number of repetitions in all."""
        while self._tried < most and not over():
            _try([self], self._work, over)

    def note(self) -> None:
        """Store in the judgements how often each was tried and found."""
        for case in self.cases if self._tried else ():
            case.judgements = [
                _counted(
                    judgement,
                    self._tried + 1,
                    self._shown[self.scenario.id, case.case.id, judgement.clause] + 1,
                )
                if judgement.outcome in _FINDINGS and _origin(case, judgement) == self.scenario.id
                else judgement
                for judgement in case.judgements
            ]


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
            for before in cases:
                case = PlannedCase(before.case, before.revision, before.clauses, also=before.also)
                with self._at_once:
                    if not (is_open or case.case.fresh):  # as on the process that discovery opened
                        connection = pool.shared.get(case.revision, share(case), self._turn)
                        read_lists(Spoken(connection.opening or Reply(0)), connection)
                        is_open = True
                    run_case(case, self._work)
                clauses = {judgement.clause for judgement in _findings(case)}
                self._found |= {(case.case.id, case.case.id, clause) for clause in clauses}
                tell(before, clauses)
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
