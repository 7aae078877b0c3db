"""Golden recordings of any server: record its answers once, compare with them later.

One folder per revision, one JSON file per question; in the folder ``scenarios`` the same for the
scenarios of the suites, one file per chapter. Recordings are made until one shows nothing new, and
their differences are marked volatile; so a difference found later is a lasting one.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import BOTH, SUITES, load
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.server_profile import ServerProfile, is_read_only
from mcp_touchstone.engine.choice import Choice, UsageError
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.runner import judge, survey
from mcp_touchstone.golden.requests import WORDS, Document, Offer, Stop, Tour, plan
from mcp_touchstone.golden.scenarios import chapters_of, responses
from mcp_touchstone.golden.store import Recording, Shelf
from mcp_touchstone.results.scrubber import Scrubber
from mcp_touchstone.runtime import interrupts
from mcp_touchstone.runtime.disk_limit import DiskLimit
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.runtime.secrets import secrets
from mcp_touchstone.runtime.timeouts import SLICE
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.json_diff import (
    VOLATILE,
    Difference,
    differences,
    steady,
    still_volatile,
)

APART: Final = 1.1
"""Least seconds from the end of a recording to the next one: clocks often show seconds."""

SCENARIOS: Final = "scenarios"
"""The folder, in that of the recording, with the responses in the scenarios of the suites."""

TOURS: Final = 4
"""Greatest number of tours in which a new recording is compared with the server."""

_DEEP_ENOUGH: Final = 2
"""Least separators in the path of a user's folder to search for in answers: not ``/app``."""


@dataclass(slots=True)
class GoldenResult:
    """The result of comparing a server with a recording, or of making a recording.

    Attributes:
        now: the present answers of the server.
        differing: (revision, stop) -> the differences from the recording.
        unsteady: the same for differences that appear only sometimes; no failures.
        missing: (revision, stop) of answers that are not recorded.
        unused: (revision, stop) of records that no question uses any more.
        written: files written; removed: files removed.
        silent_tools: listed tools that may not be called, or never succeeded.
        create: whether answers that are not recorded yet are written; otherwise they are failures.
    """

    folder: Path
    now: Recording = field(default_factory=dict)
    differing: dict[tuple[str, str], list[Difference]] = field(default_factory=dict)
    unsteady: dict[tuple[str, str], list[Difference]] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)
    unused: list[tuple[str, str]] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    silent_tools: list[str] = field(default_factory=list)
    create: bool = False

    @property
    def exit_code(self) -> int:
        """0 if every answer equals its record (or was just recorded), 1 otherwise."""
        missing = self.missing and not self.create
        return int(bool(self.differing or self.unused or missing))


# --- asking


class _Questions:
    """One target, its profile, and the tours of it."""

    def __init__(self, target: Target, revisions: tuple[str, ...], recorded: Recording) -> None:
        with interrupts.held(), _world(target) as world, interrupts.allowed():
            self.profile, _ = survey(target, revisions, words=WORDS, world=world)
            root = str(world.root)
        if not self.profile.spoken:
            raise LaunchError(self.profile.trouble)
        self.target = target
        self.revisions = [r for r in self.profile.spoken if not revisions or r in revisions]
        if not self.revisions:
            raise UsageError(f"the server speaks only {', '.join(self.profile.spoken)}")
        may_call = _may_call(self.profile, target)
        self.stops: dict[str, list[Stop]] = {
            revision: plan(
                revision,
                Offer(self.profile.spoken[revision], may_call, root),
                recorded.get(revision, {}),
            )
            for revision in self.revisions
        }
        self._ended: datetime | None = None

    @property
    def silent_tools(self) -> list[str]:
        """Listed tools that may not be called, or never succeeded."""
        listed: dict[str, None] = {}
        called: set[str] = set()
        for revision in self.revisions:
            listed |= {tool["name"]: None for tool in self.profile.spoken[revision].named("tools")}
            called |= {s.about for s in self.stops[revision] if s.name.startswith("call-")}
        return [name for name in listed if name not in called]

    def tour(self) -> Recording:
        """Make all stops of all revisions, each on a new process in a new world."""
        if self._ended is not None:
            left = APART - (datetime.now(UTC) - self._ended).total_seconds()
            threading.Event().wait(max(0.0, left))
        now = datetime.now(UTC)
        pools: list[ProcessPool] = []
        stop = threading.Event()

        def walk(revision: str) -> dict[str, Document]:
            with _world(self.target) as world:
                pool = ProcessPool(self.target, world, replace(self.profile.pace))
                pools.append(pool)
                try:
                    scrubber = _scrubber(self.target, world, now)
                    spawn = partial(_spawned, pool, revision, stop)
                    found = Tour(spawn, scrubber, str(world.root)).take(self.stops[revision])
                finally:
                    pool.close()
                pool.check()
                return found

        with (
            interrupts.held(),
            ThreadPoolExecutor(len(self.revisions), thread_name_prefix="tour") as threads,
        ):
            walking = {revision: threads.submit(walk, revision) for revision in self.revisions}
            try:
                with interrupts.allowed():
                    while wait(walking.values(), timeout=SLICE).not_done:
                        pass  # a lock without a time limit would block Ctrl-C on some systems
            except BaseException:
                stop.set()
                for pool in pools:
                    for connection in pool.connections:
                        connection.channel.kill()
                raise
        self._ended = datetime.now(UTC)
        return {revision: future.result() for revision, future in walking.items()}


class _Scenarios:
    """The scenarios of a suite, run as by ``check``, without properties and repetitions."""

    silent_tools: Final[list[str]] = []

    def __init__(self, target: Target, revisions: tuple[str, ...], suite: str) -> None:
        self._target = target
        self._registry = load(suite)
        self._choice = Choice(
            revisions=revisions, examples=0, repeats=0, accept_unbound=True, separate=True
        )

    def tour(self) -> Recording:
        """Run all scenarios.

        Raises:
            LaunchError: the server cannot be started or judged.
        """
        now = datetime.now(UTC)
        run = judge(self._target, self._registry, self._choice)
        if run.execution.interrupted:
            raise KeyboardInterrupt
        if not run.results:
            raise LaunchError(run.trouble)
        environment = {**os.environ, **self._target.env}
        return responses(run, self._registry, now, _usual_places(environment))


def _world(target: Target) -> World:
    return World(limit=DiskLimit(target.root_size))


def _spawned(pool: ProcessPool, revision: str, stop: threading.Event) -> Connection:
    if stop.is_set():
        raise LaunchError("the tour was broken off")
    return pool.spawn(revision, "tour")


def _may_call(profile: ServerProfile, target: Target) -> set[str]:
    names = {name for name, _ in target.call}
    for spoken in profile.spoken.values():
        names |= {tool["name"] for tool in spoken.named("tools") if is_read_only(tool)}
        names |= {example.name for example in spoken.examples("callable-tool")}
    return names


def _usual_places(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the folders and secrets of the user that are replaced by names."""
    hidden = {value: f"<{name}>" for name, value in secrets(environment)}
    ours = {str(Path.cwd()): "{cwd}", str(Path.home()): "{user}"}
    deep = {path: name for path, name in ours.items() if path.count(os.sep) >= _DEEP_ENOUGH}
    return {**deep, **hidden}


def _scrubber(target: Target, world: World, now: datetime) -> Scrubber:
    environment = {**world.env(os.environ), **target.env_in(world.root)}
    places = {**_usual_places(environment), **world.placeholders}
    return Scrubber(places, now, environment=environment)


# --- recording, and comparing with a recording


def record(
    target: Target,
    folder: Path,
    revisions: tuple[str, ...] = (),
    *,
    suite: str = "",
    update: bool = False,
    any_version: bool = False,
) -> list[GoldenResult]:
    """Record the answers of a server; several times, until one tour shows nothing new.

    Args:
        revisions: the revisions to record; empty means all that the server speaks.
        suite: the suite whose scenarios are recorded too; empty records none.
        update: replace an existing recording.
        any_version: accept any version of the server when comparing.

    Returns:
        the result of the questions, and that of the scenarios if they are recorded.

    Raises:
        UsageError: there is a recording already, or the server speaks none of the revisions.
        LaunchError: the server cannot be started, or does not answer.
    """
    shelves = [Shelf(folder), *([Shelf(folder / SCENARIOS)] if suite else [])]
    recorded = [shelf.read() for shelf in shelves]
    if any(r in one for one in recorded for r in revisions or rev.ALL) and not update:
        raise UsageError(
            f"{folder} holds a recording: `golden verify` compares with it, "
            "`golden record --update` replaces it"
        )
    results: list[GoldenResult] = []
    for shelf, old in zip(shelves, recorded, strict=True):
        source: _Questions | _Scenarios
        if shelf is shelves[0]:
            source = _Questions(target, revisions, old)
        else:
            # `verify` judges the recorded revisions; others would send other requests
            source = _Scenarios(target, revisions or tuple(results[0].now), suite)
        now, unsteady = _steady(source)
        result = GoldenResult(shelf.folder, now=now, unsteady=unsteady)
        if any_version:
            _allow_any_version(result.now)
        _keep(result, shelf, old, revisions, everything=True)
        result.silent_tools = source.silent_tools
        results.append(result)
    return results


def verify(
    target: Target,
    folder: Path,
    revisions: tuple[str, ...] = (),
    *,
    update: bool = False,
    create: bool = False,
) -> list[GoldenResult]:
    """Compare a server with its recording.

    If an answer differs or is new, the tour is made once more: a difference must appear both
    times. An answer that is not recorded yet is a failure, unless ``create`` is set.

    Args:
        revisions: the revisions to compare; empty means all that are recorded.
        update: record the differing answers, and remove unused records.
        create: record answers that are not recorded yet.

    Returns:
        the result of the questions, and that of the scenarios if some are recorded.

    Raises:
        UsageError: there is no recording, a record cannot be read, or the server speaks none of the
            revisions.
        LaunchError: the server cannot be started, or does not answer.
    """
    shelf, scenarios = Shelf(folder), Shelf(folder / SCENARIOS)
    recorded, played = shelf.read(), scenarios.read()
    if not recorded and not played and not create:
        raise UsageError(f"{folder} holds no recording: `golden record` makes one")
    results = []
    if recorded or create:
        tour = _Questions(target, revisions, recorded)
        results.append(_compared(tour, shelf, recorded, revisions, update=update, create=create))
    if played:
        chosen = revisions or tuple(played)
        run = _Scenarios(target, chosen, recorded_suite(folder))
        results.append(_compared(run, scenarios, played, chosen, update=update, create=create))
    return results


def recorded_suite(folder: Path) -> str:
    """Return the suite whose scenarios are recorded in a folder; empty if there are none.

    Raises:
        UsageError: a record belongs to no suite.
    """
    recorded = Shelf(folder / SCENARIOS).read()
    chapters = {name for documents in recorded.values() for name in documents}
    suites = set()
    for suite in SUITES if chapters else ():
        known = set(chapters_of(load(suite)).values())
        if chapters & known:
            suites.add(suite)
            chapters -= known
    if chapters:
        raise UsageError(
            f"{folder}: {SCENARIOS}/*/{min(chapters)}.json belongs to no suite; remove it"
        )
    return BOTH if len(suites) > 1 else "".join(suites)


def _compared(
    source: _Questions | _Scenarios,
    shelf: Shelf,
    recorded: Recording,
    revisions: tuple[str, ...],
    *,
    update: bool,
    create: bool,
) -> GoldenResult:
    first = source.tour()
    result = GoldenResult(shelf.folder, now=first, create=create)
    changed = dict(_changed(recorded, first))
    result.missing = [key for key in _stops_of(first) if key[1] not in recorded.get(key[0], {})]
    result.unused = [
        key
        for key in _stops_of(recorded)
        if (not revisions or key[0] in revisions) and key[1] not in first.get(key[0], {})
    ]
    if changed or (result.missing and create) or update:
        second = source.tour()
        again = dict(_changed(recorded, second))
        for key, found in changed.items():
            places = {one.path for one in again.get(key, [])}
            stay = [one for one in found if one.path in places]
            if stay:
                result.differing[key] = stay
            elif found:
                result.unsteady[key] = found
        result.now = _both(first, second)
    if update or (result.missing and create):
        _keep(result, shelf, recorded, revisions, everything=update)
    result.silent_tools = source.silent_tools
    return result


def _steady(
    source: _Questions | _Scenarios,
) -> tuple[Recording, dict[tuple[str, str], list[Difference]]]:
    """Return a recording that the server confirms, and what still differed in the last tour.

    Each difference between two tours becomes volatile.
    """
    found = _both(source.tour(), source.tour())
    changed: dict[tuple[str, str], list[Difference]] = {}
    for _ in range(TOURS):
        again = source.tour()
        changed = dict(_changed(found, again))
        if not changed:
            break
        found = _both(found, again)
    return found, changed


def _changed(recorded: Recording, now: Recording) -> Iterator[tuple[tuple[str, str], Any]]:
    for revision, name in _stops_of(now):
        old = recorded.get(revision, {}).get(name)
        found = [] if old is None else list(differences(old, now[revision][name]))
        if found:
            yield (revision, name), found


def _stops_of(recording: Recording) -> Iterator[tuple[str, str]]:
    for revision, stops in recording.items():
        for name in stops:
            yield revision, name


def _both(one: Recording, two: Recording) -> Recording:
    return {
        revision: {
            name: steady(document, two.get(revision, {}).get(name, VOLATILE))
            for name, document in stops.items()
        }
        for revision, stops in one.items()
    }


def _keep(
    result: GoldenResult,
    shelf: Shelf,
    recorded: Recording,
    revisions: tuple[str, ...],
    *,
    everything: bool,
) -> None:
    """Write new answers, or all changed ones; in the latter case also remove unused records."""
    for revision, name in _stops_of(result.now):
        old = recorded.get(revision, {}).get(name)
        if old is not None and not everything:
            continue
        fresh = result.now[revision][name]
        kept = fresh if old is None else still_volatile(old, fresh)
        if kept != old:
            result.written.append(shelf.write(revision, name, kept))
    if not everything:
        return
    for revision, name in list(_stops_of(recorded)):
        gone = name not in result.now.get(revision, {})
        if gone and (not revisions or revision in revisions):
            result.removed.append(shelf.remove(revision, name))
    result.differing.clear()
    result.unused.clear()
    result.missing.clear()


def _allow_any_version(recording: Mapping[str, Mapping[str, Document]]) -> None:
    for stops in recording.values():
        result = stops.get("opening", {}).get("answer", {}).get("result", {})
        meta = result.get("_meta", {})
        for info in (result.get("serverInfo"), meta.get(rev.META + "serverInfo")):
            if isinstance(info, dict) and "version" in info:
                info["version"] = VOLATILE
