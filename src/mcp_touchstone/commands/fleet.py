"""The commands `fleet` and `fleet report`."""

from __future__ import annotations

import os

from mcp_touchstone.commands.output import INTERRUPTED, complain
from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Final

    from mcp_touchstone.config.parser import CommandLine
    from mcp_touchstone.fleet.judge import FleetSettings
    from mcp_touchstone.sandbox.sandbox import Method

JOBS: Final = 20
"""Conversations at a time for each processor core, shared by the servers of a fleet."""


def run(line: CommandLine) -> int:
    """Run one of the commands; return the exit status."""
    return (_fleet if line.options.subcommand == "fleet" else _fleet_report)(line.options)


def _fleet(options: argparse.Namespace) -> int:
    from mcp_touchstone.fleet import containers, drive, servers
    from mcp_touchstone.fleet.child import Running
    from mcp_touchstone.fleet.entry import RegistryType
    from mcp_touchstone.sandbox import sandbox

    if (options.engine == "dask") != bool(options.scheduler):
        return complain("--engine dask and --scheduler ADDRESS belong together")
    listed = servers.read(options.list, trusted=bool(options.trust_config))
    if options.opt_out is not None:
        listed = servers.without(listed, servers.opt_outs(options.opt_out), options.opt_out)
    entries = list(drive.shard(listed, *options.shard))
    if options.list_only:
        for entry in entries:
            trouble = "" if entry.trouble is None else f"  ({entry.trouble.line})"
            say(f"{entry.key}{trouble}")
        if not entries:
            say(f"{options.list}: it names no server")
        return 0
    engine = options.inside if options.inside in containers.ENGINES else ""
    how = "auto" if engine else options.inside  # of servers that are no images
    method, why = (None, "") if how == "none" else sandbox.choose(how)
    if engine:
        boxed = {entry.registry for entry in entries} - {RegistryType.OCI, RegistryType.REMOTE}
        why = containers.unavailable(engine) or (why if boxed else "")
    if why:
        hint = "" if engine else "; --inside none runs servers without it"
        return complain(f"--inside {options.inside}: {why}{hint}")
    if method is None and not engine:
        complain("--inside none: the servers can do all that you can")
    plan = _fleet_plan(options, method, engine)
    running = Running()
    _stop_on_signals(running.stop)
    with drive.Rows(options.out, plan, resume=options.resume) as rows:
        tally = drive.FleetCounts(planned=sum(entry.key not in rows.done for entry in entries))
        say(f"{tally.planned} servers, {len(entries) - tally.planned} have a row", flush=True)
        with (
            drive.cluster(options.scheduler, running, complain)
            if options.engine == "dask"
            else drive.threads(options.workers, running)
        ) as pool:
            drive.drive(
                entries,
                plan,
                rows,
                pool=pool,
                running=running,
                on_row=lambda row: say(tally.add(row), flush=True),
            )
    for kind, count in sorted(tally.classes.items(), key=lambda pair: -pair[1]):
        say(f"  {kind:14} {count}")
    return INTERRUPTED if running.stopping else 0


def _fleet_plan(options: argparse.Namespace, method: Method | None, engine: str) -> FleetSettings:
    from mcp_touchstone.config.resolve import refuse_quick_attacks
    from mcp_touchstone.config.settings import layer, words
    from mcp_touchstone.fleet.judge import FleetSettings

    own = layer(vars(options))
    refuse_quick_attacks(quick=bool(own.get("quick")), suite=str(own.get("suite", "")))
    return FleetSettings(
        words=tuple(words(own, "fleet")),
        method=method,
        engine=engine,
        deadline=options.deadline,
        startup=options.timeout,
        jobs=max(JOBS * (os.cpu_count() or 1) // options.workers, 2),
        memory=options.memory << 20,
        files=None if options.no_files else options.out.absolute().with_suffix(".files"),
        work=options.work and options.work.absolute(),
    )


def _stop_on_signals(stop: Callable[[], None]) -> None:
    """Call ``stop`` at SIGINT and SIGTERM, outside of the signal handler."""
    import signal
    import threading

    def take(_number: int, _frame: object) -> None:
        threading.Thread(target=stop).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, take)


def _fleet_report(options: argparse.Namespace) -> int:
    from mcp_touchstone.fleet import counts, report

    found = counts.gather(options.rows)
    old = None if options.since is None else counts.gather([options.since])
    say(*report.text(found, old, names=options.names))
    if options.html is not None:
        page = report.html(found, old, names=options.names, folder=options.html.absolute().parent)
        options.html.write_text(page, "utf-8")
    if options.csv is not None:
        options.csv.write_text(report.table(found), "utf-8")
    if options.parquet is not None:
        report.parquet(options.rows, options.parquet)
    return 0
