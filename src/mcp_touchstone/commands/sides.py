"""The commands about recorded conversations and clients: `tap`, `judge`, `client` and `act`."""

from __future__ import annotations

import contextlib
import importlib.util
import os

from mcp_touchstone.commands.output import CODES, complain, console, reports, shared_reports
from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Final

    from mcp_touchstone.config.parser import CommandLine
    from mcp_touchstone.config.settings import Settings
    from mcp_touchstone.report.kinds import Parts
    from mcp_touchstone.tap.recording import Recording


def run(line: CommandLine) -> int:
    """Run one of the commands; return the exit status."""
    return COMMANDS[line.options.subcommand](line)


def _tap(line: CommandLine) -> int:
    """Stand between a client and a server, or edit the file of a client."""
    from mcp_touchstone.tap import recording, relay

    options, command = line.options, line.server
    if options.listen is not None or options.to:
        mixed = options.wrap or options.unwrap or options.words or command
        if mixed or options.listen is None or not (options.to and options.report):
            return complain("tap: write --listen PORT --to URL --report DIR, and nothing else")
        return _tap_http(options)
    if options.wrap or options.unwrap:
        return _wrap(options) if command is None else complain("--wrap and a command: keep one")
    if options.words or not command:
        return complain("tap: write the command of the server behind `--`, and --report DIR")
    if options.report is None:
        return complain("tap: name the folder of the recordings with --report DIR")
    about = {"command": recording.shown(command)}
    recorder = recording.recorder(options.report, about, os.environ)
    return relay.exit_like(relay.run(command, recorder))


def _tap_http(options: argparse.Namespace) -> int:
    """Stand between HTTP clients and a server until a signal comes."""
    from mcp_touchstone.bridge.listener import until_signal
    from mcp_touchstone.tap import proxy, recording

    server = proxy.upstream(options.to)
    env = {**os.environ, **proxy.path_secrets(server)}
    recorder = recording.recorder(options.report, {"url": server.url}, env)
    try:
        listener = proxy.Proxy(server, recorder, options.listen)
    except OSError as error:
        why = f"port {options.listen} cannot be used: {error.strerror}"
        recorder.event(why)
        return complain(why)
    with listener:
        return until_signal(lambda: say(listener.start(), flush=True))


def _wrap(options: argparse.Namespace) -> int:
    from pathlib import Path

    from mcp_touchstone.config import client_wrap
    from mcp_touchstone.config.settings import ConfigError

    file: Path = options.wrap or options.unwrap
    name = options.words[0] if options.words else None
    if options.words[1:]:
        return complain(f"unrecognized argument {options.words[1]!r}")
    report = (options.report or Path("mcp-tap")).absolute()
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: it is not UTF-8") from error
    if options.wrap:
        new, names = client_wrap.wrapped(text, str(file), name, report)
    else:
        new, names = client_wrap.unwrapped(text, str(file), name)
    file.write_bytes(new.encode())
    for one in names:
        say(f"{one}: recorded in {report}" if options.wrap else f"{one}: not recorded any more")
    return 0


def _tap_show(line: CommandLine) -> int:
    from mcp_touchstone.tap import recording, show

    options = line.options
    width = console("auto").width
    for number, one in enumerate(recording.read_all(options.folder)):
        say(*([""] if number else []), *show.text(one, width))
    return 0


def _judge(line: CommandLine) -> int:
    """Judge the sides of recorded conversations; return the worst exit code."""
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.report.text import plural
    from mcp_touchstone.tap import judge, recording

    options = line.options
    settings = merged(layer(vars(options)))
    recordings = recording.read_all(options.folder)
    sides = judge.SIDES if options.side == "both" else (options.side,)
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
        code = _judge_side(settings, recordings, side, parts, head, again)
        codes.add(code)
    return next(code for code in CODES if code in codes)


def _client(line: CommandLine) -> int:
    """Run a client in each scenario, and judge it."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.report.text import plural
    from mcp_touchstone.tap import drive, judge, scenarios

    options, command = line.options, line.server
    if not command:
        return complain("client: write the command of the client behind `--`")
    names = options.scenario or list(scenarios.SCENARIOS)
    guarded = {name for name in names if scenarios.find(name).protection is not None}
    lacks = "needs --http" if not options.over_http else ""
    if guarded and not lacks and importlib.util.find_spec("joserfc") is None:
        lacks = "needs mcp-touchstone[http-auth]"
    if guarded and lacks and options.scenario:
        return complain(f"client: the scenario {min(guarded)} {lacks}")
    names = [name for name in names if not (lacks and name in guarded)]
    settings = merged(layer(vars(options)))
    played = []
    with contextlib.ExitStack() as stack:
        folder = options.recordings or Path(stack.enter_context(TemporaryDirectory()))
        for name in names:
            try:
                one = drive.play(
                    command, name, folder / name, http=options.over_http, limit=options.limit
                )
            except OSError as error:
                return complain(f"client: {command[0]}: {error.strerror}")
            played.append(one)
            if not settings.quiet:
                say(f"  {name:<15} {one.trouble.partition(': ')[2] or 'played'}", flush=True)
                for text in one.said if one.trouble else ():
                    say(f"{'':17} {text}")
    if guarded and lacks and options.over_http and not settings.quiet:
        say(f"  auth            not played: it {lacks}")
    trouble = "; ".join(one.trouble for one in played if one.trouble)
    recordings = [found for one in played for found in one.recordings]
    again = ("client", "-v", *(["--http"] if options.over_http else []), "--", *command)
    head = f"{plural(len(played), 'scenario')} of {' '.join(command)}: the client"
    return _judge_side(settings, recordings, judge.CLIENT, {}, head, again, trouble)


def _act(line: CommandLine) -> int:
    from mcp_touchstone.tap import act, recording, scenarios

    options = line.options
    if options.listing:
        width = max(map(len, scenarios.SCENARIOS))
        for name, part in scenarios.SCENARIOS.items():
            say(f"{name:<{width}}  {(part.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if options.scenario is None or options.report is None:
        return complain("act: name a scenario and the folder of the recordings with --report DIR")
    part = scenarios.find(options.scenario)
    about = {"scenario": options.scenario, "pid": os.getpid()}
    return act.play(part(recording.recorder(options.report, about, os.environ)))


def _judge_side(  # noqa: PLR0917  (one caller for each command)
    settings: Settings,
    recordings: Sequence[Recording],
    side: str,
    parts: Parts,
    head: str,
    again: Sequence[str],
    trouble: str = "",
) -> int:
    """Judge one side of conversations, and report on it."""
    from dataclasses import replace

    from mcp_touchstone import __version__
    from mcp_touchstone.catalog.loader import load
    from mcp_touchstone.config import resolve
    from mcp_touchstone.report.terminal import Terminal
    from mcp_touchstone.tap import judge

    settings = replace(settings, name=side)
    choice = resolve.choice(settings)
    run = judge.judge(recordings, side, choice, again, trouble)
    write = reports(settings, parts)
    if settings.baseline:
        book = resolve.book(settings)
        renewal = None if book is None else book.hold(run, load(judge.SUITES[side]), choice)
        if renewal is not None:
            from mcp_touchstone.report import standing

            say(*standing.renewed(renewal))
    terminal = Terminal(
        console(settings.color),
        verbose=settings.verbose,
        quiet=settings.quiet,
        environment=os.environ,
    )
    if not settings.quiet:
        terminal.say(("mcp-touchstone ", "bold"), __version__, "  judges  ", head)
        terminal.name(side, run.profile)
    terminal.finish(run)
    lost = [complain(line) for line in write(run)]
    return lost[0] if lost else run.exit_code


COMMANDS: Final[dict[str, Callable[[CommandLine], int]]] = {
    "tap": _tap,
    "tap show": _tap_show,
    "judge": _judge,
    "client": _client,
    "act": _act,
}
