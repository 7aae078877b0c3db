"""Carry a plan out and fold what it finds into verdicts. Prints nothing."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from typing import Final

from mcp_touchstone import ambient, plan, schema, shapes
from mcp_touchstone import revision as rev
from mcp_touchstone.agenda import Agenda
from mcp_touchstone.ambient import Record
from mcp_touchstone.arguments import Places
from mcp_touchstone.clause import Breach, Clause
from mcp_touchstone.connection import Connection
from mcp_touchstone.cost import account
from mcp_touchstone.dice import Dice, Rules
from mcp_touchstone.dossier import Canary, Dossier
from mcp_touchstone.lane import OnEvent, drive, our_fault
from mcp_touchstone.learning import Ground, Lessons, learn
from mcp_touchstone.needs import WORDS
from mcp_touchstone.pace import SLICE, Pace
from mcp_touchstone.plan import Choice, UsageError
from mcp_touchstone.pool import Exhausted, Pool
from mcp_touchstone.process import LaunchError, now, processor
from mcp_touchstone.recon import explore
from mcp_touchstone.results import Run, Slot, Verdict, unasked
from mcp_touchstone.scenario import Ambient, Registry, Share
from mcp_touchstone.schedule import Schedule
from mcp_touchstone.scout import Line
from mcp_touchstone.strays import end_abandoned
from mcp_touchstone.target import Target
from mcp_touchstone.verdict import Judgement, Outcome, evidence, worst
from mcp_touchstone.world import NOTE, NOTES, World, abandoned, clear

JOBS: Final = min(64, 20 * (os.cpu_count() or 1))
"""Conversations at once, where nobody says how many: mostly they listen to silence."""

ATTACKS: Final = 2 * (os.cpu_count() or 1)
"""Attacks at once, where nobody says how many: they listen to nothing."""


def judge(
    target: Target,
    registry: Registry | Callable[[], Registry],
    choice: Choice,
    *,
    on_event: OnEvent = lambda _what, _subject: None,
    stop: threading.Event | None = None,
) -> Run:
    """Judge a target: the one way to run, for the command line and for pytest.

    Args:
        target: the server.
        registry: what it is held against; or what reads that, called while the server starts, or
            before where the choice has to be looked up.
        choice: what of it.
        on_event: told what happens, and to whom.
        stop: set to end early.

    Raises:
        UsageError: the choice selects nothing.
        LaunchError: the server cannot be started.
        CatalogueError: of what reads the registry.
    """
    suite = _Suite(registry)
    if choice.looks_up:
        choice.check(suite.registry)
    stop = stop or threading.Event()
    pace = Pace(target.startup, hurried=choice.quick)
    begun = now()
    before = processor()
    tidy()
    with World(seed=target.seed) as world:
        pool = Pool(target, world, pace)
        run = Run(target, Dossier(pace), floor=choice.floor)
        try:
            try:
                _carry_out(run, pool, suite, choice, on_event, stop)
            except KeyboardInterrupt:
                stop.set()
                run.interrupted = True
            if not run.interrupted:
                try:
                    pool.settle()
                    _ambient(run, pool)
                except KeyboardInterrupt:
                    run.interrupted = True
        finally:
            stop.set()
            run.strays = pool.close()
            run.connections = pool.connections
            run.processes = pool.started
    run.verdicts = _fold(run, suite.registry, choice)
    ended = now()
    run.seconds = ended - begun
    run.cost = account(
        [connection.waits for connection in run.connections],
        begun,
        ended,
        processor=processor() - before,
        cores=os.cpu_count() or 1,
    )
    return run


class _Suite:
    """What a server is held against, read when it is asked for first."""

    def __init__(self, registry: Registry | Callable[[], Registry]) -> None:
        self._source = registry

    @cached_property
    def registry(self) -> Registry:
        """The suite.

        Raises:
            CatalogueError: of what reads it.
        """
        return self._source if isinstance(self._source, Registry) else self._source()

    def prepare(self) -> None:
        """Read it, and import what is needed later; what is wrong with that shows there."""
        _ = self.registry
        with contextlib.suppress(Exception):
            schema.prepare()


def survey(
    target: Target,
    revisions: Iterable[str] = (),
    *,
    words: Iterable[str] = (*WORDS, "completions"),
    world: World | None = None,
    stop: threading.Event | None = None,
) -> tuple[Dossier, int]:
    """Find out everything that can be found out about a target; judge nothing.

    Args:
        target: the server.
        revisions: where things are tried; empty is wherever it speaks.
        words: what has to be known, by default everything.
        world: where the server is let loose, by default in a world of its own.
        stop: set to end early.

    Returns:
        what is known, and how many processes it took.

    Raises:
        LaunchError: the server cannot be started.
    """
    stop = stop or threading.Event()
    pace = Pace(target.startup)
    chosen = set(revisions)
    with contextlib.nullcontext(world) if world else World(seed=target.seed) as place:
        pool = Pool(target, place, pace)
        try:
            dossier, connections = _explored(pool)
            pool.knows(dossier)
            pool.adopt(connections, dossier)
            dossier.root = str(pool.world.root)
            wanted = {r: set(words) for r in dossier.spoken if not chosen or r in chosen}
            learn(dossier, wanted, _ground(pool, stop))
            if front := plan.front(list(wanted)):
                from mcp_touchstone.attack import grounds  # noqa: PLC0415  (as below)

                dossier.bindings = grounds.bind(pool, dossier, front[0])
            pool.settle()
        finally:
            stop.set()
            pool.close()
    return dossier, pool.started


def _ground(pool: Pool, stop: threading.Event) -> Ground:
    """Let things be tried on the shared processes of a pool."""

    def line(revision: str, share: Share) -> Line:
        def get() -> Connection:
            try:
                return pool.shared(revision, share)
            except Exhausted as error:
                raise LaunchError(str(error)) from error

        return Line(get, lambda: pool.replace(revision, share))

    def abort() -> None:
        for connection in pool.connections:
            connection.process.kill()

    root = pool.world.root
    places = Places(folder=str(root), file=NOTE, text=NOTES[NOTE])
    return Ground(line, pool.target.named_in(root), places, stop, abort)


def _meet(pool: Pool, suite: _Suite, choice: Choice) -> tuple[Dossier, dict[str, Connection]]:
    """Explore the server in the revisions that are judged; in all if it speaks none asked for."""
    asked = _asked(suite, choice)
    if asked != rev.ALL:
        dossier, connections = explore(pool.spawn_at_once, pool.pace, asked, suite.prepare)
        if dossier.spoken:
            return dossier, connections
        for connection in connections.values():
            connection.transcript.judged = False
            pool.retire(connection)
    return _explored(pool, suite.prepare)


def _asked(suite: _Suite, choice: Choice) -> tuple[str, ...]:
    """Give the revisions a server is asked for, oldest first: those that are judged and why.

    The newest of each era is asked for beside those chosen: some clauses hold where a server speaks
    both eras, or one alone, and some are about the newest it has. A hurry does without.
    """
    newest = (rev.LATEST_LEGACY, rev.LATEST_MODERN)
    if choice.quick:
        return choice.revisions[-1:] or newest
    compared = not choice.revisions or any(
        case.everywhere and choice.takes(case, clause)
        for case in suite.registry.scenarios
        for clause in case.clauses
    )
    if compared:
        return rev.ALL
    return tuple(one for one in rev.ALL if one in {*choice.revisions, *newest})


AFTER_END: Final = 1.0
"""Seconds from the end of a server's output to its exit, at most."""


def _explored(
    pool: Pool, meanwhile: Callable[[], object] = lambda: None
) -> tuple[Dossier, dict[str, Connection]]:
    """Learn what the server is; one that leaves at once is asked again in a git repository.

    Raises:
        LaunchError: it could not be started.
    """
    found = explore(pool.spawn_at_once, pool.pace, meanwhile=meanwhile)
    if found[0].spoken or not pool.target.rooted:
        return found
    left = all(one.process.wait(AFTER_END) is not None for one in found[1].values())
    if not left or not pool.become_repository():
        return found
    again = explore(pool.spawn_at_once, pool.pace)
    first, second = (again, found) if again[0].spoken else (found, again)
    for connection in second[1].values():
        connection.transcript.judged = False
        pool.retire(connection)
    return first


def tidy() -> None:
    """Clear away what runs left behind that were killed: their servers, then their worlds."""
    worlds = abandoned()
    end_abandoned(worlds)
    for path in worlds:
        clear(path)


def _planted(world: World) -> Canary:
    canary = world.canary
    text = canary.read_text(encoding="utf-8").strip()
    return Canary(canary.parent.as_posix(), canary.name, text, world.secret)


def _carry_out(  # noqa: PLR0917  (one caller, named alike on both sides)
    run: Run,
    pool: Pool,
    suite: _Suite,
    choice: Choice,
    on_event: OnEvent,
    stop: threading.Event,
) -> None:
    dossier, connections = _meet(pool, suite, choice)
    registry = suite.registry
    dossier.canary = _planted(pool.world)
    dossier.root = str(pool.world.root)
    dossier.granted = pool.target.folders_in(pool.world.root)
    run.dossier = dossier
    pool.knows(dossier)
    pool.adopt(connections, dossier)
    on_event("recon", dossier)
    lessons = Lessons(dossier, plan.wanted(dossier, registry, choice), _ground(pool, stop))
    dossier.settle = lessons.settle
    agenda = Agenda(run, registry, choice)
    planned = threading.Event()
    if any(isinstance(case, Ambient) for case in registry.cases()):
        pool.on_end = lambda record: _look_ahead(run, record, planned=planned.is_set())
    dice = _dice(run, pool, choice, stop, planned)
    with (
        contextlib.closing(dice.drawn),
        ThreadPoolExecutor(choice.jobs or JOBS, thread_name_prefix="lane") as threads,
        ThreadPoolExecutor(ATTACKS, thread_name_prefix="attack") as workers,
    ):
        schedule = Schedule(
            threads,
            lambda lane: drive(lane, pool, dossier, on_event, stop, dice=dice),
            threads if choice.jobs else workers,
        )
        try:
            binding = workers.submit(_bind, pool, dossier, plan.besieged(dossier, registry, choice))
            for _ in lessons.steps():
                for revision, scenario in agenda.likely(lessons.decided):
                    pool.reserve(revision, scenario.name)
                schedule.add(agenda.ready(lessons.decided, lessons.free))
            while wait([binding], SLICE).not_done:
                pass  # a lock without a limit would keep Ctrl-C waiting on some systems
            binding.result()
            on_event("learnt", dossier)
            _plan(run, registry, choice, agenda.begun)
            on_event("plan", run.slots)
            planned.set()
            begun = {id(slot) for slot in agenda.begun}
            if not run.trouble:
                schedule.add(slot for slot in run.slots if id(slot) not in begun)
            schedule.finish()
        except BaseException:
            stop.set()
            schedule.close()
            for connection in pool.connections:
                connection.process.kill()
            raise


def _bind(pool: Pool, dossier: Dossier, revision: str) -> None:
    """Find out what tools do to files, where attacks are chosen.

    Raises:
        UsageError: a binding the user named is none.
    """
    if revision:
        # only where there are attacks: nobody else has to wait until that is imported
        from mcp_touchstone.attack import grounds  # noqa: PLC0415

        found = grounds.bind(pool, dossier, revision)
        if found.untrue:
            raise UsageError(f"--bindings {found.untrue[0]}; `recon` shows what does")
        dossier.bindings = found


def _plan(run: Run, registry: Registry, choice: Choice, begun: Iterable[Slot]) -> None:
    """Fix the plan.

    Raises:
        UsageError: it is empty.
    """
    plan.make(run, registry, choice, begun)
    if not run.slots and not run.trouble:
        raise UsageError(plan.nothing(run, choice))


def _dice(
    run: Run, pool: Pool, choice: Choice, stop: threading.Event, planned: threading.Event
) -> Dice:
    """Say what properties may draw, and which rules of this run look on."""

    def rules(revision: str) -> Rules:
        while not (planned.wait(SLICE) or stop.is_set()):
            pass
        return [
            (slot.case, slot.clauses)
            for slot in run.slots
            if isinstance(slot.case, Ambient) and slot.revision == revision
        ]

    return Dice(
        examples=choice.examples,
        seed=choice.seed,
        rules=rules,
        home=pool.world.path / "drawn",
        stopped=stop.is_set,
        tiers=choice.tiers,
    )


def _look_ahead(run: Run, record: Record, *, planned: bool) -> None:
    """Look at a conversation that has ended while others go on; a fault shows when all have."""
    shapes.read_ahead(record)
    for slot in run.slots if planned else ():
        if isinstance(slot.case, Ambient) and slot.revision == record.revision:
            with contextlib.suppress(Exception):
                ambient.count(slot.case, record, slot.clauses)


def _ambient(run: Run, pool: Pool) -> None:
    for slot in run.slots:
        if isinstance(slot.case, Ambient):
            records = pool.records(slot.revision)
            try:
                slot.judgements = ambient.judge(slot.case, records, slot.clauses)
            except Exception as error:  # noqa: BLE001  (a fault of a rule must not lose the run)
                why = our_fault(error)
                slot.judgements = [unasked(slot, clause, why) for clause in slot.clauses]
            if run.trouble:
                grave = {Outcome.FAIL, Outcome.WARN}
                slot.judgements = [j for j in slot.judgements if j.outcome in grave]
            slot.done = True
        elif not run.dossier.spoken:
            slot.judgements = _refusal(run, slot, pool)
            slot.done = True


def _refusal(run: Run, slot: Slot, pool: Pool) -> list[Judgement]:
    reply = run.dossier.refused[slot.revision]
    transcript = next(c.transcript for c in pool.connections if c.revision == slot.revision)
    return [
        Judgement(
            clause=clause.id,
            revision=slot.revision,
            outcome=Outcome.FAIL,
            scenario=slot.case.id,
            expected="a result that names a version, for initialize in at least one revision",
            actual=str(reply),
            wire=evidence(list(transcript), reply.entry, [reply.asked]),
        )
        for clause in slot.clauses
    ]


# --- folding


def _fold(run: Run, registry: Registry, choice: Choice) -> list[Verdict]:
    found: dict[tuple[str, str], list[Judgement]] = {}
    for slot in run.slots:
        if not slot.done and run.interrupted:
            continue
        for judgement in slot.judgements:
            for revision in (slot.revision, *slot.also):
                if revision in registry.catalogue[judgement.clause].revisions:
                    found.setdefault((judgement.clause, revision), []).append(
                        replace(judgement, revision=revision)
                    )
        judged = {judgement.clause for judgement in slot.judgements}
        for clause in slot.clauses:
            partial = run.interrupted or run.trouble
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
                if choice.strict and _strict(clause) and outcome is Outcome.WARN:
                    outcome = Outcome.FAIL
                verdicts.append(Verdict(clause, revision, outcome, gravest, judgements))
    return verdicts


def _strict(clause: Clause) -> bool:
    """Whether ``--strict`` raises a warning; a mild breach of a MUST stays a warning."""
    return clause.strict and clause.breach is Breach.WARN


__all__ = ["Choice", "Run", "UsageError", "judge", "survey"]
