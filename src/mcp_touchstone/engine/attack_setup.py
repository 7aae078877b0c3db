"""Build fixture trees and start processes in them, for attacks and for tool bindings."""

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.bindings.binding import Binding, Bindings, Operation
from mcp_touchstone.bindings.canary import Area
from mcp_touchstone.catalog.errors import OTHER_FOLDER
from mcp_touchstone.catalog.loader import SECURITY, SUITES, home
from mcp_touchstone.catalog.scenario import Place, Scenario
from mcp_touchstone.catalog.threat import ASSUMED, Threat
from mcp_touchstone.connection import answers
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import CAPABILITIES, Client
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.engine.launcher import inherited
from mcp_touchstone.engine.lease import Lease, Site
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.judging.used_server import Examples, UsedServer
from mcp_touchstone.results.run import PlannedCase
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.security import env_reads, rlimits
from mcp_touchstone.security.attack_session import (
    AttackPayloads,
    AttackSession,
    Claims,
    ThreatJudge,
)
from mcp_touchstone.security.bind_tools import Binder, may_call
from mcp_touchstone.security.fixture_tree import ALWAYS, FixtureTree
from mcp_touchstone.security.payload import CANARY
from mcp_touchstone.security.watch import Watch, names_in
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.framing import object_in

NO_GUESSING: Final = (
    "there is no sandbox, so only tools were tried that --call or --bindings names, and tools "
    "annotated read-only"
)

NO_ROOT: Final = "the command names no {root}"

OWN_FOLDER: Final = "the command names a folder of its own: put {root} in its place"

STARTED_INSIDE: Final = (
    "the command names no {root}: the server was started in the throw-away root for the attacks, "
    "as with --cwd '{root}'"
)

BASE: Final = ("base",)
"""Trees for the search of bindings: no links, nothing slow to traverse."""


def library() -> Path:
    """Return the folder of the suite, with fixtures and payloads."""
    return home() / SUITES[SECURITY]


def field(
    pool: ProcessPool, fixtures: Iterable[str] = ALWAYS, bindings: Bindings | None = None
) -> FixtureTree:
    """Build a fixture tree that lasts as long as the run, with the files that the tools take.

    Raises:
        LaunchError: the run has ended.
    """
    made = FixtureTree(
        library() / "fixtures.toml",
        fixtures,
        pool.target.denied,
        suffixes=bindings.suffixes() if bindings is not None else (),
        folders=bindings.folders() if bindings is not None else (),
        is_repository=pool.has_repositories,
        **pool.world.ground,
    )
    pool.keep(made)
    return made


def spawn(
    pool: ProcessPool,
    ground: FixtureTree,
    revision: str,
    label: str,
    target: Target | None = None,
    *,
    judged: bool = True,
) -> Connection:
    """Start a process in a fixture tree, in its root unless the user named a folder.

    Its client confirms when the server asks before it writes: a user whom an attacker deceived
    would confirm too.

    Raises:
        LaunchError: it could not be started, or the run is over.
    """
    if target is None:
        target = pool.target.inside() if pool.target.started else pool.target
    connection = pool.spawn(revision, label, ground, target, judged=judged)
    if pool.target.started:
        rlimits.hold(connection.process.pid)
    asked = {k: v for k, v in CAPABILITIES[revision].items() if k == "elicitation"}
    connection.answers.use(Client(capabilities=asked, elicitation=answers.accept()))
    return connection


def session(
    pool: ProcessPool,
    slot: PlannedCase,
    examples: Callable[[UsedServer], Examples],
    settings: RunSettings,
    *,
    bindings: Bindings | None,
    unused: bool,
) -> tuple[AttackSession, Lease]:
    """Return the session of an attack: a fixture tree and a process in it, and their lease.

    Args:
        slot: the attack.
        examples: makes the examples of what the server can do.
        bindings: the observed operations of the tools on files.
        unused: whether to start a process, even if another attack left one.

    Raises:
        LaunchError: no process could be started, or the run is over.
    """
    scenario = slot.case
    assert isinstance(scenario, Scenario)  # noqa: S101  (lanes hold scenarios only)
    target = _target(pool, slot, bindings)
    shares = scenario.place is Place.REUSED and pool.target.root_from is None
    site = None
    if shares and not unused:
        site = pool.lender.site(scenario.fixtures, target, slot.revision)
    if site is None:
        pool.lender.make_room()
    tree = site.ground if site else field(pool, scenario.fixtures, bindings)
    state = tree.state() if shares and site is None else None

    def start() -> Connection:
        watched = not scenario.unwatched
        return spawn(pool, tree, slot.revision, scenario.name, target, judged=watched)

    server = UsedServer(site.connection if site else start(), start)
    is_used = site is not None
    claims = _claims(pool, slot, target, roams=bindings is not None and bindings.roams)
    judge = ThreatJudge(server, scenario, slot.clauses, revision=slot.revision, claims=claims)
    payloads = AttackPayloads(server, library() / "payloads", settings)
    made = AttackSession(server, judge, examples(server), tree, claims, payloads)
    if state is not None:
        site = Site(
            fixtures=scenario.fixtures,
            target=target,
            revision=slot.revision,
            ground=tree,
            state=state,
            connection=server.wire,
        )
    return made, pool.lender.lend(slot, server, site, is_used=is_used)


def _target(pool: ProcessPool, slot: PlannedCase, bindings: Bindings | None) -> Target:
    """Return how the server is started for an attack.

    If no tool was ever called, since the server accepts no root or does not start there, it is
    started as the user starts it. Then only its protocol is attacked.
    """
    inside = pool.target.started and bindings is not None and bindings.inside
    rests_on = {str(t.promise) for t in slot.clauses if isinstance(t, Threat)}
    target = (pool.target.inside() if inside else pool.target).under(rests_on)
    if not pool.target.guesses:
        target = replace(target, unsafe=target.unsafe or NO_ROOT)
    return target


def _claims(pool: ProcessPool, slot: PlannedCase, target: Target, *, roams: bool) -> Claims:
    threats = [threat for threat in slot.clauses if isinstance(threat, Threat)]
    promised = {*ASSUMED, *pool.target.promise}
    return Claims(
        target,
        terms={threat.id: pool.target.on(threat.promise) for threat in threats},
        callable_tools=tuple(name for name, _ in pool.target.call),
        unpromised=frozenset(
            t.id for t in threats if t.promise not in promised or (roams and rests_on_root(t))
        ),
    )


def rests_on_root(threat: Threat) -> bool:
    """Return whether a threat is only about a server that keeps its tools in a root."""
    return threat.promise == "containment" and threat.chapter not in {"injection", "urls"}


def bind(
    pool: ProcessPool,
    profile: ServerProfile,
    revision: str,
    *,
    runs: bool = False,
    elsewhere: bool = True,
) -> Bindings:
    """Find the effects of tools on files, with a separate process in a separate fixture tree.

    Args:
        profile: the server; gets remarks.
        runs: whether to find tools that run programs, too.
        elsewhere: whether to call tools although the command names no root.
    """
    if not (elsewhere or pool.target.rooted or not pool.target.started):
        found = Bindings(why="the server was given no throw-away root: put {root} into its command")
        profile.discovered.remark(f"no file tool is attacked: {found.why}")
        return found
    found = _bind(pool, profile, revision, runs=runs)
    if not found.found:
        profile.discovered.remark(f"no file tool is attacked: {found.why}")
    elif not pool.target.guesses:
        profile.discovered.remark(NO_GUESSING)
    return found


def _bind(pool: ProcessPool, profile: ServerProfile, revision: str, *, runs: bool) -> Bindings:
    if not pool.target.started:
        return Bindings(why="we did not start the server")
    if not pool.target.rooted:
        return _bind_elsewhere(pool, profile, revision, runs=runs)
    return _bind_in_root(pool, profile, revision, runs=runs)


def _bind_elsewhere(
    pool: ProcessPool, profile: ServerProfile, revision: str, *, runs: bool
) -> Bindings:
    """Find the effects of tools of a server whose command names no throw-away root.

    It is started in one, so relative paths lead there. If it does not start there, or if its
    command names another folder, its files are not attacked, but the other arguments of tools are.
    """
    if pool.target.has_folder:
        found = _bind_once(pool, profile, revision, runs=False, files=False)
        return replace(found, why=OWN_FOLDER, tries=True)
    found = _bind_in_root(pool, profile, revision, runs=runs)
    if found.inside:
        profile.discovered.remark(STARTED_INSIDE)
    return replace(found, tries=True)


def _bind_in_root(
    pool: ProcessPool, profile: ServerProfile, revision: str, *, runs: bool
) -> Bindings:
    own = pool.target.denied
    if not own.is_default:
        profile.discovered.remark(
            f"the deny list is attacked with {', '.join(own.names['denied'])}"
        )
    found = _bind_once(pool, profile, revision, runs=runs)
    if not (pool.target.guesses or found.found):
        found = replace(found, why=NO_GUESSING)
    tools = profile.spoken[revision].named("tools")
    speaks = any(_GIT & {*words(tool["name"]), *_arguments(tool)} for tool in tools)
    gives = bool(found.of(Operation.READ))
    if gives or not found.calls or not speaks or pool.has_repositories:
        return found
    pool.has_repositories = True
    again = _bind_once(pool, profile, revision, runs=runs)
    return again if len(again.found) > len(found.found) else found


_GIT: Final = frozenset({"git", "repo", "repository"})
"""Words in names of tools that work on repositories."""


def _arguments(tool: Mapping[str, Any]) -> set[str]:
    """Return the words of the names of a tool's arguments."""
    known = object_in(tool, "inputSchema", "properties")
    return {word for name in known for word in words(name)}


def _bind_once(
    pool: ProcessPool, profile: ServerProfile, revision: str, *, runs: bool, files: bool = True
) -> Bindings:
    ground = field(pool, BASE)
    current: list[Connection] = []
    watches: list[Watch] = []
    targets = [pool.target.inside() if pool.target.started else pool.target]
    if pool.target.started:
        ours = inherited(os.environ, pool.target)
        targets.append(env_reads.watched(targets[0], ground, ours))

    def begin() -> Connection:
        there = names_in(ground)
        connection = spawn(pool, ground, revision, "bindings", targets[-1])
        current.append(connection)
        if pool.target.started:
            watches.append(Watch(connection, ground, there))
        if connection.open().result is None:
            raise LaunchError(
                "it does not answer when it is started in the throw-away root; "
                f"--cwd names the folder it has to be started in; {OTHER_FOLDER}"
            )
        for watch in watches[-1:]:
            watch.opened()
        return connection

    def get() -> Connection:
        if current and not current[-1].gone:
            return current[-1]
        try:
            return begin()
        except LaunchError:
            if len(targets) == 1:
                raise
            targets.pop()  # our modules in it may be why
            return begin()

    try:
        get()
        named = [name for name, _ in pool.target.call]
        binder = Binder(
            get,
            ground,
            named,
            lambda tool: may_call(tool, pool.target),
            runs=runs,
            offline=pool.target.method is not None and not pool.target.online,
        )
        found = Bindings()
        if files:
            found = binder.find(profile.spoken[revision], pool.target.bindings)
        roams = not pool.target.rooted and any(_roams(get(), one, ground) for one in found.found)
        found = replace(found, inside=True, tries=True, roams=roams)
    except (LaunchError, OSError) as error:  # OSError: the server removed or replaced our files
        found = Bindings(why=str(error))
    for watch in watches:
        found = replace(found, observed=watch.close(found.observed))
    if len(targets) > 1:
        found = replace(found, observed=env_reads.noted(found.observed, ground))
    for connection in current:
        pool.discard(connection)
    return found


def _roams(connection: Connection, binding: Binding, ground: FixtureTree) -> bool:
    """Return whether a tool reads or makes a file outside, named by its plain absolute path."""
    canary = str(ground.outside / CANARY)
    new = ground.outside / f"new-{secrets.token_hex(4)}{binding.naming.suffix}"
    if binding.operation not in {Operation.READ, Operation.CREATE}:
        return False
    path = canary if binding.operation is Operation.READ else str(new)
    call = binding.call(path, str(ground.root), content="touchstone\n")
    reply = connection.request(*call, required=False)
    seen = ground.canaries.found_in_message(reply.value or {}, {Area.OUTSIDE})
    return bool(seen) or new.exists()
