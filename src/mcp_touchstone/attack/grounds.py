"""Put fields and processes together: where attacks are run, and where bindings are found."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from mcp_touchstone import answer
from mcp_touchstone.arguments import words
from mcp_touchstone.attack import limits
from mcp_touchstone.attack.binder import Binder
from mcp_touchstone.attack.bindings import Bindings, Operation
from mcp_touchstone.attack.field import ALWAYS, Field
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.client import CAPABILITIES, Client
from mcp_touchstone.connection import Connection
from mcp_touchstone.dossier import Dossier
from mcp_touchstone.loader import SECURITY, SUITES, home
from mcp_touchstone.pool import Pool
from mcp_touchstone.process import LaunchError
from mcp_touchstone.results import Slot
from mcp_touchstone.scenario import Scenario
from mcp_touchstone.target import Target
from mcp_touchstone.threat import ASSUMED, Threat

BASE: Final = ("base",)
"""Trees that stand while bindings are looked for: no link, nothing that is slow to walk."""


def library() -> Path:
    """Give the folder of the suite, with fixtures and payloads."""
    return home() / SUITES[SECURITY]


def field(pool: Pool, fixtures: Iterable[str] = ALWAYS) -> Field:
    """Build a field that lives as long as the run.

    Raises:
        LaunchError: the run is over.
    """
    made = Field(
        library() / "fixtures.toml",
        fixtures,
        pool.target.denied,
        seed=pool.target.seed,
        is_repository=pool.has_repositories,
    )
    pool.keep(made)
    return made


def spawn(
    pool: Pool, ground: Field, revision: str, label: str, target: Target | None = None
) -> Connection:
    """Start a process in a field, in its root unless the user named a folder.

    Its client says yes where the server asks before it writes: whom an attacker talked into a
    call is not warned by its name.

    Raises:
        LaunchError: it could not be started, or the run is over.
    """
    connection = pool.spawn(revision, label, ground, target or pool.target.inside())
    limits.hold(connection.process.pid)
    asked = {k: v for k, v in CAPABILITIES[revision].items() if k == "elicitation"}
    connection.use(Client(capabilities=asked, elicitation=answer.accept()))
    return connection


def siege(pool: Pool, slot: Slot, dossier: Dossier) -> Siege:
    """Give an attack a field, a process in it, and its hands.

    Where no tool was ever called, be it that the server takes no root, be it that it does not
    start there, it is started as the user starts it: only its protocol is attacked then.

    Raises:
        LaunchError: no process could be started, or the run is over.
    """
    scenario = slot.case
    assert isinstance(scenario, Scenario)  # noqa: S101  (lanes hold scenarios only)
    ground = field(pool, scenario.fixtures)
    inside = dossier.bindings is not None and dossier.bindings.calls > 0
    rests_on = {str(t.promise) for t in slot.clauses if isinstance(t, Threat)}
    target = (pool.target.inside() if inside else pool.target).under(rests_on)

    def start() -> Connection:
        return spawn(pool, ground, slot.revision, scenario.name, target)

    made = Siege(
        start(),
        scenario,
        slot.clauses,
        field=ground,
        library=library() / "payloads",
        target=target,
        dossier=dossier,
        revision=slot.revision,
        spawn=start,
    )
    made.terms = {
        threat.id: pool.target.on(threat.promise)
        for threat in slot.clauses
        if isinstance(threat, Threat)
    }
    made.named = tuple(name for name, _ in pool.target.named.calls)
    made.unpromised = frozenset(
        threat.id
        for threat in slot.clauses
        if isinstance(threat, Threat) and threat.promise not in {*ASSUMED, *pool.target.promises}
    )
    return made


def bind(pool: Pool, dossier: Dossier, revision: str) -> Bindings:
    """Find out what the tools do to files, on a process of its own in a field of its own."""
    if not pool.target.rooted:
        dossier.remarks.append("what tools do to files is not attacked: no {root} in the command")
        return Bindings(why="the server was given no throw-away root: put {root} into its command")
    own = pool.target.denied
    if not own.is_default:
        dossier.remarks.append(f"the deny list is attacked with {', '.join(own.names['denied'])}")
    found = _bound(pool, dossier, revision)
    tools = dossier.spoken[revision].named("tools")
    speaks = any(_GIT & {*words(tool["name"]), *_arguments(tool)} for tool in tools)
    gives = bool(found.of(Operation.READ))
    if gives or not found.calls or not speaks or pool.has_repositories:
        return found
    pool.has_repositories = True
    again = _bound(pool, dossier, revision)
    return again if len(again.found) > len(found.found) else found


_GIT: Final = frozenset({"git", "repo", "repository"})
"""Words by which a tool says that it works on repositories."""


def _arguments(tool: Mapping[str, Any]) -> set[str]:
    """Give the words of the names of a tool's arguments."""
    schema = tool.get("inputSchema")
    known = schema.get("properties") if isinstance(schema, dict) else None
    return {word for name in known or () for word in words(name)}


def _bound(pool: Pool, dossier: Dossier, revision: str) -> Bindings:
    ground = field(pool, BASE)
    current: list[Connection] = []

    def get() -> Connection:
        if not current or current[-1].gone:
            connection = spawn(pool, ground, revision, "bindings")
            current.append(connection)
            if connection.open().result is None:
                raise LaunchError(
                    "it does not answer when it is started in the throw-away root; "
                    "--cwd names the folder it has to be started in"
                )
        return current[-1]

    try:
        get()
        named = [name for name, _ in pool.target.named.calls]
        found = Binder(get, ground, named).find(dossier.spoken[revision], pool.target.told)
    except LaunchError as error:
        found = Bindings(why=str(error))
    for connection in current:
        connection.transcript.judged = False
        pool.retire(connection)
    return found
