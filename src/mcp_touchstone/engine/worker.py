"""Run the scenarios that share a process, one after the other. Prints nothing.

Not all cases can be judged at once: they are added to a lane while it runs.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import our_fault
from mcp_touchstone.catalog.scenario import Place, Scenario
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import willing
from mcp_touchstone.discovery.probes import Probing
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.engine.attack_sites import Sites, is_clean
from mcp_touchstone.engine.plan import Plan, share
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.shared_processes import is_judged, opened
from mcp_touchstone.engine.start_limiter import StartPriority
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.judging.judge import Judge
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.judging.talk import Talk, hear_late_answers
from mcp_touchstone.judging.used_server import Broken, Examples, UsedServer
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
        sites: the processes that attacks left for others.
        separate: whether each scenario has a process and a world of its own.
    """

    pool: ProcessPool
    profile: ServerProfile
    settings: RunSettings
    plan: Plan
    probing: Probing
    stop: threading.Event
    log: RunLog
    sites: Sites = field(default_factory=Sites)
    separate: bool = False


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
        work.pool.shared.release(planned.revision, share(planned))


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
    scenario, pool, stop = planned.case, work.pool, work.stop
    assert isinstance(scenario, Scenario)  # noqa: S101  (lanes hold scenarios only)
    wire_revision = planned.revision
    if scenario.legacy:
        wire_revision = work.profile.legacy[-1] if work.profile.legacy else rev.LATEST_LEGACY
    talk = begin(planned, scenario, wire_revision, work)
    connection = talk.wire
    hold(talk, scenario, work)
    before: frozenset[str] = frozenset()
    if scenario.place is Place.REUSED and not stop.is_set():
        talk = _release(talk, planned, scenario, work)
    elif _is_doubtful(talk) and not stop.is_set():
        before = frozenset(j.clause for j in talk.judge.judgements if j.outcome in _FINDINGS)
        talk = _without_sessions(talk, planned, scenario, wire_revision, work)
        connection = talk.server.connections[0]
    result = CaseResult(
        planned,
        tuple(talk.judge.judgements),
        fired=frozenset(talk.server.fired),
        before=before,
    )
    if stop.is_set():
        return result
    if scenario.place is Place.LAST and not work.separate:
        pool.shared.release(planned.revision, share(planned))
    elif not scenario.place.is_unused and not work.separate:
        result = replace(result, left=_left(result, connection, pool))
    is_first = scenario.place is Place.FIRST and not work.separate
    if scenario.place is Place.REUSED or (is_first and _hands_over(talk, planned, pool)):
        return result
    for used in talk.server.connections if work.separate else _own(talk, scenario):
        pool.retire(used)
    return result


def _own(talk: Talk, scenario: Scenario) -> list[Connection]:
    """Return the connections of a scenario that no other uses."""
    return talk.server.connections[0 if scenario.place.is_unused else 1 :]


def _hands_over(talk: Talk, planned: PlannedCase, pool: ProcessPool) -> bool:
    """Share the process that a scenario opened, if it found nothing; return whether."""
    first, *others = talk.server.connections
    is_open = first.opening is not None and first.opening.result is not None
    if others or not is_open or first.gone or first.channel.is_guest or not is_clean(talk):
        return False
    return pool.shared.put(planned.revision, first, share(planned))


def _is_doubtful(talk: Talk) -> bool:
    """Return whether another session or scenario on its process may be the cause of a finding."""
    guests = [used for used in talk.server.connections if used.channel.is_guest]
    shares = bool(guests) or talk.server.reuses
    return shares and (not is_clean(talk) or any(used.gone for used in guests))


def _without_sessions(
    talk: Talk, planned: PlannedCase, scenario: Scenario, revision: str, work: Work
) -> Talk:
    """Hold a conversation again on unused processes, and return it."""
    for used in _own(talk, scenario):
        work.pool.discard(used)
    if talk.server.reuses:
        work.pool.shared.release(planned.revision, share(planned))
    again = begin(planned, scenario, revision, work, unused=True)
    hold(again, scenario, work)
    return again


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
        talk.judge.broken(why)


def _release(talk: Talk, planned: PlannedCase, scenario: Scenario, work: Work) -> Talk:
    """Leave the process of an attack for the next, or end it; return the attack that counts.

    An attack on a used process counts only if it found nothing. Otherwise it is made again on an
    unused one: the cause may be an earlier attack.
    """
    from mcp_touchstone.security.attack_session import AttackSession  # noqa: PLC0415  (as below)

    assert isinstance(talk, AttackSession)  # noqa: S101  (only attacks share)
    if work.sites.leave(talk):
        return talk
    for used in talk.server.connections:
        work.pool.retire(used)
    if not talk.server.reuses or is_clean(talk):
        return talk
    again = begin(planned, scenario, planned.revision, work, unused=True)
    hold(again, scenario, work)
    return _release(again, planned, scenario, work)


def begin(
    planned: PlannedCase, scenario: Scenario, revision: str, work: Work, *, unused: bool = False
) -> Talk:
    """Return the conversation of a scenario, on its process.

    Args:
        planned: the planned case.
        unused: whether an attack, or an unused session, must not share a process.

    Raises:
        LaunchError: no process could be started.
    """
    pool, profile = work.pool, work.profile
    examples = partial(
        Examples, profile=profile, revision=planned.revision, settle=work.probing.settle
    )
    if scenario.fixtures:
        from mcp_touchstone.engine import attack_setup  # noqa: PLC0415  (the runner says why)

        return attack_setup.session(
            pool,
            planned,
            work.sites,
            examples,
            work.settings,
            bindings=profile.bindings,
            unused=unused,
        )
    settings = work.settings
    if scenario.drawn:
        settings = replace(settings, rules=work.plan.rules(planned.revision))
    spawn = _spawner(scenario, revision, work, unused=unused)
    reuses = False
    if scenario.place.is_unused:
        first = spawn()
    elif work.separate:
        first = opened(spawn(judged=is_judged(share(planned))), share(planned))
    else:
        reuses = scenario.place is Place.LAST and pool.shared.has(planned.revision, share(planned))
        first = pool.shared.get(planned.revision, share(planned))
    server = UsedServer(first, spawn, reuses=reuses)
    judge = Judge(server, scenario, planned.clauses, revision=planned.revision)
    return Conversation(server, judge, examples(server), settings)


def _spawner(
    scenario: Scenario, revision: str, work: Work, *, unused: bool
) -> Callable[..., Connection]:
    """Return the function that starts a process for a scenario, or opens a session for it."""
    pool = work.pool
    turn = StartPriority.MANY  # others wait for the shared process meanwhile
    if scenario.place.is_unused:
        turn = StartPriority.LONG if scenario.lasts else StartPriority.OTHER

    watched = is_judged(scenario.share) and not scenario.unwatched

    def spawn(
        port: int = 0, env: Mapping[str, str] | None = None, *, judged: bool = watched
    ) -> Connection:
        if port or env:
            place = pool.target.on_port(port) if port else pool.target
            place = replace(place, env={**place.env, **(env or {})})
            return pool.spawn(revision, scenario.name, target=place, turn=turn, judged=judged)
        if scenario.place.has_folder or work.separate:
            return pool.apart(revision, scenario.name, turn=turn, judged=judged)
        shares = scenario.uses_sessions and not unused
        session = pool.session(revision, scenario.name, judged=judged) if shares else None
        return session or pool.spawn(revision, scenario.name, turn=turn, judged=judged)

    return spawn


def _left(result: CaseResult, connection: Connection, pool: ProcessPool) -> str:
    """Send one more request, and return how a scenario left the server if there is no answer.

    Silence is a finding only if the scenario has no other, and never after the process has
    exited: a separate rule judges the exit.
    """
    planned, found = result.planned, {*_FINDINGS, Outcome.BROKEN}
    blamed = connection.gone or any(j.outcome in found for j in result.judgements)
    reply = connection.probe(required=not blamed)
    connection.transcript.enter("")
    if reply.answered:
        return ""
    if not connection.gone:
        refusal = connection.channel.silence(reply.asked)
        pool.shared.replace(planned.revision, share(planned), refusal=refusal)
    return str(reply)
