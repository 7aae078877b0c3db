"""Run a plan and combine its judgements into verdicts. Prints nothing."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from mcp_touchstone.bindings.binding import Bindings
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import Tier
from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.errors import our_fault
from mcp_touchstone.catalog.needs import OPERATIONS, WORDS
from mcp_touchstone.catalog.scenario import Ambient, Registry
from mcp_touchstone.catalog.sdk import UNKNOWN, SdkIdentity
from mcp_touchstone.catalog.threat import Severity, Threat
from mcp_touchstone.client.connection import Connection
from mcp_touchstone.client.server_profile import Diagnosis, PlantedText, ServerProfile
from mcp_touchstone.discovery.probes import ProbeContext, Probing, run_probes
from mcp_touchstone.discovery.recon import explore
from mcp_touchstone.discovery.sdk import SdkFacts, collect, commands, identify
from mcp_touchstone.engine.attack_sites import Sites
from mcp_touchstone.engine.deadline import Deadline
from mcp_touchstone.engine.head_start import HeadStart
from mcp_touchstone.engine.named_check import refuse_unknown
from mcp_touchstone.engine.plan import Choice, Plan, UsageError, besieged, front, nothing, wanted
from mcp_touchstone.engine.process_pool import GENTLE_RATE, ProcessPool
from mcp_touchstone.engine.repeat import Repetitions
from mcp_touchstone.engine.scheduler import Schedule
from mcp_touchstone.engine.worker import Work, drive
from mcp_touchstone.judging import ambient
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.profiles.notes import measured
from mcp_touchstone.results.events import Learnt, Met, OnEvent, Planned
from mcp_touchstone.results.run import PlannedCase, Run, Verdict, unasked
from mcp_touchstone.results.sdk_faults import attribute
from mcp_touchstone.results.verdict import Judgement, Outcome, evidence, worst
from mcp_touchstone.runtime import interrupts
from mcp_touchstone.runtime.scratch import NOTE, NOTES, World, abandoned, clear, entries, private
from mcp_touchstone.runtime.timeouts import SLICE, Pace
from mcp_touchstone.runtime.timing import account
from mcp_touchstone.samples.from_schema import Places
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.orphans import end_abandoned
from mcp_touchstone.transport.process import LaunchError, now, processor
from mcp_touchstone.wire import schema
from mcp_touchstone.wire.transcript import Source

GENTLE: Final = (
    "we did not start this server: one conversation at a time, {:g} requests a second "
    "at most, nothing malformed or heavy; --intrusive allows more"
)

JOBS: Final = min(64, 20 * (os.cpu_count() or 1))
"""Default number of simultaneous conversations: they mostly wait."""

ATTACKS: Final = 2 * (os.cpu_count() or 1)
"""Default number of simultaneous attacks: they hardly wait."""


def judge(
    target: Target,
    registry: Registry | Callable[[], Registry],
    choice: Choice,
    *,
    on_event: OnEvent = lambda _event: None,
    stop: threading.Event | None = None,
) -> Run:
    """Judge a target; the command line and pytest both use this function.

    Args:
        target: the server.
        registry: the suite; or a function that reads it, called while the server starts, or before
            that if the choice contains names to look up.
        choice: the part of the suite to run.
        on_event: called with each event.
        stop: set to end early.

    Raises:
        UsageError: the choice selects nothing.
        LaunchError: the server cannot be started.
        CatalogueError: the registry cannot be read.
    """
    suite = _Suite(registry)
    if choice.looks_up:
        choice.check(suite.registry)
    stop = stop or threading.Event()
    pace = Pace(target.timeout, hurried=choice.quick)
    begun = now()
    before = processor()
    tidy()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    run = Run(
        target,
        ServerProfile(pace),
        started=started,
        floor=replace(choice.floor, sdk=choice.floor.sdk or choice.strict),
        accept_unbound=choice.accept_unbound,
    )
    there = entries(Path.cwd()) if target.method is None else None
    try:
        with interrupts.held(), World(target.world, seed=target.root_from) as world:
            pool = ProcessPool(target, world, pace)
            try:
                with interrupts.allowed(), Deadline(choice.deadline, pool, stop) as deadline:
                    _carry_out(run, pool, suite, choice, on_event, deadline)
            except KeyboardInterrupt:
                run.interrupted = True
            finally:
                stop.set()
                run.strays = pool.close()
                run.connections = pool.connections
                run.processes = pool.started
    except KeyboardInterrupt:  # it came while the world was made or removed
        run.interrupted = True
    if there is not None:
        run.dropped = tuple(sorted((entries(Path.cwd()) or frozenset()) - there))
    run.verdicts = fold(run, suite.registry, choice)
    if not run.profile.sdk.sdks and not target.bundled:
        run.profile.sdk = identify(SdkFacts(lines=_lines(pool)))
    attribute(run)
    if pool.allowance.met and not run.trouble:
        run.trouble = f"{pool.allowance.met}; we stopped listening, and not all was judged"
    ended = now()
    run.seconds = ended - begun
    run.clients = measured(choice.clients, run.profile, choice.record)
    run.cost = account(
        [connection.waits for connection in run.connections],
        begun,
        ended,
        processor=processor() - before,
        cores=os.cpu_count() or 1,
    )
    return run


class _Suite:
    """The suite, read on first use."""

    def __init__(self, registry: Registry | Callable[[], Registry]) -> None:
        self._source = registry

    @cached_property
    def registry(self) -> Registry:
        """The suite.

        Raises:
            CatalogueError: it cannot be read.
        """
        return self._source if isinstance(self._source, Registry) else self._source()

    def prepare(self) -> None:
        """Read it, and import later needs; errors are raised again at their first use."""
        _ = self.registry
        with contextlib.suppress(Exception):
            schema.prepare()


def _carry_out(  # noqa: PLR0917  (one caller, named alike on both sides)
    run: Run,
    pool: ProcessPool,
    suite: _Suite,
    choice: Choice,
    on_event: OnEvent,
    deadline: Deadline,
) -> None:
    """Run the stages of a run; each gets the results of the ones before it."""
    try:
        with pool.killed_on_error(deadline.stop):
            run.profile, connections = _meet(pool, suite, choice)
            pool.adopt(connections, run.profile)
            on_event(Met(run.profile))
            plan = Plan(run.target, run.profile, suite.registry, choice)
            run.slots, run.trouble = plan.cases, plan.trouble
            probing = _lessons(pool, suite.registry, choice, run.profile, deadline.stop)
            work = Work(
                pool=pool,
                profile=run.profile,
                settings=_settings(pool, choice, deadline.stop),
                plan=plan,
                settle=probing.settle,
                stop=deadline.stop,
                on_event=on_event,
                sites=Sites(shared=not choice.separate),
                separate=choice.separate,
            )
            repetitions = Repetitions(work, choice.repeats, deadline, choice.jobs)
            _converse(work, probing, suite.registry, choice, run, repetitions)
            pool.settle(host=False)
            _watch(run, pool, partial=deadline.met)
            if not plan.trouble:  # else no process can be opened again
                repetitions.finish(run.slots)
            pool.settle()
    except LaunchError:
        if not deadline.met:
            raise
    if deadline.met:
        run.trouble = deadline.sentence


def survey(
    target: Target,
    revisions: Iterable[str] = (),
    *,
    words: Iterable[str] = (*WORDS, "completions"),
    world: World | None = None,
    stop: threading.Event | None = None,
) -> tuple[ServerProfile, int]:
    """Collect the complete profile of a target; judge nothing.

    Args:
        target: the server.
        revisions: the revisions to probe; empty means all that it speaks.
        words: the words to decide, by default all.
        world: the folder the server works in, by default a world of its own.
        stop: set to end early.

    Returns:
        the profile, and the number of processes started.

    Raises:
        LaunchError: the server cannot be started.
    """
    stop = stop or threading.Event()
    pace = Pace(target.timeout)
    chosen = set(revisions)
    with (
        interrupts.held(),
        contextlib.nullcontext(world)
        if world
        else World(target.world, seed=target.root_from) as place,
    ):
        pool = ProcessPool(target, place, pace)
        try:
            with interrupts.allowed(), pool.killed_on_error(stop):
                profile, connections = _explored(pool)
                profile.sdk = _sdk(pool, connections)
                pool.knows(profile)
                pool.adopt(connections, profile)
                profile.root = str(pool.world.root)
                sought = {r: set(words) for r in profile.spoken if not chosen or r in chosen}
                run_probes(profile, sought, probe_context(pool, stop))
                if newest := front(list(sought)):
                    from mcp_touchstone.engine import attack_setup  # noqa: PLC0415  (as below)

                    profile.bindings = attack_setup.bind(pool, profile, newest[0], elsewhere=False)
            with interrupts.allowed():
                pool.settle()
        finally:
            stop.set()
            pool.close()
    return profile, pool.started


def probe_context(pool: ProcessPool, stop: threading.Event) -> ProbeContext:
    """Return a ground that runs probes on the shared processes of a pool."""
    root = pool.world.root
    places = Places(folder=str(root), file=NOTE, text=NOTES[NOTE])
    return ProbeContext(pool, pool.target.named_in(root), places, stop)


def _meet(
    pool: ProcessPool, suite: _Suite, choice: Choice
) -> tuple[ServerProfile, dict[str, Connection]]:
    """Open the server in the judged revisions; in all if it speaks none of them."""
    asked = _asked(suite, choice, pool.target)
    found = None
    if asked != pool.target.revisions:
        found = explore(pool.spawn_at_once, pool.pace, asked, suite.prepare)
        if not found[0].spoken and found[0].diagnosis is None:
            for connection in found[1].values():
                pool.discard(connection)
            found = None
    profile, connections = found or _explored(pool, suite.prepare)
    _complete(profile, pool)
    profile.sdk = _sdk(pool, connections)
    return profile, connections


def _complete(profile: ServerProfile, pool: ProcessPool) -> None:
    """Add facts about the run itself to the profile."""
    profile.canary = _planted(pool.world)
    profile.root = str(pool.world.root)
    profile.granted = pool.target.folders_in(pool.world.root)
    pool.knows(profile)


def _sdk(pool: ProcessPool, connections: Mapping[str, Connection]) -> SdkIdentity:
    """Return the SDK of the server: of a process that runs, or else of its command."""
    if pool.target.bundled:
        return SdkIdentity(needless=True)
    if pool.target.sdk is not None:
        return SdkIdentity((pool.target.sdk,))
    root = pool.world.root
    target = pool.target
    env = {**os.environ, **target.env_in(root)}
    if not target.command:
        return UNKNOWN
    processes = next((f for c in connections.values() if (f := c.process.family.facts())), [])
    cwd = Path(target.cwd_in(root) or Path.cwd())
    return identify(collect([*processes, *commands(target.command_in(root), cwd, env)], env))


def _lines(pool: ProcessPool) -> Iterator[str]:
    """Yield the short lines of the server."""
    for connection in pool.connections:
        for entry in connection.transcript:
            if entry.source is Source.THEM and entry.length < SHORT:
                yield entry.text


SHORT: Final = 2000
"""Bytes of a line that may be an error of an SDK."""


def _asked(suite: _Suite, choice: Choice, target: Target) -> tuple[str, ...]:
    """Return the revisions to request from a server, oldest first.

    The newest of each era is requested beside the chosen ones: some clauses apply only to a server
    of both eras, or of one, and some concern the newest it has. A quick run skips this.
    """
    newest = (rev.LATEST_LEGACY, rev.LATEST_MODERN)
    if choice.quick:
        return choice.revisions[-1:] or newest
    compared = not choice.revisions or any(
        case.everywhere and choice.takes(case, clause) and {*clause.revisions} & {*choice.revisions}
        for case in suite.registry.scenarios
        for clause in case.clauses
    )
    if compared:
        return target.revisions
    return tuple(one for one in target.revisions if one in {*choice.revisions, *newest})


AFTER_END: Final = 1.0
"""Greatest seconds from the end of a server's output to its exit."""


def _explored(
    pool: ProcessPool, meanwhile: Callable[[], object] = lambda: None
) -> tuple[ServerProfile, dict[str, Connection]]:
    """Return the profile of the server; if it exits at once, try again in a git repository.

    Raises:
        LaunchError: it could not be started.
    """
    revisions = pool.target.revisions
    found = explore(pool.spawn_at_once, pool.pace, revisions, meanwhile)
    if found[0].spoken or not pool.target.rooted:
        return found
    left = all(one.channel.wait(AFTER_END) is not None for one in found[1].values())
    if not left or not pool.become_repository():
        return found
    again = explore(pool.spawn_at_once, pool.pace, revisions)
    first, second = (again, found) if again[0].spoken else (found, again)
    for connection in second[1].values():
        pool.discard(connection)
    return first


def tidy() -> None:
    """Remove the servers, then the worlds, of runs that were killed."""
    worlds = abandoned()
    end_abandoned(worlds)
    for path in worlds:
        clear(path)


def _planted(world: World) -> PlantedText:
    canary = world.canary
    return PlantedText(str(canary.parent), canary.name, world.canary_text, world.secret)


def _lessons(
    pool: ProcessPool,
    registry: Registry,
    choice: Choice,
    profile: ServerProfile,
    stop: threading.Event,
) -> Probing:
    return Probing(profile, wanted(profile, registry, choice), probe_context(pool, stop))


def _settings(pool: ProcessPool, choice: Choice, stop: threading.Event) -> RunSettings:
    return RunSettings(
        examples=choice.examples,
        seed=choice.seed,
        home=pool.keep(private()).path,
        stop=stop,
        tiers=choice.tiers,
    )


def _converse(  # noqa: PLR0917  (one caller, named alike on both sides)
    work: Work,
    probing: Probing,
    registry: Registry,
    choice: Choice,
    run: Run,
    repetitions: Repetitions,
) -> None:
    """Probe the server and run each scenario as soon as its needs are decided.

    Args:
        work: the common values of all conversations.
        probing: the probes.
        registry: the suite.
        choice: the part of the suite to run.
        run: gets the planned cases.
        repetitions: those of cases with findings.

    Raises:
        UsageError: no selected rule applies to the server, or a binding is wrong.
    """
    plan, pool, profile = work.plan, work.pool, work.profile
    jobs = 1 if profile.is_single or pool.target.gentle else choice.jobs
    if pool.target.gentle:
        profile.remarks.append(GENTLE.format(pool.target.rate or GENTLE_RATE))
    with (
        contextlib.closing(work.settings.drawn),
        ThreadPoolExecutor(jobs or JOBS, thread_name_prefix="lane") as threads,
        ThreadPoolExecutor(ATTACKS, thread_name_prefix="attack") as attackers,
    ):
        work = replace(work, on_certain=repetitions.begin)
        head_start = HeadStart(work, threads, (jobs or JOBS) // 2, probing.settle_probable)
        work = replace(work, early=head_start.take)
        schedule = Schedule(
            threads,
            lambda lane: drive(lane, work, repetitions.repeat_lane),
            threads if jobs else attackers,
        )
        with (
            contextlib.closing(head_start),
            contextlib.closing(schedule),
            pool.killed_on_error(work.stop),
        ):
            revision = besieged(profile, registry, choice)
            binding = attackers.submit(
                _bind, pool, profile, revision, runs=Tier.COMMANDS in choice.tiers
            )
            if profile.is_single:  # one after the other, as each ends the process of the other
                wait([binding])
            head_start.begin(plan.probable(probing.decided, probing.expects))
            for _ in probing.steps():
                head_start.begin(plan.probable(probing.decided, probing.expects))
                if not profile.is_single:
                    schedule.add(plan.ready(probing.decided, probing.free))
                run.slots, run.absent = plan.cases, plan.absent
            while wait([binding], SLICE).not_done:
                pass  # a lock without a time limit would block Ctrl-C on some systems
            binding.result()
            work.on_event(Learnt(profile))
            rest = plan.rest()
            run.slots, run.absent, run.unbound = plan.cases, plan.absent, plan.unbound
            if not run.slots and not plan.trouble and not work.stop.is_set():
                raise UsageError(nothing(run, choice))
            work.on_event(Planned(run.slots))
            if not plan.trouble:
                schedule.add(rest)
            schedule.finish()


def _bind(pool: ProcessPool, profile: ServerProfile, revision: str, *, runs: bool) -> None:
    """Find the effects of tools on files, if attacks are chosen.

    A fault of ours makes every threat that depends on this BROKEN.

    Args:
        pool: starts the processes.
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
            profile.spoken[revision].faults.update(dict.fromkeys(OPERATIONS, fault))
            found = Bindings(why=fault)
        if found.untrue:
            raise UsageError(f"--bindings {found.untrue[0]}; `recon` lists the bindings")
        profile.bindings = found


def _watch(run: Run, pool: ProcessPool, *, partial: bool) -> None:
    """Apply each rule on all traffic to the transcripts, after every process has ended.

    Args:
        run: the run; gets their judgements.
        pool: the pool with the records.
        partial: whether the run ended early: the transcripts may then be incomplete, so only
            findings count.
    """
    for slot in run.slots:
        if isinstance(slot.case, Ambient):
            try:
                records = pool.records(slot.revision)
                slot.judgements = ambient.judge(slot.case, records, slot.clauses)
            except Exception as error:  # noqa: BLE001  (a fault of a rule must not lose the run)
                why = our_fault(error)
                slot.judgements = [unasked(slot, clause, why) for clause in slot.clauses]
            if run.trouble or partial:
                grave = {Outcome.FAIL, Outcome.WARN}
                slot.judgements = [j for j in slot.judgements if j.outcome in grave]
            slot.done = True
        elif not run.profile.spoken:
            slot.judgements = _refusal(run, slot, pool)
            slot.done = True
        if run.profile.diagnosis is not None:
            slot.judgements = _diagnosed(run.profile.diagnosis, slot, pool)


def _refusal(run: Run, slot: PlannedCase, pool: ProcessPool) -> list[Judgement]:
    reply = run.profile.refused[slot.revision]
    connection = next(c for c in pool.connections if c.revision == slot.revision)
    transcript = connection.transcript
    return [
        Judgement(
            clause=clause.id,
            revision=slot.revision,
            outcome=Outcome.FAIL,
            scenario=slot.case.id,
            expected="a result that names a version, for initialize in at least one revision",
            actual=connection.in_words(reply),
            wire=evidence(list(transcript), reply.entry, [reply.asked], transcript.exchanges),
        )
        for clause in slot.clauses
    ]


def _diagnosed(diagnosis: Diagnosis, slot: PlannedCase, pool: ProcessPool) -> list[Judgement]:
    """Return the judgements of a case, and the diagnosis in place of those of its clause."""
    kept = [one for one in slot.judgements if one.clause != diagnosis.clause]
    if not any(clause.id == diagnosis.clause for clause in slot.clauses):
        return kept
    transcript = next(
        c.transcript
        for c in pool.connections
        if c.revision == diagnosis.revision and c.transcript.judged
    )
    found = Judgement(
        clause=diagnosis.clause,
        revision=slot.revision,
        outcome=Outcome.FAIL,
        scenario=slot.case.id,
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


# --- verdicts


def fold(run: Run, registry: Registry, choice: Choice) -> list[Verdict]:
    """Fold the judgements of the planned cases into one verdict for each clause and revision."""
    found: dict[tuple[str, str], list[Judgement]] = {}
    for slot in run.slots:
        partial = run.interrupted or bool(run.trouble)
        if not slot.done and partial:
            continue
        for judgement in slot.judgements:
            for revision in (slot.revision, *slot.also):
                if revision in registry.catalogue[judgement.clause].revisions:
                    found.setdefault((judgement.clause, revision), []).append(
                        replace(judgement, revision=revision)
                    )
        judged = {judgement.clause for judgement in slot.judgements}
        for clause in slot.clauses:
            if clause.id not in judged and not partial:
                found.setdefault((clause.id, slot.revision), []).append(
                    unasked(slot, clause, "planned, but never judged: a fault of mcp-touchstone")
                )
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


__all__ = ["Choice", "Run", "UsageError", "fold", "judge", "survey"]
