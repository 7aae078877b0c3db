"""Run a client in all scenarios, and judge it; for the command line and pytest."""

import importlib.util
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcp_touchstone.advisories import table
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.catalog.sdk import LAYERS, UNKNOWN, Package, SdkIdentity
from mcp_touchstone.config import resolve
from mcp_touchstone.config.settings import Settings, words
from mcp_touchstone.discovery.packages import identity
from mcp_touchstone.discovery.sdk import version_in
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import tidy
from mcp_touchstone.parts import stepper
from mcp_touchstone.parts.part import Part, Protection
from mcp_touchstone.parts.scenarios import find, scenarios, without
from mcp_touchstone.results.played import PlayedScenario, ScenarioOutcome, troubles
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.sdk_faults import attribute
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime import interrupts
from mcp_touchstone.tap import course, drive, judge
from mcp_touchstone.tap.breaches import CLIENT
from mcp_touchstone.tap.client_process import ClientError, LiveClients
from mcp_touchstone.tap.drive import SERVER, Played
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import now

MOST: Final = 16 << 20
"""Greatest size of all recordings of a run, in bytes."""

BASIC: Final = "tools_call"
"""The official scenario in which a client lists the tools and calls the first one."""

PLAIN: Final = {"list", "call", "a", "b", "fails"}
"""Members of the steps for which that suffices."""


def official(name: str) -> str:
    """Return the official scenario that makes a client take our steps; empty if there is none.

    It may have another name in some clients, after a blank.
    """
    part = find(name)
    plain = all(step.keys() <= PLAIN for step in part.steps)
    return (BASIC if plain else "") if part.official is None else part.official


def check(
    client: Settings, choice: Choice, on_played: Callable[[Played], object] = lambda _: None
) -> Run:
    """Run a client in its scenarios, and judge it.

    Args:
        client: the command of the client, how it reaches our server, and the scenarios. Without
            ``{server}`` it follows the contract of the official conformance suite: it gets a URL,
            and the scenarios by their official names.
        choice: what to judge, and what counts.
        on_played: called after each scenario.

    Raises:
        UserError: the client cannot be run, or there is no such scenario.
    """
    revision = client.spec_version
    if client.client_http and revision == rev.LEGACY[0]:
        raise ClientError(f"client: {revision} has another transport over HTTP; drop --http")
    began = now()
    scenes = _Scenes(client, resolve.client_target(client), choice)
    tidy()
    scenes.allow(client.scenario)
    names = [*dict.fromkeys(client.scenario or scenes.fit())]
    part, count = client.shard or (1, 1)
    with interrupts.allowed():
        some, jobs = names[part - 1 :: count], client.client_jobs
        played, interrupted = _played(scenes, some, jobs, on_played)
    took = now() - began
    names_given = ("client_http", "sandbox", "online", "spec_version")
    given = {name: value for name in names_given if (value := getattr(client, name))}
    again = ("client", "-v", *words(given, "client"))
    done = tuple(one.scenario for one in played)
    troubled = list(troubles(done))  # reports say these of each scenario
    lacking = [*troubled]
    if scenes.by_contract and not any(one.recordings for one in played):
        lacking.append(f"without {SERVER} in its command, a client gets the URL of a server")
    recordings = [found for one in played for found in one.recordings]
    run = judge.judge(
        recordings,
        CLIENT,
        choice,
        (*again, *(client.origin or ("--", *client.client))),
        command=client.client,
    )
    broke = judge.broken(recordings, choice)
    done = tuple(replace(one, broke=tuple(sorted(broke.get(one.name, ())))) for one in done)
    run = replace(run, subject=replace(run.subject, sdk=scenes.sdk(run.subject)))
    run = attribute(run)
    execution = replace(run.execution, interrupted=interrupted, seconds=took)
    met = any(one.scenario.outcome.is_whole and one.recordings for one in played)
    if met or run.of(Outcome.FAIL, Outcome.WARN):
        execution = replace(execution, notes=tuple(lacking[len(troubled) :]))
    else:
        run = replace(run, trouble="; ".join((*lacking, *filter(None, [run.trouble]))))
    strict = client.scenario_baseline
    return replace(run, scenarios=done, execution=execution, scenarios_count=strict)


def _played(
    scenes: "_Scenes", names: Sequence[str], jobs: int, on_played: Callable[[Played], object]
) -> tuple[list[Played], bool]:
    """Run a client in scenarios, some at a time; return what came of them, and whether it ended.

    Args:
        jobs: the number of clients at a time.
        on_played: called after each scenario, in their order.
    """
    played: list[Played] = []
    with ThreadPoolExecutor(jobs) as pool:
        found = [pool.submit(scenes.play, name) for name in names]
        try:
            for name, one in zip(names, found, strict=True):
                lost = PlayedScenario(name, revision=scenes.revision)
                played.append(_result(one, lost, played))
                on_played(played[-1])
        except BaseException as error:
            more = [one for one in found[len(played) :] if one.done() and not one.exception()]
            pool.shutdown(wait=False, cancel_futures=True)
            scenes.running.end()
            if not isinstance(error, KeyboardInterrupt):
                raise
            return [*played, *(one.result() for one in more)], True  # what was done is judged
    return played, False


def _result(one: Future[Played], lost: PlayedScenario, before: Sequence[Played]) -> Played:
    """Return what came of a scenario; one that cannot be run takes no verdict of those before.

    Args:
        lost: the scenario, if it cannot be run.

    Raises:
        ClientError: it cannot be run, and none before it has a verdict.
    """
    try:
        return one.result()
    except ClientError as error:
        if not any(each.recordings for each in before):
            raise
        why = str(error).removeprefix("client: ")
        return Played(replace(lost, outcome=ScenarioOutcome.CRASHED, why=why))


class _Scenes:
    """A client, and all that its scenarios share.

    Attributes:
        by_contract: whether it follows the contract of the official conformance suite.
        revision: the only one that our server speaks; empty for those of each era.
        running: the clients that run.
    """

    def __init__(self, client: Settings, target: Target, choice: Choice) -> None:
        self.by_contract = not drive.names_server(client.client)
        self.revision = client.spec_version
        self._chosen = {""} | {
            clause.chapter
            for rule in load(CLIENTS).ambients
            for clause in rule.clauses
            if choice.takes(rule, clause)
        }
        self.running = LiveClients()
        self._client, self._target = client, target
        self._http = client.client_http or self.by_contract
        self._left, self._lock = MOST, threading.Lock()

    def fit(self) -> list[str]:
        """Return the names of the scenarios over the transport, and in the revision."""
        revision = self._client.spec_version
        return [
            name
            for name, part in scenarios().items()
            if not (part.on_stdio if self._http else part.protection)
            and not (revision and without(name, revision))
            and not self._of_draft(part)
        ]

    def allow(self, names: Sequence[str]) -> None:
        """Refuse scenarios that the user named, before any is played.

        Raises:
            UserError: there is no such scenario, or it lacks something.
        """
        for name in names:
            if lacks := self._of_draft(find(name)) or self._lacks(name):
                raise ClientError(f"client: the scenario {name} {lacks}")

    def play(self, name: str) -> Played:
        """Run the client in a scenario.

        Raises:
            ClientError: it cannot be run.
        """
        named, lacks = self._client.scenario, self._lacks(name)
        handlers = [*official(name).split(), BASIC] if self.by_contract else [name]
        if self.by_contract and not official(name):
            handlers = [name] if named else []
        reason = f"it {lacks}" if lacks else "the official suite has no such scenario"
        left_out = PlayedScenario(name, why=reason, revision=self._client.spec_version)
        one = Played(left_out)
        for handler in dict.fromkeys(handlers) if not lacks else ():
            if not (one.recordings and _knows(one)):
                one = self._run(name, handler)
                if handler == BASIC != handlers[0]:
                    one = replace(one, scenario=replace(one.scenario, played_as=handler))
        with self._lock:
            self._left -= one.size
        return one

    def sdk(self, subject: Subject) -> SdkIdentity:
        """Return the SDK and the packages of a client, by its processes, command or name."""
        found = self.running.sdk
        if found == UNKNOWN:  # it ended before we looked
            env = {**os.environ, **self._target.env}
            found = identity((), self._target.command, Path.cwd(), env)
        named = {
            Package(str(info["name"]), version, registry)
            for info in subject.reported.values()
            for registry in LAYERS
            if info.get("name") in table.packages(registry) - {*LAYERS[registry]}
            and (version := version_in(info))
        }
        return replace(found.of_client, packages=found.packages or tuple(named))

    def _of_draft(self, part: type[Part]) -> str:
        """Return what a part of a draft lacks; empty for one that is selected, or of no draft."""
        return f"is of a draft: add --select {part.draft}" * (part.draft not in self._chosen)

    def _lacks(self, name: str) -> str:
        """Return what a scenario needs and does not have."""
        part, revision = find(name), self._client.spec_version
        if self._http and part.on_stdio:
            return "needs stdio"
        if revision and (why := without(name, revision)):
            return f"is not played in {revision}: {why}"
        commands = {*self._client.steps}
        methods = {*map(stepper.method, stepper.flat(part.steps or stepper.CONNECT))} - {""}
        if commands and methods and not commands & {*methods, stepper.ANY}:
            return "has no step with a command in --steps"
        return "" if part.protection is None else self._lacks_access(part.protection)

    def _lacks_access(self, protection: Protection) -> str:
        """Return what a scenario with authorization needs and does not have."""
        if not self._http:
            return "needs --http"
        texts = self._client.steps.values()
        if texts and protection.grant and not any(map(stepper.identified, texts)):
            return "gives a client_id: write {client_id} in a command of --steps"
        return "" if importlib.util.find_spec("joserfc") else "needs mcp-touchstone[http-auth]"

    def _run(self, name: str, handler: str) -> Played:
        client = self._client
        try:
            return drive.play(
                self._target,
                name,
                client.save and client.save / name,
                http=self._http,
                limit=client.client_timeout,
                known_as=handler,
                most=max(1, min(drive.MOST, self._left // client.client_jobs)),
                revision=client.spec_version,
                running=self.running,
            )
        except OSError as error:
            raise ClientError(f"client: {error.filename or name}: {error.strerror}") from error


def _knows(one: Played) -> bool:
    """Whether a client went on in a scenario, or ended well; else it may have no handler."""
    return any(map(course.goes_on, one.recordings)) or not one.scenario.status
