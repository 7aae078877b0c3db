"""Run a plan and combine its judgements into verdicts. Prints nothing."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_touchstone.catalog.needs import WORDS
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.connection.server_profile import PlantedText, ServerProfile
from mcp_touchstone.discovery.recon import FirstLook, explore
from mcp_touchstone.engine.choice import Choice, UsageError
from mcp_touchstone.engine.deadline import Deadline
from mcp_touchstone.engine.lease import ATTACKS
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.results.events import Met, OnEvent, RunLog
from mcp_touchstone.results.run import Run
from mcp_touchstone.runtime import interrupts
from mcp_touchstone.runtime.scratch import World, abandoned, at_home, clear, entries
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.orphans import end_abandoned
from mcp_touchstone.transport.process import LaunchError, now, processor

if TYPE_CHECKING:
    from mcp_touchstone.connection.connection import Connection
    from mcp_touchstone.engine.stages import Course

# The stages, and what only they need, are imported while the server starts.


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
        registry: the suite; or a function that reads it, called while the server starts, or before
            that if the choice contains names to look up.
        stop: set to end early.

    Raises:
        UsageError: the choice selects nothing.
        LaunchError: the server cannot be started.
        CatalogueError: the registry cannot be read.
    """
    suite = _Suite(registry)
    if choice.looks_up:
        choice.check(suite.registry)
    before = datetime.now(UTC), now(), processor()
    tidy()
    course = _in_a_world(target, suite, choice, RunLog(on_event), stop or threading.Event())
    from mcp_touchstone.engine import stages  # noqa: PLC0415  (as above)

    return stages.conclude(course, suite.registry, choice, before)


def _in_a_world(
    target: Target, suite: "_Suite", choice: Choice, log: RunLog, stop: threading.Event
) -> "Course":
    """Run the stages in a throw-away folder, and return what they came to, if interrupted too."""
    profile = ServerProfile(Pace(target.timeout, hurried=choice.quick))
    plan, pool, trouble, interrupted, strays = None, None, "", False, 0
    there = entries(Path.cwd()) if target.method is None else None
    try:
        with interrupts.held(), target.make_world() as world:
            pool = ProcessPool(
                target,
                world,
                profile.pace,
                stop=stop,
                isolated=choice.separate,
                attacks=choice.jobs or ATTACKS,
            )
            deadline = Deadline(choice.deadline, pool)
            try:
                with interrupts.allowed(), deadline, pool.killed_on_error():
                    profile, connections = _meet(pool, suite, choice)
                    from mcp_touchstone.engine import plan as planning  # noqa: PLC0415  (as above)
                    from mcp_touchstone.engine import stages  # noqa: PLC0415  (as above)

                    profile = _complete(profile, pool, connections)
                    pool.adopt(connections, profile)
                    log.add(Met(profile))
                    plan = planning.Plan(target, profile, suite.registry, choice)
                    stages.after_meeting(plan, pool, suite.registry, choice, log, deadline)
            except LaunchError:
                if not pool.over:
                    raise
            except KeyboardInterrupt:
                interrupted = True
            finally:
                stop.set()
                strays = pool.close()
                trouble = pool.over
    except KeyboardInterrupt:  # it came while the world was made or removed
        interrupted = True
    now_there = frozenset() if there is None else entries(Path.cwd()) or frozenset()
    dropped = tuple(sorted(now_there - (there or frozenset())))
    from mcp_touchstone.engine.stages import Course  # noqa: PLC0415  (as above)

    return Course(target, profile, plan, log, pool, trouble, interrupted, strays, dropped)


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
        from mcp_touchstone.engine import stages  # noqa: F401, PLC0415  (as above)
        from mcp_touchstone.wire import schema  # noqa: PLC0415  (as above)

        with contextlib.suppress(Exception):
            schema.prepare()


def survey(
    target: Target,
    revisions: Iterable[str] = (),
    *,
    words: Iterable[str] = (*WORDS, "completions"),
    world: World | None = None,
) -> tuple[ServerProfile, int]:
    """Collect the complete profile of a target; judge nothing.

    Args:
        revisions: the revisions to probe; empty means all that it speaks.
        words: the words to decide, by default all.
        world: the folder the server works in, by default a world of its own.

    Returns:
        the profile, and the number of processes started.

    Raises:
        LaunchError: the server cannot be started.
    """
    stop = threading.Event()
    pace = Pace(target.timeout)
    chosen = set(revisions)
    with (
        interrupts.held(),
        contextlib.nullcontext(world) if world else target.make_world() as place,
    ):
        pool = ProcessPool(target, place, pace, stop=stop)
        try:
            with interrupts.allowed(), pool.killed_on_error():
                profile, connections, _ = _explored(pool)
                from mcp_touchstone.discovery.probes import run_probes  # noqa: PLC0415  (as above)
                from mcp_touchstone.engine import attack_setup, plan, stages  # noqa: PLC0415

                profile = _complete(profile, pool, connections)
                pool.adopt(connections, profile)
                sought = {r: set(words) for r in profile.spoken if not chosen or r in chosen}
                run_probes(profile, sought, stages.probe_context(pool, stop))
                if newest := plan.front(list(sought)):
                    found = attack_setup.bind(pool, profile, newest[0], elsewhere=False)
                    profile.discovered.bind(found)
            with interrupts.allowed():
                pool.settle()
        finally:
            stop.set()
            pool.close()
    pool.check()
    return profile, pool.started


def _meet(
    pool: ProcessPool, suite: _Suite, choice: Choice
) -> tuple[ServerProfile, dict[str, "Connection"]]:
    """Open the server in the judged revisions; in all if it speaks none of them."""
    asked = choice.asked(lambda: suite.registry, pool.target.revisions)
    found = None
    if asked != pool.target.revisions:
        found = explore(
            pool.spawn_at_once,
            pool.pace,
            asked,
            suite.prepare,
            lambda: choice.needs_few(suite.registry),
        )
        _discard(pool, found.spoiled)
        if not found.profile.spoken and found.profile.diagnosis is None:
            _discard(pool, found.connections.values())
            found = None
    profile, connections, _ = found or _explored(pool, suite.prepare)
    return profile, connections


def _complete(
    profile: ServerProfile, pool: ProcessPool, connections: Mapping[str, "Connection"]
) -> ServerProfile:
    """Return a profile with its SDK and facts about the run itself, which the pool then knows."""
    from mcp_touchstone.engine.stages import find_sdk  # noqa: PLC0415  (as above)

    complete = replace(
        profile,
        sdk=find_sdk(pool, connections),
        canary=_planted(pool.world),
        root=str(pool.world.root),
        granted=pool.target.folders_in(pool.world.root),
    )
    pool.knows(complete)
    return complete


AFTER_END: Final = 1.0
"""Greatest seconds from the end of a server's output to its exit."""


def _explored(pool: ProcessPool, meanwhile: Callable[[], object] = lambda: None) -> FirstLook:
    """Return the profile of the server; if it exits at once, try again elsewhere.

    Some servers start in a git repository only, and some in no folder that everybody may write to.

    Raises:
        LaunchError: it could not be started.
    """
    revisions = pool.target.revisions
    found = explore(pool.spawn_at_once, pool.pace, revisions, meanwhile)
    _discard(pool, found.spoiled)
    if found.profile.spoken or not pool.target.rooted:
        return found
    for change in (_becomes_repository, _goes_home):
        left = (one.channel.wait(AFTER_END) is not None for one in found.connections.values())
        if found.profile.spoken or not all(left) or not change(pool):
            continue
        again = explore(pool.spawn_at_once, pool.pace, revisions)
        _discard(pool, again.spoiled)
        found, other = (again, found) if again.profile.spoken else (found, again)
        _discard(pool, other.connections.values())
    return found


def _becomes_repository(pool: ProcessPool) -> bool:
    """Make the root a repository; return whether it was none."""
    if pool.world.is_repository:
        return False
    pool.world.become_repository()
    pool.has_repositories = True
    return True


def _goes_home(pool: ProcessPool) -> bool:
    """Move the world below the home of the user; return whether that is possible."""
    place = at_home()
    if pool.target.world is not None or pool.world.path.tree.path.is_relative_to(place):
        return False
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    pool.move(place)
    return True


def _discard(pool: ProcessPool, connections: Iterable["Connection"]) -> None:
    for connection in connections:
        pool.discard(connection)


def tidy() -> None:
    """Remove the servers, then the worlds, of runs that were killed."""
    worlds = abandoned()
    end_abandoned(worlds)
    for path in worlds:
        clear(path)


def _planted(world: World) -> PlantedText:
    canary = world.canary
    return PlantedText(str(canary.parent), canary.name, world.canary_text, world.secret)


__all__ = ["Choice", "Run", "UsageError", "judge", "survey"]
