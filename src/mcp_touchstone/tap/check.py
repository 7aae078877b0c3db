"""Run a client in all scenarios, and judge it; for the command line and pytest."""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mcp_touchstone.config import resolve
from mcp_touchstone.config.settings import Settings, words
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import tidy
from mcp_touchstone.parts.scenarios import find, scenarios
from mcp_touchstone.results.played import PlayedScenario, ScenarioOutcome, troubles
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.tap import course, drive, judge
from mcp_touchstone.tap.client_process import ClientError
from mcp_touchstone.tap.drive import SERVER, Played
from mcp_touchstone.target.target import Target

MOST: Final = 16 << 20
"""Greatest size of all recordings of a run, in bytes."""

BASIC: Final = "tools_call"
"""The official scenario in which a client lists the tools and calls the first one."""

PLAIN: Final = {"list", "call", "a", "b", "fails"}
"""Members of the steps for which that suffices."""


def official(name: str) -> str:
    """Return the official scenario that makes a client take our steps; empty if there is none."""
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
    by_contract = not any(SERVER in word for word in client.client)
    http = client.client_http or by_contract
    target = resolve.client_target(client)
    tidy()
    fit = (
        name
        for name, part in scenarios().items()
        if not (part.on_stdio if http else part.protection)
    )
    names = dict.fromkeys(client.scenario or fit)
    played: list[Played] = []
    interrupted = False
    try:
        for name in names:
            lacks = _lacks(name, http=http)
            if lacks and client.scenario:
                raise ClientError(f"client: the scenario {name} {lacks}")
            handlers = [official(name), BASIC] if by_contract else [name]
            if not handlers[0]:
                handlers = [name] if client.scenario else []
            reason = f"it {lacks}" if lacks else "the official suite has no such scenario"
            one = Played(PlayedScenario(name, ScenarioOutcome.LEFT_OUT, reason))
            for handler in dict.fromkeys(handlers) if not lacks else ():
                if not (one.recordings and _knows(one)):
                    left = MOST - sum(earlier.size for earlier in played)
                    one = _play(client, target, name, handler, left, http=http)
            played.append(one)
            on_played(one)
    except KeyboardInterrupt:  # what was done is judged
        interrupted = True
    names_given = ("client_http", "sandbox", "online")
    given = {name: value for name in names_given if (value := getattr(client, name))}
    again = ("client", "-v", *words(given, "client"))
    done = tuple(one.scenario for one in played)
    lacking = list(troubles(done))
    if by_contract and not any(one.recordings for one in played):
        lacking.append(f"without {SERVER} in its command, a client gets the URL of a server")
    run = judge.judge(
        [found for one in played for found in one.recordings],
        judge.CLIENT,
        choice,
        (*again, *(client.origin or ("--", *client.client))),
        command=client.client,
    )
    execution = replace(run.execution, interrupted=interrupted)
    if any(one.outcome.is_whole for one in done) or run.of(Outcome.FAIL, Outcome.WARN):
        execution = replace(execution, notes=tuple(lacking))
    else:
        run = replace(run, trouble="; ".join((*lacking, *filter(None, [run.trouble]))))
    return replace(run, scenarios=done, execution=execution)


def _knows(one: Played) -> bool:
    """Whether a client took a step of a scenario, or ended well; else it may have no handler."""
    called = any("tools/call" in course.methods(each) for each in one.recordings)
    return called or not one.scenario.status


def _lacks(name: str, *, http: bool) -> str:
    """Return what a scenario needs and does not have."""
    part = find(name)
    if http and part.on_stdio:
        return "needs stdio"
    if part.protection is None:
        return ""
    if not http:
        return "needs --http"
    return "" if importlib.util.find_spec("joserfc") else "needs mcp-touchstone[http-auth]"


def _play(
    client: Settings, target: Target, name: str, handler: str, left: int, *, http: bool
) -> Played:
    try:
        return drive.play(
            target,
            name,
            client.save and client.save / name,
            http=http,
            limit=client.client_timeout,
            known_as=handler,
            most=max(1, min(drive.MOST, left)),
        )
    except OSError as error:
        raise ClientError(f"client: {error.filename or name}: {error.strerror}") from error
