"""The commands that start a server but do not judge it by clauses, and `login`."""

from __future__ import annotations

import os

from mcp_touchstone.commands.output import announce, complain
from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Final

    from mcp_touchstone.config.parser import CommandLine
    from mcp_touchstone.config.settings import Settings


def run(line: CommandLine) -> int:
    """Run one of the commands; return the exit status."""
    from mcp_touchstone.config import resolve

    settings = resolve.settings(line)[0]
    announce(settings, error="as_json" in line.options and line.options.as_json)
    return COMMANDS[line.options.subcommand](line.options, settings)


def _init(options: argparse.Namespace, settings: Settings) -> int:
    from mcp_touchstone.config import files, resolve, scaffold
    from mcp_touchstone.engine.runner import survey
    from mcp_touchstone.runtime import interrupts

    files.may_write(options.output, force=options.force)
    target = resolve.target(settings, explores=True)
    profile, _ = survey(target)
    if not profile.spoken:
        return complain(f"nothing was written: {profile.trouble}; does the command start it?")
    source = (str(options.config), settings.name or None) if options.config else None
    with interrupts.held():
        files.write(options.output, scaffold.text(target, profile, source))
    found = str(options.output) == files.FILE and files.needs_no_trust(options.output)
    say(*scaffold.again(str(options.output), found=found))
    return 0


def _recon(options: argparse.Namespace, settings: Settings) -> int:
    import json

    from mcp_touchstone.catalog import revision as rev
    from mcp_touchstone.config import resolve
    from mcp_touchstone.engine.launcher import inherited
    from mcp_touchstone.engine.runner import survey
    from mcp_touchstone.report import survey as report

    target = resolve.target(settings, explores=True)
    profile, processes = survey(target, settings.revision)
    revisions = list(settings.revision or rev.ALL)
    if options.as_json:
        say(*json.dumps(report.document(profile, revisions, processes), indent=2).split("\n"))
    else:
        variables = inherited(os.environ, target)
        shelter = target.shelter
        say(*report.text(profile, revisions, processes, shelter=shelter, variables=variables))
    return 0 if profile.spoken else 2


def _load(_options: argparse.Namespace, settings: Settings) -> int:
    from mcp_touchstone.config import resolve
    from mcp_touchstone.engine.load import lines, load

    found = load(resolve.target(settings))
    say(*lines(found))
    return found.exit_code


def _golden(options: argparse.Namespace, settings: Settings) -> int:
    from dataclasses import replace

    from mcp_touchstone.config import resolve
    from mcp_touchstone.golden.recorder import record, recorded_suite, verify
    from mcp_touchstone.report import golden as report

    revisions = settings.revision
    records = options.action == "record"
    suite = options.scenarios or "" if records else recorded_suite(options.folder)
    # the suite decides whether the server needs a sandbox
    target = resolve.target(replace(settings, suite=suite or settings.suite))
    try:
        if records:
            results = record(
                target,
                options.folder,
                revisions,
                suite=suite,
                update=options.update,
                any_version=options.any_version,
            )
            lines = [line for one in results for line in report.recorded(one)]
        else:
            results = verify(
                target, options.folder, revisions, update=options.update, create=options.create
            )
            lines = [
                line for one in results for line in report.verified(one, verbose=settings.verbose)
            ]
    except OSError as error:
        return complain(f"the recording could not be written: {error}")
    say(*lines)
    return max(one.exit_code for one in results)


def _bridge(options: argparse.Namespace, settings: Settings) -> int:
    from mcp_touchstone.bridge.child import Launch
    from mcp_touchstone.bridge.listener import Listener, until_signal
    from mcp_touchstone.config import resolve
    from mcp_touchstone.runtime import interrupts

    if settings.sandbox not in {"", "off"}:
        return complain(f"--sandbox {settings.sandbox}: bridge starts the server outside; drop it")
    if settings.url:
        return complain(f"{settings.url}: it speaks HTTP already; bridge serves stdio servers")
    target = resolve.target(settings)
    try:
        with (
            interrupts.held(),
            target.make_world() as world,
            interrupts.allowed(),
        ):
            launch = Launch(
                command=target.command_in(world.root),
                env={**os.environ, **target.env_in(world.root)},
                cwd=target.cwd_in(world.root),
            )
            launch.check()
            with Listener(
                launch, port=options.port, most=options.sessions, startup=settings.timeout
            ) as listener:
                stopped = until_signal(lambda: say(listener.start(), flush=True))
    except OSError as error:
        return complain(f"port {options.port} cannot be used: {error.strerror}")
    return stopped


COMMANDS: Final[dict[str, Callable[[argparse.Namespace, Settings], int]]] = {
    "init": _init,
    "recon": _recon,
    "load": _load,
    "golden": _golden,
    "bridge": _bridge,
}
