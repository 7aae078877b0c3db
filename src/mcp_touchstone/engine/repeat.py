"""Repeat scenarios with findings, to distinguish stable findings from chance. Prints nothing.

A scenario with a finding is run again on new processes, and so is the scenario whose traffic broke
a rule on all traffic. A finding that appears in the first repetition is stable. Any other scenario
is repeated more often, and its judgement says how often the finding appeared. A scenario that races
messages has no stable findings: its race may be lost twice and won the next time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
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
    suspects = _suspects(cases, work) if most and not work.stop.is_set() else {}
    if not suspects:
        return
    until = now() + min(SECONDS, deadline.left)
    pools: list[ProcessPool] = []

    def over() -> bool:
        return work.stop.is_set() or now() > until

    width = 1 if work.pool.is_single else AT_ONCE
    with ThreadPoolExecutor(width, thread_name_prefix="repeat") as threads:
        waiting = [
            threads.submit(_Suspect(scenario, found, work).pursue, most, pools, over)
            for scenario, found in suspects.values()
        ]
        try:
            while wait(waiting, SLICE).not_done and not work.stop.is_set():
                pass
        except BaseException:
            work.stop.set()
            raise
        finally:
            if work.stop.is_set():
                for pool in pools:
                    pool.expire()
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


def _suspects(
    cases: Iterable[PlannedCase], work: Work
) -> dict[tuple[str, str], tuple[PlannedCase, list[PlannedCase]]]:
    """Group by scenario and revision: the scenario, and the cases with findings there.

    Attacks and properties are skipped, since they repeat their findings themselves, and so are
    findings on the opening and on discovery.
    """
    found: dict[tuple[str, str], tuple[PlannedCase, list[PlannedCase]]] = {}
    scenarios = {(one.case.id, one.revision): one for one in work.plan.all_cases}
    for case in cases:
        for origin in {_origin(case, judgement) for judgement in _findings(case)}:
            scenario = scenarios.get((origin, case.revision))
            if scenario is None or not isinstance(scenario.case, Scenario):
                continue
            if not (scenario.case.drawn or is_attack(scenario.case)):
                key = origin, case.revision
                found.setdefault(key, (scenario, []))[1].append(case)
    return found


def _findings(case: PlannedCase) -> Iterator[Judgement]:
    return (j for j in case.judgements if j.outcome in _FINDINGS)


def _origin(case: PlannedCase, judgement: Judgement) -> str:
    return judgement.origin or case.case.id


class _Suspect:
    """A scenario to repeat, and the cases whose findings depend on it."""

    def __init__(self, scenario: PlannedCase, cases: list[PlannedCase], work: Work) -> None:
        self._scenario = scenario
        self._cases = cases
        self._work = work
        self._shown: dict[tuple[str, str], int] = defaultdict(int)

    def pursue(self, most: int, pools: list[ProcessPool], over: Callable[[], bool]) -> None:
        """Repeat the scenario until all findings appeared in one repetition, or up to a limit."""
        wanted = {
            (case.case.id, judgement.clause)
            for case in self._cases
            for judgement in _findings(case)
            if _origin(case, judgement) == self._scenario.case.id
        }
        tried = 0
        while tried < most and not over():
            shown = self._again(pools)
            if self._work.stop.is_set():
                break
            tried += 1
            for key in shown & wanted:
                self._shown[key] += 1
            if tried == 1 and wanted <= shown:
                break
        if tried:
            self._note(tried)

    def _again(self, pools: list[ProcessPool]) -> set[tuple[str, str]]:
        """Repeat the scenario once, on new processes; return (case, clause) of its findings."""
        work, before = self._work, self._scenario
        own = work.pool
        pool = ProcessPool(own.target, own.world, own.pace, own.mark)
        pool.knows(work.profile)
        pool.allowance = own.allowance
        pool.is_single = own.is_single
        pools.append(pool)
        if work.stop.is_set():
            pool.expire()
        assert isinstance(before.case, Scenario)  # noqa: S101  (suspects are)
        case = PlannedCase(before.case, before.revision, before.clauses, also=before.also)
        try:
            if not before.case.fresh:  # as on the process that discovery opened
                connection = pool.shared(case.revision, share(case))
                read_lists(Spoken(connection.opening or Reply(0)), connection)
            run_case(case, replace(work, pool=pool))
            pool.settle()
            found = {(case.case.id, judgement.clause) for judgement in _findings(case)}
            for other in self._cases:
                if isinstance(other.case, Ambient):
                    records = pool.records(other.revision)
                    seen = ambient.judge(other.case, records, other.clauses)
                    found |= {(other.case.id, j.clause) for j in seen if j.outcome in _FINDINGS}
        except Exception:  # noqa: BLE001  (a fault of ours shows nothing again)
            return set()
        finally:
            pool.close()
        return found

    def _note(self, tried: int) -> None:
        for case in self._cases:
            case.judgements = [
                replace(
                    judgement,
                    tried=tried + 1,
                    found=self._shown[case.case.id, judgement.clause] + 1,
                )
                if judgement.outcome in _FINDINGS
                and _origin(case, judgement) == self._scenario.case.id
                else judgement
                for judgement in case.judgements
            ]
