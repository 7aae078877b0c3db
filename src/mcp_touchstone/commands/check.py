"""The command `check`."""

from __future__ import annotations

import os

from mcp_touchstone.commands.output import (
    CODES,
    INTERRUPTED,
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
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from mcp_touchstone.advisories.known import Scanned
    from mcp_touchstone.catalog.scenario import Registry
    from mcp_touchstone.config.parser import CommandLine
    from mcp_touchstone.config.settings import Settings
    from mcp_touchstone.report.kinds import Parts
    from mcp_touchstone.report.terminal import Terminal
    from mcp_touchstone.results.events import Event
    from mcp_touchstone.results.run import Run
    from mcp_touchstone.target.target import Target


def run(line: CommandLine) -> int:
    """Check the servers of a command line; return the exit status."""
    from mcp_touchstone.config import resolve

    if line.options.subcommand == "approve":
        line.options.update_lock = True
        line.options.suite = getattr(line.options, "suite", "security")
    watches = line.options.watch is not None
    if line.options.record is not None:
        return complain("--from and --watch: keep one") if watches else _check_record(line)
    if watches:
        return _watch(line)
    several = resolve.settings(line)
    announce(several[0])
    return _check(several)


def _watch(line: CommandLine) -> int:
    """Check now and after each change, the rules that failed first; return the last exit code."""
    import threading

    from mcp_touchstone.catalog.errors import UserError
    from mcp_touchstone.commands import watch
    from mcp_touchstone.config import resolve

    several = resolve.settings(line)
    paths = watch.watched(several, line.options.watch, line.options.config)
    failed: dict[str, watch.Failed] = {}

    def check() -> int:
        try:
            several = resolve.settings(line)
        except UserError as error:  # a configuration that is being edited
            return complain(str(error))
        announce(several[0])
        known = [(one, failed[one.name]) for one in several if one.name in failed]
        if first := [was.alone(one) for one, was in known if was.names]:
            say("what failed before:")
            code = _check(first)
            if code == INTERRUPTED:
                return code
            say("", "all:")
        return _check(several, note)

    def note(settings: Settings, run: Run) -> None:
        if run.verdicts:  # otherwise nothing was judged, and the last failures are still open
            failed[settings.name] = watch.Failed.of(run)

    own = watch.written(several)
    return watch.watch(lambda: watch.look(paths, own), check, threading.Event().wait, paths)


def _check(
    several: Sequence[Settings],
    on_run: Callable[[Settings, Run], None] = lambda _settings, _run: None,
) -> int:
    """Check one server after another; return the worst exit code."""
    from functools import partial

    from mcp_touchstone.catalog.errors import UserError

    codes: dict[str, int] = {}
    parts = shared_reports(several)
    for one in several:
        if codes:
            say("")
        try:
            codes[one.name] = _check_one(one, parts, partial(on_run, one))
        except UserError as error:  # the others are checked all the same
            codes[one.name] = complain(str(error))
            if parts:
                from mcp_touchstone.report import kinds

                for line in kinds.write_missing(
                    kinds.wanted(one.report), parts, one.name, str(error)
                ):
                    complain(line)
        if codes[one.name] == INTERRUPTED:
            break
    if len(several) > 1:
        say("")
        width = max(map(len, codes))
        for name, code in codes.items():
            say(f"  {name:<{width}}  {CODES[code]}")
    return next(code for code in CODES if code in codes.values())


def _check_record(line: CommandLine) -> int:
    """Check the server of a registry record, and print where the two differ."""
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.fleet import records

    options = line.options
    if line.server or options.words or options.config or "bundled" in options or "url" in options:
        return complain(f"--from {options.record}: it names the server; drop the other one")
    own = layer(vars(options))
    entry = records.record_of(options.record, own.get("env", {}))
    settings = merged({"command": entry.launch, "url": entry.url, "env": dict(entry.env)}, own)
    say(f"server: {entry.url or ' '.join(entry.launch)}", flush=True)

    def compare(run: Run) -> None:
        said = [{}, *run.subject.reported.values()][-1]
        for one in records.differences(entry, said):
            say(f"record: {one}")

    return _check_one(settings, {}, compare, records.published(options.record))


def _check_one(
    settings: Settings,
    parts: Parts,
    on_run: Callable[[Run], None] = lambda _run: None,
    record: Mapping[str, Any] | None = None,
) -> int:
    import threading
    from dataclasses import replace

    from mcp_touchstone.config import resolve
    from mcp_touchstone.engine.runner import judge
    from mcp_touchstone.runtime.secrets import arguments

    target = resolve.target(settings)
    write = reports(settings, parts, {**target.env, **arguments(target.command)})
    choice = replace(resolve.choice(settings), record=record)
    book = resolve.book(settings)
    old = older(settings)
    _check_budget(settings)
    _check_lock(settings)
    if settings.sign is not None and settings.attest is None:
        return complain("--sign signs the statement of --attest FILE; name that")
    if settings.sign is not None:
        from mcp_touchstone.report import attest

        attest.signed(b"", settings.sign)  # a wrong key is refused before the server is started
    scanned = packages_named(settings)
    screen = _Screen(settings, target)
    try:
        run = judge(target, screen.read, choice, on_event=screen.on_event, stop=threading.Event())
    finally:
        screen.stop()
    renewal = None
    if book is not None:
        run, renewal = book.hold(run, screen.read(), choice)
    if (settings.budget is not None or settings.update_budget) and run.budgets.tokens:
        run = _hold_budget(run, settings)
    run = with_advisories(run, scanned)
    if settings.locked and not settings.update_lock:
        from mcp_touchstone.golden import lock_file

        changes = lock_file.compare(run, _lock(settings), settings.name, _lock_options(settings))
        run = replace(run, locked=changes)
    code = conclude(run, settings, screen.terminal, write, renewal, old, on_run)
    if settings.attest is not None:
        from mcp_touchstone.report import attest

        env = {**os.environ, **target.env, **arguments(target.command)}
        attest.write(attest.statement(run, env), settings.attest, settings.sign)
    if settings.update_lock:
        from mcp_touchstone.golden import lock_file

        name = lock_file.update(run, _lock(settings), settings.name, _lock_options(settings))
        say(f"wrote {name} into {_lock(settings)}")
    return code


def _lock(settings: Settings) -> Path:
    from pathlib import Path

    return settings.lock or Path("touchstone.lock")


def _lock_options(settings: Settings) -> dict[str, Any]:
    """Return the options on which abilities and verdicts depend."""
    return {
        "suite": settings.suite,
        "select": list(settings.select),
        "attacks": list(settings.attacks),
        "commands": settings.attack_commands,
        "promises": sorted(map(str, settings.promise)),
    }


def _check_lock(settings: Settings) -> None:
    """Refuse a wrong lock before the server is started."""
    if settings.locked or settings.update_lock:
        from mcp_touchstone.golden import lock_file

        path = _lock(settings)
        if settings.locked or path.exists():
            lock_file.load(path)


def with_advisories(run: Run, scanned: Scanned | None) -> Run:
    """Return a run with what it showed of the advisories on its packages, if somebody asked."""
    if scanned is None:
        return run
    from mcp_touchstone.results import advisories

    return advisories.compared(run, scanned)


def packages_named(settings: Settings) -> Scanned | None:
    """Return the packages of --osv; None if nobody asked for advisories."""
    if not settings.advisories and settings.osv is None:
        return None
    from mcp_touchstone.advisories import known, osv

    return known.Scanned() if settings.osv is None else osv.read(settings.osv)


def _check_budget(settings: Settings) -> None:
    """Refuse a wrong file of budgets before the server is started."""
    if settings.budget is not None:
        from mcp_touchstone.gate import budget_file

        if settings.budget.exists() or not settings.update_budget:
            budget_file.load(settings.budget)


def _hold_budget(run: Run, settings: Settings) -> Run:
    """Return a run compared with the file of budgets, or write its costs into that."""
    from dataclasses import replace
    from pathlib import Path

    from mcp_touchstone.gate import budget_file

    path = settings.budget or Path("budgets.toml")
    if settings.update_budget:
        budget_file.update(run.budgets, path)
    return replace(run, budgets=budget_file.hold(run.budgets, path))


class _Screen:
    """What a check prints. Its modules are imported while the server starts."""

    def __init__(self, settings: Settings, target: Target) -> None:
        self._settings = settings
        self._target = target
        self._terminal: Terminal | None = None
        self._over = False

    def read(self) -> Registry:
        """Open the terminal, and read the suite."""
        from mcp_touchstone.catalog.loader import load

        _ = self.terminal
        return load(self._settings.suite)

    @property
    def terminal(self) -> Terminal:
        """The terminal, opened on first use."""
        from mcp_touchstone.report.terminal import Terminal
        from mcp_touchstone.runtime.secrets import arguments

        if self._terminal is None:
            settings = self._settings
            self._terminal = Terminal(
                console(settings.color),
                verbose=settings.verbose,
                quiet=settings.quiet,
                environment={
                    **os.environ,
                    **self._target.env,
                    **arguments(self._target.command),
                },
            )
            self._terminal.start(self._target.shown, self._target.shelter)
            if self._over:
                self._terminal.stop()
        return self._terminal

    def on_event(self, event: Event) -> None:
        """Follow the gate."""
        self.terminal.on_event(event)

    def stop(self) -> None:
        """Remove the progress line for good."""
        self._over = True
        if self._terminal is not None:
            self._terminal.stop()
