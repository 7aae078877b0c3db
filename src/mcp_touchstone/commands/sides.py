"""The commands about recorded conversations and clients: `tap`, `judge`, `client` and `act`."""

from __future__ import annotations

import itertools
import os
import shlex
import time
from dataclasses import replace

from mcp_touchstone.commands.output import (
    CODES,
    announce,
    complain,
    conclude,
    console,
    older,
    reports,
    shared_reports,
)
from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path
    from typing import Final

    from mcp_touchstone.config.parser import CommandLine
    from mcp_touchstone.config.settings import Settings
    from mcp_touchstone.gate.baseline_file import Book
    from mcp_touchstone.report.kinds import Parts
    from mcp_touchstone.results.run import Run
    from mcp_touchstone.tap.drive import Played

PAUSE: Final = 0.2
"""Seconds between two looks at recordings that grow."""


def run(line: CommandLine) -> int:
    """Run one of the commands; return the exit status."""
    return COMMANDS[line.options.subcommand](line)


def _tap(line: CommandLine) -> int:
    """Stand between a client and a server, or edit the file of a client."""
    from mcp_touchstone.tap import relay

    options, command = line.options, line.server
    if _confines(options) and not command:
        return complain("--sandbox and --online are for the command of a server after `--`")
    if options.listen is not None or options.to:
        mixed = options.wrap or options.unwrap or options.words or command
        if mixed or options.listen is None or not (options.to and options.report):
            return complain("tap: write --listen PORT --to URL --report DIR, and nothing else")
        return _tap_http(options)
    if options.wrap or options.unwrap:
        return _wrap(options) if command is None else complain("--wrap and a command: keep one")
    if options.words or not command or options.report is None:
        return complain("tap: write the command of the server after `--`, and --report DIR")
    return relay.exit_like(_relayed(line, command))


def _confines(options: argparse.Namespace) -> bool:
    """Return whether the server of a tap gets a sandbox."""
    return getattr(options, "sandbox", "off") != "off" or "online" in options


def _relayed(line: CommandLine, command: tuple[str, ...]) -> int:
    """Run the server of a tap until it exits; return its status.

    In a sandbox it gets a throw-away folder, and what it leaves there is ended.
    """
    from mcp_touchstone.runtime.secrets import arguments
    from mcp_touchstone.tap import recording, relay
    from mcp_touchstone.tap.faults import faults

    about, env = {"command": list(command)}, {**os.environ, **arguments(command)}
    wanted = faults(line.options.fault, http=False) if line.options.fault else None
    recorder = recording.recorder(line.options.report, about, env)
    made = wanted and wanted.recorded_by(recorder)
    if not _confines(line.options):
        return relay.run(command, recorder, os.environ, made)
    from functools import partial

    from mcp_touchstone.config import resolve
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.engine.launcher import confined
    from mcp_touchstone.engine.runner import tidy
    from mcp_touchstone.transport.orphans import adopt, sweep
    from mcp_touchstone.transport.process import MARK

    target = resolve.target(merged(layer(vars(line.options)), {"command": command}))
    if target.unsafe:
        return complain(f"tap: --sandbox: {target.unsafe}")
    tidy()
    adopt()
    with target.make_world() as world:
        try:
            words, env = confined(target, world)
        except OSError as error:
            return relay.refused(command, recorder, error)
        try:
            with world.limit.ending(partial(sweep, env[MARK])):
                return relay.run(words, recorder, env, made)
        finally:
            sweep(env[MARK])
            if world.limit.met:
                say(f"mcp-touchstone tap: the server was ended: {world.limit.met}", error=True)


def _tap_http(options: argparse.Namespace) -> int:
    """Stand between HTTP clients and a server until a signal comes."""
    from mcp_touchstone.bridge.listener import until_signal
    from mcp_touchstone.tap import proxy, recording
    from mcp_touchstone.tap.faults import faults

    wanted = faults(options.fault, http=True) if options.fault else None
    server = proxy.upstream(options.to)
    env = {**os.environ, **proxy.path_secrets(server)}
    recorder = recording.recorder(options.report, {"url": server.url}, env)
    try:
        made = wanted and wanted.recorded_by(recorder)
        listener = proxy.Proxy(server, recorder, options.listen, made)
    except OSError as error:
        why = f"port {options.listen} cannot be used: {error.strerror}"
        recorder.event(why)
        return complain(why)
    with listener:
        return until_signal(lambda: say(listener.start(), flush=True))


def _wrap(options: argparse.Namespace) -> int:
    import codecs
    from pathlib import Path

    from mcp_touchstone.config import client_wrap
    from mcp_touchstone.config.settings import ConfigError
    from mcp_touchstone.runtime import own_file
    from mcp_touchstone.runtime.input_file import InputFile

    file: Path = options.wrap or options.unwrap
    name = options.words[0] if options.words else None
    if options.words[1:]:
        return complain(f"unrecognized argument {options.words[1]!r}")
    report = (options.report or Path("mcp-tap")).absolute()
    try:
        old = InputFile(file, "nothing was changed").data()
        mark = codecs.BOM_UTF8 if old.startswith(codecs.BOM_UTF8) else b""
        text = old.removeprefix(mark).decode()
        if options.wrap:
            new, names = client_wrap.wrapped(text, str(file), name, report)
        else:
            new, names = client_wrap.unwrapped(text, str(file), name)
        own_file.replace(file, old, mark + new.encode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: it is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise ConfigError(f"{report}: this folder has no name in UTF-8; name another") from error
    except OSError as error:
        raise ConfigError(f"{file}: not changed: {error.strerror}") from error
    for one in names:
        say(f"{one}: recorded in {report}" if options.wrap else f"{one}: not recorded any more")
    return 0


def _tap_show(line: CommandLine) -> int:
    from mcp_touchstone.tap import recording, show

    options, width = line.options, console("auto").width
    view = show.View(
        options.tail,
        options.method,
        options.broken,
        options.headers,
        options.until_broken,
        options.unjudged,
    )
    if options.unjudged and (options.broken or options.until_broken):
        return complain("--unjudged asks no rule; drop --broken and --until-broken")
    if options.follow and (options.html or options.tail):
        return complain("--follow prints what comes; drop --html and --tail")
    if options.follow:
        follower = show.Follower(options.folder, width, view)
        while not (options.until_broken and follower.broken):
            for text in follower.news():
                say(text, flush=True)
            time.sleep(PAUSE)
        return 1
    found = recording.read_all(options.folder)
    if options.html is not None:
        from mcp_touchstone.tap import page

        try:
            options.html.write_text(page.html(found, view), "utf-8")
        except OSError as error:
            return complain(f"{options.html}: cannot be written: {error.strerror}")
    for number, one in enumerate(found if options.html is None else ()):
        for text in itertools.chain([""] if number else [], show.text(one, width, view)):
            say(text)
    return int(options.until_broken and show.broken(found))


def _judge(line: CommandLine) -> int:
    """Judge the sides of recorded conversations; return the worst exit code."""
    from mcp_touchstone.config import resolve
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.report.text import plural
    from mcp_touchstone.tap import breaches, judge, recording

    options = line.options
    settings = merged(layer(vars(options)))
    recordings = recording.read_all(options.folder)
    sides = breaches.SIDES if options.side == "both" else (options.side,)
    if len(sides) > 1 and (settings.json or settings.baseline or settings.update_baseline):
        return complain("--json and --baseline are for one side; add --side client or server")
    parts = shared_reports([settings] * len(sides))
    codes: set[int] = set()
    for side in sides:
        again = ("judge", str(options.folder), "--side", side)
        count = plural(len(recordings), "recording")
        head = f"{count} in {options.folder}: the {side}"
        if codes:
            say("")
        named = settings.baseline or settings.update_baseline
        gate = _Gate(
            replace(settings, name=side), side, parts, resolve.book(settings) if named else None
        )
        if len(sides) == 1:
            gate.choice.check(gate.registry)
        codes.add(gate.pass_(judge.judge(recordings, side, gate.choice, again), head))
    return next(code for code in CODES if code in codes)


def _client(line: CommandLine) -> int:
    """Run a client in each scenario, and judge it."""
    from mcp_touchstone.commands.check import packages_named, with_advisories
    from mcp_touchstone.config import resolve
    from mcp_touchstone.parts.scenarios import find
    from mcp_touchstone.results.played import ScenarioOutcome
    from mcp_touchstone.runtime import interrupts
    from mcp_touchstone.tap import check
    from mcp_touchstone.tap.breaches import CLIENT

    settings = resolve.client(line)
    announce(settings)
    some = "--scenario" if settings.scenario else "--shard" if settings.shard else ""
    if some and settings.update_baseline:
        return complain(f"{some} and --update-baseline: the other scenarios count too; drop one")
    gate = _Gate(settings, CLIENT, {}, resolve.book(settings))
    gate.choice.check(gate.registry)
    scanned = packages_named(settings)
    shown: set[str] = set()

    def show(one: Played) -> None:
        if settings.quiet:
            return
        name, outcome, why = one.scenario.name, one.scenario.outcome, one.scenario.why
        how = f"left out: {why}" if outcome is ScenarioOutcome.LEFT_OUT else "played"
        how += f" as {one.scenario.played_as}" if one.scenario.played_as else ""
        say(f"  {name:<17} {how if outcome.is_whole else why}", flush=True)
        if not outcome.is_whole and why not in shown:  # mostly the rest has the same cause
            part = (find(name).__doc__ or "").partition("\n")[0]
            say(f"{'':19} our part: {part}", *(f"{'':19} {text}" for text in one.said))
            shown.add(why)

    with interrupts.held():  # a signal ends the clients; the reports of what was done come first
        run = with_advisories(check.check(settings, gate.choice, show), scanned)
        return gate.pass_(run, shlex.join(settings.client))


def _judge_gateway(line: CommandLine) -> int:
    """Hold exchanges directly and through a gateway, and judge it."""
    from mcp_touchstone.config import resolve
    from mcp_touchstone.gateway import check, scene

    if line.options.upstream:
        port = getattr(line.options, "upstream_port", 0)
        if not port:
            return complain("gateway --upstream: name the port with --upstream-port PORT")
        command, url = scene.addresses(port)
        say(f"command  {command}", f"URL      {url}")
        return 0
    settings = resolve.gateway(line)
    announce(settings)
    gate = _Gate(settings, check.GATEWAY, {}, resolve.book(settings))
    gate.choice.check(gate.registry)

    def show(revision: str, name: str) -> None:
        if not settings.quiet:
            say(f"  {revision}  {name}", flush=True)

    head = scene.way(settings).target.shown
    return gate.pass_(check.check(settings, gate.choice, show), head)


def _act(line: CommandLine) -> int:
    from mcp_touchstone.parts.scenarios import find, scenarios
    from mcp_touchstone.tap import recording, stdio

    options = line.options
    if options.listing:
        known = scenarios()
        width = max(map(len, known))
        for name, part in known.items():
            say(f"{name:<{width}}  {(part.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if options.scenario is None or options.report is None:
        return complain("act: name a scenario and the folder of the recordings with --report DIR")
    part = find(options.scenario)
    about = {"scenario": options.scenario, "pid": os.getpid()}
    return stdio.play(part, recording.recorder(options.report, about, os.environ))


class _Gate:
    """What is done with a run about one side of conversations."""

    def __init__(self, settings: Settings, side: str, parts: Parts, book: Book | None) -> None:
        from mcp_touchstone.catalog.loader import GATEWAYS, load
        from mcp_touchstone.config import resolve
        from mcp_touchstone.runtime.secrets import arguments
        from mcp_touchstone.tap.breaches import SUITES

        self.registry = load(SUITES.get(side, GATEWAYS))
        self.choice = resolve.choice(settings)
        self._settings, self._side, self._book = settings, side, book
        self._hidden = arguments(settings.client)
        self._write = reports(settings, parts, self._hidden)
        self._old = older(settings)

    def pass_(self, run: Run, head: str) -> int:
        """Report on a run; return the exit code."""
        from mcp_touchstone.report.terminal import Terminal
        from mcp_touchstone.version import __version__

        settings, renewal = self._settings, None
        if self._book is not None:
            run, renewal = self._book.hold(run, self.registry, self.choice)
        if (settings.scenario or settings.shard) and run.settled is not None:
            played = {one.name for one in run.scenarios}  # what others would show is unknown
            stale = [one for one in run.stale if one.rule in played]
            run = replace(run, settled=replace(run.settled, stale=stale))
        terminal = Terminal(
            console(settings.color),
            verbose=settings.verbose,
            quiet=settings.quiet,
            environment={**os.environ, **self._hidden},
        )
        if not settings.quiet:
            terminal.say(("mcp-touchstone ", "bold"), __version__, "  judges  ", head)
            terminal.name(run.subject, ran=self._side == "client" and bool(run.scenarios))
        return conclude(run, settings, terminal, self._write, renewal, self._old)


COMMANDS: Final[dict[str, Callable[[CommandLine], int]]] = {
    "tap": _tap,
    "tap show": _tap_show,
    "judge": _judge,
    "client": _client,
    "gateway": _judge_gateway,
    "act": _act,
}
