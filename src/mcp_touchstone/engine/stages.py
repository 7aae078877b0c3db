"""The stages of a run after discovery has met the server. Prints nothing.

They are imported while the server starts.
"""

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcp_touchstone.bindings.binding import Bindings
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import Tier
from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.errors import our_fault
from mcp_touchstone.catalog.needs import OPERATIONS
from mcp_touchstone.catalog.scenario import Ambient, Registry, Unopened
from mcp_touchstone.catalog.sdk import UNKNOWN, SdkIdentity
from mcp_touchstone.catalog.threat import Severity, Threat
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.no_answer import in_words
from mcp_touchstone.connection.server_profile import Diagnosis, ServerProfile
from mcp_touchstone.discovery.packages import identity
from mcp_touchstone.discovery.probes import ProbeContext, Probing
from mcp_touchstone.discovery.recon import late_answers
from mcp_touchstone.discovery.sdk import SdkFacts, identify
from mcp_touchstone.engine.choice import Choice, UsageError
from mcp_touchstone.engine.deadline import Deadline
from mcp_touchstone.engine.facts import facts
from mcp_touchstone.engine.launcher import GENTLE_RATE
from mcp_touchstone.engine.lease import ATTACKS
from mcp_touchstone.engine.named_check import refuse_unknown
from mcp_touchstone.engine.plan import Plan, besieged, judged, nothing, wanted
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.repeat import Repetitions
from mcp_touchstone.engine.scheduler import Schedule
from mcp_touchstone.engine.worker import Work, drive
from mcp_touchstone.judging import ambient
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.profiles.notes import measured
from mcp_touchstone.results import budgets
from mcp_touchstone.results.abilities import Ability, abilities
from mcp_touchstone.results.events import Done, Learnt, Planned, RunLog
from mcp_touchstone.results.run import CaseResult, Execution, PlannedCase, Run, Verdict, unasked
from mcp_touchstone.results.scrubber import Scrubber
from mcp_touchstone.results.sdk_faults import attribute
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.tool_use import tool_use
from mcp_touchstone.results.verdict import Judgement, Outcome, evidence, worst
from mcp_touchstone.runtime.scratch import NOTE, NOTES, private
from mcp_touchstone.runtime.timeouts import SLICE
from mcp_touchstone.runtime.timing import account
from mcp_touchstone.samples.from_schema import Places
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import now, processor
from mcp_touchstone.wire.framing import value_in
from mcp_touchstone.wire.transcript import Source

GENTLE: Final = (
    "we did not start this server: one conversation at a time, {:g} requests a second "
    "at most, nothing malformed or heavy; --intrusive allows more"
)

LATE: Final = (
    "{} was not judged: the server's first answer in it came after we had stopped waiting for it; "
    "--revision with it alone waits longer"
)

JOBS: Final = min(64, 20 * (os.cpu_count() or 1))
"""Default number of simultaneous conversations: they mostly wait."""


class Course(NamedTuple):
    """What a run came to before its verdicts.

    Attributes:
        plan: the plan; None if the server was not met.
        log: its events.
        pool: its processes, all ended; None if it had none.
        trouble: the reason the run was ended early; empty if it was not.
        interrupted: whether the user stopped it.
        strays: processes that the server left behind.
        dropped: new files in the folder of the user.
    """

    target: Target
    profile: ServerProfile
    plan: Plan | None
    log: RunLog
    pool: ProcessPool | None
    trouble: str
    interrupted: bool
    strays: int
    dropped: tuple[str, ...]


def after_meeting(  # noqa: PLR0917  (one caller, named alike on both sides)
    plan: Plan,
    pool: ProcessPool,
    registry: Registry,
    choice: Choice,
    log: RunLog,
    deadline: Deadline,
) -> None:
    """Run the stages after the server was met; the log gets what happens."""
    profile = plan.profile
    probes = wanted(profile, registry, choice)
    work = Work(
        pool=pool,
        profile=profile,
        settings=_settings(pool, choice, pool.stop),
        plan=plan,
        probing=Probing(profile, probes, probe_context(pool, pool.stop)),
        stop=pool.stop,
        log=log,
    )
    repetitions = Repetitions(work, choice.repeats, deadline, choice.jobs)
    if pool.target.gentle:
        profile.discovered.remark(GENTLE.format(pool.target.rate or GENTLE_RATE))
    for doubt in pool.target.doubts:
        profile.discovered.remark(str(doubt))
    pool.judges_traffic = plan.judges_traffic
    _converse(work, registry, choice, repetitions)
    late = _late(pool, profile, choice)
    pool.settle()
    _watch(work, partial=bool(pool.over))
    if not plan.trouble:  # else no process can be opened again
        repetitions.finish()
    if late and not plan.trouble:
        plan.trouble = LATE.format(late)


def _late(pool: ProcessPool, profile: ServerProfile, choice: Choice) -> str:
    """Return the revisions that were to be judged and were met too late."""
    if not profile.spoken:
        return ""
    met = {one.transcript.revision: one for one in reversed(pool.connections)}
    newest = judged(profile, choice)[-1:] if choice.quick else ()
    return ", ".join(
        revision
        for revision, _ in late_answers(profile.refused, met)
        if revision in (choice.revisions or rev.ALL) and (revision,) > newest
    )


def probe_context(pool: ProcessPool, stop: threading.Event) -> ProbeContext:
    """Return a ground that runs probes on the shared processes of a pool."""
    root = pool.world.root
    places = Places(folder=str(root), file=NOTE, text=NOTES[NOTE])
    return ProbeContext(pool.lender, pool.kill, pool.target.named_in(root), places, stop)


def find_sdk(pool: ProcessPool, connections: Mapping[str, Connection]) -> SdkIdentity:
    """Return the SDK of the server: of a process that runs, or else of its command."""
    if pool.target.bundled:
        return SdkIdentity(needless=True)
    root, target = pool.world.root, pool.target
    named = UNKNOWN if target.sdk is None else SdkIdentity((target.sdk,))
    if not target.command:
        return named
    env = {**os.environ, **target.env_in(root)}
    processes = next((f for c in connections.values() if (f := c.process.family.facts())), [])
    cwd = Path(target.cwd_in(root) or Path.cwd())
    found = identity(processes, target.command_in(root), cwd, env).of_server
    return replace(found, sdks=named.sdks) if named.sdks else found


def _lines(connections: Iterable[Connection]) -> Iterator[str]:
    """Yield the short lines of the server."""
    for connection in connections:
        for entry in connection.transcript:
            if entry.source is Source.THEM and entry.length < SHORT:
                yield entry.text


SHORT: Final = 2000
"""Bytes of a line that may be an error of an SDK."""


def _settings(pool: ProcessPool, choice: Choice, stop: threading.Event) -> RunSettings:
    return RunSettings(
        examples=choice.examples,
        seed=choice.seed,
        home=pool.keep(private()).path,
        stop=stop,
        tiers=choice.tiers,
    )


def _converse(work: Work, registry: Registry, choice: Choice, repetitions: Repetitions) -> None:
    """Probe the server and run each scenario as soon as its needs are decided.

    Args:
        repetitions: those of cases with findings.

    Raises:
        UsageError: no selected rule applies to the server, or a binding is wrong.
    """
    plan, pool, profile, probing = work.plan, work.pool, work.profile, work.probing
    jobs = 1 if profile.is_single or pool.target.gentle else choice.jobs
    with (
        contextlib.closing(work.settings.drawn),
        ThreadPoolExecutor(jobs or JOBS, thread_name_prefix="lane") as threads,
        ThreadPoolExecutor(ATTACKS, thread_name_prefix="attack") as attackers,
    ):
        schedule = Schedule(
            threads,
            partial(_drive, work, repetitions),
            threads if jobs else attackers,
        )
        with contextlib.closing(schedule), pool.killed_on_error():
            revision = besieged(profile, registry, choice)
            binding = attackers.submit(
                _bind, pool, profile, revision, runs=Tier.COMMANDS in choice.tiers
            )
            if profile.is_single:  # one after the other, as each ends the process of the other
                wait([binding])
            for _ in probing.steps():
                if not profile.is_single:
                    schedule.add(plan.ready(probing.decided, probing.free))
            while wait([binding], SLICE).not_done:
                pass  # a lock without a time limit would block Ctrl-C on some systems
            binding.result()
            work.log.add(Learnt(profile))
            rest = plan.rest()
            for result in plan.settled:
                work.log.add(Done(result))
            if not plan.cases and not plan.trouble and not work.stop.is_set():
                raise UsageError(nothing(plan, choice))
            work.log.add(Planned(plan.cases))
            if not plan.trouble:
                schedule.add(rest)
                pool.lender.keep(schedule.shares)
            schedule.finish()


def _drive(work: Work, repetitions: Repetitions, lane: Iterable[PlannedCase]) -> None:
    with repetitions.lane() as after:
        drive(lane, work, after)


def _bind(pool: ProcessPool, profile: ServerProfile, revision: str, *, runs: bool) -> None:
    """Find the effects of tools on files, if attacks are chosen.

    A fault of ours makes every threat that depends on this BROKEN.

    Args:
        profile: gets the bindings.
        revision: the revision of the attacks; empty if none is chosen.
        runs: whether to find tools that run programs, too.

    Raises:
        UsageError: a binding or a name given by the user is wrong.
    """
    refuse_unknown(pool, profile, pool.target.named_in(pool.world.root))
    if revision:
        # imported only if there are attacks, since that takes time
        from mcp_touchstone.engine import attack_setup  # noqa: PLC0415

        try:
            found = attack_setup.bind(pool, profile, revision, runs=runs)
        except Exception as error:  # noqa: BLE001  (the run must not end because of one probe)
            fault = our_fault(error)
            profile.spoken[revision].decided.fail(OPERATIONS, fault)
            found = Bindings(why=fault)
        if found.untrue:
            raise UsageError(f"--bindings {found.untrue[0]}; `recon` lists the bindings")
        profile.discovered.bind(found)


def _watch(work: Work, *, partial: bool) -> None:
    """Apply each rule on all traffic to the transcripts, after every process has ended.

    Args:
        partial: whether the run ended early: the transcripts may then be incomplete, so only
            findings count.
    """
    plan, pool, profile = work.plan, work.pool, work.profile
    for known in work.log.of(plan.cases):
        planned, judgements = known.planned, list(known.judgements)
        if isinstance(planned.case, Ambient):
            judgements = _judged(planned.case, planned, pool)
            if plan.trouble or partial:
                judgements = [j for j in judgements if j.outcome in {Outcome.FAIL, Outcome.WARN}]
        elif not profile.spoken:
            judgements = _refusal(profile, planned, pool)
        else:
            continue
        if profile.diagnosis is not None:
            judgements = _diagnosed(profile.diagnosis, planned, judgements, pool)
        work.log.add(Done(CaseResult(planned, tuple(judgements))))


def _judged(rule: Ambient, planned: PlannedCase, pool: ProcessPool) -> list[Judgement]:
    try:
        return ambient.judge(rule, pool.records(planned.revision), planned.clauses)
    except Exception as error:  # noqa: BLE001  (a fault of a rule must not lose the run)
        why = our_fault(error)
        return [unasked(planned, clause, why) for clause in planned.clauses]


def _refusal(profile: ServerProfile, planned: PlannedCase, pool: ProcessPool) -> list[Judgement]:
    reply = profile.refused[planned.revision]
    connection = next(c for c in pool.connections if c.transcript.revision == planned.revision)
    transcript = connection.transcript
    actual = in_words(transcript, reply)
    by_accept = planned.case.unopened is Unopened.AFTER_NOT_ACCEPTABLE
    is_other = by_accept and not actual.startswith("HTTP 406")
    return [
        Judgement(
            clause=clause.id,
            revision=planned.revision,
            outcome=Outcome.UNSEEN if is_other else Outcome.FAIL,
            scenario=planned.case.id,
            expected="a result that names a version, for initialize in at least one revision",
            actual=actual,
            wire=evidence(list(transcript), reply.entry, [reply.asked], transcript.exchanges),
        )
        for clause in planned.clauses
    ]


def _diagnosed(
    diagnosis: Diagnosis, planned: PlannedCase, judgements: Iterable[Judgement], pool: ProcessPool
) -> list[Judgement]:
    """Return the judgements of a case, and the diagnosis in place of those of its clause."""
    kept = [one for one in judgements if one.clause != diagnosis.clause]
    if not any(clause.id == diagnosis.clause for clause in planned.clauses):
        return kept
    transcript = next(
        c.transcript
        for c in pool.connections
        if c.transcript.revision == diagnosis.revision and pool.is_judged(c)
    )
    found = Judgement(
        clause=diagnosis.clause,
        revision=planned.revision,
        outcome=Outcome.FAIL,
        scenario=planned.case.id,
        expected=diagnosis.expected,
        actual=diagnosis.actual,
        wire=evidence(
            list(transcript),
            diagnosis.entry or diagnosis.asked,
            [diagnosis.asked],
            transcript.exchanges,
        ),
    )
    return [*kept, found]


def _left(course: Course) -> Iterator[str]:
    if course.strays and not course.interrupted:
        count = f"{course.strays}; we ended them"
        yield f"processes that it started and that were left in the end: {count}"


# --- verdicts


def conclude(
    course: Course, registry: Registry, choice: Choice, before: tuple[datetime, float, float]
) -> Run:
    """Fold the judgements of a run into verdicts, and return the run.

    Args:
        course: what it came to; its processes have ended.
        choice: the part of it that was run.
        before: its start: the date, and the seconds of the clock and of the processor.
    """
    plan, profile = course.plan, course.profile
    connections = [] if course.pool is None else course.pool.connections
    limit = "" if course.pool is None else course.pool.allowance.met
    trouble = course.trouble or ("" if plan is None else plan.trouble)
    results = [] if plan is None else course.log.of(plan.cases)
    partial = course.interrupted or bool(trouble)
    owed = [] if plan is None or partial else plan.owed
    verdicts = fold(results, registry, choice, partial=partial, owed=owed)
    sdk = profile.sdk
    if not sdk.sdks and not course.target.bundled:
        found = identify(SdkFacts(lines=_lines(connections)))
        sdk = replace(found, packages=sdk.packages, origin=sdk.origin)
    if limit and not trouble:
        trouble = f"{limit}; we stopped listening, and not all was judged"
    day, begun, spent = before
    ended = now()
    execution = Execution(
        interrupted=course.interrupted,
        quick=_quick(choice, profile) if choice.quick else "",
        processes=0 if course.pool is None else course.pool.started,
        strays=course.strays,
        dropped=course.dropped,
        notes=() if course.pool is None else (*course.pool.notes, *_left(course)),
        seconds=ended - begun,
        started=day.isoformat(timespec="seconds"),
        cost=account(
            [connection.waits for connection in connections],
            begun,
            ended,
            processor=processor() - spent,
            cores=os.cpu_count() or 1,
        ),
    )
    subject = Subject.of(
        course.target,
        reported={revision: spoken.server_info for revision, spoken in profile.spoken.items()},
        refused={revision: str(reply) for revision, reply in profile.refused.items()},
        asked=profile.asked,
        sdk=sdk,
        startup=profile.pace.started,
        stderr=profile.stderr,
        excuse=profile.trouble if profile.is_excused else "",
        silent=profile.is_silent,
        unbound=() if profile.bindings is None else profile.bindings.unbound,
    )
    unbound = "" if plan is None else plan.unbound
    absent = [] if plan is None else plan.absent
    threats = {one.id for one in registry.catalogue if isinstance(one, Threat)}
    run = Run(
        subject,
        results=results,
        absent=absent,
        verdicts=verdicts,
        trouble=trouble,
        execution=execution,
        connections=connections,
        floor=replace(choice.floor, sdk=choice.floor.sdk or choice.strict),
        unbound=unbound,
        unattacked=bool(unbound) and course.target.has_files and not choice.accept_unbound,
        tools=tool_use(profile, _attacked(results, connections)),
        clients=measured(choice.clients, profile, choice.record),
        budgets=budgets.measured(profile, (one.transcript for one in connections)),
        offer=_offer(profile, {} if course.pool is None else course.pool.world.placeholders, day),
        abilities=_abilities(course, verdicts) if _wants_attacks(registry, choice) else (),
        selected=bool(threats - {v.clause.id for v in verdicts} - {one.clause for one in absent}),
    )
    return attribute(run)


def _offer(profile: ServerProfile, places: Mapping[str, str], day: datetime) -> dict[str, Any]:
    """Return what a server offers in its newest revision; empty if it has none.

    Names stand for the folders and the time of this run, so that two runs can be compared.
    """
    scrubber = Scrubber(places, day, named={})
    for revision, spoken in reversed([*profile.spoken.items()]):
        offer = {
            "revision": revision,
            "server": spoken.server_info,
            "instructions": spoken.result.get("instructions", ""),
            "capabilities": spoken.capabilities,
            "more": sorted(spoken.cursors),
            **{
                feature: {scrubber.text(one[key]): one for one in spoken.named(feature, key)}
                for feature, key in _KEYS.items()
            },
        }
        found: dict[str, Any] = scrubber.scrub(offer)
        return found
    return {}


_KEYS: Final = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "templates": "uriTemplate",
}


def _wants_attacks(registry: Registry, choice: Choice) -> bool:
    """Return whether attacks were chosen, whatever became of them."""
    return any(
        choice.takes(case, clause)
        for case in registry.cases()
        if case.is_attack
        for clause in case.clauses
    )


def _abilities(course: Course, verdicts: Iterable[Verdict]) -> tuple[Ability, ...]:
    target = course.target
    return abilities(
        facts(
            course.profile,
            [] if course.pool is None else course.pool.connections,
            verdicts,
            strays=course.strays,
            ended=not (course.interrupted or course.trouble),
            sandboxed=target.method is not None,
            online=target.online,
            rooted=target.rooted,
        )
    )


def _quick(choice: Choice, profile: ServerProfile) -> str:
    """Return what a quick run did not do, in words."""
    newest = "".join(judged(profile, choice)) or "the newest revision"
    called = "no tool called but those of --call" if choice.calls else "no tool called"
    return f"--quick: {newest} only, {called}"


def _attacked(
    results: Iterable[CaseResult], connections: Iterable[Connection]
) -> frozenset[str] | None:
    """Return the tools that attacks called; None if the run attacked nothing."""
    attacks = {one.planned.case.id for one in results if one.planned.case.is_attack}
    sent = (
        entry.value
        for connection in (connections if attacks else ())
        for entry in connection.transcript
        if entry.source is Source.US and entry.scenario in attacks
    )
    calls = (one for one in sent if value_in(one, "method") == "tools/call")
    names = frozenset(str(value_in(one, "params", "name")) for one in calls)
    return names if attacks else None


def fold(
    results: Iterable[CaseResult],
    registry: Registry,
    choice: Choice,
    *,
    partial: bool,
    owed: Iterable[PlannedCase] = (),
) -> list[Verdict]:
    """Combine the results of cases into one verdict for each clause and revision.

    Args:
        choice: the part of it that was run.
        partial: whether the run ended early: a case that has not ended is not judged then.
        owed: cases whose clauses need a verdict in their revision, whatever was planned.
    """
    found: dict[tuple[str, str], list[Judgement]] = {}
    for result in results:
        planned = result.planned
        if not result.done and partial:
            continue
        for judgement in result.judgements:
            for revision in (planned.revision, *planned.also):
                if revision in registry.catalogue[judgement.clause].revisions:
                    found.setdefault((judgement.clause, revision), []).append(
                        replace(judgement, revision=revision)
                    )
        judged = {judgement.clause for judgement in result.judgements}
        for clause in planned.clauses:
            if clause.id not in judged and not partial:
                found.setdefault((clause.id, planned.revision), []).append(
                    unasked(planned, clause, "planned, but never judged: a fault of mcp-touchstone")
                )
    why = "not planned and not left out: a fault of mcp-touchstone"
    for planned, clause in ((one, clause) for one in owed for clause in one.clauses):
        found.setdefault((clause.id, planned.revision), [unasked(planned, clause, why)])
    verdicts = []
    for clause in registry.catalogue:
        for revision in rev.ALL:
            judgements = found.get((clause.id, revision))
            if judgements:
                gravest = worst(judgements)
                outcome = gravest.outcome
                if choice.strict and clause.is_raised and outcome is Outcome.WARN:
                    outcome = Outcome.FAIL
                found_clause = _weighed(clause, gravest)
                verdicts.append(Verdict(found_clause, revision, outcome, gravest, judgements))
    return verdicts


def _weighed(clause: Clause, gravest: Judgement) -> Clause:
    """Return a threat with the severity of its effect, if that is lower than its own."""
    order = tuple(Severity)
    lower = gravest.severity
    if not isinstance(clause, Threat) or lower is None:
        return clause
    return replace(clause, severity=max(clause.severity, lower, key=order.index))
