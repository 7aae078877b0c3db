"""Run the scenarios that share a process, one after the other. Prints nothing.

Not all cases can be judged at once: they are added to a lane while it runs.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import our_fault
from mcp_touchstone.catalog.scenario import Place, Scenario
from mcp_touchstone.connection.profile import willing
from mcp_touchstone.discovery.probes import Probing
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.engine.lease import Lease
from mcp_touchstone.engine.plan import Plan
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.judging.judge import Judge
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.judging.talk import Talk, forget_after_the_session, hear_late_answers
from mcp_touchstone.judging.used_server import Broken, Examples
from mcp_touchstone.results.events import Done, RunLog, Started
from mcp_touchstone.results.run import CaseResult, PlannedCase, unasked
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.safe_path import is_about_files
from mcp_touchstone.transport.process import LaunchError, now

_FINDINGS: Final = frozenset({Outcome.FAIL, Outcome.WARN})


class Worker:
    """Queue of cases that share a process, in order of arrival; those that harm it run last."""

    def __init__(self) -> None:
        self._cases: list[PlannedCase] = []
        self._late: list[PlannedCase] = []
        self._closed = False
        self._changed = threading.Condition()

    def add(self, cases: Iterable[PlannedCase]) -> None:
        """Add cases."""
        with self._changed:
            for planned in cases:
                (self._late if _lateness(planned) else self._cases).append(planned)
            self._changed.notify_all()

    def close(self) -> None:
        """Accept no more cases."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[PlannedCase]:
        """Yield the cases; wait for more until the lane is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._cases or self._closed)
                if not self._cases:
                    break
                planned = self._cases.pop(0)
            yield planned
        yield from sorted(self._late, key=_lateness)


def _lateness(planned: PlannedCase) -> int:
    """Return 1 for a harmful case, 2 for one that ends its process, 0 for any other."""
    return 2 if planned.case.place is Place.LAST else int(planned.case.hurts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The common values of all conversations of a run.

    Attributes:
        settings: the settings of properties and attacks.
        plan: the plan; properties look up the rules on all traffic there.
        probing: the probes; examples wait for the words that they decide.
        stop: set when the run ends early.
        log: the events of the run.
    """

    pool: ProcessPool
    profile: ServerProfile
    settings: RunSettings
    plan: Plan
    probing: Probing
    stop: threading.Event
    log: RunLog


def drive(
    lane: Iterable[PlannedCase],
    work: Work,
    after: Callable[[CaseResult], None] = lambda _: None,
) -> None:
    """Run one lane to its end, or until ``stop`` is set; then end its process.

    Args:
        lane: the cases.
        after: called after each case.
    """
    planned = None
    for planned in lane:
        if work.stop.is_set():
            return
        work.log.add(Started(planned))
        result = run_case(planned, work)
        if result is None:
            return
        work.log.add(Done(result))
        after(result)
    if planned is not None and isinstance(lane, Worker):
        work.pool.lender.release(planned.revision, planned.share)


def run_case(planned: PlannedCase, work: Work) -> CaseResult | None:
    """Run one scenario, and return its result; None if the run ends meanwhile.

    A fault of ours makes its clauses BROKEN, and ends nothing else.
    """
    begun = now()
    try:
        result = _held(planned, work)
    except Exception as error:  # noqa: BLE001  (the run must not end because of one case)
        why = str(error) if isinstance(error, LaunchError) else our_fault(error)
        result = CaseResult(planned, tuple(unasked(planned, one, why) for one in planned.clauses))
    return None if work.stop.is_set() else replace(result, seconds=now() - begun)


def _held(planned: PlannedCase, work: Work) -> CaseResult:
    """Run one scenario; if another user of its process may be the cause of a finding, run it again.

    What counts then is the conversation on an unused process.
    """
    talk, lease = _hold(planned, work)
    before: frozenset[str] = frozenset()
    if not work.stop.is_set() and lease.is_doubtful(talk.judge.judgements):
        before = frozenset(j.clause for j in talk.judge.judgements if j.outcome in _FINDINGS)
        work.pool.lender.drop(lease)
        talk, lease = _hold(planned, work, unused=True)
    judgements = tuple(talk.judge.judgements)
    left = "" if work.stop.is_set() else work.pool.lender.give_back(lease, judgements)
    fired = frozenset(talk.server.fired)
    return CaseResult(planned, judgements, fired=fired, before=before, left=left)


def _hold(planned: PlannedCase, work: Work, *, unused: bool = False) -> tuple[Talk, Lease]:
    """Hold the conversation of a scenario; return it, and its processes.

    Args:
        unused: whether its process must be an unused one.

    Raises:
        LaunchError: no process could be started.
    """
    scenario, pool, profile, settings = planned.case, work.pool, work.profile, work.settings
    assert isinstance(scenario, Scenario)  # noqa: S101  (lanes hold scenarios only)
    examples = partial(
        Examples, profile=profile, revision=planned.revision, settle=work.probing.settle
    )
    talk: Talk
    if scenario.fixtures:
        from mcp_touchstone.engine import attack_setup  # noqa: PLC0415  (the runner says why)

        talk, lease = attack_setup.session(
            pool, planned, examples, settings, bindings=profile.bindings, unused=unused
        )
    else:
        revision = planned.revision
        if scenario.legacy:
            revision = profile.legacy[-1] if profile.legacy else rev.LATEST_LEGACY
        lease = pool.lender.take(planned, revision, unused=unused)
        if scenario.drawn:
            settings = replace(settings, rules=work.plan.rules(planned.revision))
        judge = Judge(lease.server, scenario, planned.clauses, revision=planned.revision)
        talk = Conversation(lease.server, judge, examples(lease.server), settings)
    hold(talk, scenario, work)
    return talk, lease


def hold(talk: Talk, scenario: Scenario, work: Work) -> None:
    """Hold the conversation of a scenario; a clause that it did not judge is BROKEN."""
    connection = talk.wire
    connection.transcript.enter(scenario.id)
    before = connection.answers.client
    if scenario.willing:
        connection.answers.use(willing(connection.transcript.revision))
    why = "the scenario ended without judging this clause"
    try:
        scenario.body(talk)
    except (Broken, LaunchError) as reason:
        why = str(reason)
    except Exception as error:  # noqa: BLE001  (what it judged before still counts)
        why = our_fault(error)
        if isinstance(error, OSError) and is_about_files(error):
            why = f"a file of the throw-away folder could not be used: {error}"
    connection.answers.use(before)
    connection.answers.enabled = True
    if not work.stop.is_set():
        hear_late_answers(talk.judge)
        forget_after_the_session(talk.judge)
        talk.judge.broken(why)
